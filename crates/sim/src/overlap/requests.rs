//! Requests on their way from one cpu, and the room for one more.

use std::collections::VecDeque;
use std::ops::Range;

use crate::clock::Units;

/// Requests, each from when it is asked for until it is done, in no order of these times: a store is asked for when it leaves, and loads
/// behind it may be asked for before.
pub struct Requests {
    /// So many may be on their way at once; 0: any number.
    most: usize,
    /// When those that a later instruction may meet are asked for, and when they are done: two lists, each in order. At any time as many are
    /// on their way as were asked for less those that are done.
    asked: VecDeque<Units>,
    done: VecDeque<Units>,
    /// Times that are known to have no room. More requests do not change that, so the next search goes on behind it: the references that
    /// warm caches, and those of one long instruction, all enter at once and would each walk through all before.
    full: Range<Units>,
}

impl Requests {
    /// No requests; so many may be on their way at once, 0: any number.
    pub fn new(most: u32) -> Requests {
        Requests {
            most: most as usize,
            asked: VecDeque::new(),
            done: VecDeque::new(),
            full: 0..0,
        }
    }

    /// One more request.
    #[inline]
    pub fn add(&mut self, asked: Units, done: Units) {
        if self.most > 0 {
            insert(&mut self.asked, asked);
            insert(&mut self.done, done);
        }
    }

    /// An instruction enters. What was done by then does not count for it, nor for those after it.
    #[inline]
    pub fn forget(&mut self, entered: Units) {
        while self.done.front().is_some_and(|done| *done <= entered) {
            self.done.pop_front();
            // One that was asked for by then as well: it is the number that counts.
            self.asked.pop_front();
        }
    }

    /// The first time, `at` or later, at which there is room; `at`: not before the last instruction entered.
    #[inline]
    pub fn room(&mut self, at: Units) -> Units {
        // Fewer leave room in any case.
        if self.done.len() < self.most || self.most == 0 {
            return at;
        }
        let mut time = if self.full.contains(&at) { self.full.end } else { at };
        let mut done = self.done.partition_point(|done| *done <= time);
        let mut asked = self.asked.partition_point(|asked| *asked <= time);
        while asked - done >= self.most {
            time = self.done[done];
            while self.done.get(done).is_some_and(|done| *done <= time) {
                done += 1;
            }
            while self.asked.get(asked).is_some_and(|asked| *asked <= time) {
                asked += 1;
            }
        }
        if time > at {
            let goes_on = self.full.start <= at && at <= self.full.end;
            self.full = if goes_on { self.full.start } else { at }..time;
        }
        time
    }
}

/// Inserts a time into a list in order: mostly near its end.
#[inline]
fn insert(times: &mut VecDeque<Units>, time: Units) {
    let mut at = times.len();
    while at > 0 && times[at - 1] > time {
        at -= 1;
    }
    times.insert(at, time);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store is asked for when it leaves. Loads behind it find room before, and none while it is on its way.
    #[test]
    fn requests_take_room_while_they_are_on_their_way() {
        let mut requests = Requests::new(1);
        requests.add(100, 150);
        assert_eq!(
            [0, 99, 100, 149, 150].map(|at| requests.room(at)),
            [0, 99, 150, 150, 150]
        );
        requests.add(140, 170);
        assert_eq!([99, 120, 170].map(|at| requests.room(at)), [99, 170, 170]);
    }

    /// The first time with room, by counting all requests that there have been.
    fn counted(all: &[(Units, Units)], most: usize, at: Units) -> Units {
        let under_way = |time: Units| {
            all.iter()
                .filter(|(asked, done)| *asked <= time && time < *done)
                .count()
        };
        let mut times: Vec<Units> = all.iter().map(|(_, done)| *done).filter(|done| *done > at).collect();
        times.push(at);
        times.sort_unstable();
        times.into_iter().find(|time| under_way(*time) < most).unwrap()
    }

    /// Instructions that enter one after another, many of them at the same time; some ask for what they need much later.
    #[test]
    fn room_is_found_where_counting_finds_it() {
        for (most, stands) in [(1, 2), (3, 7), (8, 50), (8, 20)] {
            let mut requests = Requests::new(most);
            let (mut all, mut entered, mut waited) = (Vec::new(), 0, 0);
            let mut random = 1u64;
            let mut draw = |below: u64| {
                random = random
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (random >> 33) % below
            };
            for _ in 0..1000 {
                if draw(stands) == 0 {
                    entered += draw(200);
                }
                let begins = entered + if draw(3) == 0 { draw(300) } else { 0 };
                requests.forget(entered);
                let room = requests.room(begins);
                assert_eq!(room, counted(&all, most as usize, begins), "{begins} of {entered}");
                waited += u64::from(room > begins);
                let request = (room, room + 1 + draw(100));
                requests.add(request.0, request.1);
                all.push(request);
            }
            assert!(waited > 100, "{waited}");
        }
    }
}
