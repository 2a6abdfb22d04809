//! The caches of one cpu, as /sys/devices/system/cpu/cpuN/cache reports them.

use crate::cpus::{CpuSet, shared};
use crate::{Root, SysError};

/// The contents of one `indexM` directory. Everything but the level may be missing: Arm kernels
/// leave out sizes that the firmware does not report, guests leave out other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheReading {
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    pub bytes: Option<u64>,
    pub ways: Option<u32>,
    pub line_bytes: Option<u32>,
    /// Sets of single lines: where one tag covers several lines, those count as sets of their own.
    pub sets: Option<u64>,
    /// `WriteBack` or `WriteThrough`.
    pub write_policy: Option<String>,
    /// `ReadWriteAllocate`, `ReadAllocate` or `WriteAllocate`.
    pub allocation_policy: Option<String>,
    /// The cpus that share this instance, as the kernel lists them; `None` if it does not.
    pub sharers: Option<CpuSet>,
}

/// Reads the caches of `cpu`, in the kernel's order.
///
/// Ensures: at least one reading; else the error names the missing file. Entries without a level or
/// kind are left out. Zero, which the kernel writes for "not known", is `None`.
pub fn caches(root: &Root, cpu: u32) -> Result<Vec<CacheReading>, SysError> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let mut readings = Vec::new();
    let mut problem = None;
    for index in root.numbered(&directory, "index")? {
        match reading(root, &format!("{directory}/index{index}")) {
            Ok(reading) => readings.push(reading),
            Err(error) => problem = Some(error),
        }
    }
    match problem {
        _ if !readings.is_empty() => Ok(readings),
        Some(error) => Err(error),
        None => Err(root.malformed(&directory, "", "at least one index directory")),
    }
}

fn reading(root: &Root, at: &str) -> Result<CacheReading, SysError> {
    let number = |file: &str| root.number(&format!("{at}/{file}")).ok().filter(|number| *number > 0);
    let small = |file: &str| number(file).and_then(|number| u32::try_from(number).ok());
    let word = |file: &str| root.text(&format!("{at}/{file}")).ok();
    let level = root.number(&format!("{at}/level"))?;
    Ok(CacheReading {
        level: u32::try_from(level)
            .map_err(|_| root.malformed(&format!("{at}/level"), &level.to_string(), "a level such as 1"))?,
        kind: root.text(&format!("{at}/type"))?,
        bytes: word("size")
            .and_then(|text| parse_bytes(&text))
            .filter(|bytes| *bytes > 0),
        ways: small("ways_of_associativity"),
        line_bytes: small("coherency_line_size"),
        sets: number("number_of_sets")
            .and_then(|sets| sets.checked_mul(number("physical_line_partition").unwrap_or(1))),
        write_policy: word("write_policy"),
        allocation_policy: word("allocation_policy"),
        sharers: shared(root, &format!("{at}/shared_cpu_map"), &format!("{at}/shared_cpu_list")).ok(),
    })
}

/// `32K`, `20480K`, `2M`: the kernel writes kibibytes.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(digits) => (digits, 1 << 20),
            None => (text, 1),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("32K"), Some(32 << 10));
        assert_eq!(parse_bytes("2M"), Some(2 << 20));
        assert_eq!(parse_bytes("512"), Some(512));
        assert_eq!(parse_bytes("99999999999999999999K"), None);
        assert_eq!(parse_bytes("18446744073709551615K"), None);
        assert_eq!(parse_bytes(""), None);
    }
}
