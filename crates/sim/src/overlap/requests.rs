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
    /// There is no room before this time that a later instruction may take: it has passed, or as many as may be are on their way. More
    /// requests do not change that. So the lists hold what is done after it, and a search never walks through the time before: the
    /// references that warm caches, and those of one long instruction, all enter at once.
    until: Units,
    /// The same of some times after it.
    full: Range<Units>,
    /// How often a list was stepped through.
    #[cfg(test)]
    steps: u64,
}

impl Requests {
    /// No requests; so many may be on their way at once, 0: any number.
    pub fn new(most: u32) -> Requests {
        Requests {
            most: most as usize,
            asked: VecDeque::new(),
            done: VecDeque::new(),
            until: 0,
            full: 0..0,
            #[cfg(test)]
            steps: 0,
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

    /// An instruction enters, no earlier than those before it.
    #[inline]
    pub fn forget(&mut self, entered: Units) {
        self.until = self.until.max(entered);
        while self.done.front().is_some_and(|done| *done <= self.until) {
            self.done.pop_front();
            // One that was asked for by then as well: it is the number that counts.
            self.asked.pop_front();
        }
    }

    /// The first time, `at` or later, at which there is room; `at`: not before the last instruction entered.
    #[inline]
    pub fn room(&mut self, at: Units) -> Units {
        let first = at.max(self.until);
        // Fewer leave room in any case.
        if self.done.len() < self.most || self.most == 0 {
            return first;
        }
        let time = self.not_full(first);
        if time == first {
            return first;
        }
        if first == self.until {
            self.forget(time);
        } else {
            let goes_on = self.full.start <= first && first <= self.full.end;
            self.full = if goes_on { self.full.start } else { first }..time;
        }
        time
    }

    /// The first time, `first` or later, at which fewer than may be are on their way.
    fn not_full(&mut self, first: Units) -> Units {
        let mut time = if self.full.contains(&first) {
            self.full.end
        } else {
            first
        };
        let mut done = self.done.partition_point(|done| *done <= time);
        let mut asked = self.asked.partition_point(|asked| *asked <= time);
        while asked - done >= self.most {
            time = self.done[done];
            #[cfg(test)]
            (self.steps += 1);
            while self.done.get(done).is_some_and(|done| *done <= time) {
                done += 1;
            }
            while self.asked.get(asked).is_some_and(|asked| *asked <= time) {
                asked += 1;
            }
        }
        time
    }
}

/// Inserts a time into a list in order: mostly at its end or near it.
#[inline]
fn insert(times: &mut VecDeque<Units>, time: Units) {
    const NEAR: usize = 8;
    let mut at = times.len();
    while at > 0 && times[at - 1] > time {
        at -= 1;
        if times.len() - at == NEAR {
            at = times.partition_point(|other| *other <= time);
            break;
        }
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
                // Some run ahead, and some have to wait for something else.
                let asked = match draw(4) {
                    0 => entered.saturating_sub(draw(200)),
                    1 => room + draw(100),
                    _ => room,
                };
                let request = (asked, asked + draw(100));
                requests.add(request.0, request.1);
                all.push(request);
            }
            assert!(waited > 100, "{waited}");
        }
    }

    /// References that warm caches enter at one time: some wait for page walks, which get far ahead of the others, so that there are two
    /// times at which requests queue up. Each takes few steps, however many there are.
    #[test]
    fn requests_that_enter_at_once_take_few_steps_each() {
        const COUNT: u64 = 100_000;
        let mut requests = Requests::new(10);
        let mut walk = 0;
        for number in 0..COUNT {
            let latency = if number < COUNT / 2 { 20 } else { 100 };
            let begins = if number % 5 == 0 { 0 } else { walk };
            walk += if number % 5 == 0 { 0 } else { 5 };
            requests.forget(0);
            let room = requests.room(begins);
            requests.add(room, room + latency);
        }
        assert!(requests.steps < 4 * COUNT, "{}", requests.steps);
        // Those that nothing will meet are gone: the first queue ends where the last of it found room.
        let last = requests.room(0);
        requests.forget(last);
        assert!(requests.done.iter().all(|done| *done > last));
    }
}
