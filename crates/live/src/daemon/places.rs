//! The cpus that share a cache that has colors.

use std::collections::BTreeSet;

use sys::{Root, SysError};

/// The cpus of each instance of a cache, by its name as in `L2`, lowest first. A name that is no level stands
/// for the last cache described. If Linux describes no cache, all cpus are taken to share one.
pub fn sharers(root: &Root, cache: &str) -> Result<Vec<Vec<u32>>, SysError> {
    let level: Option<u32> = cache.strip_prefix('L').and_then(|level| level.parse().ok());
    let online = sys::cpus::cpus(root)?.online;
    let mut instances = BTreeSet::new();
    for &cpu in &online {
        let readings = sys::caches::caches(root, cpu).unwrap_or_default();
        let found = readings
            .into_iter()
            .filter(|reading| reading.kind != "Instruction" && level.is_none_or(|level| level == reading.level))
            .max_by_key(|reading| reading.level);
        let Some(found) = found else {
            return Ok(vec![online]);
        };
        let sharers: Vec<u32> = match found.sharers {
            Some(sharers) => sharers.into_iter().filter(|cpu| online.contains(cpu)).collect(),
            None => vec![cpu],
        };
        instances.insert(sharers);
    }
    Ok(instances.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(cpus: &str, caches: &[(u32, u32, &str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&base).unwrap();
        std::fs::write(base.join("online"), cpus).unwrap();
        for (number, (cpu, level, kind, sharers)) in caches.iter().enumerate() {
            let index = base.join(format!("cpu{cpu}/cache/index{number}"));
            std::fs::create_dir_all(&index).unwrap();
            std::fs::write(index.join("level"), level.to_string()).unwrap();
            std::fs::write(index.join("type"), kind).unwrap();
            std::fs::write(index.join("shared_cpu_list"), sharers).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    #[test]
    fn instances_of_the_cache_that_is_named() {
        let mut caches = Vec::new();
        for cpu in 0..4 {
            caches.push((cpu, 1, "Instruction", "0"));
            caches.push((cpu, 2, "Unified", if cpu < 2 { "0-1" } else { "2-3" }));
            caches.push((cpu, 3, "Unified", "0-3"));
        }
        let (_folder, root) = tree("0-3", &caches);
        assert_eq!(sharers(&root, "L2").unwrap(), [[0, 1], [2, 3]]);
        assert_eq!(sharers(&root, "L3").unwrap(), [[0, 1, 2, 3]]);
        assert_eq!(sharers(&root, "forced").unwrap(), [[0, 1, 2, 3]]);
    }

    #[test]
    fn cpus_that_are_off_do_not_count() {
        let (_folder, root) = tree("0,2", &[(0, 2, "Unified", "0-1"), (2, 2, "Unified", "2-3")]);
        assert_eq!(sharers(&root, "L2").unwrap(), [[0], [2]]);
        let (_folder, root) = tree("0-1", &[]);
        assert_eq!(sharers(&root, "L2").unwrap(), [[0, 1]]);
    }
}
