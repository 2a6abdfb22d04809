//! The pages that colors are tried with: their source, the known bits of their frames, and the
//! clock that times walks over them.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use sys::chase::{link, walk};
use sys::clock::thread_time;
use sys::frames::Pagemap;
use sys::mappings::details;
use sys::memory::{Area, HUGE, PAGE, Size, collapse, populate};

use super::investigate::Stopwatch;
use super::sets::{Known, sparse};
use super::verdict::median;
use crate::chase::Random;

/// The source of the frames behind pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// `/proc/self/pagemap` shows all bits; for the privileged.
    Pagemap,
    /// A huge page of 2 MiB is contiguous, which fixes bits 12 to 20.
    HugePages,
}

impl Source {
    /// All bits of the address below this one are known.
    pub fn known(self) -> u32 {
        match self {
            Source::Pagemap => 52,
            Source::HugePages => HUGE.trailing_zeros(),
        }
    }
}

/// Memory with known frames.
pub struct Ground {
    area: Area,
    pub pages: Vec<Known>,
    pub source: Source,
    /// True if all of it is in huge pages.
    pub huge: bool,
}

/// Least memory worth looking at: 16 pages of each of the 512 places in a huge page.
const BYTES_MIN: usize = 16 * HUGE;

impl Ground {
    /// Takes `bytes` of memory in huge pages, or half or a quarter of it where there is no more, else
    /// in small ones if their frames may be seen.
    ///
    /// Errors: why no frames are known.
    pub fn take(bytes: usize) -> Result<Ground, String> {
        let area = Area::map(bytes, Size::Huge).map_err(|error| format!("no memory can be had: {error}"))?;
        populate(area.span()).map_err(|error| format!("no memory can be had: {error}"))?;
        let huge: Vec<usize> = huge_parts(&area);
        let parts = area.pages() / (HUGE / PAGE);
        if let Some(pages) = by_pagemap(&area) {
            return Ok(Ground {
                huge: huge.len() == parts,
                area,
                pages,
                source: Source::Pagemap,
            });
        }
        if huge.len() * HUGE < BYTES_MIN {
            return Err(format!(
                "which frames pages have is not known: /proc/self/pagemap hides them from this user, and of {parts} huge \
                 pages asked for there are {}; `domicile doctor` says what to change",
                huge.len()
            ));
        }
        let pages = huge
            .iter()
            .flat_map(|part| {
                (0..HUGE / PAGE).map(move |at| Known {
                    page: (part * (HUGE / PAGE) + at) as u32,
                    address: (at * PAGE) as u64,
                })
            })
            .collect();
        let huge = huge.len() == parts;
        Ok(Ground {
            area,
            pages,
            source: Source::HugePages,
            huge,
        })
    }

    /// The clock, and what is known of the pages it walks over.
    pub fn split(&mut self) -> (Clock<'_>, &[Known]) {
        (Clock { area: &mut self.area }, &self.pages)
    }

    /// Returns whether the frames that were seen are still there; if they cannot be seen, whether
    /// the pages are still huge.
    pub fn stands(&self) -> bool {
        match self.source {
            Source::Pagemap => by_pagemap(&self.area).is_some_and(|pages| pages == self.pages),
            Source::HugePages => !self.huge || all_huge(&self.area),
        }
    }

    /// The time that translation adds to a load when each load goes to another page: in pages of
    /// this area, and in small ones.
    pub fn translation(&mut self) -> Option<Translation> {
        if !self.huge {
            return None;
        }
        let mut small = Area::map(SCATTERED * PAGE, Size::Small).ok()?;
        populate(small.span()).ok()?;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let pages: Vec<u32> = (0..SCATTERED as u32).collect();
        let (mut in_huge, mut in_small) = (Vec::new(), Vec::new());
        for _ in 0..TRANSLATION_ROUNDS {
            for (area, times) in [(&mut self.area, &mut in_huge), (&mut small, &mut in_small)] {
                let apart = Clock { area }.time(&sparse(&pages, &mut random));
                // As many lines side by side, which the innermost cache holds just as well.
                let mut close: Vec<u32> = (0..(SCATTERED * 8) as u32).collect();
                random.shuffle(&mut close);
                times.push(apart - Clock { area }.time(&close));
            }
        }
        Some(Translation {
            huge_ns: median(&in_huge).max(0.0),
            small_ns: median(&in_small).max(0.0),
        })
    }
}

/// Pages that no first-level TLB holds, in a single huge page, one line each.
const SCATTERED: usize = 512;
const TRANSLATION_ROUNDS: usize = 9;

/// The time that translation adds to a load, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Translation {
    pub huge_ns: f64,
    pub small_ns: f64,
}

impl Translation {
    /// Returns whether huge pages are translated as the huge pages they are said to be; none if
    /// small ones cost too little to tell. A host that backs a guest's memory with small pages
    /// makes the guest's huge pages as slow to translate as small ones.
    pub fn whole(self) -> Option<bool> {
        (self.small_ns > 0.5).then_some(self.huge_ns < self.small_ns / 2.0)
    }
}

/// Times walks in processor time: on a busy machine the turns of others are not ours.
pub struct Clock<'a> {
    area: &'a mut Area,
}

/// Loads enough for the clock.
const LOADS_MIN: u64 = 8192;
/// Loads beyond which a walk need not go round.
const LOADS_MAX: u64 = 1 << 17;
/// The best of this many repeats counts: any disturbance only makes a walk longer.
const REPEATS: usize = 3;

impl Stopwatch for Clock<'_> {
    fn time(&mut self, words: &[u32]) -> f64 {
        link(self.area, words);
        let round = words.len() as u64;
        let loads = LOADS_MIN.next_multiple_of(round.max(1)).min(LOADS_MAX);
        let mut at = walk(self.area, words[0], round.min(LOADS_MAX));
        let mut best = f64::INFINITY;
        for _ in 0..REPEATS {
            let begin = thread_time();
            at = walk(self.area, at, loads);
            let taken = thread_time() - begin;
            best = best.min(taken.as_secs_f64() * 1e9 / loads as f64);
        }
        black_box(at);
        best
    }
}

fn by_pagemap(area: &Area) -> Option<Vec<Known>> {
    let entries = Pagemap::own().and_then(|map| map.entries(area.span())).ok()?;
    entries
        .iter()
        .zip(0u32..)
        .map(|(entry, page)| {
            Some(Known {
                page,
                address: entry.frame()? * PAGE as u64,
            })
        })
        .collect()
}

fn all_huge(area: &Area) -> bool {
    details(area.span()).is_ok_and(|details| {
        let huge: u64 = details.iter().map(|details| details.huge_bytes).sum();
        huge >= area.bytes() as u64
    })
}

/// The parts of 2 MiB that are huge pages.
fn huge_parts(area: &Area) -> Vec<usize> {
    let each = HUGE / PAGE;
    let parts = 0..area.pages() / each;
    if all_huge(area) {
        return parts.collect();
    }
    // The kernel says so of all together only; a part that collapses is huge, if it was not before.
    parts
        .filter(|part| collapse(area.part(part * each, each)).is_ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_ground_are_in_the_area_and_known_as_believed() {
        // Without huge pages and frames there is nothing to check, and the test prints why.
        let ground = match Ground::take(BYTES_MIN) {
            Ok(ground) => ground,
            Err(reason) => return assert!(reason.contains("doctor"), "{reason}"),
        };
        assert!(
            ground
                .pages
                .iter()
                .all(|known| (known.page as usize) < ground.area.pages())
        );
        if ground.huge {
            let low = |known: &Known| known.address & (HUGE as u64 - 1);
            assert!(
                ground
                    .pages
                    .iter()
                    .all(|known| low(known) == u64::from(known.page) * 4096 % HUGE as u64)
            );
        }
        assert!(ground.stands());
    }

    #[test]
    fn a_clock_times_a_walk() {
        let mut area = Area::map(PAGE, Size::Small).unwrap();
        let ns = Clock { area: &mut area }.time(&[3, 1, 2]);
        assert!(ns.is_finite() && ns >= 0.0, "{ns}");
    }

    #[test]
    fn huge_pages_that_cost_as_much_as_small_ones_are_not_whole() {
        let of = |huge_ns, small_ns| Translation { huge_ns, small_ns }.whole();
        assert_eq!(of(0.1, 2.0), Some(true));
        assert_eq!(of(1.8, 2.0), Some(false));
        assert_eq!(of(0.1, 0.2), None);
    }
}
