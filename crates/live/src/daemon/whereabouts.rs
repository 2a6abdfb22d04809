//! The holders of frames that were handed to a process which has ended, or which no longer speaks to the daemon.
//!
//! A child of fork has its parent's frames, whatever becomes of the parent and of the connection. That a frame is in
//! use says little: it may have been freed and given to anybody since. So the search covers frames that hold anonymous
//! memory at all, in the processes of the same user. Without help from root no other process can have inherited them.

use std::collections::HashSet;
use std::io;

use sys::frames::{Entry, Flags, Pagemap};
use sys::memory::{PAGE, Span};
use sys::processes;

/// The findings about frames.
#[derive(Debug)]
pub enum Whereabouts {
    /// These are in use by the user's processes, and the others are not.
    Known(Vec<u64>),
    /// Only these may be in use: processes came and went too fast to look at all, or one could not be looked at.
    /// `None` means any.
    Unknown(Option<Vec<u64>>),
}

/// Times that the processes of the user are gone through, for such as began meanwhile.
const PASSES: usize = 16;
/// Pages looked at, at most: those of 64 GiB.
const PAGES: usize = 1 << 24;

/// Pre: `frames` are ascending. Takes as long as it takes: processes of the user may keep it waiting.
pub fn find(user: u32, frames: Vec<u64>) -> Whereabouts {
    // Frames that no process uses are settled, which mostly are all.
    match Flags::open().and_then(|flags| flags.anonymous(&frames)) {
        Ok(used) if used.is_empty() => Whereabouts::Known(used),
        Ok(used) => match Search::new(&used).of(user) {
            Some(found) => Whereabouts::Known(found),
            None => Whereabouts::Unknown(Some(used)),
        },
        Err(_) => Whereabouts::Unknown(None),
    }
}

struct Search {
    wanted: HashSet<u64>,
    found: HashSet<u64>,
    /// Processes that were looked at.
    seen: HashSet<u32>,
    pages: usize,
    entries: Vec<Entry>,
}

impl Search {
    fn new(frames: &[u64]) -> Search {
        Search {
            wanted: frames.iter().copied().collect(),
            found: HashSet::new(),
            // The daemon holds its own frames for others.
            seen: HashSet::from([std::process::id()]),
            pages: 0,
            entries: Vec::new(),
        }
    }

    /// The frames that were found, or none where nothing is certain.
    fn of(mut self, user: u32) -> Option<Vec<u64>> {
        for _ in 0..PASSES {
            let processes = processes::of_user(user).ok()?;
            let fresh: Vec<u32> = processes
                .into_iter()
                .filter(|process| self.seen.insert(*process))
                .collect();
            if fresh.is_empty() {
                return Some(self.found.into_iter().collect());
            }
            for process in fresh {
                self.within(process).ok()?;
            }
        }
        None
    }

    /// Looks through all that a process has. Errors: the kernel does not say, or it is too much.
    fn within(&mut self, process: u32) -> io::Result<()> {
        let map = match Pagemap::of(process) {
            Ok(map) => map,
            // It has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut read = Ok(());
        map.present(|span| {
            read = self.read(&map, span);
            read.is_ok()
        })?;
        read
    }

    fn read(&mut self, map: &Pagemap, span: Span) -> io::Result<()> {
        /// Pages that are read together.
        const TOGETHER: usize = 8192;
        let pages = span.bytes / PAGE;
        for first in (0..pages).step_by(TOGETHER) {
            let count = (pages - first).min(TOGETHER);
            self.pages += count;
            if self.pages > PAGES {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            self.entries.clear();
            self.entries.resize(count, Entry::default());
            map.read(span.start + first * PAGE, &mut self.entries)?;
            let frames = self.entries.iter().filter_map(|entry| entry.frame());
            self.found.extend(frames.filter(|frame| self.wanted.contains(frame)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::memory::{Area, Size};

    #[test]
    fn frames_are_found_in_the_users_processes_and_in_no_others() {
        if !Pagemap::own_numbers_visible() {
            return harness::not_allowed("frames are shown to root only");
        }
        let area = Area::map(50 * PAGE, Size::Small).unwrap();
        (0..50).for_each(|page| area.set_word(page, 0, 1));
        let entries = Pagemap::own().unwrap().entries(area.span()).unwrap();
        let mut frames: Vec<u64> = entries.iter().filter_map(|entry| entry.frame()).collect();
        frames.sort_unstable();
        // This process stands for the one that has them; another one for the daemon.
        let mut search = Search::new(&frames);
        search.seen.clear();
        // Or nothing, on a machine where processes of root come and go all the time.
        if let Some(mut found) = search.of(0) {
            found.sort_unstable();
            assert_eq!(found, frames);
        }
        let mut search = Search::new(&frames);
        search.within(std::process::id()).unwrap();
        assert_eq!(search.found.len(), 50);
        // A user that nobody is has none. And one that has ended, or is the kernel's, has none either.
        assert_eq!(Search::new(&frames).of(u32::MAX), Some(Vec::new()));
        let mut search = Search::new(&frames);
        assert!(search.within(2).is_ok() && search.within(u32::MAX).is_ok());
        assert!(search.found.is_empty());
        assert!(matches!(find(u32::MAX, frames), Whereabouts::Known(found) if found.is_empty()));
    }
}
