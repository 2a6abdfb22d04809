//! A placement of threads under caches as a file: written by an advice, applied and measured by a run.

use serde::{Deserialize, Serialize};

/// The cpus on which the threads of a program may run, in each way that was simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Placement {
    pub program: String,
    /// Of the run that was recorded; absent of older files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Vec<String>>,
    /// The machine of the simulation, and the cache that threads are placed under.
    pub machine: String,
    pub cache: String,
    /// In the order in which the process starts them; the first one is its main thread.
    pub threads: Vec<PlacementThread>,
    /// The fastest first by simulation.
    pub ways: Vec<PlacementWay>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PlacementThread {
    /// As Linux stores it (15 bytes); empty if the trace has none.
    pub name: String,
}

/// One way to place all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct PlacementWay {
    /// `grouped`, `in order` or `spread`.
    pub name: String,
    /// The run time by simulation.
    pub predicted_ns: u64,
    /// The cpus that each thread may use, by Linux's numbers where the machine is this one.
    pub cpus: Vec<Vec<u32>>,
}

/// The outcome for a program whose threads were placed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PlacedRun {
    pub program: String,
    /// The way that was applied.
    pub way: String,
    pub exit_code: Option<i32>,
    /// Threads of the file that ran on their cpus; and threads that did not begin, or could not have their cpus.
    pub placed: u32,
    pub missing: u32,
    /// Of the missing ones, those that ended before they were placed, and those that could not have their cpus; the others did not
    /// begin.
    pub ended: u32,
    pub denied: u32,
    /// Threads that are not in the file: they ran anywhere.
    pub unknown: u32,
    /// Why threads could not have their cpus, each reason once.
    pub refused: Vec<String>,
    /// The ways beside each other; empty where none was measured.
    pub measured: Vec<MeasuredWay>,
}

/// A way to place threads, with its predicted and its measured time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct MeasuredWay {
    /// As in the file, or `unplaced`: Linux's own.
    pub name: String,
    /// By simulation; absent if it was not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ns: Option<u64>,
    /// Of each round, in their order: nanoseconds on the clock.
    pub rounds: Vec<u64>,
}

impl MeasuredWay {
    /// The median, the shortest and the longest round.
    pub fn times(&self) -> Option<[u64; 3]> {
        let mut sorted = self.rounds.clone();
        sorted.sort_unstable();
        Some([*sorted.get(sorted.len() / 2)?, *sorted.first()?, *sorted.last()?])
    }
}

/// The longest run, in nanoseconds: numbers of results go so far.
const LONGEST: u64 = 1 << 53;

impl Placement {
    /// True if the names of threads tell under which cache they belong, in this way: then they are found by name, else by their order.
    pub fn by_name(&self, way: &PlacementWay) -> bool {
        let known = || self.threads.iter().zip(&way.cpus);
        let told = |(thread, cpus): (&PlacementThread, &Vec<u32>)| {
            !thread.name.is_empty() && known().all(|(other, of)| other.name != thread.name || of == cpus)
        };
        known().all(told)
    }

    /// Errors: the part that cannot be applied.
    pub fn check(&self) -> Result<(), String> {
        if self.threads.is_empty() || self.ways.is_empty() {
            return Err("it has no threads, or no way to place them".to_string());
        }
        if let Some(way) = self.ways.iter().find(|way| way.cpus.iter().any(Vec::is_empty)) {
            return Err(format!("way `{}` has a thread without cpus", way.name));
        }
        for way in &self.ways {
            match way.predicted_ns {
                0 => {
                    return Err(format!(
                        "way `{}` has no time: its `predicted_ns` is 0, or not there",
                        way.name
                    ));
                }
                ns if ns > LONGEST => {
                    return Err(format!(
                        "way `{}` has `predicted_ns = {ns}`, and no run takes so long",
                        way.name
                    ));
                }
                _ => {}
            }
        }
        match self.ways.iter().find(|way| way.cpus.len() != self.threads.len()) {
            Some(way) => Err(format!(
                "way `{}` has cpus for {} threads of {}",
                way.name,
                way.cpus.len(),
                self.threads.len()
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(names: &[&str]) -> Placement {
        let thread = |name: &&str| PlacementThread {
            name: (*name).to_string(),
        };
        Placement {
            threads: names.iter().map(thread).collect(),
            ..Placement::default()
        }
    }

    fn way(cpus: &[u32]) -> PlacementWay {
        PlacementWay {
            predicted_ns: 1000,
            cpus: cpus.iter().map(|cpu| vec![*cpu]).collect(),
            ..PlacementWay::default()
        }
    }

    #[test]
    fn names_tell_threads_apart_where_each_has_one_place() {
        assert!(placement(&["a", "b", "b"]).by_name(&way(&[0, 1, 1])));
        assert!(!placement(&["a", "b", "b"]).by_name(&way(&[0, 1, 0])));
        assert!(!placement(&["a", ""]).by_name(&way(&[0, 1])));
    }

    #[test]
    fn each_thread_has_cpus_in_each_way() {
        let mut placement = placement(&["a", "b"]);
        assert!(placement.check().is_err());
        placement.ways = vec![way(&[0, 1])];
        assert_eq!(placement.check(), Ok(()));
        placement.ways.push(way(&[0]));
        assert!(placement.check().unwrap_err().contains("1 threads of 2"));
        for (ns, named) in [(0, "`predicted_ns` is 0"), (u64::MAX, "18446744073709551615")] {
            placement.ways[1] = PlacementWay {
                predicted_ns: ns,
                ..way(&[0, 1])
            };
            assert!(placement.check().unwrap_err().contains(named));
        }
    }

    #[test]
    fn a_median_stands_with_its_ends() {
        let way = MeasuredWay {
            rounds: vec![30, 10, 20],
            ..MeasuredWay::default()
        };
        assert_eq!(way.times(), Some([20, 10, 30]));
        assert_eq!(MeasuredWay::default().times(), None);
    }
}
