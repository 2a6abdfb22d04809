//! The policy of the registry that chooses the colors.

use policy::cdpc::{Loop, Malformed, first_touches};
use policy::{Entry, Kind, Name, Page, Policy, Touch, World};

use crate::{Colors, PAGE_BYTES};

/// The policies that there are for the pages of described loops; the one by hints is first.
pub fn policies() -> impl Iterator<Item = &'static Entry> {
    let of = |hints: bool| {
        policy::registry()
            .iter()
            .filter(move |entry| is_one(entry) && entry.traits.hints == hints)
    };
    of(true).chain(of(false))
}

fn is_one(entry: &Entry) -> bool {
    entry.kind == Kind::Color && !entry.traits.slots
}

/// There is no such policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no policy is called {0:?} here: there are cdpc, page-coloring, bin-hopping and random")]
pub struct UnknownPolicy(pub String);

/// A policy, as it deals colors.
pub(super) enum Dealing {
    /// Deals by hints: the five steps, weighed against the static policies if `weigh` is true.
    Hints { weigh: bool },
    /// Deals to each page once, in the order in which the loops would touch the pages: loop after loop in the order in
    /// which they were described, the threads of each in step. (The kernel's real choice depends on the pages that the
    /// program touches before, and on the thread that comes first.)
    Touches { policy: Box<dyn Policy>, world: World },
}

impl Dealing {
    /// The policy of that name, and how it is called in the registry.
    pub(super) fn named(name: &Name, colors: &Colors) -> Result<(&'static str, Dealing), UnknownPolicy> {
        let unknown = || UnknownPolicy(name.to_string());
        let known = name.alone().filter(|entry| is_one(entry)).ok_or_else(unknown)?;
        let policy = policy::build(name, &[]).map_err(|_| unknown())?;
        let dealing = match policy.hints_wanted() {
            Some(wanted) => Dealing::Hints { weigh: wanted.weigh },
            None => Dealing::Touches {
                policy,
                world: World {
                    page_bytes: PAGE_BYTES as u64,
                    colors: colors.count(),
                    cpus: 1,
                    nodes: 1,
                    cpu_nodes: 1,
                    free_frames: vec![u64::MAX],
                    now_ns: 0,
                    caches: None,
                    domains: None,
                    runnable: Vec::new(),
                },
            },
        };
        Ok((known.name, dealing))
    }
}

/// Colors for the pages that loops would touch and that are new, in the order of touch.
pub(super) fn as_touched(
    policy: &mut dyn Policy,
    world: &World,
    loops: &[Loop],
    is_new: impl FnMut(u64) -> bool,
) -> Result<Vec<(u64, u16)>, Malformed> {
    let pages = first_touches(loops, PAGE_BYTES as u64, is_new)?;
    let mut color = |number: u64| {
        let touch = Touch {
            page: Page { space: 0, number },
            thread: 0,
            cpu: 0,
            write: false,
        };
        policy.place(&touch, world).color.unwrap_or(0) as u16
    };
    Ok(pages.into_iter().map(|page| (page, color(page))).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::tests::{a_loop, colors};
    use super::*;

    fn dealt(name: &str, loops: &[Loop]) -> Vec<(u64, u16)> {
        let Ok((_, Dealing::Touches { mut policy, world })) = Dealing::named(&name.parse().unwrap(), &colors()) else {
            panic!("{name} goes by touches");
        };
        let mut seen = HashSet::new();
        as_touched(policy.as_mut(), &world, loops, |page| seen.insert(page)).unwrap()
    }

    #[test]
    fn policies_are_known_by_their_names_in_the_registry() {
        let names: Vec<_> = policies().map(|entry| entry.name).collect();
        assert_eq!(names, ["cdpc", "page-coloring", "bin-hopping", "random"]);
        for entry in policies() {
            let dealing = Dealing::named(&entry.into(), &colors());
            assert_eq!(dealing.ok().map(|dealing| dealing.0), Some(entry.name));
        }
        for name in ["migrate", "slots", "first-touch+cdpc"] {
            let why = Dealing::named(&name.parse().unwrap(), &colors())
                .err()
                .unwrap()
                .to_string();
            assert!(why.contains("bin-hopping"), "{why}");
        }
    }

    #[test]
    fn bin_hopping_deals_to_threads_in_step() {
        // Two arrays of four pages, two threads.
        let described = a_loop("f", &[(16 << 12, 4 << 12), (32 << 12, 4 << 12)], 2);
        let dealt = dealt("bin-hopping", &[described]);
        assert_eq!(
            dealt,
            [(16, 0), (18, 1), (17, 2), (19, 3), (32, 4), (34, 5), (33, 6), (35, 7)]
        );
    }

    #[test]
    fn the_others_are_the_registrys_too() {
        let described = a_loop("f", &[(16 << 12, 9 << 12)], 3);
        let by_address = dealt("page-coloring", std::slice::from_ref(&described));
        assert_eq!(by_address.len(), 9);
        assert!(by_address.iter().all(|&(page, color)| u64::from(color) == page % 16));
        let (one, other) = (
            dealt("random", std::slice::from_ref(&described)),
            dealt("random", &[described]),
        );
        assert_eq!(one, other, "the same in each run");
    }
}
