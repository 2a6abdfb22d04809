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
    /// Of programs that are recorded together: which ones, as `workloads/servers/together/run` knows them.
    pub workload: Option<String>,
    /// Of these: the processes that are simulated, in the order of the cpus that they begin on.
    #[serde(rename = "together", default)]
    pub together: Vec<Member>,
    /// Parameters of policy `regions`: runs are short, and so are its times.
    #[serde(default)]
    pub set: Vec<String>,
    /// What would have to be otherwise for a number to be the paper's.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
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
    /// Of programs recorded together: those that do not run in this row.
    #[serde(default)]
    pub leaves_out: Vec<String>,
}

/// A process among several that are recorded together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// In rows.
    pub name: String,
    /// By which it is found in the trace.
    pub program: String,
    /// So many of its threads are simulated: those that it starts last.
    pub threads: usize,
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

    /// Whether there is a picture of it.
    pub(crate) fn is_drawn(&self) -> bool {
        self.view == View::Memlat
    }
}
