//! The pages of a program that may be closed: its data, and nothing that the kernel touches by
//! itself.

use sys::mappings::{Kind, Mapping};
use sys::memory::{PAGE, Span};

/// The mappings of a process at one moment.
#[derive(Default)]
pub struct Layout {
    /// Ascending.
    mappings: Vec<Mapping>,
    /// Never closed.
    spared: Vec<Span>,
}

/// So much is spared on each side of a thread's local storage: the C library's descriptor of the thread is there, to which the kernel writes.
const AROUND: usize = 4 * PAGE;

/// The memory that is spared around an address of thread-local storage.
pub fn around(address: usize) -> Span {
    let start = address.saturating_sub(AROUND) / PAGE * PAGE;
    Span::new(start, 2 * AROUND + PAGE)
}

impl Layout {
    pub fn of(mappings: Vec<Mapping>, spared: &[Span]) -> Layout {
        Layout {
            mappings,
            spared: spared.to_vec(),
        }
    }

    /// How many mappings there are.
    pub fn count(&self) -> usize {
        self.mappings.len()
    }

    /// The mapping at an address, unless it is of code; `None` also where nothing is mapped.
    pub fn mapping(&self, address: usize) -> Option<&Mapping> {
        let at = self.mappings.partition_point(|mapping| mapping.span.end() <= address);
        let found = self.mappings.get(at).filter(|mapping| mapping.span.start <= address);
        found.filter(|mapping| !mapping.execute)
    }

    /// Ranges that are never closed.
    pub fn spared(&self) -> &[Span] {
        &self.spared
    }

    /// Returns whether a page with this address is never closed.
    pub fn spares(&self, address: usize) -> bool {
        let page = Span::new(address / PAGE * PAGE, PAGE);
        let meets = |span: &Span| span.start < page.end() && page.start < span.end();
        self.spared.iter().any(meets)
    }

    /// The parts of mappings that may be closed: private data that can be written, without stacks. `stack`: an address in that of the
    /// thread, which may be anywhere.
    pub fn data(&self, stack: usize) -> Vec<Span> {
        let data = |mapping: &&Mapping| {
            let kind = match &mapping.kind {
                Kind::Anonymous | Kind::Heap => true,
                // Data of the program's own files. Huge pages of a pool have keys as a whole only.
                Kind::File(path) => {
                    path.starts_with('/') && !path.starts_with("/anon_hugepage") && !path.starts_with("/dev/")
                }
                Kind::Stack | Kind::Special(_) => false,
            };
            kind && mapping.write
                && mapping.read
                && !mapping.shared
                && !mapping.execute
                && !mapping.span.contains(stack)
        };
        let spans = self.mappings.iter().filter(data).map(|mapping| mapping.span);
        spans.flat_map(|span| self.without_spared(span)).collect()
    }

    fn without_spared(&self, span: Span) -> Vec<Span> {
        let mut parts = vec![span];
        for spared in &self.spared {
            let cut = |part: Span| {
                let before = part.start..part.end().min(spared.start / PAGE * PAGE);
                let after = part.start.max(spared.end().next_multiple_of(PAGE))..part.end();
                [before, after].map(|range| Span::new(range.start, range.end.saturating_sub(range.start)))
            };
            parts = parts.into_iter().flat_map(cut).filter(|part| part.bytes > 0).collect();
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: usize, pages: usize, kind: Kind) -> Mapping {
        Mapping {
            span: Span::new(start * PAGE, pages * PAGE),
            read: true,
            write: true,
            execute: false,
            shared: false,
            kind,
        }
    }

    #[test]
    fn data_is_what_is_private_and_written_and_no_stack() {
        let code = Mapping {
            execute: true,
            write: false,
            ..mapping(1, 1, Kind::File("/bin/program".into()))
        };
        let shared = Mapping {
            shared: true,
            ..mapping(40, 1, Kind::File("/dev/shm/x".into()))
        };
        let layout = Layout::of(
            vec![
                code,
                mapping(2, 2, Kind::File("/bin/program".into())),
                mapping(10, 8, Kind::Heap),
                mapping(20, 4, Kind::Anonymous),
                mapping(30, 4, Kind::Anonymous),
                shared,
                mapping(50, 2, Kind::File("/anon_hugepage (deleted)".into())),
                mapping(60, 2, Kind::Stack),
            ],
            &[Span::new(12 * PAGE, 2 * PAGE), Span::new(17 * PAGE, 9 * PAGE)],
        );
        let pages = |span: &Span| (span.start / PAGE, span.bytes / PAGE);
        let data: Vec<_> = layout.data(31 * PAGE + 8).iter().map(pages).collect();
        assert_eq!(data, [(2, 2), (10, 2), (14, 3)]);
        let start = |page: usize| layout.mapping(page * PAGE).map(|mapping| mapping.span.start / PAGE);
        assert_eq!((start(1), start(11), start(19)), (None, Some(10), None));
    }

    #[test]
    fn storage_at_the_lowest_addresses_is_spared_too() {
        assert_eq!(around(PAGE), Span::new(0, 9 * PAGE));
    }
}
