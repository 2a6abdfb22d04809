//! Keeping pages where they are: no merging to huge pages, and locked in memory on request. Without a request
//! nothing is locked: a lock would restrict the program (locked pages cannot be emptied) and use up its limit.

use sys::memory::{self, Span};

use super::survey::Survey;
use super::{Engine, Lock};
use crate::{Error, PAGE_BYTES, Pages};

/// The pages that the program itself has locked.
pub(super) struct Locked {
    span: Span,
    /// Only from when pages are touched (`MLOCK_ONFAULT`).
    on_fault: bool,
}

impl Engine {
    /// Keeps the kernel from merging the range's pages, where it might.
    ///
    /// If the range is only part of a mapping, this would split the mapping. It is then done only
    /// if huge pages are in use.
    pub(super) fn keep_small(&self, range: Pages, survey: &Survey) -> Result<(), Error> {
        let about = || {
            let always = sys::pages::huge_pages(&sys::Root::default()).is_ok_and(|huge| huge.enabled == "always");
            always || self.pagemap.huge(range.span()).is_ok_and(|huge| huge.contains(&true))
        };
        if survey.whole || about() {
            // Kernels without huge pages refuse, and need no advice.
            let _ = memory::no_huge(range.span());
        }
        Ok(())
    }

    /// Locks a colored range as the configuration says; whether it is locked.
    pub(super) fn lock(&mut self, range: Pages, survey: &Survey) -> bool {
        let wanted = match self.config.lock {
            Lock::Never => false,
            Lock::Free => survey.whole,
            Lock::Allowed => true,
        };
        let allowed = || {
            let locked: usize = self.locked.iter().map(|locked| locked.bytes()).sum();
            memory::lock_limit().is_none_or(|limit| (locked + range.bytes()) as u64 <= limit) || self.may_lock
        };
        if !wanted || !allowed() || memory::lock(range.span()).is_err() {
            return false;
        }
        self.locked.retain(|locked| !within(locked.span(), range.span()));
        self.locked.push(range);
        true
    }

    /// Pages are only moved between mappings that are both locked or both not: undoes our own
    /// locks that touch the range.
    pub(super) fn unlock(&mut self, range: Pages) {
        let ours: Vec<Pages> = self
            .locked
            .extract_if(.., |locked| locked.span().meets(range.span()))
            .collect();
        for locked in ours {
            let (start, end) = (locked.start.max(range.start), locked.end().min(range.end()));
            // Gone, if the program unmapped it.
            let _ = memory::unlock(Span::new(start, end - start));
            for (start, end) in [(locked.start, start), (end, locked.end())] {
                if start < end {
                    let count = (end - start) / PAGE_BYTES;
                    self.locked.push(Pages { start, count });
                }
            }
        }
    }

    /// Undoes the locks of the program itself; which parts of the range were locked, for
    /// [`relock`](Engine::relock).
    pub(super) fn unlock_program(&self, range: Pages) -> Vec<Locked> {
        let details = sys::mappings::details(range.span()).unwrap_or_default();
        let locked = details.iter().filter(|details| details.has("lo")).map(|details| {
            let span = details.mapping.span;
            let (start, end) = (span.start.max(range.start), span.end().min(range.end()));
            Locked {
                span: Span::new(start, end.saturating_sub(start)),
                on_fault: details.has("lf"),
            }
        });
        locked.filter(|part| memory::unlock(part.span).is_ok()).collect()
    }

    /// Gives the program its own locks back; they were allowed before.
    pub(super) fn relock(&self, parts: &[Locked]) {
        for part in parts {
            let _ = if part.on_fault {
                memory::lock_on_fault(part.span)
            } else {
                memory::lock(part.span)
            };
        }
    }
}

fn within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end() <= outer.end()
}
