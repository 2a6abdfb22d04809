//! Filling pages with frames from the daemon, and giving them back.

use std::io;

use sys::affinity;
use sys::handover::Populate;
use sys::memory::{self, Span};

use super::{Client, ClientError, runs};
use crate::daemon::wire::{Answer, Request, Want};
use crate::{PAGE_BYTES, Pages};

/// Pages in one request for frames. Fewer cost more turns of the two processes, more leave the kernel's list of
/// each cpu longer than it likes; measured from 128 to 1024, this is where it is flat.
const BATCH: usize = 512;
/// How often a page whose frame has the wrong color is tried again.
const RETRIES: usize = 3;

impl Client {
    /// See [`crate::Supply::fill`]. Pre: none of the pages may become part of a huge one ([`memory::no_huge`]).
    ///
    /// # Safety
    /// As for [`crate::Supply::fill`].
    pub(super) unsafe fn fill_pages(&mut self, into: Pages, want: &[u16]) -> Result<Vec<Option<u16>>, ClientError> {
        // The frames are on the list of one cpu: stay there.
        let pinned = affinity::pin_here();
        let _brisk = affinity::brisk();
        let cpu = pinned.as_ref().map_or_else(affinity::here, affinity::Pinned::cpu) as u32;
        let all: Vec<usize> = (0..into.count).collect();
        let mut met = match self.take(cpu, into, want, &all) {
            Ok(met) => met,
            Err(error) => {
                // Some pages were filled already; the caller has no use for half of them.
                // SAFETY: they hold nothing but zeros, and nobody else touches them.
                let _ = unsafe { self.give_back_pages(into) };
                return Err(error);
            }
        };
        self.lacking = into.count - met.len();
        let mut colors = self.look(into)?;
        for _ in 0..RETRIES {
            let wrong: Vec<usize> = met
                .iter()
                .copied()
                .filter(|&page| colors[page] != Some(want[page]))
                .collect();
            // If nearly all go wrong, chance is not the cause.
            if wrong.is_empty() || wrong.len() > met.len() / 8 * 7 {
                break;
            }
            for run in neighbours(&wrong) {
                // SAFETY: as above.
                unsafe { discard(part(into, run)) }?;
            }
            let taken = self.take(cpu, into, want, &wrong);
            for (page, color) in wrong.iter().zip(self.look_at(into, &wrong)?) {
                colors[*page] = color;
            }
            match taken {
                Ok(taken) => met = taken,
                Err(_) => break,
            }
        }
        Ok(colors)
    }

    fn look_at(&mut self, into: Pages, pages: &[usize]) -> Result<Vec<Option<u16>>, ClientError> {
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else {
            return Ok(Vec::new());
        };
        let colors = self.look(part(into, *first..last + 1))?;
        Ok(pages.iter().map(|page| colors[page - first]).collect())
    }

    /// Gives frames to `pages` of `into`, ascending, which have none; returns those for which the daemon had some.
    /// All have frames afterwards in any case, if the kernel has any.
    fn take(&mut self, cpu: u32, into: Pages, want: &[u16], pages: &[usize]) -> Result<Vec<usize>, ClientError> {
        let mut populate = Populate::new();
        let mut all_met = Vec::with_capacity(pages.len());
        for (number, batch) in pages.chunks(BATCH).enumerate() {
            let (first, last) = (batch[0], batch[batch.len() - 1]);
            let within = part(into, first..last + 1);
            let mut wants: Vec<Want> = batch
                .iter()
                .map(|&page| Want {
                    page: (page - first) as u32,
                    color: want[page],
                })
                .collect();
            wants.sort_unstable_by_key(|want| (want.color, want.page));
            let order: Vec<u32> = wants.iter().map(|want| want.page).collect();
            let request = Request::Take {
                cpu,
                start: within.start as u64,
                wants,
            };
            let met = match self.ask(&request) {
                Ok(Answer::Released { met }) if met.len() == batch.len() => met,
                Ok(_) => return Err(ClientError::Unexpected),
                Err(error) => {
                    for run in neighbours(&pages[number * BATCH..]) {
                        fault_in(part(into, run))?;
                    }
                    return Err(error);
                }
            };
            let these: Vec<u32> = order
                .iter()
                .zip(&met)
                .filter(|(_, met)| **met)
                .map(|(page, _)| *page)
                .collect();
            let done = populate.each(Span::new(within.start, within.bytes()), &these);
            done.map_err(|error| trouble(within, error))?;
            all_met.extend(these.iter().map(|page| first + *page as usize));
            if these.len() < batch.len() {
                // The daemon had too few: the kernel's choice for the others.
                for run in neighbours(batch) {
                    fault_in(part(into, run))?;
                }
            }
        }
        all_met.sort_unstable();
        Ok(all_met)
    }

    /// # Safety
    /// As for [`crate::Supply::give_back`].
    pub(super) unsafe fn give_back_pages(&mut self, pages: Pages) -> Result<(), ClientError> {
        let pinned = affinity::pin_here();
        let _brisk = affinity::brisk();
        let cpu = pinned.as_ref().map_or_else(affinity::here, affinity::Pinned::cpu) as u32;
        let mut reported = Ok(());
        for run in runs(pages) {
            let ours = match &reported {
                Ok(()) => self.count(&Request::Leave { run }),
                Err(_) => Ok(0),
            };
            let part = Pages {
                start: run.start as usize,
                count: run.count as usize,
            };
            // SAFETY: the caller's promise.
            unsafe { discard(part) }?;
            reported = match ours {
                Ok(0) => reported,
                Ok(_) => self.count(&Request::Left { cpu }).map(drop),
                Err(error) => Err(error),
            };
        }
        match reported {
            // The daemon keeps no record of lost clients.
            Err(ClientError::Lost(_) | ClientError::Absent { .. }) => Ok(()),
            reported => reported,
        }
    }
}

fn part(pages: Pages, part: std::ops::Range<usize>) -> Pages {
    Pages {
        start: pages.start + part.start * PAGE_BYTES,
        count: part.len(),
    }
}

/// Ascending numbers as ranges.
fn neighbours(numbers: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|chunk| chunk[0]..chunk[chunk.len() - 1] + 1)
}

fn fault_in(pages: Pages) -> Result<(), ClientError> {
    memory::populate(Span::new(pages.start, pages.bytes())).map_err(|error| trouble(pages, error))
}

/// # Safety
/// As for [`memory::discard`].
unsafe fn discard(pages: Pages) -> Result<(), ClientError> {
    // SAFETY: the caller's promise.
    unsafe { memory::discard(Span::new(pages.start, pages.bytes())) }.map_err(|error| trouble(pages, error))
}

fn trouble(pages: Pages, error: io::Error) -> ClientError {
    ClientError::Pages {
        start: pages.start,
        count: pages.count,
        error,
    }
}
