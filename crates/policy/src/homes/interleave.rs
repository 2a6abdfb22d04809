//! Interleaving: pages go round the nodes by their number, each node as many in turn as its weight says, as in Linux's
//! MPOL_INTERLEAVE and MPOL_WEIGHTED_INTERLEAVE (Documentation/admin-guide/mm/numa_memory_policy.rst; `numactl --interleave`
//! and `--weighted-interleave`).
//!
//! Linux takes the page's offset in its mapping, which for anonymous memory is the page's number in the address space:
//! it does not matter which thread touches a page, or when. The weights are those of Linux 6.9, whole numbers for each
//! node.

use crate::seam::{Placement, Policy, Touch, World};
use crate::settings::{PolicyError, Settings};

pub struct Interleave {
    /// Of each node; nodes beyond get nothing. Empty: all nodes alike.
    weights: Vec<u64>,
}

pub fn build(settings: &Settings) -> Result<Box<dyn Policy>, PolicyError> {
    let weights = settings.list("weights").to_vec();
    if weights.len() > 1 && weights.iter().all(|weight| *weight == 0) {
        return Err(PolicyError::UnknownValue {
            policy: "interleave".to_string(),
            param: "weights".to_string(),
            value: weights.iter().map(u64::to_string).collect::<Vec<_>>().join(":"),
            known: "weights of which one is above 0, 0 alone".to_string(),
        });
    }
    Ok(Box::new(Interleave { weights }))
}

impl Interleave {
    fn node_of(&self, number: u64, nodes: u32) -> u32 {
        let weights = &self.weights[..self.weights.len().min(nodes as usize)];
        let round: u64 = weights.iter().sum();
        // No weights, or none for an existing node: all alike.
        if round == 0 {
            return (number % u64::from(nodes)) as u32;
        }
        let mut place = number % round;
        for (&weight, node) in weights.iter().zip(0..) {
            if place < weight {
                return node;
            }
            place -= weight;
        }
        0
    }
}

impl Policy for Interleave {
    fn place(&mut self, touch: &Touch, world: &World) -> Placement {
        Placement {
            color: None,
            node: Some(self.node_of(touch.page.number, world.nodes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(weights: &[u64], nodes: u32, pages: std::ops::Range<u64>) -> Vec<u32> {
        let weights = weights.to_vec();
        pages
            .map(|page| {
                Interleave {
                    weights: weights.clone(),
                }
                .node_of(page, nodes)
            })
            .collect()
    }

    #[test]
    fn pages_go_round_by_their_numbers() {
        assert_eq!(homes(&[], 3, 0..5), [0, 1, 2, 0, 1]);
        assert_eq!(homes(&[], 3, 7..9), [1, 2]);
    }

    #[test]
    fn a_node_gets_as_many_in_turn_as_it_weighs() {
        assert_eq!(homes(&[3, 1], 2, 0..9), [0, 0, 0, 1, 0, 0, 0, 1, 0]);
        // A node without a weight is left out, and so is one of weight 0.
        assert_eq!(homes(&[0, 2, 1], 4, 0..6), [1, 1, 2, 1, 1, 2]);
        // Weights of nodes that the machine does not have count for nothing.
        assert_eq!(homes(&[1, 1, 5], 2, 0..4), [0, 1, 0, 1]);
        assert_eq!(homes(&[0, 0, 5], 2, 0..4), [0, 1, 0, 1]);
    }
}
