//! One run: from an input, a machine and a policy to counts.

use crate::candidate::{Candidate, Progress};
use crate::changes::{Changes, HugePages};
use crate::config::{Config, Order};
use crate::counts::Class;
use crate::detail::Detail;
use crate::engine::Engine;
use crate::error::SimError;
use crate::input::Input;
use crate::loads;
use crate::outcome::{Simulated, simulated};
use crate::schedule::Schedule;
use crate::scheduling::Scheduling;

/// Opens the input of a run.
pub type Open<'a, 'b> = &'a (dyn Fn() -> Result<Box<dyn Input + 'b>, SimError> + Sync);

pub fn one_run(open: Open, config: &Config, one: Candidate, progress: Progress) -> Result<Simulated, SimError> {
    let mut input = open()?;
    let loads = loads::changed(config, &input.names(), input.dependences())?;
    let mut engine = Engine::new(
        config,
        one.policy,
        input.traits(),
        input.dependences(),
        input.paces(),
        input.mispredictions(),
        &loads,
    )?;
    engine.homes.hints = one.hints;
    engine.homes.placements = config.detail.placements.then(Vec::new);
    engine.begin_slots(one.plan, &input.names())?;
    if !input.is_whole() {
        engine.end_faults();
    }
    let threads = input.threads().len();
    engine.detail = Detail::new(config, &engine.layout, &input.names(), threads);
    match &mut engine.dynamic {
        Some(dynamic) => {
            dynamic.set_threads(threads as u32);
            dynamic
                .looks
                .set_stacks(input.names().tables.threads, config.machine.page_bytes);
        }
        // A thread that stays on its cpu shares nothing, on any machine: no other cpu has a copy of a line.
        None => engine.coherent &= threads > 1 || config.schedule != Scheduling::Stay,
    }
    let changes = Changes::new(config, &input.names().tables, 1 << engine.layout.block_bits)?;
    if changes.as_ref().is_some_and(|changes| changes.has_huge_pages()) {
        engine.huge_pages = Some(Box::new(HugePages::new(&config.machine, engine.layout.page_bits)));
    }
    let schedule = Schedule::new(&mut engine, input.as_mut(), changes, config, progress);
    let used = match config.order {
        Order::Clock => schedule.by_clock()?,
        Order::Recorded => schedule.recorded()?,
    };
    // Misses undecided at the end were false sharing.
    for pending in engine.directory.records.undecided() {
        engine.decide(pending, Class::FalseSharing);
    }
    let windows = engine.take_back(input.of_references());
    let mut run = simulated(&engine.tally(), &one.name, config, &used);
    run.outcome.windows = windows;
    if let Some((regions, windows)) = run.outcome.regions.as_mut().zip(run.outcome.windows.as_ref()) {
        regions.doubt(windows);
    }
    if let Some(detail) = engine.detail.take() {
        detail.report(&mut run, &engine.layout, &engine.table, &input.names());
    }
    Ok(run)
}
