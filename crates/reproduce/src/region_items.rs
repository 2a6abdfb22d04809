//! The contents of the file of an item of regions.

use machine::Machine;
use serde::Deserialize;

/// The contents of an item of this kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regions {
    pub view: View,
    #[serde(rename = "machine")]
    pub machines: Vec<Variant>,
    /// For several processes: those of each machine, in the order of their first cpus.
    #[serde(rename = "process", default)]
    pub processes: Vec<Process>,
    /// For recorded programs.
    #[serde(rename = "program", default)]
    pub programs: Vec<Recorded>,
    /// For programs that are recorded together: their names in `workloads/servers/together/run`.
    pub workload: Option<String>,
    /// The simulated ones of these processes, in the order of their first cpus.
    #[serde(rename = "together", default)]
    pub together: Vec<Member>,
    /// Parameters of policy `regions`: runs are short, and so are its times.
    #[serde(default)]
    pub set: Vec<String>,
    /// The changes that would make a number the paper's.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
}

/// How to get the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    /// `memlat` with two regions over sizes and stays, confined to a cache and following its regions.
    Memlat,
    /// The contents of the caches for `memlat` before and after.
    Loads,
    /// The cost of the mechanism.
    Overhead,
    /// Processes that share the caches.
    Processes,
    /// Recorded programs, each by itself.
    Programs,
    /// Recorded programs that share the caches.
    Together,
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
    /// For programs recorded together: those that do not run in this row.
    #[serde(default)]
    pub leaves_out: Vec<String>,
}

/// A process among several that are recorded together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// In rows.
    pub name: String,
    /// The name by which it is found in the trace.
    pub program: String,
    /// How many of its threads are simulated: those that it starts last.
    pub threads: usize,
}

/// A program of Debian's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Its name in `workloads/servers/single/run`.
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
    /// The time of a TLB miss, in ns.
    pub refill_ns: Option<f64>,
    /// The total time of a move, in ns.
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
    /// The requirements of every file.
    pub(crate) fn check(&self) -> Result<(), String> {
        let machine = |name: &String| self.machines.iter().any(|machine| machine.name == *name);
        if let Some(other) = self.experiments.iter().find(|experiment| !machine(&experiment.machine)) {
            return Err(format!("the experiment `{}` is of no machine of the item", other.name));
        }
        if (self.view == View::Together) != (self.workload.is_some() && !self.together.is_empty()) {
            return Err("`together` has a `workload` and its processes".to_string());
        }
        let member = |name: &&String| self.together.iter().any(|member| member.name == **name);
        let mut left_out = self.machines.iter().flat_map(|machine| &machine.leaves_out);
        if let Some(other) = left_out.find(|name| !member(name)) {
            return Err(format!("`{other}` is left out, and is no process of the item"));
        }
        Ok(())
    }

    /// Returns true if it can be drawn.
    pub(crate) fn is_drawn(&self) -> bool {
        self.view == View::Memlat
    }
}
