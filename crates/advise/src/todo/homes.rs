//! Data that is on other nodes than its users, as a thing to do.

use results::{Advice, Cause, CauseKind, HomesAdvice, Instead, RemoteReason, Todo, percent};

use super::WORTH;
use crate::homes::FORETOLD;
use crate::words::NOTHING;

const KIND: &str = "pages-remote";

/// The change that brings remote data near.
pub fn homes(advice: &Advice) -> Option<Todo> {
    let homes = advice.homes.as_ref()?;
    let mut useful = homes
        .remedies
        .iter()
        .filter(|remedy| remedy.gain >= NOTHING && !remedy.how.is_empty());
    let Some(best) = useful.next() else {
        return filled_elsewhere(homes);
    };
    let instead = useful.map(|remedy| Instead {
        action: remedy.how.clone(),
        conditions: remedy.conditions.clone(),
        gain: remedy.gain,
        range: None,
    });
    let worst = homes.structures.first();
    // Lines that threads take from each other are a separate item, and no page placement cures them.
    if worst.is_some_and(|worst| is_taken_away(advice, &worst.name)) {
        return None;
    }
    let reason = worst.and_then(|worst| worst.reasons.first());
    Some(Todo {
        data: worst.map(|worst| worst.name.clone()),
        kind: KIND.to_string(),
        because: format!(
            "{} of the time is waiting for another node's memory{}",
            percent(homes.remote_share),
            reason.map_or_else(String::new, |of| format!("; most of it is {}", of.reason))
        ),
        action: best.how.clone(),
        conditions: best.conditions.clone(),
        instead: instead.take(1).collect(),
        share: homes.remote_share,
        gain: Some(best.gain),
        ..Todo::default()
    })
}

/// Data that one thread fills for others. The simulation keeps the filling in place, which is then remote: in a short
/// run that costs as much as it saves, while threads that fill their own parts have neither.
fn filled_elsewhere(homes: &HomesAdvice) -> Option<Todo> {
    let worst = homes.structures.first()?;
    let main = worst.reasons.first()?;
    let foretold = homes.remedies.iter().find(|remedy| remedy.name == FORETOLD)?;
    let later = foretold.later_gain.filter(|later| *later >= NOTHING)?;
    (homes.remote_share >= WORTH && main.reason == RemoteReason::FirstTouch).then(|| Todo {
        data: Some(worst.name.clone()),
        kind: KIND.to_string(),
        because: format!(
            "{} of the time is waiting for another node's memory, most of it {}; near, the second half of the misses takes {} \
             less of the time",
            percent(homes.remote_share),
            main.reason,
            percent(later)
        ),
        action: foretold.how.clone(),
        share: homes.remote_share,
        ..Todo::default()
    })
}

/// True if the waiting for some data is for lines that are lost to writes of other data in them.
fn is_taken_away(advice: &Advice, structure: &str) -> bool {
    let falsely = |cause: &&Cause| cause.kind == CauseKind::FalseSharing && cause.structure == structure;
    let share: f64 = advice.causes.iter().filter(falsely).map(|cause| cause.share).sum();
    advice
        .homes
        .as_ref()
        .is_some_and(|homes| share > 0.5 * homes.remote_share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::{HomesRemedy, RemoteMisses, RemoteStructure};

    fn advice(remedies: &[(&str, f64, Option<f64>)]) -> Advice {
        let remedy = |(name, gain, later_gain): &(&str, f64, Option<f64>)| HomesRemedy {
            name: (*name).to_string(),
            how: "so".to_string(),
            gain: *gain,
            later_gain: *later_gain,
            ..HomesRemedy::default()
        };
        let structure = RemoteStructure {
            name: "array".to_string(),
            reasons: vec![RemoteMisses {
                reason: RemoteReason::FirstTouch,
                remote: 9,
            }],
            ..RemoteStructure::default()
        };
        Advice {
            homes: Some(HomesAdvice {
                remote_share: 0.4,
                structures: vec![structure],
                remedies: remedies.iter().map(remedy).collect(),
                ..HomesAdvice::default()
            }),
            ..Advice::default()
        }
    }

    #[test]
    fn data_that_one_thread_fills_is_named_though_the_filling_costs_as_much() {
        let todo = homes(&advice(&[(FORETOLD, 0.0, Some(0.06))])).unwrap();
        assert_eq!((todo.gain, todo.data.as_deref()), (None, Some("array")));
        assert!(todo.because.contains("6.0% less"), "{}", todo.because);
        assert_eq!(homes(&advice(&[(FORETOLD, 0.0, Some(0.0))])), None);
        let gains = homes(&advice(&[("moves", 0.2, None), (FORETOLD, 0.0, Some(0.06))])).unwrap();
        assert_eq!(gains.gain, Some(0.2));
    }

    #[test]
    fn lines_that_threads_take_from_one_another_are_not_named_twice() {
        let mut advice = advice(&[("moves", 0.2, None)]);
        let cause = |structure: &str, share| Cause {
            kind: CauseKind::FalseSharing,
            structure: structure.to_string(),
            share,
            ..Cause::default()
        };
        advice.causes = vec![cause("array", 0.3)];
        assert_eq!(homes(&advice), None);
        advice.causes = vec![cause("array", 0.1), cause("other", 0.3)];
        assert!(homes(&advice).is_some());
    }
}
