//! The daemon's frames, sorted by color.
//!
//! The stock is a shelf of anonymous pages. Collecting faults pages in, of whatever color, and sorts the frames
//! by the pagemap. To hand over frames, their pages are given up in the reverse of the order in which the other
//! side is going to fault its own in (see [`sys::handover`]).
//!
//! A low color is filled up by collecting more of all colors. Unneeded frames are kept aside until the round is
//! over, since the kernel would only hand them out again, and go back then (Ding11, sections 3.3 and 3.4).

use std::io;
use std::ops::Range;

use sys::frames::Entry;
use sys::handover::Shelf;

use crate::Colors;

/// Pages that are looked at together.
const WINDOW: usize = 512;
/// The most that a round of collecting may hold beyond the stock: this part of the stock, or so many pages however
/// small the stock is, 32 MiB.
const PART: usize = 2;
const ROOM: usize = 8192;
/// In the place of a frame: none.
const ABSENT: u64 = 0;

/// The origins and destinations of the frames. At any moment `collected + taken_back == at hand +
/// released + let_go + given_up + lost`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Frames from the kernel, by faulting pages in.
    pub collected: u64,
    /// Frames from clients that freed a data set.
    pub taken_back: u64,
    /// Frames to clients.
    pub released: u64,
    /// Frames to the kernel: collected, but of no needed color.
    pub let_go: u64,
    /// Frames to the kernel, because the machine was short of memory.
    pub given_up: u64,
    /// Moved or swapped out by the kernel.
    pub lost: u64,
}

pub struct Stock {
    shelf: Shelf,
    colors: Colors,
    /// The frame of each page, as it was when it was last looked at.
    frame_of: Vec<u64>,
    /// The pages that have a frame of each color; the last ones go first.
    by_color: Vec<Vec<u32>>,
    /// Frames of one color that there should be.
    wanted: usize,
    /// The positions at which collecting and checking continue.
    collect_at: usize,
    check_at: usize,
    /// True while a round of collecting is under way.
    collecting: bool,
    flow: Flow,
    entries: Vec<Entry>,
}

impl Stock {
    /// An empty stock that will hold `target` frames in all, as many of each color.
    ///
    /// Errors: kind `PermissionDenied` where frames cannot be seen, which takes CAP_SYS_ADMIN.
    pub fn new(colors: Colors, target: usize) -> io::Result<Stock> {
        let count = colors.count() as usize;
        let wanted = target.div_ceil(count).max(1);
        // Room for a round of collecting that finds too much of some colors before enough of others: the frames that
        // programs freed a moment ago, which the kernel gives out first, may all have one color. If that is not enough,
        // a color stays low until a later round.
        let pages = (wanted * count + wanted * count / PART + ROOM).next_multiple_of(WINDOW);
        if u32::try_from(pages).is_err() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut shelf = Shelf::reserve(pages)?;
        let mut entries = Vec::new();
        shelf.collect(0..1)?;
        shelf.entries(0..1, &mut entries)?;
        shelf.let_go(&[0])?;
        if entries.iter().all(|entry| entry.frame().is_none()) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        Ok(Stock {
            shelf,
            frame_of: vec![ABSENT; pages],
            by_color: vec![Vec::new(); count],
            colors,
            wanted,
            collect_at: 0,
            check_at: 0,
            collecting: true,
            flow: Flow::default(),
            entries,
        })
    }

    pub fn colors(&self) -> &Colors {
        &self.colors
    }

    pub fn flow(&self) -> Flow {
        self.flow
    }

    /// Frames at hand.
    pub fn len(&self) -> usize {
        self.by_color.iter().map(Vec::len).sum()
    }

    /// Frames that there should be.
    pub fn target(&self) -> usize {
        self.wanted * self.by_color.len()
    }

    /// Frames at hand by color.
    pub fn by_color(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_color.iter().map(|pages| pages.len() as u64)
    }

    /// Most frames at hand at a time, while a round of collecting is under way.
    pub fn most(&self) -> usize {
        self.frame_of.len()
    }

    /// Releases a frame of each color of `wants`, on the cpu that this thread is on, in reverse order; returns
    /// which frame meets each want.
    ///
    /// Pre: each is a color.
    pub fn release(
        &mut self,
        wants: impl DoubleEndedIterator<Item = u16> + ExactSizeIterator,
    ) -> io::Result<Vec<Option<u64>>> {
        let mut met = Vec::with_capacity(wants.len());
        let mut pages = Vec::with_capacity(wants.len());
        for color in wants {
            let page = self.by_color[usize::from(color)].pop();
            met.push(page.map(|page| self.frame_of[page as usize]));
            pages.extend(page);
        }
        pages.reverse();
        self.flow.released += self.drop_pages(&pages)?;
        Ok(met)
    }

    /// Gives up pages that are on no list any more.
    fn drop_pages(&mut self, pages: &[u32]) -> io::Result<u64> {
        if let Err(error) = self.shelf.let_go(pages) {
            // Some may be left: the kernel knows which.
            self.sort_anew()?;
            return Err(error);
        }
        for &page in pages {
            self.frame_of[page as usize] = ABSENT;
        }
        Ok(pages.len() as u64)
    }

    /// Takes frames that were freed on this cpu a moment ago; returns which came.
    ///
    /// Ensures: no more than `count`, and none where there are enough.
    pub fn take_back(&mut self, count: usize) -> io::Result<Vec<u64>> {
        let count = count.min(self.frame_of.len() - self.len());
        let mut came = Vec::with_capacity(count);
        let mut windows = self.frame_of.len() / WINDOW;
        while came.len() < count && windows > 0 {
            let window = self.next_window();
            let mut end = window.start;
            let mut absent = 0;
            while end < window.end && absent < count - came.len() {
                absent += usize::from(self.frame_of[end] == ABSENT);
                end += 1;
            }
            if absent > 0 {
                self.fault_in(window.start..end, Some(&mut came))?;
            }
            windows -= 1;
        }
        self.flow.taken_back += came.len() as u64;
        // Surplus frames go back to the kernel.
        if !self.collecting {
            self.trim()?;
        }
        Ok(came)
    }

    fn next_window(&mut self) -> Range<usize> {
        let start = self.collect_at;
        self.collect_at = (start + WINDOW) % self.frame_of.len();
        start..start + WINDOW
    }

    /// Returns whether some color is so low that collecting should begin, or go on.
    pub fn hungry(&self) -> bool {
        self.collecting
            || self
                .by_color
                .iter()
                .any(|pages| pages.len() < self.wanted - self.wanted / 4)
    }

    /// Collects some frames, 512 at most. Returns their number, and true if the round is over: each color
    /// has enough, or the shelf is full. By then the surplus has gone back to the kernel.
    pub fn collect(&mut self) -> io::Result<(usize, bool)> {
        self.collecting = true;
        let mut got = 0;
        let mut windows = self.frame_of.len() / WINDOW;
        while got == 0 && windows > 0 && !self.full() {
            let window = self.next_window();
            if self.frame_of[window.clone()].contains(&ABSENT) {
                got = self.fault_in(window, None)?;
            }
            windows -= 1;
        }
        self.flow.collected += got as u64;
        let over = got == 0 || self.full();
        if over {
            self.collecting = false;
            self.trim()?;
        }
        Ok((got, over))
    }

    /// Ends a round of collecting before its time, because memory is wanted elsewhere.
    pub fn stop_collecting(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.collecting) {
            self.trim()?;
        }
        Ok(())
    }

    fn full(&self) -> bool {
        self.by_color.iter().all(|pages| pages.len() >= self.wanted)
    }

    /// Gives frames to the pages of a range that have none; the count of those that came.
    fn fault_in(&mut self, range: Range<usize>, mut came: Option<&mut Vec<u64>>) -> io::Result<usize> {
        self.shelf.collect(range.clone())?;
        let mut entries = std::mem::take(&mut self.entries);
        let read = self.shelf.entries(range.clone(), &mut entries);
        let mut got = 0;
        if read.is_ok() {
            for (page, entry) in range.zip(&entries) {
                let (ABSENT, Some(frame)) = (self.frame_of[page], entry.frame()) else {
                    continue;
                };
                self.frame_of[page] = frame;
                self.by_color[self.colors.of(frame) as usize].push(page as u32);
                got += 1;
                if let Some(came) = &mut came {
                    came.push(frame);
                }
            }
        }
        self.entries = entries;
        read?;
        Ok(got)
    }

    /// Cuts each color with an eighth more frames than wanted back to the wanted number.
    fn trim(&mut self) -> io::Result<()> {
        let most = self.wanted + self.wanted / 8;
        let mut pages = Vec::new();
        for list in &mut self.by_color {
            if list.len() > most {
                pages.extend(list.split_off(self.wanted));
            }
        }
        self.flow.let_go += self.drop_pages(&pages)?;
        Ok(())
    }

    /// Gives `count` frames back to the kernel, of the colors that there is most of; how many went.
    pub fn give_up(&mut self, count: usize) -> io::Result<usize> {
        self.collecting = false;
        let count = count.min(self.len());
        let mut pages = Vec::with_capacity(count);
        // The height at which all are cut off: found by halves.
        let (mut low, mut high) = (0, self.by_color.iter().map(Vec::len).max().unwrap_or(0));
        let above =
            |height: usize| -> usize { self.by_color.iter().map(|list| list.len().saturating_sub(height)).sum() };
        while low < high {
            let middle = (low + high) / 2;
            if above(middle) > count {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        for list in &mut self.by_color {
            pages.extend(list.split_off(list.len().min(low)));
        }
        for list in &mut self.by_color {
            if pages.len() < count && list.len() == low {
                pages.extend(list.pop());
            }
        }
        let went = self.drop_pages(&pages)?;
        self.flow.given_up += went;
        Ok(went as usize)
    }

    /// Checks some pages, `windows` times 512, for frames that the kernel has moved or swapped out. If there are any,
    /// sorts the whole stock again. Returns their number.
    pub fn check(&mut self, windows: usize) -> io::Result<usize> {
        let mut lost = 0;
        for _ in 0..windows.min(self.frame_of.len() / WINDOW) {
            let window = self.check_at..self.check_at + WINDOW;
            self.check_at = window.end % self.frame_of.len();
            if self.frame_of[window.clone()].iter().all(|frame| *frame == ABSENT) {
                continue;
            }
            let mut entries = std::mem::take(&mut self.entries);
            self.shelf.entries(window.clone(), &mut entries)?;
            for (page, entry) in window.zip(&entries) {
                lost += usize::from(self.frame_of[page] != ABSENT && entry.frame() != Some(self.frame_of[page]));
            }
            self.entries = entries;
        }
        if lost > 0 {
            self.sort_anew()?;
        }
        Ok(lost)
    }

    /// Rebuilds all lists from the kernel's reports.
    fn sort_anew(&mut self) -> io::Result<()> {
        let before = self.len() as u64;
        self.by_color.iter_mut().for_each(Vec::clear);
        let mut entries = std::mem::take(&mut self.entries);
        for start in (0..self.frame_of.len()).step_by(WINDOW) {
            self.shelf.entries(start..start + WINDOW, &mut entries)?;
            for (page, entry) in (start..).zip(&entries) {
                self.frame_of[page] = entry.frame().unwrap_or(ABSENT);
                if let Some(frame) = entry.frame() {
                    self.by_color[self.colors.of(frame) as usize].push(page as u32);
                }
            }
        }
        self.entries = entries;
        let after = self.len() as u64;
        self.flow.lost += before.saturating_sub(after);
        self.flow.collected += after.saturating_sub(before);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
