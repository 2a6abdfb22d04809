//! The waits of a cpu without a thread to run: imbalance, sequential parts, or locks.
//!
//! Bugnion and others (1996), section 4.1: the time that workers spend until their master begins the next parallel
//! region is *sequential*, that until the last has come to a region's end *imbalance*, and the time of locks and of the
//! code of barriers *synchronization*. The kind follows from what a thread waits for and from the events of teams;
//! teams of all processes count together.

use trace::Event;

use crate::clock::Units;

/// The reason for which a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    Barrier,
    Lock,
    /// A post, its own start, or the end of another thread; after its own end, the end of the run.
    #[default]
    Other,
}

impl Hold {
    /// The reason for which a thread cannot go on after an event.
    pub fn of(event: &Event) -> Hold {
        match event {
            Event::Barrier { .. } => Hold::Barrier,
            Event::Lock { .. } => Hold::Lock,
            _ => Hold::Other,
        }
    }
}

/// A wait, split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    pub imbalance: Units,
    pub sequential: Units,
    pub synchronization: Units,
}

/// The teams of a run so far.
#[derive(Debug, Default)]
pub struct Teams {
    open: u64,
    /// True if there was one.
    any: bool,
    /// The time that no team was open, up to `since`, when the last one had ended.
    alone: Units,
    since: Units,
    /// The time that masters took to end teams, up to `ended`.
    ending: Units,
    ended: Units,
}

/// The time that no team had been open, and that masters had taken to end teams, when a cpu began to wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    alone: Units,
    ending: Units,
}

impl Teams {
    /// Returns whether there was a team.
    pub fn any(&self) -> bool {
        self.any
    }

    pub fn begin(&mut self, now: Units) {
        if self.open == 0 {
            self.alone += now.saturating_sub(self.since);
        }
        self.open += 1;
        self.any = true;
    }

    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// A master reaches the end of its team, which takes it `cost`; then it is alone.
    pub fn end(&mut self, now: Units, cost: Units) {
        if self.open == 0 {
            return;
        }
        if self.open == 1 {
            self.since = now + cost;
        }
        self.open -= 1;
        self.ending += now + cost - self.ended.max(now);
        self.ended = now + cost;
    }

    pub fn mark(&self, now: Units) -> Mark {
        let open = if self.open == 0 {
            now.saturating_sub(self.since)
        } else {
            0
        };
        Mark {
            alone: self.alone + open,
            ending: self.ending - self.ended.saturating_sub(now),
        }
    }

    /// A cpu that began to wait at `from` goes on `wait` later, at `now`, with a thread that was held by `hold`.
    pub fn split(&self, hold: Hold, from: Mark, wait: Units, now: Units) -> Wait {
        let (sequential, synchronization) = match hold {
            Hold::Barrier => (0, 0),
            Hold::Lock => (0, wait),
            Hold::Other if !self.any => (0, 0),
            Hold::Other => {
                let to = self.mark(now);
                let sequential = to.alone.saturating_sub(from.alone).min(wait);
                let ending = to.ending.saturating_sub(from.ending);
                (sequential, ending.min(wait - sequential))
            }
        };
        Wait {
            imbalance: wait - sequential - synchronization,
            sequential,
            synchronization,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(imbalance: Units, sequential: Units, synchronization: Units) -> Wait {
        Wait {
            imbalance,
            sequential,
            synchronization,
        }
    }

    #[test]
    fn a_worker_waits_for_the_last_and_then_for_its_master() {
        let mut teams = Teams::default();
        let start = teams.mark(0);
        teams.begin(100);
        assert_eq!(teams.split(Hold::Other, start, 100, 100), wait(0, 100, 0));
        let left = teams.mark(150);
        teams.end(180, 10);
        teams.begin(250);
        // From 150 to 180 for the others, 10 for the master's code, 60 for its work alone.
        assert_eq!(teams.split(Hold::Other, left, 100, 250), wait(30, 60, 10));
        assert_eq!(teams.split(Hold::Barrier, left, 100, 250), wait(100, 0, 0));
        assert_eq!(teams.split(Hold::Lock, left, 100, 250), wait(0, 0, 100));
    }

    #[test]
    fn without_teams_all_is_imbalance() {
        let teams = Teams::default();
        assert_eq!(teams.split(Hold::Other, teams.mark(5), 7, 12), wait(7, 0, 0));
    }

    #[test]
    fn nested_teams_are_one_and_ends_without_a_beginning_none() {
        let mut teams = Teams::default();
        teams.end(5, 0);
        let from = teams.mark(10);
        teams.begin(20);
        teams.begin(30);
        teams.end(40, 0);
        teams.end(50, 0);
        assert_eq!(teams.split(Hold::Other, from, 60, 70), wait(30, 30, 0));
    }
}
