//! The sources of the addresses of accesses, from the input's dependences.

use std::collections::{HashMap, HashSet};

use trace::Dependence;

/// So many loads lead from one access to the next of a chain, at most: a node's next one is rarely further away.
const CHAIN: usize = 64;

/// The source of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses {
    /// Nothing is known of that.
    #[default]
    Unknown,
    /// From no load: each access can begin before the one ahead of it has ended.
    Computed,
    /// From data loaded by this site: an index, or a pointer in an array.
    Loaded(u32),
    /// From the data of the access ahead of it: pointers are followed, one after the other.
    Chased,
}

/// The sites that each site waits for.
pub struct Sources(Option<HashMap<u32, Vec<u32>>>);

impl Sources {
    /// `None`: nothing is known. An update in place that waits for another one is only ordered by its locked
    /// instruction, and gets no address from it.
    pub fn new(dependences: Option<&[Dependence]>, updates: impl Fn(u32) -> bool) -> Sources {
        let of = |one: &Dependence| {
            let on = one.on.iter().copied();
            (one.site, on.filter(|&on| !(updates(one.site) && updates(on))).collect())
        };
        Sources(dependences.map(|all| all.iter().map(of).collect()))
    }

    /// For a place with these sites: chased, if one of them is or has its addresses from one that is, else loaded, if
    /// one is.
    pub fn of(&self, sites: &[u32]) -> Addresses {
        let Some(on) = &self.0 else {
            return Addresses::Unknown;
        };
        // The other reads of a node come with the pointer to it.
        let sources = sites.iter().filter_map(|site| on.get(site)).flatten();
        if sites.iter().chain(sources).any(|&site| is_chased(on, site)) {
            return Addresses::Chased;
        }
        let from = sites.iter().filter_map(|site| on.get(site)?.first());
        from.min().map_or(Addresses::Computed, |&site| Addresses::Loaded(site))
    }
}

/// Returns whether a site's addresses come, perhaps over other loads, from its own data.
fn is_chased(on: &HashMap<u32, Vec<u32>>, site: u32) -> bool {
    let mut seen = HashSet::new();
    let mut next = vec![site];
    while let Some(at) = next.pop() {
        for &from in on.get(&at).into_iter().flatten() {
            if from == site {
                return true;
            }
            if seen.len() < CHAIN && seen.insert(from) {
                next.push(from);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependence(site: u32, on: &[u32]) -> Dependence {
        Dependence {
            site,
            on: on.to_vec(),
            either: false,
        }
    }

    #[test]
    fn pointers_are_followed_where_a_load_waits_for_itself() {
        let all = [
            dependence(1, &[1]),
            dependence(2, &[3]),
            dependence(3, &[4]),
            dependence(4, &[2]),
        ];
        let sources = Sources::new(Some(&all), |_| false);
        assert_eq!(sources.of(&[1]), Addresses::Chased);
        // A pointer to a pointer to the next node.
        assert_eq!(sources.of(&[9, 3]), Addresses::Chased);
    }

    #[test]
    fn an_index_comes_from_another_load() {
        let all = [dependence(1, &[1]), dependence(2, &[1]), dependence(6, &[5])];
        let sources = Sources::new(Some(&all), |_| false);
        // The other fields of a node.
        assert_eq!(sources.of(&[2]), Addresses::Chased);
        assert_eq!(sources.of(&[6]), Addresses::Loaded(5));
        assert_eq!(sources.of(&[5]), Addresses::Computed);
        assert_eq!(Sources::new(None, |_| false).of(&[1]), Addresses::Unknown);
    }
    #[test]
    fn the_order_of_locked_instructions_is_no_chain_of_pointers() {
        let all = [dependence(1, &[1]), dependence(2, &[3]), dependence(3, &[3])];
        let sources = Sources::new(Some(&all), |site| site < 3);
        assert_eq!(sources.of(&[1]), Addresses::Computed);
        // Another load finds the data it updates.
        assert_eq!(sources.of(&[2]), Addresses::Chased);
    }
}
