//! The soft-dirty bits of watched processes: cleared at the start and at looks. They are cleared more seldom if many
//! pages are written, since each page written after a clearing costs its process a fault.

use std::collections::HashMap;

use sys::{Problem, Root, SysError, soft_dirty};

use super::Lost;

/// Faults of a process in an interval, about: a look that found more pages written is followed by intervals without one.
const FAULTS: u64 = 65_536;
/// The longest rest in intervals, and so the most counts of a look.
const LONGEST: u32 = 8;

/// For each process, how long it is still left alone, and how long it was before.
#[derive(Debug, Default)]
pub struct Rests(HashMap<u32, (u32, u32)>);

impl Rests {
    /// Begins to watch a process: its writes from now on are seen.
    pub fn begin(&mut self, process: u32) -> Result<(), Lost> {
        clear(process)?;
        self.is_new(process);
        Ok(())
    }

    fn is_new(&mut self, process: u32) {
        self.0.insert(process, (0, 0));
    }

    pub fn end(&mut self, process: u32) {
        self.0.remove(&process);
    }

    pub fn is_watched(&self, process: u32) -> bool {
        self.0.contains_key(&process)
    }

    /// The number of intervals that a look made now stands for; `None` in an interval without one.
    pub fn look(&mut self, process: u32) -> Option<u32> {
        let (left, before) = self.0.get_mut(&process)?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        Some(*before + 1)
    }

    /// Ends a look that found so many pages written: the next one sees writes from now on.
    pub fn found(&mut self, process: u32, pages: u64) -> Result<(), Lost> {
        clear(process)?;
        self.rest(process, pages);
        Ok(())
    }

    fn rest(&mut self, process: u32, pages: u64) {
        let rest = u32::try_from(pages / FAULTS).unwrap_or(u32::MAX).min(LONGEST - 1);
        self.0.insert(process, (rest, rest));
    }
}

fn clear(process: u32) -> Result<(), Lost> {
    soft_dirty::clear(&Root::default(), process).map_err(|error: SysError| match error.problem {
        Problem::Absent => Lost::Gone,
        _ => Lost::Refused(error.to_string()),
    })
}

/// Returns whether the kernel keeps the bits; an error if that cannot be found out.
pub fn works() -> Result<bool, String> {
    soft_dirty::works().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_much_is_looked_at_seldom_and_each_look_counts_for_more() {
        let mut rests = Rests::default();
        assert_eq!(rests.look(5), None);
        rests.is_new(5);
        assert_eq!(rests.look(5), Some(1));
        rests.rest(5, FAULTS - 1);
        assert_eq!(rests.look(5), Some(1));
        rests.rest(5, 2 * FAULTS);
        assert_eq!([rests.look(5), rests.look(5), rests.look(5)], [None, None, Some(3)]);
        rests.rest(5, u64::MAX);
        let looks: Vec<_> = (0..8).map(|_| rests.look(5)).collect();
        assert_eq!((looks[6], looks[7]), (None, Some(8)));
        rests.end(5);
        assert!(!rests.is_watched(5));
    }
}
