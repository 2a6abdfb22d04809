//! What the file of an item of regions says.

use machine::Machine;
use serde::Deserialize;

/// What an item of this kind is of.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    pub view: View,
    #[serde(rename = "machine")]
    pub machines: Vec<Variant>,
    /// Of several processes: those of each machine, in the order of the cpus that they begin on.
    #[serde(rename = "process", default)]
    pub processes: Vec<Process>,
    /// Of recorded programs.
    #[serde(rename = "program", default)]
    pub programs: Vec<Recorded>,
    /// Parameters of policy `regions`: runs are short, and so are its times.
    #[serde(default)]
    pub set: Vec<String>,
    /// What would have to be otherwise for a number to be the paper's.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// How the numbers are had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// `memlat` with two regions over sizes and stays, confined to a cache and following its regions.
    Memlat,
    /// What the caches hold of `memlat` before and after.
    Loads,
    /// What the mechanism takes.
    Overhead,
    /// Processes that share the caches.
    Processes,
    /// Recorded programs, each by itself.
    Programs,
}

/// One of the paper's machines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    pub name: String,
    pub preset: String,
    /// KB of one region.
    #[serde(default)]
    pub sizes_kb: Vec<u64>,
    /// Reads at a time, as powers of two.
    #[serde(default)]
    pub stays: Vec<u32>,
    /// Further parameters of the policy for this row.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A program of Debian's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// As `workloads/servers/single/run` knows it.
    pub name: String,
    /// The program of SPEC 2006 that it stands for, and why.
    pub stands_for: String,
    pub because: String,
}

/// A process that reads at random in its data.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    pub machine: String,
    pub name: String,
    pub kb: u64,
    /// From one read to the next.
    pub instructions: u8,
}

/// A machine that is changed in one way.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    pub machine: String,
    pub name: String,
    pub why: String,
    /// What a TLB miss takes, in ns.
    pub refill_ns: Option<f64>,
    /// What a move takes in all, in ns.
    pub switch_ns: Option<f64>,
}

impl Experiment {
    pub fn changed(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        if let (Some(refill_ns), Some(tlb)) = (self.refill_ns, &mut machine.tlb) {
            tlb.refill_ns = refill_ns;
        }
        if let (Some(switch_ns), Some(regions)) = (self.switch_ns, &mut machine.regions) {
            regions.switch_ns = switch_ns;
        }
        machine
    }
}

impl Regions {
    /// What every file must keep.
    pub(crate) fn check(&self, columns: &[String]) -> Result<(), String> {
        let machine = |name: &String| self.machines.iter().any(|machine| machine.name == *name);
        if let Some(other) = self.experiments.iter().find(|experiment| !machine(&experiment.machine)) {
            return Err(format!("the experiment `{}` is of no machine of the item", other.name));
        }
        let column = |name: &String| columns.contains(name);
        match self.claims.iter().find(|claim| !column(&claim.column)) {
            Some(claim) => Err(format!("a claim is about `{}`, which is no column", claim.column)),
            None => Ok(()),
        }
    }

    /// Whether there is a picture of it.
    pub(crate) fn is_drawn(&self) -> bool {
        self.view == View::Memlat
    }
}

/// That a number lies between two. It is held if it does so in every recording, and did not hold if it does so in none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub says: String,
    pub row: String,
    pub column: String,
    pub least: f64,
    pub most: f64,
    /// Where it does not hold: why, as an experiment or a number of the item shows.
    pub otherwise: Option<String>,
}
