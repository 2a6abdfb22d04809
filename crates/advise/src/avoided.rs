//! The waiting that the largest gain would avoid, by call stack: the program is simulated once more, with the change.

use std::collections::HashMap;

use results::{Advice, Profile, ProfileFrame, ProfileStack, ProgramChange};
use sim::{Config, Detail, PolicySpec, SimError};
use trace::Trace;

use crate::basis;
use crate::settings::Settings;
use crate::words::NOTHING;

/// Adds to the profile of an advice what the largest gain would avoid, among those that can be simulated again with
/// this trace. Slots, homes, and threads in other places are excluded: their simulation is not one of a change or a
/// policy by name. Adds nothing if no other change gains.
pub fn avoided(trace: &Trace, settings: &Settings, config: &Config, advice: &mut Advice) -> Result<(), SimError> {
    let Some((name, changes, policy)) = largest(config, advice) else {
        return Ok(());
    };
    let Some(profile) = advice.profile.as_mut() else {
        return Ok(());
    };
    let changed = Config {
        changes,
        policies: vec![policy],
        detail: Detail {
            profile: true,
            ..Detail::default()
        },
        detail_for: None,
        classes: false,
        ..config.clone()
    };
    let mut runs = settings.simulate(trace, &changed)?;
    let after = runs.first_mut().and_then(|run| run.outcome.profile.take());
    if let Some(after) = after {
        *profile = compared(std::mem::take(profile), &after, name);
    }
    Ok(())
}

/// The change of the program, or the policy, that gains most.
fn largest(config: &Config, advice: &Advice) -> Option<(String, Vec<ProgramChange>, PolicySpec)> {
    let usual = config.detailed()?;
    let gains = |gain: f64| gain >= NOTHING;
    let cures = advice.causes.iter().flat_map(|cause| {
        let others = cause.alternatives.iter();
        let others = others.map(|other| (other.gain, &other.change, &other.simulated));
        std::iter::once((cause.gain, &cause.change, &cause.simulated)).chain(others)
    });
    let changes = cures.filter_map(|(gain, name, simulated)| {
        let gain = gain.filter(|gain| gains(*gain) && !simulated.is_empty())?;
        Some((gain, (name.clone()?, simulated.clone(), usual.clone())))
    });
    let base = advice.base()?;
    let policies = advice.policies.iter().filter_map(|outcome| {
        // A policy may save time because threads wait less for one another, while data waits more: then there is
        // nothing to draw.
        let waits_less = outcome.stall_ns() < base.stall_ns();
        let gain = Some(basis::gain(base, outcome)).filter(|gain| gains(*gain) && waits_less)?;
        let known = config
            .policies
            .iter()
            .find(|spec| spec.name.to_string() == outcome.policy)?;
        Some((gain, (format!("policy {}", outcome.policy), Vec::new(), known.clone())))
    });
    let all = changes.chain(policies);
    all.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, largest)| largest)
}

/// The profile `before`, with the time that `after` saves.
fn compared(mut before: Profile, after: &Profile, change: String) -> Profile {
    // By frames and structure, since numbers differ between profiles.
    fn key<'a>(profile: &'a Profile, stack: &'a ProfileStack) -> (Vec<&'a ProfileFrame>, &'a str) {
        let frames = stack.frames.iter().map(|&frame| &profile.frames[frame as usize]);
        (frames.collect(), &stack.structure)
    }
    let mut left: HashMap<_, &ProfileStack> = after.stacks.iter().map(|stack| (key(after, stack), stack)).collect();
    let avoided: Vec<i64> = (before.stacks.iter())
        .map(|stack| {
            let then = left.remove(&key(&before, stack)).map_or(0, |stack| stack.stall_ns);
            stack.stall_ns as i64 - then as i64
        })
        .collect();
    let mut added: Vec<&ProfileStack> = left.into_values().filter(|stack| stack.stall_ns > 0).collect();
    added.sort_by(|a, b| (b.stall_ns, &a.frames, &a.structure).cmp(&(a.stall_ns, &b.frames, &b.structure)));
    for (stack, avoided) in before.stacks.iter_mut().zip(avoided) {
        stack.avoided_ns = Some(avoided);
    }
    let mut numbers: HashMap<ProfileFrame, u32> = (0..).zip(&before.frames).map(|(n, of)| (of.clone(), n)).collect();
    for stack in added {
        let frames = stack.frames.iter().map(|&frame| {
            let frame = &after.frames[frame as usize];
            *numbers.entry(frame.clone()).or_insert_with(|| {
                before.frames.push(frame.clone());
                before.frames.len() as u32 - 1
            })
        });
        let frames = frames.collect();
        before.stacks.push(ProfileStack {
            frames,
            inlined: stack.inlined,
            structure: stack.structure.clone(),
            stall_ns: 0,
            misses: 0,
            avoided_ns: Some(-(stack.stall_ns as i64)),
        });
    }
    before.change = Some(change);
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&[&str], &str, u64)]) -> Profile {
        let mut all = Profile::default();
        for (functions, structure, stall_ns) in stacks {
            let frames = functions.iter().map(|function| {
                all.frames.push(ProfileFrame {
                    function: (*function).to_string(),
                    ..ProfileFrame::default()
                });
                all.frames.len() as u32 - 1
            });
            let frames = frames.collect();
            all.stacks.push(ProfileStack {
                frames,
                structure: (*structure).to_string(),
                stall_ns: *stall_ns,
                ..ProfileStack::default()
            });
        }
        all
    }

    #[test]
    fn what_is_avoided_and_added_is_the_difference() {
        let before = profile(&[(&["walk", "main"], "list", 90), (&["sum", "main"], "array", 10)]);
        let after = profile(&[(&["sum", "main"], "array", 15), (&["copy", "main"], "list", 5)]);
        let both = compared(before, &after, "an array".into());
        let seen: Vec<_> = both
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack
                    .frames
                    .iter()
                    .map(|&of| both.frames[of as usize].function.as_str());
                let names: Vec<&str> = frames.collect();
                (names.join("<"), stack.stall_ns, stack.avoided_ns.unwrap())
            })
            .collect();
        let expected = [("walk<main", 90, 90), ("sum<main", 10, -5), ("copy<main", 0, -5)];
        assert_eq!(
            seen,
            expected.map(|(name, stall, avoided)| (name.to_string(), stall, avoided))
        );
        // The total difference is the sum of the differences by stack.
        let all: i64 = both.stacks.iter().filter_map(|stack| stack.avoided_ns).sum();
        assert_eq!(all, 100 - 20);
        assert_eq!(both.change.as_deref(), Some("an array"));
    }
}
