//! The pages that can get other frames, in runs that the engine can take at once.

use std::io;
use std::sync::OnceLock;

use policy::cdpc::Loop;

use sys::mappings::{self, Kind, Mapping};

use crate::{PAGE_BYTES, Pages, Wish};

/// Neighbouring pages of one kind of memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub pages: Pages,
    /// A hint for each of them.
    pub wish: Wish,
}

#[derive(Debug, Default)]
pub struct Fit {
    pub runs: Vec<Run>,
    /// Pages that have no frames of their own to exchange, and why.
    pub left: Vec<(u64, &'static str)>,
}

/// Why the arrays of a loop cannot be, if that is so: one is of no size, or they are larger than the machine's memory.
/// Hints take time and room for each page: a mistaken size must not take all there is.
pub fn beyond(described: &Loop) -> Option<String> {
    static MEMORY: OnceLock<u64> = OnceLock::new();
    let memory = *MEMORY.get_or_init(|| sys::nodes::memory_bytes(&sys::Root::default()).unwrap_or(1 << 40));
    let wrong = described.summaries.iter().find_map(|summary| match summary.bytes {
        0 => Some(format!("{}: its size is not known", summary.name)),
        bytes if bytes > memory => Some(format!("{}: {bytes} bytes, more than this machine has", summary.name)),
        _ => None,
    })?;
    Some(format!("{}: {wrong}", described.place))
}

/// Why a page is left where there is no memory: there may be some when its loop is described again.
pub const UNMAPPED: &str = "nothing is mapped there";

/// Divides pages, ascending, with the color of each.
pub fn runs(wanted: &[(u64, u16)]) -> io::Result<Fit> {
    Ok(divided(wanted, &mappings::all(None)?, kind))
}

/// The same of pages that are only to be looked at: those that are mapped.
pub fn mapped(wanted: &[(u64, u16)]) -> io::Result<Fit> {
    Ok(divided(wanted, &mappings::all(None)?, |_| Ok(false)))
}

fn divided(wanted: &[(u64, u16)], mapped: &[Mapping], kind: fn(&Mapping) -> Result<bool, &'static str>) -> Fit {
    let mut fit = Fit::default();
    let mut mapped = mapped.iter().peekable();
    let mut open: Option<Open> = None;
    for &(page, color) in wanted {
        let address = (page as usize).saturating_mul(PAGE_BYTES);
        while mapped.next_if(|mapping| mapping.span.end() <= address).is_some() {}
        let mapping = mapped.peek().filter(|mapping| mapping.span.contains(address));
        let of_file = match mapping.map_or(Err(UNMAPPED), |mapping| kind(mapping)) {
            Ok(of_file) => of_file,
            Err(why) => {
                fit.left.push((page, why));
                continue;
            }
        };
        match &mut open {
            Some(open) if open.of_file == of_file && open.first + open.hints.len() as u64 == page => {
                open.hints.push((open.hints.len(), color));
            }
            _ => {
                let next = Open {
                    of_file,
                    first: page,
                    hints: vec![(0, color)],
                };
                fit.runs.extend(open.replace(next).map(Open::closed));
            }
        }
    }
    fit.runs.extend(open.map(Open::closed));
    fit
}

/// A run that is being made.
struct Open {
    of_file: bool,
    first: u64,
    hints: Vec<(usize, u16)>,
}

impl Open {
    fn closed(self) -> Run {
        Run {
            pages: Pages {
                start: self.first as usize * PAGE_BYTES,
                count: self.hints.len(),
            },
            wish: Wish::Hints(self.hints),
        }
    }
}

/// Returns whether it is a private copy of a file, or why the engine cannot take it.
fn kind(mapping: &Mapping) -> Result<bool, &'static str> {
    match &mapping.kind {
        _ if mapping.shared => Err("it is shared memory, or a file's own pages"),
        Kind::Special(_) => Err("it belongs to the kernel"),
        Kind::File(path) if path.contains("hugepage") => {
            Err("it is an explicit huge page, whose frame cannot be divided")
        }
        _ if !mapping.read || !mapping.write => Err("it may not be read and written"),
        _ if mapping.execute => Err("it holds code that may run"),
        _ => Ok(!mapping.private_anonymous()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::memory::Span;

    fn mapping(start: usize, pages: usize, kind: Kind) -> Mapping {
        Mapping {
            span: Span::new(start * PAGE_BYTES, pages * PAGE_BYTES),
            read: true,
            write: true,
            execute: false,
            shared: false,
            kind,
        }
    }

    #[test]
    fn runs_end_at_holes_files_and_what_cannot_be() {
        let mut constant = mapping(30, 2, Kind::File("/bin/x".into()));
        constant.write = false;
        let mapped = [
            mapping(10, 4, Kind::File("/bin/x".into())),
            mapping(14, 2, Kind::Anonymous),
            mapping(16, 4, Kind::Heap),
            constant,
        ];
        let wanted: Vec<(u64, u16)> = [9, 10, 11, 14, 15, 16, 18, 31].map(|page| (page, page as u16)).to_vec();
        let fit = divided(&wanted, &mapped, kind);
        let pages: Vec<(usize, usize)> = fit
            .runs
            .iter()
            .map(|run| (run.pages.start / PAGE_BYTES, run.pages.count))
            .collect();
        assert_eq!(pages, [(10, 2), (14, 3), (18, 1)]);
        assert_eq!(fit.runs[1].wish, Wish::Hints(vec![(0, 14), (1, 15), (2, 16)]));
        let left: Vec<u64> = fit.left.iter().map(|left| left.0).collect();
        assert_eq!(left, [9, 31]);
    }
}
