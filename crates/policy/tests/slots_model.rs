//! The allocator of cache slots against a model that tries all sets of colors.

use std::collections::BTreeMap;

use policy::slots::{Allocator, Caches, DataSet, Grant, Kind, Owner, Refused, SetId, SlotId, Status};
use proptest::prelude::*;

const COLOR_BYTES: u64 = 8192;

#[derive(Clone, Debug)]
enum Step {
    Slot {
        owner: usize,
        bytes: u64,
        private: bool,
    },
    Allocate {
        slot: Option<usize>,
        owner: usize,
        pages: u64,
        cpus: Vec<u32>,
        frames: Vec<u64>,
    },
    Free {
        set: usize,
    },
    FreeSlot {
        slot: usize,
    },
    Leave {
        owner: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let cpus = prop::collection::vec(0u32..6, 1..4);
    let frames = prop_oneof![Just(Vec::new()), prop::collection::vec(0u64..12, 0..9)];
    prop_oneof![
        3 => (0usize..3, 1u64..COLOR_BYTES * 6, any::<bool>())
            .prop_map(|(owner, bytes, private)| Step::Slot { owner, bytes, private }),
        8 => (prop::option::weighted(0.8, 0usize..20), 0usize..3, 0u64..24, cpus, frames)
            .prop_map(|(slot, owner, pages, cpus, frames)| Step::Allocate { slot, owner, pages, cpus, frames }),
        4 => (0usize..20).prop_map(|set| Step::Free { set }),
        1 => (0usize..20).prop_map(|slot| Step::FreeSlot { slot }),
        1 => (0usize..3).prop_map(|owner| Step::Leave { owner }),
    ]
}

/// Colors are bits of a `u32`.
#[derive(Clone, Debug)]
struct Slot {
    owner: usize,
    kind: Kind,
    count: u32,
}

#[derive(Clone, Debug)]
struct Set {
    owner: usize,
    /// The set itself if it has no slot: such a set shares with no particular other.
    slot: Option<SlotId>,
    kind: Kind,
    colors: u32,
    caches: Vec<usize>,
}

struct Model {
    colors: u32,
    caches: usize,
    slots: Vec<(SlotId, Slot)>,
    sets: Vec<(SetId, Set)>,
}

impl Model {
    /// The colors of a cache that all data sets hold together.
    fn held(&self, cache: usize, kind: Kind) -> u32 {
        let held = self
            .sets
            .iter()
            .filter(|(_, set)| set.kind == kind && set.caches.contains(&cache));
        held.fold(0, |colors, (_, set)| colors | set.colors)
    }

    /// The colors that a slot has, cache by cache.
    fn pieces(&self, slot: SlotId) -> BTreeMap<usize, u32> {
        let sets = self.sets.iter().filter(|(_, set)| set.slot == Some(slot));
        sets.flat_map(|(_, set)| set.caches.iter().map(|&cache| (cache, set.colors)))
            .collect()
    }

    fn may(&self, colors: u32, caches: &[usize], kind: Kind) -> bool {
        caches.iter().all(|&cache| {
            colors & self.held(cache, Kind::Private) == 0
                && (kind == Kind::Shared || colors & self.held(cache, Kind::Shared) == 0)
        })
    }

    fn has_frames(colors: u32, frames: &[u64], pages: u64) -> bool {
        let needed = pages.div_ceil(u64::from(colors.count_ones()));
        bits(colors).all(|color| frames.get(color as usize).is_none_or(|&frames| frames >= needed))
    }

    /// All sets of `count` colors that a new piece on these caches could have.
    fn possible(&self, count: u32, caches: &[usize], kind: Kind, frames: &[u64], pages: u64) -> Vec<u32> {
        (0..1u32 << self.colors)
            .filter(|colors| colors.count_ones() == count)
            .filter(|&colors| self.may(colors, caches, kind) && Model::has_frames(colors, frames, pages))
            .collect()
    }

    /// The number of colors of caches that would change from unspecified to shared.
    fn fresh(&self, colors: u32, caches: &[usize]) -> u32 {
        caches
            .iter()
            .map(|&cache| (colors & !self.held(cache, Kind::Shared)).count_ones())
            .sum()
    }

    /// The number of colors that follow another one, the first following the last.
    fn touching(&self, colors: u32) -> u32 {
        if self.colors == 1 {
            return 0;
        }
        bits(colors)
            .filter(|color| colors >> ((color + 1) % self.colors) & 1 == 1)
            .count() as u32
    }

    fn check_grant(&self, slot: Option<(SlotId, &Slot)>, pages: u64, caches: &[usize], frames: &[u64], grant: &Grant) {
        let colors = grant.colors.iter().fold(0u32, |bits, color| bits | 1 << color);
        assert!(colors < 1 << self.colors && grant.caches == caches);
        let Some((id, slot)) = slot else {
            let fewest =
                (1..=self.colors).find(|&count| !self.possible(count, caches, Kind::Shared, frames, pages).is_empty());
            assert_eq!(Some(colors.count_ones()), fewest);
            assert!(self.may(colors, caches, Kind::Shared) && Model::has_frames(colors, frames, pages));
            return;
        };
        assert_eq!((colors.count_ones(), grant.kind), (slot.count, slot.kind));
        let pieces = self.pieces(id);
        if let Some((_, &piece)) = pieces.iter().find(|(cache, _)| caches.contains(cache)) {
            let rest: Vec<usize> = caches
                .iter()
                .copied()
                .filter(|cache| !pieces.contains_key(cache))
                .collect();
            assert!(piece == colors && self.may(colors, &rest, slot.kind));
            return;
        }
        let possible = self.possible(slot.count, caches, slot.kind, frames, pages);
        assert!(possible.contains(&colors), "{colors:b} of {possible:?}");
        if pieces.values().any(|piece| *piece == colors) {
            return;
        }
        // Otherwise a free choice, of which the paper says which is best.
        if slot.kind == Kind::Private && possible.iter().any(|&other| self.touching(other) == 0) {
            assert_eq!(self.touching(colors), 0, "{colors:b}");
        }
        if slot.kind == Kind::Shared {
            let least = possible.iter().map(|&other| self.fresh(other, caches)).min();
            assert_eq!(Some(self.fresh(colors, caches)), least, "{colors:b}");
        }
    }

    /// Checks that a refusal was right.
    fn check_refusal(
        &self,
        slot: Option<(SlotId, &Slot)>,
        pages: u64,
        caches: &[usize],
        frames: &[u64],
        refused: &Refused,
    ) {
        let Some((id, slot)) = slot else {
            let any =
                (1..=self.colors).any(|count| !self.possible(count, caches, Kind::Shared, frames, pages).is_empty());
            assert!(!any, "{refused}");
            return;
        };
        let pieces = self.pieces(id);
        let here: Vec<u32> = caches.iter().filter_map(|cache| pieces.get(cache)).copied().collect();
        let Some(&first) = here.first() else {
            assert!(
                self.possible(slot.count, caches, slot.kind, frames, pages).is_empty(),
                "{refused}"
            );
            return;
        };
        let rest: Vec<usize> = caches
            .iter()
            .copied()
            .filter(|cache| !pieces.contains_key(cache))
            .collect();
        match refused {
            Refused::Apart { .. } => assert!(here.iter().any(|&piece| piece != first)),
            Refused::Taken { .. } => assert!(!self.may(first, &rest, slot.kind)),
            _ => panic!("{refused:?}"),
        }
    }

    fn check_status(&self, allocator: &Allocator) {
        for cache in 0..self.caches {
            let (private, shared) = (self.held(cache, Kind::Private), self.held(cache, Kind::Shared));
            assert_eq!(private & shared, 0);
            for color in 0..self.colors {
                let expected = match (private >> color & 1, shared >> color & 1) {
                    (1, _) => Status::Private,
                    (_, 1) => Status::Shared,
                    _ => Status::Unspecified,
                };
                assert_eq!(allocator.status(cache, color), Some(expected));
            }
            // Private colors are one slot's.
            for (at, (_, set)) in self.sets.iter().enumerate() {
                let others = self.sets[..at].iter().filter(|(_, other)| other.slot != set.slot);
                let there = |set: &Set| set.kind == Kind::Private && set.caches.contains(&cache);
                for (_, other) in others.filter(|(_, other)| there(other) && there(set)) {
                    assert_eq!(other.colors & set.colors, 0);
                }
            }
        }
    }
}

fn bits(colors: u32) -> impl Iterator<Item = u32> {
    (0..32).filter(move |color| colors >> color & 1 == 1)
}

fn run(colors: u32, caches: usize, steps: Vec<Step>) {
    let mut allocator = Allocator::new(Caches {
        colors,
        color_bytes: COLOR_BYTES,
        page_bytes: 4096,
        cpus: (0..caches as u32).map(|cache| vec![cache, cache + 3]).collect(),
    })
    .unwrap();
    let mut owners: Vec<Owner> = (0..3).map(|_| allocator.join()).collect();
    let mut model = Model {
        colors,
        caches,
        slots: Vec::new(),
        sets: Vec::new(),
    };
    for step in steps {
        match step {
            Step::Slot { owner, bytes, private } => {
                let kind = if private { Kind::Private } else { Kind::Shared };
                let count = (bytes / COLOR_BYTES).max(1) as u32;
                match allocator.slot(owners[owner], bytes, kind) {
                    Ok(slot) => model.slots.push((slot, Slot { owner, kind, count })),
                    Err(_) => assert!(count > colors),
                }
            }
            Step::Allocate {
                slot,
                owner,
                pages,
                mut cpus,
                frames,
            } => {
                cpus.retain(|cpu| (cpu % 3) < caches as u32);
                let mut on: Vec<usize> = cpus.iter().map(|cpu| *cpu as usize % 3).collect();
                on.sort_unstable();
                on.dedup();
                let slot = slot.and_then(|slot| model.slots.get(slot)).cloned();
                // Slots are used by their owners.
                let owner = slot.as_ref().map_or(owner, |(_, slot)| slot.owner);
                let data = DataSet {
                    bytes: pages * 4096,
                    cpus: &cpus,
                    slot: slot.as_ref().map(|(id, _)| *id),
                };
                let known = slot.as_ref().map(|(id, slot)| (*id, slot));
                match allocator.allocate(owners[owner], data, &frames) {
                    Ok(grant) => {
                        model.check_grant(known, pages, &on, &frames, &grant);
                        model.sets.push((
                            grant.set,
                            Set {
                                owner,
                                slot: data.slot,
                                kind: grant.kind,
                                colors: grant.colors.iter().fold(0, |bits, color| bits | 1 << color),
                                caches: on,
                            },
                        ));
                    }
                    Err(Refused::NoCpus) => assert!(on.is_empty()),
                    Err(refused) => model.check_refusal(known, pages, &on, &frames, &refused),
                }
            }
            Step::Free { set } => {
                if set < model.sets.len() {
                    let (id, freed) = model.sets.swap_remove(set);
                    allocator.free(owners[freed.owner], id).unwrap();
                }
            }
            Step::FreeSlot { slot } => {
                if let Some((id, known)) = model.slots.get(slot).cloned() {
                    let sets = model.sets.iter().filter(|(_, set)| set.slot == Some(id)).count() as u32;
                    match allocator.free_slot(owners[known.owner], id) {
                        Ok(()) => {
                            assert_eq!(sets, 0);
                            model.slots.remove(slot);
                        }
                        Err(refused) => assert_eq!(refused, Refused::InUse { sets }),
                    }
                }
            }
            Step::Leave { owner } => {
                allocator.leave(owners[owner]).unwrap();
                owners[owner] = allocator.join();
                model.sets.retain(|(_, set)| set.owner != owner);
                model.slots.retain(|(_, slot)| slot.owner != owner);
            }
        }
        model.check_status(&allocator);
    }
    // Frees restore.
    for owner in owners {
        allocator.leave(owner).unwrap();
    }
    model.sets.clear();
    model.check_status(&allocator);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(2000)))]

    #[test]
    fn refused_if_and_only_if_impossible(colors in 1u32..9, caches in 1usize..4, steps in prop::collection::vec(step(), 1..40)) {
        run(colors, caches, steps);
    }
}
