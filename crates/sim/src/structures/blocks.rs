//! Ranges of addresses that do not overlap, and the owner of each.

use std::collections::BTreeMap;

use super::StructureId;

/// `[start, end)` and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub structure: StructureId,
}

impl Span {
    pub fn new(start: u64, bytes: u64, structure: StructureId) -> Self {
        Span {
            start,
            end: start.saturating_add(bytes),
            structure,
        }
    }

    #[inline]
    pub fn contains(&self, addr: u64) -> bool {
        self.start <= addr && addr < self.end
    }

    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The contents of an address: a span, or nothing from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Span(Span),
    Gap { start: u64, end: u64 },
}

/// Spans that come and go: the live blocks of a heap.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    /// End and owner, by start.
    spans: BTreeMap<u64, (u64, StructureId)>,
}

impl Blocks {
    /// Adds a span. Older spans lose the parts that it covers (their release was not seen, or they
    /// were mapped over); `lost` is called for each such part.
    pub fn insert(&mut self, span: Span, mut lost: impl FnMut(Span)) {
        if span.bytes() == 0 {
            return;
        }
        while let Some((&start, &(end, structure))) = self.spans.range(..span.end).next_back() {
            if end <= span.start {
                break;
            }
            self.spans.remove(&start);
            if end > span.end {
                self.spans.insert(span.end, (end, structure));
            }
            if start < span.start {
                self.spans.insert(start, (span.start, structure));
            }
            lost(Span {
                start: start.max(span.start),
                end: end.min(span.end),
                structure,
            });
        }
        self.spans.insert(span.start, (span.end, span.structure));
    }

    /// Takes out the span that begins at `start`.
    pub fn remove(&mut self, start: u64) -> Option<Span> {
        let (end, structure) = self.spans.remove(&start)?;
        Some(Span { start, end, structure })
    }

    pub fn find(&self, addr: u64) -> Found {
        let below = self.spans.range(..=addr).next_back();
        if let Some((&start, &(end, structure))) = below
            && addr < end
        {
            return Found::Span(Span { start, end, structure });
        }
        Found::Gap {
            start: below.map_or(0, |(_, &(end, _))| end),
            end: self.spans.range(addr..).next().map_or(u64::MAX, |(&start, _)| start),
        }
    }
}

/// Spans that stay: a sorted list.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    spans: Vec<Span>,
}

impl Sorted {
    pub const EMPTY: Sorted = Sorted { spans: Vec::new() };

    /// Later spans prevail where they overlap earlier ones.
    pub fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut blocks = Blocks::default();
        for span in spans {
            blocks.insert(span, |_| {});
        }
        Sorted {
            spans: blocks
                .spans
                .into_iter()
                .map(|(start, (end, structure))| Span { start, end, structure })
                .collect(),
        }
    }

    pub fn find(&self, addr: u64) -> Found {
        let above = self.spans.partition_point(|span| span.start <= addr);
        let below = above.checked_sub(1).map(|below| self.spans[below]);
        match below {
            Some(span) if addr < span.end => Found::Span(span),
            _ => Found::Gap {
                start: below.map_or(0, |span| span.end),
                end: self.spans.get(above).map_or(u64::MAX, |span| span.start),
            },
        }
    }

    pub fn holds(&self, addr: u64) -> bool {
        matches!(self.find(addr), Found::Span(_))
    }
}
