//! The groups of the tree: the owners of ways, and transfers between them.

use std::collections::BTreeMap;

use policy::slots::Kind;
use sys::Root;

use super::choose::{self, Masks, Wanted};
use super::schemata::{self, Schemata};
use super::tree::Tree;
use super::{Mask, WaysError, slot};

/// The tree, and the data of the caches.
pub(super) struct State {
    pub(super) tree: Box<dyn Tree>,
    pub(super) system: Root,
    pub(super) level: u32,
    /// `L3`, or `L3CODE` and `L3DATA` where code and data have masks of their own.
    pub(super) resources: Vec<String>,
    /// All ways of a cache.
    pub(super) all: Mask,
    /// Ways that devices may use too.
    pub(super) devices: Mask,
    pub(super) least: u32,
    /// Bytes of a way, by cache.
    pub(super) way_bytes: BTreeMap<u32, u64>,
    /// Ways that were the default group's and could not be given back to it yet, by cache.
    pub(super) left: BTreeMap<u32, Mask>,
    pub(super) made: u32,
}

/// One group of resctrl, the default one without a name.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) masks: BTreeMap<u32, Mask>,
}

impl State {
    /// Makes a group with these ways, taken from the default group and our other ones.
    pub(super) fn make(&mut self, groups: &[Group], kind: Kind, wanted: &[(u32, Wanted)]) -> Result<String, WaysError> {
        let caches: Vec<u32> = wanted.iter().map(|(cache, _)| *cache).collect();
        let mut name = slot::group_name(self.made, kind, &caches);
        while groups.iter().any(|group| group.name == name) {
            self.made += 1;
            name = slot::group_name(self.made, kind, &caches);
        }
        self.made += 1;
        self.tree.make(&name)?;
        let mut masks = groups
            .iter()
            .find(|group| group.name.is_empty())
            .map_or_else(BTreeMap::new, |group| group.masks.clone());
        masks.extend(wanted.iter().map(|(cache, wanted)| (*cache, wanted.ways)));
        let outcome = self.write(&name, &masks).and_then(|()| match kind {
            Kind::Private => self.shrink(groups, wanted),
            Kind::Shared => Ok(()),
        });
        if let Err(error) = outcome {
            // As it was before; the first error is the one to report.
            for group in groups.iter().filter(|group| is_yielding(group)) {
                let _ = self.write(&group.name, &group.masks);
            }
            let _ = self.tree.remove(&name);
            return Err(error);
        }
        for (cache, wanted) in wanted {
            if let Some(left) = self.left.get_mut(cache) {
                *left &= !wanted.ways;
            }
        }
        Ok(name)
    }

    /// Takes ways out of the masks of the default group, and of our groups in caches that do not concern them.
    fn shrink(&self, groups: &[Group], wanted: &[(u32, Wanted)]) -> Result<(), WaysError> {
        for group in groups.iter().filter(|group| is_yielding(group)) {
            let theirs = slot::caches_of(&group.name);
            let mut masks = group.masks.clone();
            for (cache, wanted) in wanted.iter().filter(|(cache, _)| !theirs.contains(cache)) {
                if let Some(mask) = masks.get_mut(cache) {
                    *mask = without(*mask, wanted.ways, self.least);
                }
            }
            if masks != group.masks {
                self.write(&group.name, &masks)?;
            }
        }
        Ok(())
    }

    /// Removes a group and gives the default one its ways back, as far as they are neighbours of its own.
    ///
    /// Pre, as for all that changes the tree: its lock is held.
    pub(super) fn unmake(&mut self, name: &str, kind: Kind, wanted: &[(u32, Wanted)]) -> Result<(), WaysError> {
        self.tree.remove(name)?;
        if kind == Kind::Shared {
            return Ok(());
        }
        let groups = self.groups()?;
        for (cache, wanted) in wanted {
            *self.left.entry(*cache).or_default() |= wanted.from_default;
        }
        for group in groups.iter().filter(|group| is_yielding(group)) {
            let theirs = slot::caches_of(&group.name);
            let mut masks = group.masks.clone();
            for (cache, left) in self.left.iter().filter(|(cache, _)| !theirs.contains(cache)) {
                if let Some(mask) = masks.get_mut(cache) {
                    *mask = choose::joined(*mask, *left);
                }
            }
            if masks != group.masks {
                self.write(&group.name, &masks)?;
            }
            if group.name.is_empty() {
                for (cache, left) in &mut self.left {
                    *left &= !masks.get(cache).copied().unwrap_or(0);
                }
            }
        }
        Ok(())
    }

    /// Removes our groups whose process has ended.
    pub(super) fn remove_dead(&mut self) -> Result<(), WaysError> {
        let dead: Vec<Group> = self
            .groups()?
            .into_iter()
            .filter(|group| slot::is_dead(&group.name, &self.system))
            .collect();
        for group in dead {
            let kind = slot::kind_of(&group.name);
            let caches = slot::caches_of(&group.name);
            let ways = |cache: u32| group.masks.get(&cache).copied().unwrap_or(0);
            let wanted: Vec<(u32, Wanted)> = caches
                .into_iter()
                .map(|cache| {
                    let wanted = Wanted {
                        ways: ways(cache),
                        from_default: ways(cache),
                    };
                    (cache, wanted)
                })
                .collect();
            self.unmake(&group.name, kind, &wanted)?;
        }
        Ok(())
    }

    /// The ways that each group has in a cache.
    pub(super) fn masks(&self, groups: &[Group], cache: u32) -> Masks {
        let of = |group: &Group| group.masks.get(&cache).copied().unwrap_or(0);
        let taken = groups.iter().filter(|group| !group.name.is_empty());
        // In caches that our own groups do not concern, they have the ways of the default group.
        let taken = taken.filter(|group| !slot::is_ours(&group.name) || slot::caches_of(&group.name).contains(&cache));
        Masks {
            all: self.all,
            devices: self.devices,
            least: self.least,
            default: groups.iter().find(|group| group.name.is_empty()).map_or(0, of),
            taken: taken.fold(0, |ways, group| ways | of(group)),
        }
    }

    /// All groups, the default one first.
    pub(super) fn groups(&self) -> Result<Vec<Group>, WaysError> {
        let mut names = vec![String::new()];
        names.extend(self.tree.groups()?);
        let mut groups = Vec::new();
        for name in names {
            let path = if name.is_empty() {
                "schemata".to_string()
            } else {
                format!("{name}/schemata")
            };
            match self.tree.read(&path) {
                Ok(text) => groups.push(Group {
                    masks: Schemata::read(&text).masks(&self.resources),
                    name,
                }),
                // Another program removed its group meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && !name.is_empty() => {}
                Err(error) => return Err(self.tree.cannot("read", &path, error)),
            }
        }
        if groups[0].masks.is_empty() {
            return Err(self.tree.malformed("schemata", "", "the masks of the default group"));
        }
        Ok(groups)
    }

    fn write(&self, group: &str, masks: &BTreeMap<u32, Mask>) -> Result<(), WaysError> {
        let path = if group.is_empty() {
            "schemata".to_string()
        } else {
            format!("{group}/schemata")
        };
        let text = schemata::text(&self.resources, masks);
        self.tree.write(&path, &text)
    }

    /// Bytes of a way, by cache.
    pub(super) fn sizes(&self) -> Result<BTreeMap<u32, u64>, WaysError> {
        let read = |path: &str| {
            self.tree
                .read(path)
                .map_err(|error| self.tree.cannot("read", path, error))
        };
        let sizes = Schemata::read_sizes(&read("size")?).masks(&self.resources);
        let masks = Schemata::read(&read("schemata")?).masks(&self.resources);
        let bytes = |(cache, mask): (&u32, &Mask)| {
            let bytes = sizes.get(cache)? / u64::from(mask.count_ones().max(1));
            (bytes > 0).then_some((*cache, bytes))
        };
        let found: BTreeMap<u32, u64> = masks.iter().filter_map(bytes).collect();
        if found.is_empty() {
            return Err(self.tree.malformed("size", "", "bytes of each cache"));
        }
        Ok(found)
    }

    pub(super) fn way_bytes_of(&self, cache: u32) -> Result<u64, WaysError> {
        let bytes = self.way_bytes.get(&cache).copied();
        bytes.ok_or(WaysError::UnknownCache { cache })
    }

    /// The kernel's numbers of the caches of these cpus, ascending.
    pub(super) fn caches_of(&self, cpus: &[u32]) -> Result<Vec<u32>, WaysError> {
        let caches: Result<Vec<u32>, WaysError> = cpus.iter().map(|&cpu| self.cache_of(cpu)).collect();
        let mut caches = caches?;
        caches.sort_unstable();
        caches.dedup();
        if caches.is_empty() {
            return Err(WaysError::NoCpus);
        }
        Ok(caches)
    }

    /// The kernel's number of a cpu's cache.
    pub(super) fn cache_of(&self, cpu: u32) -> Result<u32, WaysError> {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let indices = self.system.numbered(&directory, "index").unwrap_or_default();
        let cache = indices.into_iter().find_map(|index| {
            let at = format!("{directory}/index{index}");
            let level = self.system.number(&format!("{at}/level")).ok()?;
            let kind = self.system.text(&format!("{at}/type")).ok()?;
            let id = self.system.number(&format!("{at}/id")).ok()?;
            (level == u64::from(self.level) && kind != "Instruction").then_some(id)
        });
        let cache = cache.and_then(|cache| u32::try_from(cache).ok());
        cache.ok_or(WaysError::UnknownCpu { cpu, level: self.level })
    }
}

/// Returns whether its masks make room for private slots: the default group's do, and ours in caches that
/// they do not concern.
fn is_yielding(group: &Group) -> bool {
    group.name.is_empty() || slot::is_ours(&group.name)
}

/// A mask without some ways; unchanged if the processor does not support the result.
fn without(mask: Mask, ways: Mask, least: u32) -> Mask {
    let rest = mask & !ways;
    if choose::is_one_run(rest) && rest.count_ones() >= least {
        rest
    } else {
        mask
    }
}
