//! The simulated time of a run compared with the clock's, and the model of the processor that is nearer to it.
//!
//! A processor that overlaps its loads hides waiting. The hidden part is the least certain part of the model: if the
//! clock shows that the program takes much longer, the other bound, each load waiting alone, may be nearer.

use policy::Name;
use results::{Native, Outcome};
use sim::{Config, SimError, Simulated};
use trace::Trace;

use crate::settings::Settings;

/// Shorter times are too uncertain: kernels split the time between program and kernel by ticks of some milliseconds.
/// For all runs together, and for each.
const LEAST: u64 = 20_000_000;
const LEAST_OF_EACH: u64 = 3_000_000;

/// Compares the first run with the clock. If the other model of the processor is nearer, `config` has it from now on,
/// and `runs` use it. `None`: the run's time is unknown, or the run was recorded only in part.
pub fn compared(
    trace: &Trace,
    settings: &Settings,
    config: &mut Config,
    baseline: &Name,
    runs: &mut Vec<Simulated>,
) -> Result<Option<Native>, SimError> {
    let measured = settings
        .native
        .as_ref()
        .filter(|native| native.user_ns >= LEAST_OF_EACH && native.user_ns * u64::from(native.runs) >= LEAST)
        .filter(|_| settings.broke.is_none() && settings.window.is_none());
    let Some((measured, (simulated_ns, faults_ns))) = measured.zip(whole(trace, runs, baseline)) else {
        return Ok(None);
    };
    let overlapping = Native {
        simulated_ns,
        faults_ns,
        overlapping_ns: None,
        ..measured.clone()
    };
    if config.machine.core.is_none() || overlapping.ratio() <= Native::RIGHT {
        return Ok(Some(overlapping));
    }
    let mut one_by_one = config.clone();
    one_by_one.machine.core = None;
    let others = settings.simulate(trace, &one_by_one)?;
    let Some((simulated_ns, faults_ns)) = whole(trace, &others, baseline) else {
        return Ok(Some(overlapping));
    };
    let waiting = Native {
        simulated_ns,
        faults_ns,
        overlapping_ns: Some(overlapping.simulated_ns),
        ..overlapping.clone()
    };
    if waiting.off() >= overlapping.off() {
        return Ok(Some(overlapping));
    }
    (*config, *runs) = (one_by_one, others);
    Ok(Some(waiting))
}

/// The baseline's time in the program, and in page faults, scaled to the whole run if windows of it were simulated.
/// `None`: only a part of the run was recorded.
fn whole(trace: &Trace, runs: &[Simulated], baseline: &Name) -> Option<(u64, u64)> {
    let baseline = baseline.to_string();
    let outcome: &Outcome = &runs.iter().find(|run| run.outcome.policy == baseline)?.outcome;
    // The clock's time is only the program's, without the system's.
    let faults = outcome.time_ns.page_faults;
    let times = (outcome.time_ns.worked() - faults, faults);
    if let Some(windows) = &outcome.windows {
        let (counted, all) = (windows.references(), windows.of_references?);
        let drawn_out = |ns: u64| (ns as f64 * all as f64 / counted as f64) as u64;
        return (counted > 0).then(|| (drawn_out(times.0), drawn_out(times.1)));
    }
    let is_whole = trace.header().chosen.as_ref().is_none_or(|chosen| {
        // The part before `main` is short.
        let from_main = chosen.from.as_deref().is_none_or(|from| from == "main");
        from_main && chosen.skipped == 0 && chosen.references.is_none()
    });
    is_whole.then_some(times)
}
