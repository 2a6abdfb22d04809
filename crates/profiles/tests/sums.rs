//! Sums that are computed from the profile as it is, without a word of the code under test.

use std::collections::{BTreeMap, BTreeSet};

use profiles::Value;
use results::{Profile, ProfileFrame, ProfileStack};

/// What a function costs itself, and with all that it calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub own: i64,
    pub with_calls: i64,
}

pub fn weight(stack: &ProfileStack, value: Value) -> i64 {
    match value {
        Value::Stall => stack.stall_ns as i64,
        Value::Misses => stack.misses as i64,
        Value::Avoided => stack.avoided_ns.unwrap_or(0),
    }
}

/// The names in a stack, innermost first; of frames that are not there, that of one without a name.
pub fn named(profile: &Profile, stack: &ProfileStack, name: impl Fn(&ProfileFrame) -> String) -> Vec<String> {
    let nowhere = ProfileFrame::default();
    let frames = match &stack.frames[..] {
        [] => &[u32::MAX],
        frames => frames,
    };
    let frames = frames
        .iter()
        .map(|at| profile.frames.get(*at as usize).unwrap_or(&nowhere));
    frames.map(name).collect()
}

/// By function as `name` calls it.
pub fn by_function(
    profile: &Profile,
    name: impl Fn(&ProfileFrame) -> String,
    weight: impl Fn(&ProfileStack) -> i64,
) -> BTreeMap<String, Sum> {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for stack in &profile.stacks {
        let names = named(profile, stack, &name);
        sums.entry(names[0].clone()).or_default().own += weight(stack);
        for name in names.into_iter().collect::<BTreeSet<_>>() {
            sums.entry(name).or_default().with_calls += weight(stack);
        }
    }
    sums
}

pub fn total(profile: &Profile, weight: impl Fn(&ProfileStack) -> i64) -> i64 {
    profile.stacks.iter().map(weight).sum()
}

/// A name as forms of text have it.
pub fn one_line(name: &str) -> String {
    if name.is_empty() {
        "???".to_string()
    } else {
        name.replace('\n', " ")
    }
}
