//! What proposed changes gain: each is simulated, on the references that were recorded.

use results::{Cause, Outcome, ProgramChange};
use sim::{Config, Detail, SimError};
use trace::Trace;

use crate::basis;
use crate::settings::Settings;

/// Changes that are simulated, each a run over the whole trace without detail: those of the causes that cost most.
const MOST: usize = 5;

/// Simulates the changes of the worst causes under the baseline, and puts down what each saves of the run time.
///
/// A change that cannot be simulated (rows that are none of the data's, names that several things have) leaves its cause
/// without a gain: the advice then is the rule's alone.
pub fn gains(
    trace: &Trace,
    settings: &Settings,
    config: &Config,
    base: &Outcome,
    causes: &mut [Cause],
) -> Result<(), SimError> {
    let Some(policy) = config.detailed() else {
        return Ok(());
    };
    let mut known: Vec<(Vec<ProgramChange>, Option<f64>)> = Vec::new();
    for cause in causes {
        if cause.simulated.is_empty() {
            continue;
        }
        if let Some((_, gain)) = known.iter().find(|(other, _)| *other == cause.simulated) {
            cause.gain = *gain;
            continue;
        }
        if known.len() == MOST {
            continue;
        }
        let changed = Config {
            policies: vec![policy.clone()],
            detail: Detail::default(),
            detail_for: None,
            classes: false,
            changes: cause.simulated.clone(),
            ..config.clone()
        };
        let gain = match settings.simulate(trace, &changed) {
            Ok(runs) => runs.first().map(|run| basis::gain(base, &run.outcome)),
            Err(SimError::Change { .. } | SimError::ChangesUnder { .. }) => None,
            Err(error) => return Err(error),
        };
        cause.gain = gain;
        known.push((cause.simulated.clone(), gain));
    }
    Ok(())
}
