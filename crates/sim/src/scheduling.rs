//! The cpus that the system gives to threads: the choice, and how it is written.
//!
//! `next,every=100ms`, `priority`, `partition,slice=30ms,affinity=0,decay=1s`; `stay` where threads keep their cpus.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The cpus that threads are given while they run (README.md, "Clocks" and "A small scheduler").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scheduling {
    /// Each thread stays on its cpu, and those of one cpu take turns.
    #[default]
    Stay,
    /// Every `every_ns` nanoseconds each thread goes to the next cpu, as if the system moved all of them.
    Next { every_ns: u64 },
    /// Priority scheduling with affinity, by a small scheduler of the simulator, no real one.
    Priority(Times),
    /// Space partition: the same within the cpus of each process, which are divided again when one enters or leaves.
    Partition(Times),
}

/// The small scheduler's times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The time that a thread has a cpu before others are looked at.
    pub slice_ns: u64,
    /// The time by which a thread must have run longer than another to lose its last cpu to it.
    pub affinity_ns: u64,
    /// The time after which the run times of threads count half.
    pub decay_ns: u64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            slice_ns: 10_000_000,
            affinity_ns: 60_000_000,
            decay_ns: 1_000_000_000,
        }
    }
}

impl Scheduling {
    /// The small scheduler's times, if there is one.
    pub fn times(self) -> Option<Times> {
        match self {
            Scheduling::Priority(times) | Scheduling::Partition(times) => Some(times),
            Scheduling::Stay | Scheduling::Next { .. } => None,
        }
    }
}

impl FromStr for Scheduling {
    type Err = String;

    fn from_str(text: &str) -> Result<Scheduling, String> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let mut every = None;
        let mut times = Times::default();
        let known: &[&str] = match name {
            "stay" => &[],
            "next" => &["every"],
            "priority" | "partition" => &["slice", "affinity", "decay"],
            _ => {
                return Err(format!(
                    "{name:?} is no schedule; there are stay, next, priority and partition"
                ));
            }
        };
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            if !known.contains(&key) {
                return Err(match known {
                    [] => format!("schedule `{name}` has no parameters, and {part:?} is there"),
                    _ => format!("schedule `{name}` has no `{key}`, but {}", known.join(", ")),
                });
            }
            let time = match (key, value) {
                ("affinity", "0") => Duration::ZERO,
                _ => results::quantities::duration(value).map_err(|wrong| format!("`{key}`: {wrong}"))?,
            };
            let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            match key {
                "every" => every = Some(ns),
                "slice" => times.slice_ns = ns,
                "affinity" => times.affinity_ns = ns,
                _ => times.decay_ns = ns,
            }
        }
        match (name, every) {
            ("stay", _) => Ok(Scheduling::Stay),
            ("next", Some(every_ns)) => Ok(Scheduling::Next { every_ns }),
            ("next", None) => Err("schedule `next` wants to know how often: `next,every=100ms`".to_string()),
            ("priority", _) => Ok(Scheduling::Priority(times)),
            _ => Ok(Scheduling::Partition(times)),
        }
    }
}

impl TryFrom<String> for Scheduling {
    type Error = String;

    fn try_from(text: String) -> Result<Scheduling, String> {
        text.parse()
    }
}

impl From<Scheduling> for String {
    fn from(scheduling: Scheduling) -> String {
        scheduling.to_string()
    }
}

impl fmt::Display for Scheduling {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, times) = match self {
            Scheduling::Stay => return write!(to, "stay"),
            Scheduling::Next { every_ns } => return write!(to, "next,every={}", Written(*every_ns)),
            Scheduling::Priority(times) => ("priority", times),
            Scheduling::Partition(times) => ("partition", times),
        };
        let (slice, affinity, decay) = (times.slice_ns, times.affinity_ns, times.decay_ns);
        write!(
            to,
            "{name},slice={},affinity={},decay={}",
            Written(slice),
            Written(affinity),
            Written(decay)
        )
    }
}

/// Nanoseconds, in the largest unit in which they are whole, but no larger than seconds.
struct Written(u64);

impl fmt::Display for Written {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
        match units.iter().find(|(unit, _)| self.0.is_multiple_of(*unit)) {
            _ if self.0 == 0 => write!(to, "0"),
            Some((unit, name)) => write!(to, "{}{name}", self.0 / unit),
            None => write!(to, "{}ns", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_written_as_it_is_read() {
        for text in [
            "stay",
            "next,every=1300ms",
            "priority,slice=10ms,affinity=60ms,decay=1s",
            "partition,slice=1500us,affinity=0,decay=17ns",
        ] {
            assert_eq!(text.parse::<Scheduling>().unwrap().to_string(), text);
        }
        let usual: Scheduling = "priority".parse().unwrap();
        assert_eq!(usual, Scheduling::Priority(Times::default()));
        let other: Scheduling = "partition,slice=2s".parse().unwrap();
        assert_eq!(other.times().unwrap().slice_ns, 2_000_000_000);
    }

    #[test]
    fn what_is_no_schedule_is_refused_by_name() {
        for (text, said) in [
            ("fair", "is no schedule"),
            ("next", "how often"),
            ("stay,slice=1ms", "has no parameters"),
            ("priority,every=1ms", "slice, affinity, decay"),
            ("priority,slice=0", "more than no time"),
            ("partition,decay", "`decay`"),
        ] {
            let error = text.parse::<Scheduling>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
