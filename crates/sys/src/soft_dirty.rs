//! The pages of a process written since a moment: soft-dirty bits (`/proc/PID/clear_refs`, Linux 3.11).
//!
//! Clearing makes each page's next write a fault, of about a microsecond. There is one such bit for each page of a
//! process: clearing it takes it from other readers, such as CRIU.

use std::io;

use crate::frames::{Entry, Pagemap, cannot_scan};
use crate::memory::{Area, PAGE, Size, Span};
use crate::{Root, SysError};

/// Clears the bits of all pages of a process.
///
/// Errors: absent if it is gone; denied if it is another user's.
pub fn clear(root: &Root, process: u32) -> Result<(), SysError> {
    root.write(&format!("proc/{process}/clear_refs"), "4")
}

/// Returns whether the kernel keeps such bits. The trial on a page of this process clears the
/// process's own bits.
///
/// Errors: they cannot be cleared or read.
pub fn works() -> Result<bool, SysError> {
    let failed = |error| SysError {
        path: "/proc/self/pagemap".into(),
        problem: crate::Problem::Failed(error),
    };
    let area = Area::map(PAGE, Size::Small).map_err(failed)?;
    area.set_word(0, 0, 1);
    clear(&Root::default(), std::process::id())?;
    let map = Pagemap::own().map_err(failed)?;
    let entry = || -> Result<Entry, SysError> { Ok(map.entries(area.span()).map_err(failed)?[0]) };
    let before = entry()?.soft_dirty();
    area.set_word(0, 0, 2);
    Ok(!before && entry()?.soft_dirty())
}

/// Calls `visit` with each range of pages of a process that were written since its bits were cleared, until it returns
/// false; all within `span`.
///
/// Errors: the process is gone.
pub fn written(map: &Pagemap, span: Span, mut visit: impl FnMut(Span) -> bool) -> io::Result<()> {
    match map.soft_dirty(span, &mut visit) {
        Err(error) if cannot_scan(&error) => one_by_one(map, span, visit),
        done => done,
    }
}

/// Reads page by page, for kernels before Linux 6.7.
fn one_by_one(map: &Pagemap, span: Span, mut visit: impl FnMut(Span) -> bool) -> io::Result<()> {
    const TOGETHER: usize = 4096;
    let mut entries = vec![Entry::default(); TOGETHER];
    let mut at = span.start / PAGE * PAGE;
    while at < span.end() {
        let count = (span.end() - at).div_ceil(PAGE).min(TOGETHER);
        map.read(at, &mut entries[..count])?;
        for (page, entry) in entries[..count].iter().enumerate() {
            if entry.present() && entry.soft_dirty() && !visit(Span::new(at + page * PAGE, PAGE)) {
                return Ok(());
            }
        }
        at += count * PAGE;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_is_found_in_either_way() {
        // The bits of all of the process's pages are cleared.
        if !harness::alone("soft_dirty::tests::what_was_written_since_is_found_in_either_way", &[]) {
            return;
        }
        match works() {
            Ok(true) => {}
            Ok(false) => return harness::not_here("the kernel keeps no soft-dirty bits"),
            Err(error) => return harness::not_here(error),
        }
        let area = Area::map(64 * PAGE, Size::Small).unwrap();
        (0..64).for_each(|page| area.set_word(page, 0, 1));
        clear(&Root::default(), std::process::id()).unwrap();
        (8..16).chain([40]).for_each(|page| area.set_word(page, 0, 2));
        let map = Pagemap::own().unwrap();
        type Look = fn(&Pagemap, Span, &mut dyn FnMut(Span) -> bool) -> io::Result<()>;
        let looks: [Look; 2] = [
            |map, span, visit| written(map, span, visit),
            |map, span, visit| one_by_one(map, span, visit),
        ];
        for look in looks {
            let mut found = Vec::new();
            look(&map, area.span(), &mut |span| {
                found.extend(
                    (span.start..span.end())
                        .step_by(PAGE)
                        .map(|page| (page - area.start()) / PAGE),
                );
                true
            })
            .unwrap();
            assert_eq!(found, (8..16).chain([40]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_process_that_is_gone_is_told() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(clear(&Root::default(), child.id()).is_err());
    }
}
