//! The loops that a program describes, each once.
//!
//! A loop is its work: its place, its iterations and how they are dealt, and its summaries. A program that describes
//! the same loop with a team of another size deals the same work again, and the statements about the old team are void:
//! a constructor does not know yet how many threads the program will ask for.
//!
//! A loop at the same place and over the same arrays, but with other iterations, is other work and stays beside the first
//! one, whatever its team. Programs that sweep fine and coarse grids by one loop, with few threads where there is little
//! to do, come back to both; were the later one to replace the former, each would be new whenever it is described, and
//! hints would change for ever.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use super::{Hints, Home, Loop, Machine, Malformed, Summary, hints, homes, segments, weighed};

/// The most that may be kept, of one program or of several together.
#[derive(Clone, Debug)]
pub struct Room {
    loops: Use<usize>,
    summaries: Use<usize>,
    /// Bytes of all arrays.
    bytes: Use<u128>,
}

#[derive(Clone, Debug)]
struct Use<T> {
    most: T,
    used: T,
}

impl Room {
    pub fn new(loops: usize, summaries: usize, bytes: u128) -> Room {
        Room {
            loops: Use { most: loops, used: 0 },
            summaries: Use {
                most: summaries,
                used: 0,
            },
            bytes: Use { most: bytes, used: 0 },
        }
    }

    /// For loops that were admitted before.
    pub fn endless() -> Room {
        Room::new(usize::MAX, usize::MAX, u128::MAX)
    }

    fn admit(&mut self, described: &Loop, bytes: u128) -> Result<(), Malformed> {
        let refuse = |why: String| {
            let place = described.place.clone();
            Err(Malformed { place, why })
        };
        let summaries = described.summaries.len();
        if self.loops.used >= self.loops.most {
            return refuse(format!("one of more than {} loops", self.loops.most));
        }
        if summaries > self.summaries.most - self.summaries.used {
            return refuse(format!(
                "its summaries are more than {} with the others",
                self.summaries.most
            ));
        }
        if bytes > self.bytes.most - self.bytes.used {
            let most = self.bytes.most;
            return refuse(format!(
                "arrays of {bytes} bytes more; of all loops they may have {most}"
            ));
        }
        self.loops.used += 1;
        self.summaries.used += summaries;
        self.bytes.used += bytes;
        Ok(())
    }
}

/// The effect of a description. `at` is the loop's place among [`Program::loops`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It was there already, with this team.
    Known { at: usize },
    /// It was not, or had a team of another size. `fresh`: bytes of arrays that no loop had before.
    New { at: usize, fresh: Vec<Range<u64>> },
}

/// See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct Program {
    loops: Vec<Loop>,
    /// The index in `loops` of the work with this hash, or with one of the numbers before it.
    places: HashMap<u64, usize>,
    /// The most bytes of each array, by start.
    arrays: HashMap<u64, u64>,
}

impl Program {
    /// Sorted by their first description.
    pub fn loops(&self) -> &[Loop] {
        &self.loops
    }

    /// Different arrays, by start.
    pub fn arrays(&self) -> usize {
        self.arrays.len()
    }

    /// The bytes of each array, in no order.
    pub fn extents(&self) -> impl Iterator<Item = Range<u64>> {
        self.arrays
            .iter()
            .map(|(&start, &bytes)| start..start.saturating_add(bytes))
    }

    /// The most threads that a loop has; at least 1.
    pub fn threads(&self) -> u32 {
        self.loops.iter().map(|known| known.threads).max().unwrap_or(1)
    }

    /// The index of a loop that was described before with this team.
    pub fn find(&self, described: &Loop) -> Option<usize> {
        let at = self.place(described).1?;
        (self.loops[at].threads == described.threads).then_some(at)
    }

    /// Takes a description.
    ///
    /// Errors: there is no room for it, and nothing changes.
    pub fn add(&mut self, described: Loop, room: &mut Room) -> Result<Added, Malformed> {
        let (key, found) = self.place(&described);
        if let Some(at) = found {
            let known = &mut self.loops[at];
            if known.threads == described.threads {
                return Ok(Added::Known { at });
            }
            *known = described;
            return Ok(Added::New { at, fresh: Vec::new() });
        }
        let mut fresh: HashMap<u64, u128> = HashMap::new();
        for summary in &described.summaries {
            let bytes = fresh.entry(summary.start).or_default();
            *bytes = (*bytes).max(extent(&described, summary));
        }
        let known = |start: &u64| self.arrays.get(start).copied().unwrap_or(0);
        fresh.retain(|start, bytes| *bytes > known(start).into());
        let more: u128 = fresh
            .iter()
            .map(|(start, bytes)| bytes - u128::from(known(start)))
            .sum();
        room.admit(&described, more)?;
        let grown = |(&start, &bytes): (&u64, &u128)| {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            start.saturating_add(known(&start))..start.saturating_add(bytes)
        };
        let mut ranges: Vec<Range<u64>> = fresh.iter().map(grown).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        for (start, bytes) in fresh {
            self.arrays.insert(start, u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        let at = self.loops.len();
        self.places.insert(key, at);
        self.loops.push(described);
        Ok(Added::New { at, fresh: ranges })
    }

    /// Drops the loops that a check fails for; why it did.
    pub fn retain<T>(&mut self, check: impl Fn(&Loop) -> Result<T, Malformed>) -> Vec<Malformed> {
        let mut wrong = Vec::new();
        let mut keep = |known: &Loop| match check(known) {
            Ok(_) => true,
            Err(Malformed { why, .. }) => {
                let place = known.place.clone();
                wrong.push(Malformed { place, why });
                false
            }
        };
        self.loops.retain(|known| keep(known));
        if !wrong.is_empty() {
            self.places.clear();
            for at in 0..self.loops.len() {
                let key = self.place(&self.loops[at]).0;
                self.places.insert(key, at);
            }
        }
        wrong
    }

    /// Hints for all loops together; with the ways of the cache, weighed against static policies ([`weighed`]).
    ///
    /// A loop that cannot be must not take the others with it: it is dropped, and reported beside the hints.
    pub fn hints(&mut self, machine: &Machine, ways: Option<u32>) -> Result<(Hints, Vec<Malformed>), Malformed> {
        self.made(machine, |loops| match ways {
            Some(ways) => weighed(loops, machine, ways),
            None => hints(loops, machine),
        })
    }

    /// Homes for all loops together ([`homes`]). Loops that cannot be are dropped as for [`Program::hints`].
    pub fn homes(
        &mut self,
        machine: &Machine,
        node_of: impl Fn(u32) -> u32,
    ) -> Result<(Vec<Home>, Vec<Malformed>), Malformed> {
        self.made(machine, |loops| homes(loops, machine, &node_of))
    }

    fn made<T>(
        &mut self,
        machine: &Machine,
        make: impl Fn(&[Loop]) -> Result<T, Malformed>,
    ) -> Result<(T, Vec<Malformed>), Malformed> {
        let mut dropped = Vec::new();
        loop {
            let error = match make(&self.loops) {
                Ok(made) => return Ok((made, dropped)),
                Err(error) => error,
            };
            let wrong = self.retain(|known| segments(std::slice::from_ref(known), machine));
            if wrong.is_empty() {
                return Err(error);
            }
            dropped.extend(wrong);
        }
    }

    /// The key of a loop's work, and where the loop is that does it.
    fn place(&self, described: &Loop) -> (u64, Option<usize>) {
        let mut key = hash(described);
        while let Some(&at) = self.places.get(&key) {
            if same_work(&self.loops[at], described) {
                return (key, Some(at));
            }
            key = key.wrapping_add(1);
        }
        (key, None)
    }
}

/// True if two loops do the same work, whatever their teams.
fn same_work(one: &Loop, other: &Loop) -> bool {
    let Loop {
        place,
        threads: _,
        iterations,
        schedule,
        direction,
        summaries,
    } = one;
    *iterations == other.iterations
        && *schedule == other.schedule
        && *direction == other.direction
        && *place == other.place
        && *summaries == other.summaries
}

fn hash(described: &Loop) -> u64 {
    let mut hasher = DefaultHasher::new();
    described.place.hash(&mut hasher);
    described.iterations.hash(&mut hasher);
    described.schedule.hash(&mut hasher);
    described.direction.hash(&mut hasher);
    described.summaries.hash(&mut hasher);
    hasher.finish()
}

/// The bytes of an array; if they are not known, those that the iterations span.
fn extent(described: &Loop, summary: &Summary) -> u128 {
    if summary.bytes > 0 {
        return summary.bytes.into();
    }
    let far = |step: i64, count: u64| u128::from(step.unsigned_abs()) * u128::from(count);
    let inner: u128 = summary.inner.iter().map(|inner| far(inner.stride, inner.count)).sum();
    u128::from(summary.span) + far(summary.unit, described.iterations) + inner
}

#[cfg(test)]
mod tests {
    use super::super::{Access, Communication, Direction, Schedule};
    use super::*;

    fn a_loop(place: &str, arrays: &[(u64, u64)], iterations: u64, threads: u32) -> Loop {
        let summaries = arrays.iter().map(|&(start, bytes)| Summary {
            name: format!("{start:#x}"),
            start,
            bytes,
            offset: 0,
            unit: 4096,
            span: 4096,
            inner: Vec::new(),
            communication: Communication::None,
            access: Access::ReadWrite,
        });
        Loop {
            place: place.to_string(),
            threads,
            iterations,
            schedule: Schedule::Even,
            direction: Direction::Forward,
            summaries: summaries.collect(),
        }
    }

    /// Start and end of the one stretch that is new.
    fn fresh(added: Result<Added, Malformed>) -> (u64, u64) {
        match added.unwrap() {
            Added::New { fresh, .. } if fresh.len() == 1 => (fresh[0].start, fresh[0].end),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loop_is_there_once_and_an_array_new_once() {
        let (mut program, mut room) = (Program::default(), Room::endless());
        let first = a_loop("f", &[(0x1800, 0x1000)], 1, 2);
        assert_eq!(program.find(&first), None);
        assert_eq!(fresh(program.add(first.clone(), &mut room)), (0x1800, 0x2800));
        assert_eq!(program.find(&first), Some(0));
        assert_eq!(program.add(first, &mut room), Ok(Added::Known { at: 0 }));
        let second = a_loop("g", &[(0x1800, 0x1000), (0x8000, 1)], 1, 2);
        assert_eq!(fresh(program.add(second, &mut room)), (0x8000, 0x8001));
        let longer = a_loop("h", &[(0x1800, 0x3000)], 1, 2);
        assert_eq!(fresh(program.add(longer, &mut room)), (0x2800, 0x4800));
        assert_eq!((program.loops().len(), program.arrays()), (3, 2));
    }

    #[test]
    fn a_team_of_another_size_replaces_the_old_one() {
        let (mut program, mut room) = (Program::default(), Room::endless());
        for threads in [2, 4, 2] {
            let added = program.add(a_loop("f", &[(0x1000, 0x1000)], 1, threads), &mut room);
            assert!(matches!(added, Ok(Added::New { at: 0, .. })));
            assert_eq!((program.loops().len(), program.threads()), (1, threads));
        }
    }

    #[test]
    fn other_iterations_are_other_work_whatever_the_team() {
        let (mut program, mut room) = (Program::default(), Room::endless());
        let (fine, coarse) = (
            a_loop("sweep", &[(0x1000, 1 << 20)], 256, 8),
            a_loop("sweep", &[(0x1000, 1 << 20)], 16, 2),
        );
        for described in [&fine, &coarse] {
            assert!(matches!(
                program.add(described.clone(), &mut room),
                Ok(Added::New { .. })
            ));
        }
        // A program that goes on with both says nothing new.
        for _ in 0..3 {
            assert_eq!(program.add(fine.clone(), &mut room), Ok(Added::Known { at: 0 }));
            assert_eq!(program.add(coarse.clone(), &mut room), Ok(Added::Known { at: 1 }));
        }
        // Each has its own team, and gets another one by itself.
        let smaller = Loop { threads: 4, ..fine };
        assert!(matches!(program.add(smaller, &mut room), Ok(Added::New { at: 0, .. })));
        let threads: Vec<u32> = program.loops().iter().map(|known| known.threads).collect();
        assert_eq!(threads, [4, 2]);
    }

    #[test]
    fn there_is_an_end_to_what_is_kept() {
        let (mut program, mut room) = (Program::default(), Room::new(2, 5, 1 << 20));
        let why = |added: Result<Added, Malformed>| added.unwrap_err().to_string();
        assert!(program.add(a_loop("a", &[(0x1000, 1 << 19)], 1, 1), &mut room).is_ok());
        let large = a_loop("b", &[(1 << 30, (1 << 19) + 1)], 1, 1);
        assert_eq!(
            why(program.add(large, &mut room)),
            "b: arrays of 524289 bytes more; of all loops they may have 1048576"
        );
        let many = a_loop("c", &[(0x1000, 1); 5], 1, 1);
        assert_eq!(
            why(program.add(many, &mut room)),
            "c: its summaries are more than 5 with the others"
        );
        assert!(program.add(a_loop("d", &[(0x1000, 1)], 1, 1), &mut room).is_ok());
        assert_eq!(
            why(program.add(a_loop("e", &[(0x1000, 1)], 1, 1), &mut room)),
            "e: one of more than 2 loops"
        );
        assert_eq!(program.loops().len(), 2);
    }

    #[test]
    fn a_loop_that_cannot_be_does_not_take_the_others_with_it() {
        let machine = Machine {
            page_bytes: 4096,
            colors: 4,
            cpus: 2,
            fit: true,
        };
        let (mut program, mut room) = (Program::default(), Room::endless());
        program
            .add(a_loop("wrong", &[(1 << 40, 1 << 61)], 1, 2), &mut room)
            .unwrap();
        let right = a_loop("right", &[(0x1000, 0x4000)], 4, 2);
        program.add(right.clone(), &mut room).unwrap();
        for ways in [None, Some(2)] {
            let (made, dropped) = program.clone().hints(&machine, ways).unwrap();
            assert_eq!((made.used, dropped.len()), (4, 1));
            assert_eq!(dropped[0].place, "wrong");
        }
        program.hints(&machine, None).unwrap();
        assert_eq!(program.add(right, &mut room), Ok(Added::Known { at: 0 }));
    }
}
