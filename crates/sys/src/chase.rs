//! Loads that each wait for the one before, over an area.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::Area;

/// The words of an area.
fn words(area: &Area) -> &[AtomicU64] {
    // SAFETY: the mapping is aligned, readable and writable, and lives as long as the borrow; any
    // bits are a u64, and an area's content is touched through atomics or through `&mut` alone.
    unsafe { std::slice::from_raw_parts(area.start() as *const AtomicU64, area.bytes() / 8) }
}

/// Makes each of these words (8 bytes each, counted from the area's start) lead to the next, and
/// the last to the first.
///
/// Pre: the area has them all, else this panics. Post: every one of their pages has a frame.
pub fn link(area: &mut Area, places: &[u32]) {
    let words = words(area);
    for (&from, &to) in places.iter().zip(places.iter().cycle().skip(1)) {
        words[from as usize].store(to.into(), Ordering::Relaxed);
    }
}

/// Follows the links from a word on, `loads` times; returns the word reached.
///
/// Pre: the word is one that was linked, else this may go anywhere in the area, or panic.
pub fn walk(area: &Area, word: u32, loads: u64) -> u32 {
    let words = words(area);
    let mut at = word as usize;
    for _ in 0..loads {
        at = words[at].load(Ordering::Relaxed) as usize;
    }
    // The walk meets only linked words, and these fit.
    at as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{PAGE, Size};

    #[test]
    fn a_walk_goes_round() {
        let mut area = Area::map(2 * PAGE, Size::Small).unwrap();
        link(&mut area, &[5, 1023, 0, 64]);
        assert_eq!(walk(&area, 5, 1), 1023);
        assert_eq!(walk(&area, 1023, 2), 64);
        assert_eq!(walk(&area, 64, 1), 5);
        assert_eq!(walk(&area, 0, 4000), 0);
        link(&mut area, &[9]);
        assert_eq!(walk(&area, 9, 3), 9);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn no_word_beyond_the_area() {
        link(&mut Area::map(PAGE, Size::Small).unwrap(), &[512]);
    }
}
