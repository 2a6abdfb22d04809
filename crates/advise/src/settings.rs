//! The settings of an advice.

use std::sync::Arc;

use machine::Machine;
use policy::slots::Plan;
use results::{Native, TruthRange};
use sim::{Config, Detail, Order, PolicySpec, Window};

/// The progress of the work. Simulations run one after another, or in parallel; their number is not known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A simulation begins, which executes this many references (of all policies together).
    Begins { references: u64 },
    /// This many more of them were executed.
    Done { references: u64 },
}

/// The policies that are simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policies {
    /// All that can make a difference to the program on the machine, as one run of it shows, and partitions of the
    /// outermost cache. With these parameters of policies (`policy.parameter=value`), and with this plan of cache slots
    /// in place of the program's own.
    All {
        sets: Vec<String>,
        plan: Option<Arc<Plan>>,
        /// All that differ on the machine, whatever the run shows.
        every: bool,
    },
    /// Only these.
    These(Vec<PolicySpec>),
}

/// How to examine a program.
#[derive(Clone)]
pub struct Settings<'a> {
    pub policies: Policies,
    /// Seed of everything that is random in the simulation.
    pub seed: u64,
    /// The order in which the threads are replayed.
    pub order: Order,
    /// The time that a barrier's code takes in each thread.
    pub barrier_ns: f64,
    /// The part of the run that is counted; `None`: all of it.
    pub window: Option<Window>,
    /// True if causes and curves come from all of a long run, and not from samples.
    pub exact: bool,
    /// The basis of the machine's figures, if it is worth a note; and in a word or two.
    pub machine_basis: Option<String>,
    pub machine_is: Option<String>,
    /// The reason why page colors do nothing on the machine, if a measurement has shown that.
    pub no_colors: Option<String>,
    /// True if the program asks for huge pages for what malloc gives it.
    pub asks_huge_pages: bool,
    /// The time of the whole run on this machine without the recorder, if that was measured; without the simulated values.
    pub native: Option<Native>,
    /// The error of predictions on this machine, if that was measured.
    pub truth: Option<TruthRange>,
    /// True if the program was just run, so that the reason why it was not timed is known.
    pub ran: bool,
    /// The reason why the trace's run does not count as whole, if known.
    pub broke: Option<String>,
    /// Called from time to time, from any thread.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            policies: Policies::All {
                sets: Vec::new(),
                plan: None,
                every: false,
            },
            seed: 1,
            order: Order::Clock,
            barrier_ns: 0.0,
            window: None,
            exact: false,
            machine_basis: None,
            machine_is: None,
            no_colors: None,
            asks_huge_pages: false,
            native: None,
            truth: None,
            ran: false,
            broke: None,
            progress: None,
        }
    }
}

impl Settings<'_> {
    /// True if the report covers all policies, with everything known about each.
    pub(crate) fn every(&self) -> bool {
        matches!(self.policies, Policies::All { every: true, .. })
    }

    pub(crate) fn config(&self, machine: &Machine, policies: Vec<PolicySpec>, detail: Detail) -> Config {
        Config {
            seed: self.seed,
            order: self.order,
            barrier_ns: self.barrier_ns,
            window: self.window.clone(),
            detail: Detail {
                exact: self.exact,
                ..detail
            },
            ..Config::new(machine.clone(), policies)
        }
    }

    /// Simulates, and reports progress.
    pub(crate) fn simulate(&self, trace: &trace::Trace, config: &Config) -> Result<Vec<sim::Simulated>, sim::SimError> {
        let notify = |progress| {
            if let Some(callback) = self.progress {
                callback(progress);
            }
        };
        let references = trace.references() * config.policies.len() as u64;
        notify(Progress::Begins { references });
        sim::simulate(trace, config, &|references| notify(Progress::Done { references }))
    }
}
