//! The memory policies of a process's mappings, and the nodes of their pages: `/proc/PID/numa_maps`.
//! `/proc/PID/numa_maps`.

use crate::cpus::parse_list;
use crate::{Root, SysError};

/// The memory policy of a mapping (`set_mempolicy(2)`, `mbind(2)`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// None: the node of the cpu that touches a page first.
    Default,
    /// The node of the cpu, said explicitly.
    Local,
    /// These nodes and no others.
    Bind(Vec<u32>),
    /// These nodes while they have memory.
    Prefer(Vec<u32>),
    /// These nodes in turn, evenly or by weights.
    Interleave(Vec<u32>),
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodesOf {
    /// The start of the mapping; its end is not in this file.
    pub start: usize,
    pub wish: Wish,
    /// Pages on each node, in units of `page_bytes`.
    pub pages: Vec<(u32, u64)>,
    /// Bytes that one of these pages stands for.
    pub page_bytes: u64,
}

/// All mappings of a process, ascending.
///
/// Errors: absent if the process is gone, or the kernel has no NUMA; denied if it is another user's.
pub fn of(root: &Root, process: u32) -> Result<Vec<NodesOf>, SysError> {
    let path = format!("proc/{process}/numa_maps");
    let text = root.text(&path)?;
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| parse(line).ok_or_else(|| root.malformed(&path, line, "an address and a memory policy")))
        .collect()
}

fn parse(line: &str) -> Option<NodesOf> {
    let mut words = line.split_whitespace();
    let start = usize::from_str_radix(words.next()?, 16).ok()?;
    let wish = wish(words.next()?)?;
    let mut found = NodesOf {
        start,
        wish,
        pages: Vec::new(),
        page_bytes: 4096,
    };
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            continue;
        };
        // A file's name may hold anything, but its spaces are written as numbers.
        if let Some(node) = name.strip_prefix('N').and_then(|node| node.parse().ok()) {
            found.pages.extend(value.parse().ok().map(|pages| (node, pages)));
        } else if name == "kernelpagesize_kB" {
            found.page_bytes = value.parse::<u64>().ok()?.checked_mul(1024)?;
        }
    }
    Some(found)
}

/// `default`, `bind:0-1`, `prefer=relative:1`, `weighted interleave:0-1`, `prefer (many):0`.
fn wish(word: &str) -> Option<Wish> {
    let (name, nodes) = word.split_once(':').unwrap_or((word, ""));
    let name = name.split('=').next().unwrap_or(name);
    let nodes = parse_list(nodes)?;
    Some(match name {
        "default" => Wish::Default,
        "local" => Wish::Local,
        "bind" => Wish::Bind(nodes),
        "interleave" | "weighted" => Wish::Interleave(nodes),
        "prefer" => Wish::Prefer(nodes),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_kind() {
        let found = parse("7f0000000000 default anon=512 dirty=512 active=0 N0=500 N3=12 kernelpagesize_kB=4").unwrap();
        assert_eq!((found.start, found.page_bytes), (0x7f00_0000_0000, 4096));
        assert_eq!(found.pages, [(0, 500), (3, 12)]);
        assert_eq!(found.wish, Wish::Default);
        let huge = parse("7f00 bind:1,3 file=/dev/hugepages/N7=9 huge anon=2 N1=2 kernelpagesize_kB=2048").unwrap();
        assert_eq!((huge.wish, huge.page_bytes), (Wish::Bind(vec![1, 3]), 2 << 20));
        assert_eq!(huge.pages, [(1, 2)]);
        assert_eq!(
            parse("7f00 interleave=static:0-1").unwrap().wish,
            Wish::Interleave(vec![0, 1])
        );
        assert_eq!(parse("7f00 prefer:1").unwrap().wish, Wish::Prefer(vec![1]));
        assert_eq!(parse("7f00 local").unwrap().wish, Wish::Local);
        for bad in ["", "7f00", "xyz default", "7f00 nothing"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn our_own_pages_are_somewhere() {
        let area = crate::memory::Area::map(4 * crate::memory::PAGE, crate::memory::Size::Small).unwrap();
        (0..4).for_each(|page| area.set_word(page, 0, 1));
        let Ok(found) = of(&Root::default(), std::process::id()) else {
            return harness::not_here("the kernel has no NUMA");
        };
        let mine = found
            .iter()
            .rev()
            .find(|mapping| mapping.start <= area.start())
            .unwrap();
        assert!(mine.pages.iter().map(|(_, pages)| pages).sum::<u64>() >= 4, "{mine:?}");
    }
}
