//! The cpus that the threads of a program are taken to be on.

use results::run::Seat;
use sys::nodes::NodeReading;

/// The cpus that a program may have, in the order of Linux's numbers: thread `t` of a team is on the `t`-th of them.
/// Cpus of an unknown node are left out.
pub fn seats(nodes: &[NodeReading], allowed: &[u32]) -> Vec<Seat> {
    let node_of = |cpu: u32| nodes.iter().find(|node| node.cpus.contains(&cpu));
    let mut seats: Vec<Seat> = allowed
        .iter()
        .filter_map(|&cpu| {
            Some(Seat {
                cpu,
                node: node_of(cpu)?.number,
            })
        })
        .collect();
    seats.sort_unstable_by_key(|seat| seat.cpu);
    seats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_sit_on_the_cpus_that_they_may_have_in_linuxs_order() {
        let node = |number: u32, cpus: &[u32]| NodeReading {
            number,
            cpus: cpus.to_vec(),
            distances: None,
            memory_bytes: None,
            access: None,
        };
        let nodes = [node(0, &[0, 1, 4, 5]), node(2, &[2, 3, 6, 7]), node(3, &[])];
        let found: Vec<(u32, u32)> = seats(&nodes, &[1, 2, 3, 4, 9])
            .iter()
            .map(|seat| (seat.cpu, seat.node))
            .collect();
        assert_eq!(found, [(1, 0), (2, 2), (3, 2), (4, 0)]);
    }
}
