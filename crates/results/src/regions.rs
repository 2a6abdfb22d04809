//! Findings and actions of region scheduling.

use serde::{Deserialize, Serialize};

use crate::windows::Windows;

/// The verdict on spreading a program's regions over several caches (Lee12, section 3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RegionsVerdict {
    Pays,
    /// Nothing was judged: the run was too short.
    #[default]
    NotYet,
    /// The run consists of windows, and the longest is shorter than a regioning phase: none saw the program's
    /// behaviour.
    WindowsTooShort,
    /// Fewer than two regions were found.
    NoRegions,
    /// Less than half of the memory in use was found in regions of several pages: the rest is still being found.
    StillFound,
    /// Two regions or more, but no change from one to another was seen yet.
    StayUnknown,
    /// Condition 1: regions change so often that moving the thread costs more than it saves.
    StaysTooShort,
    /// Condition 1: regions change so seldom that there is little to save.
    StaysTooLong,
    /// It was spread, and the work of threads between two moves took no less time than before.
    NoGain,
    /// Condition 2: all of it fits into one cache.
    FitsOneCache,
    /// Condition 3: all caches together are too small for it.
    FitsNoCaches,
}

/// The origin of the conditions' bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RegionsSource {
    /// By hand.
    Set,
    /// The machine's description has them.
    Machine,
    /// They were measured on the simulated machine before the run.
    Calibrated,
    /// By rule, since they were not measured.
    #[default]
    Rule,
}

/// The bounds of conditions 1 to 3 (Lee12, section 3.1), and what a move takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsBounds {
    pub stay_least_ns: u64,
    pub stay_most_ns: u64,
    /// Per mille of one cache, and of all together.
    pub one_cache: u64,
    pub all_caches: u64,
    pub switch_ns: u64,
    pub from: RegionsSource,
}

/// The time that region scheduling itself took, all cpus together (Lee12, section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsSpent {
    /// Moves of threads (the paper's `usched`).
    pub moving_ns: u64,
    /// Looks at access bits (`do_clock`).
    pub scanning_ns: u64,
    /// Changes of the caches' page tables (`switch_cache`).
    pub tables_ns: u64,
    /// Regioning phases (`regioning`).
    pub regioning_ns: u64,
}

/// The outcome for a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsProcess {
    pub process: u32,
    /// As last judged. Unless it is `pays`, ordinary scheduling ran.
    pub verdict: RegionsVerdict,
    /// Bytes in use, as access bits say.
    pub working_set_bytes: u64,
    /// The mean time from one change of region to the next, as phases saw it while it was not spread; `null`: none was
    /// seen.
    pub stay_ns: Option<u64>,
    /// How long phases looked for changes of region; of many changes, for the latest ones.
    pub watched_ns: u64,
    /// The mean time from one move of a thread to the next, where it was spread; `null`: none was seen.
    pub followed_ns: Option<u64>,
    /// The cache that all of it was given, if it was not spread.
    pub cache: Option<u32>,
}

/// A region when the last phase ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Region {
    pub process: u32,
    /// `regular`, `local` or `global`; seed regions are counted in [`Regions::seeds`].
    pub kind: String,
    pub cache: Option<u32>,
    pub pages: u64,
    pub working_set_bytes: u64,
    /// Addresses of its first pages, in order.
    pub addresses: Vec<u64>,
}

/// A moment of the run, after a regioning phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsMoment {
    pub at_ns: u64,
    /// By cache: regions that have it, and the sum of their working sets.
    pub regions: Vec<u64>,
    pub load_bytes: Vec<u64>,
    /// Regions without a cache, and single pages.
    pub regular: u64,
    pub seeds: u64,
    /// So far.
    pub switches: u64,
    pub merges: u64,
    pub global_pages: u64,
}

/// Findings and actions of region scheduling in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Regions {
    /// The caches that regions were given, how many, and the bytes of each.
    pub cache: String,
    pub caches: u32,
    pub cache_bytes: u64,
    /// A regioning phase takes this long, once in this much of a cpu's time.
    pub phase_ns: u64,
    pub period_ns: u64,
    pub bounds: RegionsBounds,
    pub spent: RegionsSpent,
    pub phases: u64,
    /// Touches of closed pages in regioning phases, and regions merged.
    pub touches: u64,
    pub merges: u64,
    pub torn_down: u64,
    /// Pages that left their region because they alone caused its switches.
    pub excluded: u64,
    /// Times that a thread was moved to the cache of the region that it touched.
    pub switches: u64,
    /// Times that the region was opened instead, since a cpu would have had nothing to run.
    pub opened: u64,
    /// Times that ordinary scheduling took over again.
    pub given_up: u64,
    pub seeds: u64,
    pub global_pages: u64,
    pub processes: Vec<RegionsProcess>,
    pub regions: Vec<Region>,
    pub moments: Vec<RegionsMoment>,
}

/// The regions of a program, if they would gain it time on the machine at hand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RegionsAdvice {
    /// The findings of policy `regions`, with times cut to the length of the run.
    pub regions: Regions,
    pub wall_ns: u64,
    /// The part of the time that is saved if threads go to the cache of their region.
    pub unify: f64,
    /// The same if processes are moved to the emptier caches.
    pub balance: f64,
    /// The same if each process has its own caches.
    pub partition: f64,
    /// In three lines: the regions, their users, the gains.
    pub lines: Vec<String>,
}

impl Regions {
    /// If each window of the run is shorter than a phase, phases saw pieces of several windows: a verdict against a
    /// gain then becomes unknown.
    pub fn doubt(&mut self, windows: &Windows) {
        let longest = windows.counted.iter().map(|window| window.wall_ns).max();
        if longest.is_none_or(|longest| longest >= self.phase_ns) {
            return;
        }
        for process in &mut self.processes {
            if process.verdict != RegionsVerdict::Pays {
                process.verdict = RegionsVerdict::WindowsTooShort;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::CountedWindow;

    #[test]
    fn windows_shorter_than_a_phase_tell_nothing_of_regions() {
        let verdicts = |walls: &[u64]| {
            let process = |verdict| RegionsProcess {
                verdict,
                ..RegionsProcess::default()
            };
            let of = |wall_ns: &u64| CountedWindow {
                wall_ns: *wall_ns,
                ..CountedWindow::default()
            };
            let mut regions = Regions {
                phase_ns: 100,
                processes: vec![process(RegionsVerdict::NoRegions), process(RegionsVerdict::Pays)],
                ..Regions::default()
            };
            regions.doubt(&Windows {
                counted: walls.iter().map(of).collect(),
                ..Windows::default()
            });
            [regions.processes[0].verdict, regions.processes[1].verdict]
        };
        let found = [RegionsVerdict::NoRegions, RegionsVerdict::Pays];
        assert_eq!(verdicts(&[]), found);
        assert_eq!(verdicts(&[50, 100]), found);
        assert_eq!(
            verdicts(&[50, 99]),
            [RegionsVerdict::WindowsTooShort, RegionsVerdict::Pays]
        );
    }
}
