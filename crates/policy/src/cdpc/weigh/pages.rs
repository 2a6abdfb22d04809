//! Pages numbered without gaps.

use std::ops::Range;

use super::super::hints::Placed;

/// Runs of pages by address, each with the number of its first.
#[derive(Debug, Default)]
pub(super) struct Pages {
    runs: Vec<(Range<u64>, u32)>,
    count: u32,
}

impl Pages {
    /// Those of segments, of which no two overlap.
    pub(super) fn of(segments: &[Placed]) -> Pages {
        let mut runs: Vec<Range<u64>> = segments.iter().map(|segment| segment.pages.clone()).collect();
        runs.sort_by_key(|run| run.start);
        let mut pages = Pages::default();
        for run in runs {
            let length = (run.end - run.start) as u32;
            match pages.runs.last_mut() {
                Some((last, _)) if last.end == run.start => last.end = run.end,
                _ => pages.runs.push((run, pages.count)),
            }
            pages.count += length;
        }
        pages
    }

    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// The number of a page.
    pub(super) fn number(&self, page: u64) -> Option<u32> {
        let after = self.runs.partition_point(|(run, _)| run.start <= page);
        let (run, first) = self.runs.get(after.checked_sub(1)?)?;
        run.contains(&page).then(|| first + (page - run.start) as u32)
    }

    /// All pages, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, u32)> {
        self.runs.iter().flat_map(|(run, first)| run.clone().zip(*first..))
    }
}
