//! The machine and the policies of a simulation: options shared by `simulate` and `advise`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use machine::Machine;
use policy::slots::Plan;
use policy::{Kind, Name};

use super::machine::load;
use crate::failure::Failure;
use crate::suggested;

#[derive(Args)]
pub struct Model {
    /// A machine's name (see `domicile machine list`), a machine file, or `host`
    #[arg(long, value_name = "NAME|FILE|host", value_parser = suggested::machines(), hide_possible_values = true)]
    pub machine: Option<String>,

    /// A policy, or several joined by `+` (see `domicile policy list`); can be repeated
    #[arg(long = "policy", value_name = "NAME", value_parser = suggested::policies(), hide_possible_values = true)]
    pub policies: Vec<String>,

    /// Set a parameter of a policy, as in random.seed=7; can be repeated
    ///
    /// With `domicile simulate --fast`, a parameter may have several values, each of which is a run of its own:
    /// migrate.trigger=16,64 or, from, to and step, migrate.trigger=16..128..16. With several such parameters, all
    /// combinations are run.
    #[arg(long = "set", value_name = "POLICY.PARAM=VALUE")]
    pub sets: Vec<String>,

    /// A plan of cache slots (TOML, as `advise --write-slots` writes it) for policy `slots`, instead of the slots that
    /// the program itself declares
    #[arg(long, value_name = "FILE")]
    pub slots: Option<PathBuf>,

    /// Give the machine this many cpus
    #[arg(long, value_name = "N", value_parser = results::quantities::small_in(1..=u32::MAX))]
    pub cpus: Option<u32>,

    /// Seed of everything that is random in the simulation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = results::quantities::count)]
    pub seed: u64,

    /// Order in which the references of threads are replayed
    #[arg(long, value_enum, default_value_t = Order::Clock)]
    pub order: Order,

    /// Start counting when the first thread enters this phase of the program (DOMICILE_PHASE); earlier references warm
    /// the caches
    #[arg(long, value_name = "PHASE")]
    pub from_phase: Option<String>,

    /// Stop counting and simulating when a thread then enters this phase (if it is the same phase, the next time)
    #[arg(long, value_name = "PHASE")]
    pub to_phase: Option<String>,

    /// Time that the code of a barrier takes on each thread: nanoseconds, or a value such as 2us
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = results::quantities::nanoseconds)]
    pub barrier_ns: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// By the clocks of the simulated cpus
    Clock,
    /// In the recorded order
    Recorded,
}

/// The name of the machine that this runs on.
pub const HOST: &str = "host";

impl Model {
    /// The requested machine, or `default`.
    pub fn machine(&self, default: &str) -> Result<Machine, Failure> {
        let machine = load(self.machine.as_deref().unwrap_or(default))?;
        match self.cpus {
            None => Ok(machine),
            Some(cpus) => machine.with_cpus(cpus).map_err(Failure::usage),
        }
    }

    /// The basis of the figures of the requested machine, or of `default`: in a sentence or two, and in a few words;
    /// none for a machine that has a core and whose description says it.
    pub fn basis(&self, default: &str) -> Result<Option<(String, String)>, Failure> {
        if self.machine.as_deref().unwrap_or(default) != HOST {
            let machine = self.machine(default)?;
            let without = || {
                let name = &machine.name;
                let said = format!(
                    "{name} is described without a core: each miss waits by itself, so that its times compare placements only"
                );
                (said, "no core: compares placements only".to_string())
            };
            return Ok(machine.core.is_none().then(without));
        }
        let here = ::measured::here().map_err(Failure::work)?;
        let probed = here.notes_of(machine::Trust::Measured).next().is_some();
        Ok(Some((
            here.basis(),
            if probed {
                probed_when()
            } else {
                "not probed".to_string()
            },
        )))
    }

    /// Why page colors do nothing on the requested machine, or on `default`, if a probe has shown that.
    pub fn no_colors(&self, default: &str) -> Option<String> {
        if self.machine.as_deref().unwrap_or(default) != HOST {
            return None;
        }
        let kept = ::measured::kept_colors(::measured::Effort::Quick)?;
        kept.err().map(|why| why.reason)
    }

    /// The requested policies, or `default`; all names and parameters are checked.
    pub fn policies(&self, default: Vec<Name>) -> Result<Vec<sim::PolicySpec>, Failure> {
        let several = |(_, swept): &(_, Vec<String>)| !swept.is_empty();
        let runs = self.runs(default)?;
        if runs.iter().any(several) {
            return Err(Failure::usage(
                "`--set` has several values for a parameter, which is for `domicile simulate --fast`; give one value",
            ));
        }
        Ok(runs.into_iter().map(|(spec, _)| spec).collect())
    }

    /// The same with each combination of the values given for parameters, and what distinguishes each run.
    pub fn runs(&self, default: Vec<Name>) -> Result<Vec<(sim::PolicySpec, Vec<String>)>, Failure> {
        let names = match self.policies.is_empty() {
            true => default,
            false => self
                .policies
                .iter()
                .map(|name| name.parse())
                .collect::<Result<_, _>>()?,
        };
        let mut settings = Vec::new();
        for name in &names {
            for setting in ::sweep::settings(name, &self.sets)? {
                policy::build(name, &setting.sets)?;
                settings.push((name.clone(), setting));
            }
        }
        for set in &self.sets {
            let policy = set.split('.').next().unwrap_or_default();
            if !names.iter().any(|name| name.has(policy)) {
                return Err(Failure::usage(format!(
                    "`--set {set}` sets a parameter of `{policy}`, which is not simulated here; add `--policy {policy}`"
                )));
            }
        }
        let gives_slots = |name: &Name| name.is(|traits| traits.slots);
        if self.slots.is_some() && !names.iter().any(gives_slots) {
            return Err(Failure::usage(
                "`--slots` is a plan for policy `slots`, which is not simulated here; add `--policy slots`",
            ));
        }
        let plan = self.plan()?;
        let run = |(name, setting): (Name, ::sweep::Setting)| {
            let spec = sim::PolicySpec {
                plan: plan.clone().filter(|_| gives_slots(&name)),
                name,
                sets: setting.sets,
            };
            (spec, setting.swept)
        };
        Ok(settings.into_iter().map(run).collect())
    }

    /// The plan of cache slots that was given.
    fn plan(&self) -> Result<Option<Arc<Plan>>, Failure> {
        let Some(file) = &self.slots else { return Ok(None) };
        let name = file.display();
        let text = std::fs::read_to_string(file).map_err(|error| {
            Failure::work(format!(
                "cannot read the plan of cache slots {name}: {error}; see `domicile advise --write-slots`"
            ))
        })?;
        let plan = Plan::read(&text, &name.to_string()).map_err(Failure::work)?;
        Ok(Some(Arc::new(plan)))
    }

    /// The simulator's configuration, which counts what `detail` says.
    pub fn config(
        &self,
        machine: Machine,
        policies: Vec<sim::PolicySpec>,
        detail: sim::Detail,
    ) -> Result<sim::Config, Failure> {
        weights_fit(&machine, &policies)?;
        let mut config = sim::Config::new(machine, policies);
        config.seed = self.seed;
        config.order = match self.order {
            Order::Clock => sim::Order::Clock,
            Order::Recorded => sim::Order::Recorded,
        };
        config.detail = detail;
        config.barrier_ns = self.barrier_ns.into();
        let (from_phase, to_phase) = (self.from_phase.clone(), self.to_phase.clone());
        if from_phase.is_some() || to_phase.is_some() {
            config.window = Some(sim::Window { from_phase, to_phase });
        }
        Ok(config)
    }
}

/// Refuses weights for nodes that the machine does not have, which would be ignored.
fn weights_fit(machine: &Machine, policies: &[sim::PolicySpec]) -> Result<(), Failure> {
    let nodes = machine.memory.all_nodes() as usize;
    let too_many = |policy: &sim::PolicySpec| {
        let home = policy.name.of(Kind::Home).filter(|home| home.traits.interleaves)?;
        let weights = format!("{}.weights=", home.name);
        let mut sets = policy.sets.iter().filter(|set| set.starts_with(&weights));
        sets.find(|set| set.split(':').count() > nodes).cloned()
    };
    match policies.iter().find_map(too_many) {
        Some(set) => Err(Failure::usage(format!(
            "`{set}` has weights of more nodes than {} has: {nodes}",
            machine.name
        ))),
        None => Ok(()),
    }
}

/// An older probe states its age, because neighbours on a shared machine leave more or less of a cache within minutes.
fn probed_when() -> String {
    let minutes = ::measured::kept_age().map_or(0, |age| age.as_secs() / 60);
    match minutes {
        0..10 => "probed".to_string(),
        10..100 => format!("probed {minutes} min ago"),
        _ => match minutes / 60 {
            hours @ 0..48 => format!("probed {hours} h ago"),
            hours => format!("probed {} days ago", hours / 24),
        },
    }
}
