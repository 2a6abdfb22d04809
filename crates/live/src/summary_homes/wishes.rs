//! Homes of pages, in as few wishes to the kernel as possible: each splits a mapping, and the number of
//! mappings is limited.

use std::ops::Range;

use sys::numa_maps::Wish;

/// Pages in a row that one wish is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wished {
    pub pages: Range<u64>,
    pub to: To,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    Node(u32),
    /// A page is on the node at its number modulo theirs.
    InTurn(Vec<u32>),
}

impl To {
    /// The node of a page.
    pub fn node(&self, page: u64) -> u32 {
        match self {
            To::Node(node) => *node,
            To::InTurn(nodes) => nodes[(page % nodes.len() as u64) as usize],
        }
    }

    pub fn wish(&self) -> Wish {
        match self {
            To::Node(node) => Wish::Prefer(vec![*node]),
            To::InTurn(nodes) => Wish::Interleave(nodes.clone()),
        }
    }
}

/// Joins homes, ascending, that are on one node, or go round the nodes `in_turn` by the page's number.
pub fn wishes(homes: &[(Range<u64>, u32)], in_turn: &[u32]) -> Vec<Wished> {
    let mut wished: Vec<Wished> = Vec::new();
    for (pages, node) in homes {
        let turn = || To::InTurn(in_turn.to_vec());
        let in_turn = |pages: &Range<u64>, node: u32| {
            in_turn.len() > 1 && pages.end - pages.start == 1 && turn().node(pages.start) == node
        };
        if let Some(last) = wished.last_mut().filter(|last| last.pages.end == pages.start) {
            let joins = match &last.to {
                To::Node(same) if same == node => true,
                // The last one is a single page, and these are the first two of a round.
                To::Node(other) if in_turn(&last.pages, *other) && in_turn(pages, *node) => {
                    last.to = turn();
                    true
                }
                To::Node(_) => false,
                To::InTurn(_) => in_turn(pages, *node),
            };
            if joins {
                last.pages.end = pages.end;
                continue;
            }
        }
        wished.push(Wished {
            pages: pages.clone(),
            to: To::Node(*node),
        });
    }
    wished
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pages: Range<u64>, to: To) -> Wished {
        Wished { pages, to }
    }

    #[test]
    fn pages_of_one_node_and_pages_in_turn_are_one_wish_each() {
        let turn = To::InTurn(vec![0, 2, 5]);
        let homes = [
            (10..14, 0),
            (14..16, 0),
            (16..17, 2),
            (17..18, 5),
            (18..19, 0),
            (19..20, 2),
            (20..25, 5),
        ];
        assert_eq!(
            wishes(&homes, &[0, 2, 5]),
            [
                one(10..16, To::Node(0)),
                one(16..20, turn.clone()),
                one(20..25, To::Node(5))
            ]
        );
        // Nodes out of order and with gaps between them.
        let apart = [(10..11, 2), (12..13, 0), (13..14, 5), (14..15, 0)];
        let expected: Vec<Wished> = apart
            .iter()
            .map(|(pages, node)| one(pages.clone(), To::Node(*node)))
            .collect();
        assert_eq!(wishes(&apart, &[0, 2, 5]), expected);
        assert_eq!(wishes(&[(4..5, 7), (5..6, 7)], &[7]), [one(4..6, To::Node(7))]);
        assert!((16..20).zip([2, 5, 0, 2]).all(|(page, node)| turn.node(page) == node));
    }
}
