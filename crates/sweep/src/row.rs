//! The result of a point.

use results::Outcome;
use serde::{Deserialize, Serialize};

use crate::points::{Group, Point};

/// A point and its result, or why it could not be simulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The point's place in the sweep, and all that it is.
    #[serde(rename = "point")]
    pub number: u64,
    pub key: String,
    pub trace: String,
    pub machine: String,
    pub cpus: Option<u32>,
    pub changes: String,
    pub seed: u64,
    pub policy: String,
    /// The parameters of which there are several, as `trigger=64`.
    pub settings: String,
    /// Why there is no result.
    pub error: Option<String>,
    /// The part of the run that the trace does not have; the result is of the rest.
    pub incomplete: Option<String>,
    /// The time of the run, the time that all threads together wait for memory, and the time of policies, in
    /// nanoseconds.
    pub time_ns: Option<u64>,
    pub stall_ns: Option<u64>,
    pub overhead_ns: Option<u64>,
    pub references: Option<u64>,
    /// Data's and fetches' misses in the last cache.
    pub misses: Option<u64>,
    /// The outcome as `simulate --json` prints it, without its details.
    pub outcome: Option<String>,
}

impl Row {
    /// A row of a point, with nothing found yet.
    pub fn of(group: &Group, point: &Point) -> Row {
        Row {
            number: point.number,
            key: point.key.clone(),
            trace: group.trace.display().to_string(),
            machine: group.machine.clone(),
            cpus: group.cpus,
            changes: group.changes.join(" + "),
            seed: group.seed,
            policy: point.policy.to_string(),
            settings: point.setting.swept.join(" "),
            ..Row::default()
        }
    }

    pub fn with(self, found: Result<Outcome, String>) -> Row {
        let outcome = match found {
            Ok(outcome) => outcome,
            Err(error) => {
                return Row {
                    error: Some(error),
                    ..self
                };
            }
        };
        let (time, last) = (&outcome.time_ns, outcome.caches.last());
        Row {
            time_ns: Some(time.wall),
            stall_ns: Some(time.cache_stall + time.local_stall + time.remote_stall + time.tlb_stall),
            overhead_ns: Some(time.policy_overhead),
            references: Some(outcome.references),
            misses: last.map(|cache| cache.misses),
            outcome: serde_json::to_string(&results::saved(&outcome)).ok(),
            ..self
        }
    }
}
