//! Branches that a processor mispredicts: the branches of samples, with a simulated predictor.
//!
//! The direction of a branch follows from the place where its superblock was left, and from the next superblock. A
//! predictor like those of today's processors predicts each branch from the branches before it: perceptrons of hashed
//! histories (Jiménez and Lin, HPCA 2001; Tarjan and Skadron, TACO 2005) for conditional ones, and tagged targets by
//! path (Seznec and Michaud, JILP 2006) for indirect ones. Returns are assumed to be predicted correctly. It is smaller
//! than real predictors and sees only samples, so it is wrong a little more often.
//!
//! A misprediction is attributed to the site of the next reference, with the loads that decide the branch.

use std::collections::HashMap;

use trace::{Misprediction, SiteId};

/// Branches of a sample that only train: the history before them is from another place.
const LEARNING: u32 = 128;
/// Sites with fewer mispredictions are left out.
const LEAST_PER_1024: u64 = 4;
/// Loads that branches before a site's reference wait for.
const MOST: usize = 4;
/// Loads that are counted for a site.
const COUNTED: usize = 16;

/// Branches before the references of a site.
#[derive(Default)]
struct Seen {
    references: u64,
    mispredicted: u64,
    /// How many of these waited for a load.
    on: Vec<(SiteId, u64)>,
}

/// The branches of all processes of a recording.
#[derive(Default)]
pub struct Branches {
    predictor: Predictor,
    seen: HashMap<SiteId, Seen>,
    /// Mispredictions since the last reference, and the loads that the last of them waits for.
    count: u64,
    on: Vec<SiteId>,
    /// Branches that will still only train.
    learning: u32,
}

impl Branches {
    /// The next branches are from another place or thread; `far`: the branches before them have not been seen.
    pub fn begin(&mut self, far: bool) {
        self.count = 0;
        self.on.clear();
        if far {
            self.learning = LEARNING;
        }
    }

    /// A conditional branch went one way or the other. `on`: the loads that decide it.
    pub fn conditional(&mut self, branch: u64, taken: bool, on: impl Iterator<Item = SiteId>) {
        let right = self.predictor.conditional(branch, taken);
        self.went(right, on);
    }

    /// An indirect branch went to a place.
    pub fn indirect(&mut self, branch: u64, target: u64, on: impl Iterator<Item = SiteId>) {
        let right = self.predictor.indirect(branch, target);
        self.went(right, on);
    }

    fn went(&mut self, right: bool, on: impl Iterator<Item = SiteId>) {
        if self.learning > 0 {
            self.learning -= 1;
        } else if !right {
            self.count += 1;
            self.on.clear();
            self.on.extend(on);
        }
    }

    /// A reference follows.
    pub fn reference(&mut self, site: SiteId) {
        let count = std::mem::take(&mut self.count);
        if self.learning > 0 {
            return;
        }
        let seen = self.seen.entry(site).or_default();
        seen.references += 1;
        seen.mispredicted += count;
        if count == 0 {
            return;
        }
        for load in self.on.drain(..) {
            match seen.on.iter().position(|(known, _)| *known == load) {
                Some(known) => seen.on[known].1 += 1,
                None if seen.on.len() < COUNTED => seen.on.push((load, 1)),
                None => {}
            }
        }
    }

    /// In ascending order of the sites.
    pub fn table(self) -> Vec<Misprediction> {
        let rows = self.seen.into_iter().filter_map(|(site, mut seen)| {
            let per_1024 = seen.mispredicted * 1024 / seen.references.max(1);
            if per_1024 < LEAST_PER_1024 {
                return None;
            }
            // Few of them wait for this load: that is chance.
            seen.on.retain(|(_, times)| times * 4 >= seen.mispredicted);
            seen.on
                .sort_unstable_by_key(|&(load, times)| (std::cmp::Reverse(times), load));
            seen.on.truncate(MOST);
            let mut on: Vec<SiteId> = seen.on.into_iter().map(|(load, _)| load).collect();
            on.sort_unstable();
            Some(Misprediction {
                site,
                per_1024: per_1024.min(1 << 20) as u32,
                on,
            })
        });
        let mut table: Vec<Misprediction> = rows.collect();
        table.sort_unstable_by_key(|one| one.site);
        table
    }
}

/// The branches that each table remembers.
const HISTORIES: [u32; 8] = [0, 3, 6, 12, 24, 48, 96, 128];
/// Targets of indirect branches by the whole path to them, by its end, and by the branch alone.
const PATHS: [u64; 3] = [u64::MAX, 0xf_ffff, 0];
const ENTRIES: usize = 1 << 13;
/// Weights are trained until their sum exceeds this.
const SURE: i32 = 24;
const WEIGHT_MOST: i8 = 63;

struct Predictor {
    weights: Vec<[i8; ENTRIES]>,
    /// The latest outcome is the lowest bit.
    history: u128,
    /// Tag and target.
    targets: Vec<Vec<(u32, u64)>>,
    path: u64,
}

impl Default for Predictor {
    fn default() -> Predictor {
        Predictor {
            weights: vec![[0; ENTRIES]; HISTORIES.len()],
            history: 0,
            targets: vec![vec![(0, 0); ENTRIES]; PATHS.len()],
            path: 0,
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

impl Predictor {
    /// Returns true if the branch was predicted correctly.
    fn conditional(&mut self, branch: u64, taken: bool) -> bool {
        let mut at = [0; HISTORIES.len()];
        let mut sum = 0;
        for (number, length) in HISTORIES.into_iter().enumerate() {
            let history = match length {
                128 => self.history,
                _ => self.history & ((1 << length) - 1),
            };
            let folded = mixed(history as u64 ^ mixed((history >> 64) as u64 ^ u64::from(length)));
            at[number] = mixed(branch ^ folded) as usize % ENTRIES;
            sum += i32::from(self.weights[number][at[number]]);
        }
        let right = (sum > 0) == taken;
        if !right || sum.abs() <= SURE {
            for (weights, at) in self.weights.iter_mut().zip(at) {
                let weight = &mut weights[at];
                *weight = match taken {
                    true => (*weight + 1).min(WEIGHT_MOST),
                    false => (*weight - 1).max(-WEIGHT_MOST),
                };
            }
        }
        self.history = self.history << 1 | u128::from(taken);
        right
    }

    /// Returns true if the target was predicted correctly.
    fn indirect(&mut self, branch: u64, target: u64) -> bool {
        let mut foretold = None;
        for (targets, path) in self.targets.iter_mut().zip(PATHS) {
            let hash = mixed(branch ^ mixed((self.path & path) ^ path));
            let (tag, entry) = ((hash >> 32) as u32, &mut targets[hash as usize % ENTRIES]);
            if entry.0 == tag {
                foretold = foretold.or(Some(entry.1));
            }
            *entry = (tag, target);
        }
        self.path = self.path << 5 ^ (mixed(target) & 0x1f);
        self.history = self.history << 2 | u128::from(mixed(target) & 3);
        foretold == Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of mispredictions among the last half of these branches.
    fn wrong(branches: impl Iterator<Item = (u64, bool)>) -> usize {
        let mut predictor = Predictor::default();
        let right: Vec<bool> = branches
            .map(|(branch, taken)| predictor.conditional(branch, taken))
            .collect();
        right[right.len() / 2..].iter().filter(|right| !**right).count()
    }

    fn random(state: &mut u64) -> bool {
        *state = mixed(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        *state & 1 != 0
    }

    #[test]
    fn what_repeats_is_foretold_and_chance_is_not() {
        assert_eq!(wrong((0..20_000).map(|_| (1, true))), 0);
        assert!(
            wrong((0..20_000).map(|i| (1, i % 7 == 0))) < 10,
            "a loop of seven rounds"
        );
        // The second branch goes as the first did.
        let mut state = 1;
        let mut first = false;
        let pairs = (0..40_000u64).map(|i| {
            if i % 2 == 0 {
                first = random(&mut state);
            }
            (i % 2, first)
        });
        let of_pairs = wrong(pairs);
        assert!((4_500..5_700).contains(&of_pairs), "half of the first ones: {of_pairs}");
    }

    #[test]
    fn indirect_branches_are_foretold_by_their_path() {
        let mut predictor = Predictor::default();
        let mut right = 0;
        for i in 0..10_000u64 {
            right += usize::from(predictor.indirect(7, [100, 200, 200, 300][i as usize % 4]));
        }
        assert!(right > 9_900, "{right}");
        let mut state = 3;
        let mut right = 0;
        for _ in 0..10_000u64 {
            right += usize::from(predictor.indirect(7, 100 + u64::from(random(&mut state))));
        }
        assert!((3_000..6_500).contains(&right), "{right}");
    }

    #[test]
    fn mispredictions_are_put_down_to_the_reference_after_them() {
        let mut branches = Branches::default();
        let mut state = 5;
        for _ in 0..20_000 {
            branches.reference(3);
            branches.conditional(1, random(&mut state), [3].into_iter());
            branches.reference(4);
            branches.conditional(2, true, [4].into_iter());
        }
        let table = branches.table();
        let [one] = &table[..] else { panic!("{table:?}") };
        assert_eq!((one.site, &one.on[..]), (4, &[3][..]));
        assert!((450..580).contains(&one.per_1024), "{one:?}");
    }

    #[test]
    fn what_comes_after_a_gap_only_teaches_at_first() {
        let mut branches = Branches::default();
        for number in 0..10 {
            branches.begin(true);
            for _ in 0..LEARNING {
                branches.reference(3);
                branches.conditional(number, true, std::iter::empty());
            }
        }
        assert_eq!(branches.table(), []);
    }
}
