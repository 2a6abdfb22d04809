//! Sets of cpus, their form in the kernel's files, and the cpus of the machine.

use crate::{Root, SysError};

/// More than any kernel is built for (x86: 8192); a bound on the numbers in a damaged file.
pub const CPU_NUMBER_MAX: u32 = 65_535;

/// Cpu numbers, ascending, none twice.
pub type CpuSet = Vec<u32>;

/// Reads the kernel's list format: `0-3,8,10-11`; empty is the empty set.
///
/// Ensures: every number is at most [`CPU_NUMBER_MAX`].
pub fn parse_list(text: &str) -> Option<CpuSet> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > CPU_NUMBER_MAX {
            return None;
        }
        cpus.extend(first..=last);
        // A damaged file may say the same over and over: memory is that of the cpus that can be.
        if cpus.len() > CPU_NUMBER_MAX as usize {
            cpus.sort_unstable();
            cpus.dedup();
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Reads the kernel's mask format: words of 32 bits in hexadecimal, the highest first, `3f,00000001`.
///
/// Ensures: every number is at most [`CPU_NUMBER_MAX`].
pub fn parse_mask(text: &str) -> Option<CpuSet> {
    let mut cpus = Vec::new();
    for (index, word) in text.trim().split(',').rev().enumerate() {
        let word = u32::from_str_radix(word.trim(), 16).ok()?;
        let base = u32::try_from(index).ok()?.checked_mul(32)?;
        for bit in (0..32).filter(|bit| word >> bit & 1 != 0) {
            cpus.push(base.checked_add(bit).filter(|cpu| *cpu <= CPU_NUMBER_MAX)?);
        }
    }
    Some(cpus)
}

/// Writes a set as a list, the inverse of [`parse_list`].
///
/// Requires: ascending numbers, none twice.
pub fn list(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let runs: Vec<String> = runs
        .iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    runs.join(",")
}

/// The cpus of the machine, and those that are online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Never empty.
    pub online: CpuSet,
    pub possible: Option<CpuSet>,
    pub present: Option<CpuSet>,
}

/// Reads /sys/devices/system/cpu.
///
/// Old kernels have no `online` there; then the directories `cpuN` count, but for those that say 0
/// in their own `online` (the boot cpu has none and cannot be taken offline).
///
/// Ensures: `online` is not empty; else the error names the missing file.
pub fn cpus(root: &Root) -> Result<Cpus, SysError> {
    const DIRECTORY: &str = "sys/devices/system/cpu";
    let set = |name: &str| -> Result<CpuSet, SysError> {
        let path = format!("{DIRECTORY}/{name}");
        let text = root.text(&path)?;
        parse_list(&text).ok_or_else(|| root.malformed(&path, &text, "a list of cpus such as 0-3,8"))
    };
    let online = match set("online") {
        Ok(online) => online,
        Err(_) => root
            .numbered(DIRECTORY, "cpu")?
            .into_iter()
            .filter(|cpu| *cpu <= CPU_NUMBER_MAX)
            .filter(|cpu| root.number(&format!("{DIRECTORY}/cpu{cpu}/online")).unwrap_or(1) != 0)
            .collect(),
    };
    if online.is_empty() {
        return Err(root.malformed(&format!("{DIRECTORY}/online"), "", "at least one cpu"));
    }
    Ok(Cpus {
        online,
        possible: set("possible").ok(),
        present: set("present").ok(),
    })
}

/// Reads a set of cpus that the kernel offers as a mask, as a list, or as both.
///
/// The mask goes first: old kernels have only it.
pub(crate) fn shared(root: &Root, mask: &str, list: &str) -> Result<CpuSet, SysError> {
    if let Ok(text) = root.text(mask) {
        return parse_mask(&text).ok_or_else(|| root.malformed(mask, &text, "a mask of cpus such as ff,00000001"));
    }
    let text = root.text(list)?;
    parse_list(&text).ok_or_else(|| root.malformed(list, &text, "a list of cpus such as 0-3,8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3,1,1"), Some(vec![1, 3]));
        for bad in ["a", "3-1", "-", "1-", "0-4294967295", "99999999999"] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
        assert_eq!(list(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn a_list_that_repeats_itself_takes_the_memory_of_the_cpus_that_can_be() {
        let cpus = parse_list(&["0-65535"; 200].join(",")).unwrap();
        assert_eq!(cpus.len(), 65_536);
        assert!(cpus.capacity() <= 4 * 65_536, "{}", cpus.capacity());
    }

    #[test]
    fn masks() {
        assert_eq!(parse_mask("3\n"), Some(vec![0, 1]));
        assert_eq!(parse_mask("00000001,80000000"), Some(vec![31, 32]));
        assert_eq!(parse_mask("g"), None);
        assert_eq!(parse_mask(""), None);
        let too_many = vec!["ffffffff"; 4096].join(",");
        assert_eq!(parse_mask(&too_many), None);
    }
}
