//! The check that a range can be colored, and the pages that must be left alone.

use sys::mappings::{self, Kind};
use sys::memory::{PAGE, Span};

use crate::{Error, Pages};

/// Part of a range that one kind of mapping covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub pages: Pages,
    /// Private pages of a file: they cannot be moved, only refilled.
    pub of_file: bool,
}

/// A range that can be colored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    /// Ascending, without gaps.
    pub pieces: Vec<Piece>,
    /// True if the range ends where mappings end, so that advice for it splits none.
    pub whole: bool,
    /// Addresses that this thread needs while it works.
    own: Vec<Span>,
}

impl Survey {
    /// Returns whether a page must be left alone.
    pub fn is_own(&self, address: usize) -> bool {
        let page = Span::new(address, PAGE);
        self.own.iter().any(|own| own.meets(page))
    }
}

/// Bytes of the stack below and above here that are in use while pages are in flight.
const STACK_BELOW: usize = 256 << 10;
const STACK_ABOVE: usize = 64 << 10;

/// Looks at the mappings in the range.
///
/// Errors: [`Error::Wish`] if this is no range of pages, [`Error::Unfit`] with the first address
/// that cannot be colored, and why.
pub(super) fn survey(range: Pages) -> Result<Survey, Error> {
    let bytes = range.count.checked_mul(PAGE);
    let end = bytes.and_then(|bytes| range.start.checked_add(bytes));
    let (Some(bytes), Some(_)) = (bytes.filter(|&bytes| bytes > 0), end) else {
        return Err(Error::Wish(format!(
            "{} pages from {:#x} on are no range of addresses",
            range.count, range.start
        )));
    };
    if !range.start.is_multiple_of(PAGE) {
        return Err(Error::Wish(format!("{:#x} is not the start of a page", range.start)));
    }
    let span = Span::new(range.start, bytes);
    let found = mappings::within(span).map_err(Error::system("reading /proc/self/maps"))?;
    let unfit = |address, why: &str| {
        let why = why.to_string();
        Err(Error::Unfit { address, why })
    };
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = span.start;
    for mapping in &found {
        if mapping.span.start > at {
            break;
        }
        let upto = mapping.span.end().min(span.end());
        if mapping.shared {
            return unfit(at, "it is shared memory, or a file's own pages");
        }
        match &mapping.kind {
            Kind::Special(name) => return unfit(at, &format!("it belongs to the kernel, {name}")),
            Kind::File(path) if path.contains("hugepage") => {
                return unfit(at, "it is an explicit huge page, whose frame cannot be divided");
            }
            _ => {}
        }
        if !mapping.read {
            return unfit(at, "it may not be read (a guard page?)");
        }
        if !mapping.write {
            return unfit(at, "it may not be written");
        }
        if mapping.execute {
            return unfit(at, "it holds code that may run");
        }
        let of_file = !mapping.private_anonymous();
        let pages = Pages {
            start: at,
            count: (upto - at) / PAGE,
        };
        match pieces.last_mut().filter(|last| last.of_file == of_file) {
            Some(last) => last.pages.count += pages.count,
            None => pieces.push(Piece { pages, of_file }),
        }
        at = upto;
    }
    if at < span.end() {
        return unfit(at, "nothing is mapped there");
    }
    let first = found.first().is_some_and(|first| first.span.start == span.start);
    let last = found.last().is_some_and(|last| last.span.end() == span.end());
    Ok(Survey {
        pieces,
        whole: first && last,
        own: own(),
    })
}

fn own() -> Vec<Span> {
    let [here, places @ ..] = sys::memory::own_places();
    let page = |address: usize| Span::new(address / PAGE * PAGE, PAGE);
    let mut stack = Span::new(here.saturating_sub(STACK_BELOW), STACK_BELOW + STACK_ABOVE);
    // Memory beside the stack's mapping is no stack.
    if let Some(mapping) = mappings::within(page(here))
        .ok()
        .and_then(|found| found.into_iter().next())
    {
        let (start, end) = (stack.start.max(mapping.span.start), stack.end().min(mapping.span.end()));
        stack = Span::new(start, end.saturating_sub(start));
    }
    let mut own = vec![stack];
    own.extend(places.map(page));
    own.extend(sys::descriptors::of_this_thread());
    // The kernel does not wait for these when their threads end. Without `/proc` nobody can color either.
    if let Ok(threads) = sys::descriptors::of_all_threads() {
        own.extend(threads.descriptors.into_iter().chain(threads.held));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::memory::{Area, Size};

    #[test]
    fn what_is_no_range_is_refused() {
        for (start, count) in [(1, 1), (4096, 0), (1 << 20, usize::MAX), (usize::MAX - 4095, 2)] {
            assert!(matches!(survey(Pages { start, count }), Err(Error::Wish(_))));
        }
        let gone = Pages { start: 4096, count: 1 };
        assert!(matches!(survey(gone), Err(Error::Unfit { address: 4096, .. })));
    }

    #[test]
    fn a_mapping_of_our_own_is_one_piece() {
        let area = Area::map(8 * PAGE, Size::Small).unwrap();
        let pages = Pages {
            start: area.start(),
            count: 8,
        };
        let survey = survey(pages).unwrap();
        assert_eq!(survey.pieces, [Piece { pages, of_file: false }]);
        assert!(!survey.is_own(area.start()));
        let here = 1u8;
        assert!(survey.is_own(&raw const here as usize));
    }
}
