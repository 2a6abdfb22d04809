//! Ways in place of colors: the ledger of a process on whose machine colors do nothing.
//!
//! Ways keep threads apart and not data. So only the users of a data set in a private slot count: all such threads are
//! one group of resctrl, and it has as many ways as the private slots in use need. Shared slots, and data that is not
//! worth caching, take nothing and give nothing: their threads have the default group's ways.

use std::collections::{BTreeMap, BTreeSet};

use policy::slots::{Caches, ColorSet, Free, Kind, Space};

use super::Error;
use super::ledger::{Given, Ledger};
use super::threads::ThreadGroup;
use crate::resctrl::{WaySlot, Ways, WaysError};

pub(super) struct ByWays {
    ways: Ways,
    /// With ways for colors.
    caches: Caches,
    slots: BTreeMap<u64, (u64, Kind)>,
    sets: BTreeMap<u64, Set>,
    /// The threads of the next data sets.
    users: BTreeSet<u32>,
    next: u64,
    held: Option<(Wanted, WaySlot)>,
}

struct Set {
    slot: Option<u64>,
    threads: BTreeSet<u32>,
    cpus: Vec<u32>,
}

/// The sum of the private slots in use.
#[derive(Clone, Default, PartialEq, Eq)]
struct Wanted {
    bytes: u64,
    cpus: BTreeSet<u32>,
    threads: BTreeSet<u32>,
}

impl ByWays {
    pub(super) fn new(ways: Ways, caches: Caches) -> ByWays {
        ByWays {
            ways,
            caches,
            slots: BTreeMap::new(),
            sets: BTreeMap::new(),
            users: BTreeSet::new(),
            next: 1,
            held: None,
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        let mut counted = BTreeSet::new();
        for set in self.sets.values() {
            let slot = set.slot.and_then(|number| Some((number, self.slots.get(&number)?)));
            let Some((number, (bytes, Kind::Private))) = slot else {
                continue;
            };
            if counted.insert(number) {
                wanted.bytes = wanted.bytes.saturating_add(*bytes);
            }
            wanted.cpus.extend(&set.cpus);
            wanted.threads.extend(&set.threads);
        }
        wanted
    }

    /// Gives the group the wanted ways and threads. For a moment its threads have the default
    /// group's ways.
    fn hold(&mut self) -> Result<(), Error> {
        let wanted = self.wanted();
        let grown = |(held, _): &(Wanted, WaySlot)| {
            held.bytes == wanted.bytes && held.cpus == wanted.cpus && held.threads.is_subset(&wanted.threads)
        };
        let held = match self.held.take() {
            Some(held) if grown(&held) => Some(held.1),
            Some((_, slot)) => {
                slot.free()?;
                None
            }
            None => None,
        };
        if wanted.bytes == 0 {
            return Ok(());
        }
        let slot = match held {
            Some(slot) => slot,
            None => {
                let cpus: Vec<u32> = wanted.cpus.iter().copied().collect();
                self.ways.slot(wanted.bytes, Kind::Private, &cpus)?
            }
        };
        for &thread in &wanted.threads {
            match slot.add(thread) {
                // It has ended.
                Ok(()) | Err(WaysError::NoThread { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.held = Some((wanted, slot));
        Ok(())
    }

    /// Places of the caches that these cpus have.
    fn places(&self, cpus: &[u32]) -> Vec<usize> {
        let has = |cache: &[u32]| cache.iter().any(|cpu| cpus.contains(cpu));
        let places = self.caches.cpus.iter().enumerate();
        places.filter(|(_, cache)| has(cache)).map(|(place, _)| place).collect()
    }
}

impl Ledger for ByWays {
    fn slot(&mut self, bytes: u64, kind: Kind) -> Result<u64, Error> {
        let number = self.number();
        self.slots.insert(number, (bytes, kind));
        Ok(number)
    }

    fn free_slot(&mut self, slot: u64) -> Result<(), Error> {
        self.slots.remove(&slot);
        Ok(())
    }

    /// If a group names cpus and no threads, only the caller is known.
    fn used_by(&mut self, group: &ThreadGroup) -> Result<(), Error> {
        self.users = group.threads_now()?.into_iter().collect();
        if self.users.is_empty() {
            self.users.insert(sys::affinity::this_thread());
        }
        Ok(())
    }

    fn allocate(&mut self, slot: Option<u64>, _: u64, cpus: &[u32]) -> Result<Given, Error> {
        let set = self.number();
        let user = Set {
            slot,
            threads: self.users.clone(),
            cpus: cpus.to_vec(),
        };
        self.sets.insert(set, user);
        if let Err(error) = self.hold() {
            // As it was; the first error is the one to report.
            self.sets.remove(&set);
            let _ = self.hold();
            return Err(error);
        }
        Ok(Given {
            set,
            colors: ColorSet::new(),
            caches: self.places(cpus),
        })
    }

    fn free(&mut self, set: u64) -> Result<(), Error> {
        self.sets.remove(&set);
        self.hold()
    }

    fn available(&mut self, cpus: &[u32]) -> Result<Space, Error> {
        let way_bytes = self.caches.color_bytes;
        let mut caches = Vec::new();
        let mut bytes = 0;
        for cache in self.places(cpus) {
            let sharers = self.caches.cpus[cache].clone();
            let free = self.ways.available(&sharers)?;
            bytes += free;
            caches.push(Free {
                cache,
                cpus: sharers,
                unspecified: u32::try_from(free / way_bytes).unwrap_or(u32::MAX),
                shared: 0,
            });
        }
        Ok(Space {
            caches,
            color_bytes: way_bytes,
            bytes,
            together: self.ways.available(cpus)?,
        })
    }

    fn name(&self) -> String {
        "resctrl, for all programs".to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::super::start::by_ways;
    use super::*;
    use crate::resctrl::Instead;
    use crate::resctrl::tests::{INTEL, group_names, machine, masks, ways};
    use crate::slots::{Application, On};

    const MIB: u64 = 1 << 20;

    fn program(folder: &tempfile::TempDir) -> Application {
        let instead = Instead {
            ways: ways(folder, &INTEL),
            level: 3,
            why: "the index is hashed".to_string(),
        };
        by_ways(instead, &[0, 1, 2, 3], &On::Processors(1)).unwrap()
    }

    fn tasks(folder: &tempfile::TempDir, group: &str) -> Vec<u32> {
        let path = folder.path().join("sys/fs/resctrl").join(group).join("tasks");
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }

    #[test]
    fn the_threads_of_private_data_have_the_ways_of_all_private_slots_together() {
        let folder = machine(&INTEL);
        let program = program(&folder);
        assert!(program.means().colors.is_none());
        assert!(
            program.means().engine.contains("(the index is hashed)"),
            "{}",
            program.means().engine
        );
        assert_eq!(program.cpus(), [0, 1]);
        assert_eq!(program.available().unwrap().bytes, 18 * 3 * MIB / 2);
        let mut mine = ThreadGroup::none();
        mine.add_this().unwrap();
        let this = sys::affinity::this_thread();
        let [mut first, mut second, mut third] = [(); 3].map(|()| vec![7u8; 1 << 15]);
        let shared = program.slot(3 * MIB, Kind::Shared).unwrap();
        let mut passing = program.data_set(&mine).unwrap();
        passing.add(&mut first).unwrap();
        passing.allocate(Some(&shared)).unwrap();
        assert!(group_names(&folder).is_empty());

        let [one, two] = [3 * MIB, 4 * MIB].map(|bytes| program.slot(bytes, Kind::Private).unwrap());
        let mut kept = program.data_set(&mine).unwrap();
        kept.add(&mut second).unwrap();
        kept.allocate(Some(&one)).unwrap();
        assert_eq!(masks(&folder, &INTEL, &group_names(&folder)[0])[0].count_ones(), 2);
        let mut more = program.data_set(&mine).unwrap();
        let part = more.add(&mut third).unwrap();
        let given = more.allocate(Some(&two)).unwrap();
        assert_eq!((given.colors.len(), given.caches.as_slice()), (0, [0].as_slice()));
        // 7 MiB are 4 ways and a bit; the other socket is not concerned.
        let group = group_names(&folder);
        assert_eq!(group.len(), 1);
        let own = masks(&folder, &INTEL, &group[0]);
        let default = masks(&folder, &INTEL, "");
        assert_eq!((own[0].count_ones(), own[0] & default[0]), (4, 0));
        assert_eq!(default[1], 0xfffff);
        assert_eq!(tasks(&folder, &group[0]), [this]);
        assert!(more.part(part).iter().all(|&byte| byte == 7));
        assert_eq!(more.done().unwrap().left.len(), 0);

        drop(kept);
        assert_eq!(masks(&folder, &INTEL, &group_names(&folder)[0])[0].count_ones(), 2);
        program.exit().unwrap();
        assert!(group_names(&folder).is_empty());
        assert_eq!(masks(&folder, &INTEL, ""), [0xfffff, 0xfffff]);
        assert!(tasks(&folder, "").contains(&this));
    }

    #[test]
    fn too_much_is_refused_and_leaves_the_group_as_it_was() {
        let folder = machine(&INTEL);
        let program = program(&folder);
        let [mut first, mut second] = [(); 2].map(|()| vec![7u8; 1 << 15]);
        let slot = program.slot(12 * MIB, Kind::Private).unwrap();
        let mut kept = program.data_set(&ThreadGroup::on_cpus(&[1])).unwrap();
        kept.add(&mut first).unwrap();
        kept.allocate(Some(&slot)).unwrap();
        let large = program.slot(24 * MIB, Kind::Private).unwrap();
        let mut more = program.data_set(&ThreadGroup::on_cpus(&[0])).unwrap();
        more.add(&mut second).unwrap();
        let error = more.allocate(Some(&large)).unwrap_err();
        assert!(error.is_full() && error.to_string().contains("of 24 ways"), "{error}");
        let group = group_names(&folder);
        assert_eq!(masks(&folder, &INTEL, &group[0])[0].count_ones(), 8);
        assert_eq!(tasks(&folder, &group[0]), [sys::affinity::this_thread()]);
    }
}
