//! NUMA nodes, their cpus, memory and distances, as /sys/devices/system/node reports them.

use crate::cpus::{CpuSet, shared};
use crate::{Root, SysError};

/// The contents of one `nodeN` directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReading {
    /// The kernel's number; numbers may have gaps.
    pub number: u32,
    /// Empty for a node that is memory only.
    pub cpus: CpuSet,
    /// ACPI SLIT distances to the nodes in ascending order, itself included (10 is local).
    pub distances: Option<Vec<u32>>,
    pub memory_bytes: Option<u64>,
    /// The firmware's figures for reads from the nearest cpus, if it gives any (ACPI: HMAT).
    pub access: Option<Access>,
}

/// The access from the nearest cpus to a node's memory, as firmware describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The nodes of these cpus; empty if the kernel does not show them.
    pub initiators: Vec<u32>,
    pub read_latency_ns: Option<u32>,
    /// Megabytes a second.
    pub read_bandwidth: Option<u32>,
}

/// The kernel's classes of access to a node's memory: 1 is from cpus, 0 is from the nearest
/// initiator of any kind.
fn access(root: &Root, node: &str) -> Option<Access> {
    ["access1", "access0"].into_iter().find_map(|class| {
        let at = format!("{node}/{class}/initiators");
        // The kernel writes 0 for unknown values.
        let number = |file: &str| -> Option<u32> {
            let text = root.text(&format!("{at}/{file}")).ok()?;
            text.trim().parse().ok().filter(|number| *number > 0)
        };
        let access = Access {
            read_latency_ns: number("read_latency"),
            read_bandwidth: number("read_bandwidth"),
            initiators: root.numbered(&at, "node").unwrap_or_default(),
        };
        (access.read_latency_ns.is_some() || access.read_bandwidth.is_some()).then_some(access)
    })
}

/// Reads all nodes.
///
/// Ensures: at least one, in ascending order of number; else the error names the missing file (a
/// kernel without NUMA has no such directory).
pub fn nodes(root: &Root) -> Result<Vec<NodeReading>, SysError> {
    const DIRECTORY: &str = "sys/devices/system/node";
    let numbers = root.numbered(DIRECTORY, "node")?;
    if numbers.is_empty() {
        return Err(root.malformed(DIRECTORY, "", "at least one node"));
    }
    Ok(numbers
        .into_iter()
        .map(|number| {
            let at = format!("{DIRECTORY}/node{number}");
            NodeReading {
                number,
                cpus: shared(root, &format!("{at}/cpumap"), &format!("{at}/cpulist")).unwrap_or_default(),
                distances: root
                    .text(&format!("{at}/distance"))
                    .ok()
                    .and_then(|text| text.split_whitespace().map(|word| word.parse().ok()).collect()),
                memory_bytes: root.text(&format!("{at}/meminfo")).ok().and_then(|text| total(&text)),
                access: access(root, &at),
            }
        })
        .collect())
}

/// Bytes of memory of the whole machine, from /proc/meminfo.
pub fn memory_bytes(root: &Root) -> Option<u64> {
    root.text("proc/meminfo").ok().and_then(|text| total(&text))
}

/// Bytes of a node's memory that nobody has just now.
pub fn free_bytes(root: &Root, node: u32) -> Result<u64, SysError> {
    let path = format!("sys/devices/system/node/node{node}/meminfo");
    let text = root.text(&path)?;
    line(&text, "MemFree:").ok_or_else(|| root.malformed(&path, &text, "a line MemFree:"))
}

fn total(text: &str) -> Option<u64> {
    line(text, "MemTotal:")
}

/// A line of a meminfo file in bytes: `Node 0 MemTotal:  131732940 kB`, without `Node 0` in /proc.
fn line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(name))?;
    let kilobytes: u64 = line.split_whitespace().rev().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals() {
        assert_eq!(total("Node 0 MemTotal:       2 kB\nNode 0 MemFree: 1 kB"), Some(2048));
        assert_eq!(total("MemTotal:       2 kB"), Some(2048));
        assert_eq!(
            line("Node 0 MemTotal:       2 kB\nNode 0 MemFree: 1 kB", "MemFree:"),
            Some(1024)
        );
        assert_eq!(total("MemTotal:"), None);
        assert_eq!(total(""), None);
    }
}
