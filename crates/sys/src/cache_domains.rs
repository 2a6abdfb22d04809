//! The cache domains of a machine: the cpus below each instance of the outermost cache that there are several of.

use std::collections::BTreeMap;

use crate::cpus::{cpus, list, parse_list};
use crate::{Root, SysError, affinity, caches};

/// The cpus below one instance of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheDomain {
    /// Ascending, not empty.
    pub cpus: Vec<u32>,
    /// `None` if domains are given by hand.
    pub level: Option<u32>,
    /// The cache's size, if known.
    pub bytes: Option<u64>,
}

/// There are no domains to choose from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DomainsError {
    #[error("the machine's caches are not known: {0}")]
    Caches(SysError),
    #[error("all cpus share each cache of this machine")]
    OneDomain,
    /// An error of domains given by hand.
    #[error("{0}")]
    ByHand(String),
}

impl CacheDomain {
    /// The cpus as a list.
    pub fn list(&self) -> String {
        list(&self.cpus)
    }
}

/// The domains of this machine, as far as the calling thread may use their cpus. Empty if the machine has only
/// one.
///
/// Errors: caches cannot be read.
pub fn usable() -> Result<Vec<CacheDomain>, DomainsError> {
    // All cpus count as allowed if the kernel reports no affinity.
    let allowed = affinity::allowed(None).ok();
    let found = match find(&Root::default()) {
        Err(DomainsError::OneDomain) => Vec::new(),
        found => found?,
    };
    let here = |mut domain: CacheDomain| {
        domain
            .cpus
            .retain(|cpu| allowed.as_ref().is_none_or(|allowed| allowed.contains(cpu)));
        (!domain.cpus.is_empty()).then_some(domain)
    };
    Ok(found.into_iter().filter_map(here).collect())
}

/// Reads the domains from `/sys`.
///
/// Ensures: at least two, which have no cpu in common. Errors: there is one only, or caches cannot be read.
pub fn find(root: &Root) -> Result<Vec<CacheDomain>, DomainsError> {
    let online = cpus(root).map_err(DomainsError::Caches)?.online;
    // The size of each instance, by its cpus.
    let mut levels: BTreeMap<u32, BTreeMap<Vec<u32>, Option<u64>>> = BTreeMap::new();
    for &cpu in &online {
        let readings = caches::caches(root, cpu).map_err(DomainsError::Caches)?;
        for reading in readings.into_iter().filter(|reading| reading.kind != "Instruction") {
            let sharers = reading.sharers.unwrap_or_else(|| vec![cpu]);
            let there: Vec<u32> = sharers.into_iter().filter(|cpu| online.contains(cpu)).collect();
            levels.entry(reading.level).or_default().insert(there, reading.bytes);
        }
    }
    let several = |instances: &BTreeMap<Vec<u32>, Option<u64>>| {
        let cpus: usize = instances.keys().map(Vec::len).sum();
        instances.len() > 1 && cpus == online.len()
    };
    let found = levels.into_iter().rev().find(|(_, instances)| several(instances));
    let (level, instances) = found.ok_or(DomainsError::OneDomain)?;
    let domain = |(cpus, bytes)| CacheDomain {
        cpus,
        level: Some(level),
        bytes,
    };
    Ok(instances.into_iter().map(domain).collect())
}

/// Domains by hand: a list of cpus for each.
///
/// Ensures and errors: as [`find`]; a cpu that is not online or stands in two lists is an error, too.
pub fn by_hand(root: &Root, lists: &[String]) -> Result<Vec<CacheDomain>, DomainsError> {
    let wrong = |text: String| Err(DomainsError::ByHand(text));
    let online = cpus(root).map_err(DomainsError::Caches)?.online;
    let mut domains: Vec<CacheDomain> = Vec::new();
    for text in lists.iter().flat_map(|text| text.split_whitespace()) {
        let Some(cpus) = parse_list(text).filter(|cpus| !cpus.is_empty()) else {
            return wrong(format!("`{text}` is no list of cpus; write such as 0-3,8"));
        };
        if let Some(none) = cpus.iter().find(|cpu| !online.contains(cpu)) {
            return wrong(format!("cpu {none} is not online; those are {}", list(&online)));
        }
        if let Some(twice) = cpus
            .iter()
            .find(|cpu| domains.iter().any(|domain| domain.cpus.contains(cpu)))
        {
            return wrong(format!("cpu {twice} stands in two lists"));
        }
        let readings = caches::caches(root, cpus[0]).unwrap_or_default();
        let within = readings.iter().filter(|reading| {
            let sharers = reading.sharers.as_deref().unwrap_or_default();
            reading.kind != "Instruction" && !sharers.is_empty() && sharers.iter().all(|cpu| cpus.contains(cpu))
        });
        let bytes = within
            .max_by_key(|reading| reading.level)
            .and_then(|reading| reading.bytes);
        domains.push(CacheDomain {
            cpus,
            level: None,
            bytes,
        });
    }
    match domains.len() {
        0 | 1 => wrong("one domain is no choice: give at least two lists, such as --domains 0-3 4-7".to_string()),
        _ => Ok(domains),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose cpus share their last caches in groups.
    fn machine(cpus: u32, last: &[(u32, &str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&at).unwrap();
        std::fs::write(at.join("online"), format!("0-{}\n", cpus - 1)).unwrap();
        for cpu in 0..cpus {
            let mut caches = vec![(2, "512K", cpu.to_string())];
            caches.extend(last.iter().filter_map(|(level, size, sharers)| {
                let shares = parse_list(sharers).unwrap().contains(&cpu);
                shares.then(|| (*level, *size, sharers.to_string()))
            }));
            for (index, (level, size, sharers)) in caches.into_iter().enumerate() {
                let cache = at.join(format!("cpu{cpu}/cache/index{index}"));
                std::fs::create_dir_all(&cache).unwrap();
                for (name, text) in [
                    ("level", level.to_string()),
                    ("type", "Unified".to_string()),
                    ("size", size.to_string()),
                    ("shared_cpu_list", sharers),
                ] {
                    std::fs::write(cache.join(name), text).unwrap();
                }
            }
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn the_outermost_cache_of_several_counts() {
        let (_folder, root) = machine(8, &[(3, "32M", "0-3"), (3, "32M", "4-7")]);
        let found = find(&root).unwrap();
        let seen: Vec<_> = found
            .iter()
            .map(|domain| (domain.list(), domain.level, domain.bytes))
            .collect();
        let of = |cpus: &str| (cpus.to_string(), Some(3), Some(32 << 20));
        assert_eq!(seen, [of("0-3"), of("4-7")]);
        // One last cache: the private ones are next.
        let (_folder, root) = machine(2, &[(3, "32M", "0-1")]);
        let found = find(&root).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[1].list(), found[1].level, found[1].bytes),
            ("1".to_string(), Some(2), Some(512 << 10))
        );
        let (_folder, root) = machine(1, &[]);
        assert!(matches!(find(&root), Err(DomainsError::OneDomain)));
    }

    #[test]
    fn by_hand_each_list_is_a_domain() {
        let (_folder, root) = machine(8, &[(3, "32M", "0-7")]);
        let given = |lists: &[&str]| by_hand(&root, &lists.iter().map(ToString::to_string).collect::<Vec<_>>());
        let found = given(&["0-2,4", "5-7"]).unwrap();
        assert_eq!(found[0].list(), "0-2,4");
        assert_eq!(found[1].bytes, Some(512 << 10));
        assert_eq!(given(&["0-3 4-7"]).unwrap().len(), 2);
        for (lists, part) in [
            (&["0-3"][..], "at least two"),
            (&["0-3", "3-7"], "cpu 3 stands in two lists"),
            (&["0-3", "8"], "cpu 8 is not online"),
            (&["0-3", "x"], "no list of cpus"),
        ] {
            let said = given(lists).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
