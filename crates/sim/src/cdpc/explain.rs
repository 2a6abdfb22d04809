//! Hints, and how they came about, for people and pictures.

use policy::cdpc::Hints;
use serde::Serialize;

use super::told::Told;

/// The hints of one policy, and what led to them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained<'a> {
    /// `summaries` or `trace`.
    pub from: &'static str,
    pub loops: u64,
    /// Summaries that cannot be: the first of them in words, and how many.
    pub malformed: &'a [String],
    pub malformed_summaries: u64,
    pub processes: Vec<ExplainedProcess<'a>>,
}

/// The same of one process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainedProcess<'a> {
    /// Its index in the trace.
    pub process: u32,
    /// Arrays, uniform access sets, and uniform access segments in coloring order.
    #[serde(flatten)]
    pub hints: &'a Hints,
    /// Pages (addresses divided by the bytes of a page) in coloring order; the color is the position modulo the colors.
    pub order: Vec<u64>,
}

impl Told {
    /// How the hints came about.
    pub fn explain(&self) -> Explained<'_> {
        let processes = self.spaces.iter().map(|(process, hints)| ExplainedProcess {
            process: *process,
            hints,
            order: hints.pages.iter().map(|hint| hint.page).collect(),
        });
        Explained {
            from: self.from,
            loops: self.loops,
            malformed: &self.malformed.told,
            malformed_summaries: self.malformed.count,
            processes: processes.collect(),
        }
    }
}

/// The numbers of the bits that are set.
pub fn list(cpus: u128) -> Vec<u32> {
    (0..128).filter(|cpu| cpus >> cpu & 1 == 1).collect()
}
