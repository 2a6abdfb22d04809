//! A thread's recent accesses elsewhere, of the same structure or another: arrays that are used at one index lie at a
//! constant distance.

use super::usage::Touch;
use crate::structures::StructureId;

/// Accesses that are remembered of a thread.
const LAST: usize = 4;
/// Threads whose accesses are remembered; others take their places.
const THREADS: usize = 8;

/// An access: its place, its structure, its address.
type Access = (u32, StructureId, u64);

/// No access.
const NONE: Access = (u32::MAX, u32::MAX, 0);

pub struct Beside {
    /// For each thread: its number, the place of its next access, its last ones.
    last: [(u32, usize, [Access; LAST]); THREADS],
    /// The burst that the last accesses are of.
    burst: u32,
}

impl Default for Beside {
    fn default() -> Beside {
        Beside {
            last: [(u32::MAX, 0, [NONE; LAST]); THREADS],
            burst: 0,
        }
    }
}

impl Beside {
    /// The thread accesses something, in a burst of accesses that are all seen: says which other places have just accessed which
    /// structure, and how far from there this is.
    pub fn touch(&mut self, burst: u32, thread: u32, touch: &Touch, mut say: impl FnMut(u32, StructureId, i64)) {
        if self.burst != burst {
            *self = Beside {
                burst,
                ..Beside::default()
            };
        }
        let (of, next, last) = &mut self.last[thread as usize % THREADS];
        if *of != thread {
            (*of, *last) = (thread, [NONE; LAST]);
        }
        for &(place, structure, address) in last.iter() {
            if place != NONE.0 && place != touch.place {
                say(place, structure, touch.address.wrapping_sub(address) as i64);
            }
        }
        last[*next % LAST] = (touch.place, touch.structure, touch.address);
        *next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_that_are_used_at_one_index_are_so_far_apart() {
        let mut beside = Beside::default();
        let mut random = policy::Random::new(3);
        let mut said = Vec::new();
        for _ in 0..100 {
            let at = u64::from(random.below(1 << 20)) * 8;
            for (place, start) in [(1, 0), (2, 1 << 30)] {
                let touch = Touch {
                    space: 0,
                    address: start + at,
                    bytes: 8,
                    place,
                    source_line: place,
                    structure: 7,
                    near: true,
                    far: true,
                };
                beside.touch(1, 0, &touch, |other, structure, step| {
                    said.push((other, place, structure, step))
                });
            }
        }
        let constant = said.iter().filter(|said| **said == (1, 2, 7, 1 << 30)).count();
        assert_eq!(constant, 100);
    }
}
