//! The best places for those that can be moved: by the balancer, then by moves and exchanges as long as one improves.

use super::super::balance::{Item, largest_first};
use super::{CPU, Domain, Load, PASSES, STEP};

/// More pieces than this are moved one by one only: exchanges are many.
const EXCHANGED: usize = 128;

/// Something that can be moved.
pub struct Piece {
    /// Its working set, and the cache near which it runs.
    pub item: Item,
    /// In thousandths of a cpu.
    pub busy: u32,
    /// The domains that it may have; not empty.
    pub may: Vec<u32>,
    /// The domain that it was given.
    pub placed: Option<u32>,
}

pub struct Board {
    pub domains: Vec<Domain>,
    /// Load of those that cannot be moved.
    pub taken: Vec<Load>,
    pub pieces: Vec<Piece>,
}

/// The quality of places: less is better, earlier fields decide first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    /// Busy time beyond the cpus of its domain.
    pub overload: u32,
    /// The most busy time for each cpu of a domain; at least a whole one, in steps.
    pub crowd: u32,
    /// The load of the fullest cache.
    pub fullest: u64,
    /// The sum of the squares of all loads.
    pub squares: u128,
}

type Given = Vec<Option<u32>>;

impl Board {
    pub fn score(&self, given: &Given) -> Score {
        self.rate(&self.loads(given))
    }

    fn loads(&self, given: &Given) -> Vec<Load> {
        let mut loads = self.taken.clone();
        for (piece, at) in self.pieces.iter().zip(given) {
            if let Some(at) = at {
                add(&mut loads[*at as usize], piece);
            }
        }
        loads
    }

    fn rate(&self, loads: &[Load]) -> Score {
        let mut score = Score {
            overload: 0,
            crowd: CPU,
            fullest: 0,
            squares: 0,
        };
        for (load, domain) in loads.iter().zip(&self.domains) {
            score.overload += load.busy.saturating_sub(domain.cpus.saturating_mul(CPU));
            score.crowd = score.crowd.max(load.busy / domain.cpus.max(1) / STEP * STEP);
            score.fullest = score.fullest.max(load.bytes);
            score.squares += u128::from(load.bytes) * u128::from(load.bytes);
        }
        score
    }

    /// The best places that were found, and the score at which the search began with the places that there are.
    ///
    /// Ensures: of equally good places those that move less.
    pub fn best(&self, now: &Given) -> (Given, Score) {
        // A process that has outgrown its domain still has it.
        let began = self.score(&self.balanced(now, |_, _| true));
        let fits = |at: usize, cache: u32| self.pieces[at].may.contains(&cache);
        let mut kept = self.balanced(now, fits);
        self.improve(&mut kept);
        let mut anew = self.balanced(&vec![None; now.len()], fits);
        self.improve(&mut anew);
        match self.score(&anew) < self.score(&kept) {
            true => (anew, began),
            false => (kept, began),
        }
    }

    /// Uses the balancer: those that have a place keep it; each other one goes where threads share cpus the least.
    /// `keeps` says if one keeps the place that it has.
    fn balanced(&self, now: &Given, keeps: impl Fn(usize, u32) -> bool) -> Given {
        let items: Vec<Item> = self.pieces.iter().map(|piece| piece.item).collect();
        let taken: Vec<u64> = self.taken.iter().map(|load| load.bytes).collect();
        let stays = |at: usize| now[at].filter(|&cache| keeps(at, cache));
        let rank = |at: usize, cache: u32, given: &[Option<u32>]| {
            let piece = &self.pieces[at];
            piece.may.contains(&cache).then(|| {
                let there = self
                    .pieces
                    .iter()
                    .zip(given)
                    .filter(|(_, given)| **given == Some(cache));
                let busy: u32 = there.map(|(piece, _)| piece.busy).sum();
                let busy = self.taken[cache as usize].busy + busy + piece.busy;
                (busy / self.domains[cache as usize].cpus.max(1)).max(CPU)
            })
        };
        largest_first(&items, &taken, stays, rank)
    }

    /// Moves one piece, or exchanges two, as long as that is better: the best such step first.
    fn improve(&self, given: &mut Given) {
        let mut loads = self.loads(given);
        let mut score = self.rate(&loads);
        for _ in 0..4 * self.pieces.len() {
            let better = |step: &(Score, Step)| step.0 < score;
            let Some((reached, step)) = self.steps(given, &loads).filter(better).min() else {
                return;
            };
            score = reached;
            self.take(step, given, &mut loads);
        }
    }

    fn steps<'a>(&'a self, given: &'a Given, loads: &'a [Load]) -> impl Iterator<Item = (Score, Step)> + 'a {
        let count = self.pieces.len();
        let moves = (0..count).flat_map(move |one| {
            let may = self.pieces[one].may.iter();
            may.filter(move |to| Some(**to) != given[one])
                .map(move |&to| Step::Move(one, to))
        });
        let exchanged = if count <= EXCHANGED { count } else { 0 };
        let exchanges = (0..exchanged).flat_map(move |one| {
            let others = (one + 1..count).filter(move |&other| self.may_exchange(given, one, other));
            others.map(move |other| Step::Exchange(one, other))
        });
        moves.chain(exchanges).map(move |step| {
            let (mut after, mut given) = (loads.to_vec(), given.clone());
            self.take(step, &mut given, &mut after);
            (self.rate(&after), step)
        })
    }

    fn may_exchange(&self, given: &Given, one: usize, other: usize) -> bool {
        let (Some(here), Some(there)) = (given[one], given[other]) else {
            return false;
        };
        here != there && self.pieces[one].may.contains(&there) && self.pieces[other].may.contains(&here)
    }

    fn take(&self, step: Step, given: &mut Given, loads: &mut [Load]) {
        let mut put = |one: usize, to: Option<u32>| {
            let piece = &self.pieces[one];
            if let Some(from) = given[one] {
                loads[from as usize].bytes -= piece.item.bytes;
                loads[from as usize].busy -= piece.busy;
            }
            if let Some(to) = to {
                add(&mut loads[to as usize], piece);
            }
            std::mem::replace(&mut given[one], to)
        };
        match step {
            Step::Move(one, to) => _ = put(one, Some(to)),
            Step::Exchange(one, other) => {
                let here = put(one, None);
                let there = put(other, here);
                put(one, there);
            }
        }
    }

    /// As badly as it can come where the kernel looks at busy threads only, as it does: the largest together, as long as their
    /// threads have no more cpus elsewhere. Those that have a place stay.
    pub fn worst(&self, now: &Given, best: &Score) -> Given {
        let mut given = now.clone();
        let mut loads = self.loads(&given);
        let mut order: Vec<usize> = (0..given.len()).filter(|&at| given[at].is_none()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(self.pieces[at].item.bytes), at));
        for at in order {
            let piece = &self.pieces[at];
            let after =
                |domain: u32| (loads[domain as usize].busy + piece.busy) / self.domains[domain as usize].cpus.max(1);
            let key = |&domain: &u32| {
                let over = after(domain).saturating_sub(best.crowd);
                (over, std::cmp::Reverse(loads[domain as usize].bytes), domain)
            };
            let to = piece.may.iter().copied().min_by_key(key);
            if let Some(to) = to {
                add(&mut loads[to as usize], piece);
            }
            given[at] = to;
        }
        given
    }

    /// True if the fullest cache is relieved by more than a part of its load afterwards, something does not fit there
    /// before, and the moved memory is worth it.
    pub fn relieves(&self, before: u64, after: u64, part: u64, moved: u64) -> bool {
        let smallest = self.domains.iter().map(|domain| domain.bytes).min().flatten();
        let fits = smallest.is_some_and(|bytes| before <= bytes);
        !fits && before > after + after / part && moved <= (before - after).saturating_mul(PASSES)
    }
}

fn add(load: &mut Load, piece: &Piece) {
    load.bytes += piece.item.bytes;
    load.busy += piece.busy;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Move(usize, u32),
    Exchange(usize, usize),
}
