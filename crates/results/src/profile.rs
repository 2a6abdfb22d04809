//! Stall by call stack, line of the source and data structure: the data of profiles for other viewers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use crate::lenient::ns;

/// The waiting of a run, by line and by the calls that led there. Sums by line are exact; a line's sum is divided among its callers as the samples of
/// call stacks say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// Samples of call stacks that the run passed; 0: the recording has none, and each stack is only the line.
    pub samples: u64,
    /// The frames of all stacks, each once.
    pub frames: Vec<ProfileFrame>,
    /// The largest stall first.
    pub stacks: Vec<ProfileStack>,
    /// The change or placement whose effect [`ProfileStack::avoided_ns`] is; absent where none was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A place in the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileFrame {
    /// The function; a place in a file of code (`libx.so+0x12f0`) where it has no name.
    pub function: String,
    /// Absent where the program has no line information.
    pub file: Option<String>,
    pub line: Option<u32>,
}

impl ProfileFrame {
    const PROGRAM: &str = "process ";

    /// The outermost frame of a stack, where a run is of several programs: which of them it is.
    pub fn of_program(path: &str) -> ProfileFrame {
        let name = path.rsplit('/').next().unwrap_or(path);
        ProfileFrame {
            function: format!("{}{name}", ProfileFrame::PROGRAM),
            ..ProfileFrame::default()
        }
    }

    fn is_program(&self) -> bool {
        self.file.is_none() && self.line.is_none() && self.function.starts_with(ProfileFrame::PROGRAM)
    }
}

/// One line that waits for one data structure, reached by one sequence of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ProfileStack {
    /// Indices into [`Profile::frames`], innermost first: the line that waits, then its callers; functions that the
    /// compiler inlined are frames, too. If the run is of several programs and was sampled, the last is the program
    /// (`process cc1`).
    pub frames: Vec<u32>,
    /// This many frames after the first are functions that the line was inlined into; the rest called them.
    #[serde(skip_serializing_if = "is_zero")]
    pub inlined: u32,
    /// The data structure that is waited for.
    pub structure: String,
    #[serde(deserialize_with = "ns")]
    pub stall_ns: u64,
    /// Misses of the caches nearest to the cpus.
    pub misses: u64,
    /// The part of `stall_ns` that the change would avoid; below 0 where it adds. Absent where no change was simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avoided_ns: Option<i64>,
}

impl Profile {
    /// Stacks with callers that a saved result has.
    pub const KEPT: usize = 4096;

    /// Takes the callers from all but the first `most` stacks. Sums by line and structure stay as they are.
    pub fn keep(&mut self, most: usize) {
        if self.stacks.len() <= most {
            return;
        }
        let mut rest: BTreeMap<(Vec<u32>, String), ProfileStack> = BTreeMap::new();
        for mut stack in self.stacks.split_off(most) {
            let program = stack.frames.last().copied().filter(|&frame| self.is_program(frame));
            stack.frames.truncate(1 + stack.inlined as usize);
            stack
                .frames
                .extend(program.filter(|program| stack.frames.last() != Some(program)));
            let key = (stack.frames.clone(), stack.structure.clone());
            match rest.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(stack);
                }
                Entry::Occupied(mut entry) => entry.get_mut().add(&stack),
            }
        }
        // A line that was also among the first without callers is merged with its rest.
        let without_callers = |stack: &ProfileStack| {
            let program = stack.frames.last().is_some_and(|&frame| self.is_program(frame));
            stack.frames.len() == 1 + stack.inlined as usize + usize::from(program)
        };
        let alone: Vec<bool> = self.stacks.iter().map(without_callers).collect();
        for (stack, alone) in self.stacks.iter_mut().zip(alone) {
            if alone && let Some(more) = rest.remove(&(stack.frames.clone(), stack.structure.clone())) {
                stack.add(&more);
            }
        }
        self.stacks.extend(rest.into_values());
        let size = |stack: &ProfileStack| {
            (
                stack.stall_ns,
                stack.misses,
                stack.avoided_ns.map_or(0, i64::unsigned_abs),
            )
        };
        self.stacks.sort_by_key(|stack| Reverse(size(stack)));
        self.drop_unused_frames();
    }

    /// Returns true if a frame is one of [`ProfileFrame::of_program`].
    pub fn is_program(&self, frame: u32) -> bool {
        let frame = self.frames.get(frame as usize);
        frame.is_some_and(ProfileFrame::is_program)
    }

    fn drop_unused_frames(&mut self) {
        let mut frames = Vec::new();
        let mut numbers: Vec<Option<u32>> = vec![None; self.frames.len()];
        for frame in self.stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
            *frame = *numbers[*frame as usize].get_or_insert_with(|| {
                frames.push(self.frames[*frame as usize].clone());
                frames.len() as u32 - 1
            });
        }
        self.frames = frames;
    }
}

impl ProfileStack {
    fn add(&mut self, other: &ProfileStack) {
        self.stall_ns += other.stall_ns;
        self.misses += other.misses;
        self.avoided_ns = match (self.avoided_ns, other.avoided_ns) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
    }
}

pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[u32], inlined: u32, stall_ns: u64, avoided_ns: i64) -> ProfileStack {
        ProfileStack {
            frames: frames.to_vec(),
            inlined,
            structure: "a".to_string(),
            stall_ns,
            misses: stall_ns / 10,
            avoided_ns: Some(avoided_ns),
        }
    }

    #[test]
    fn small_stacks_lose_their_callers_and_nothing_else() {
        let frame = |function: &&str| ProfileFrame {
            function: (*function).to_string(),
            ..ProfileFrame::default()
        };
        let mut profile = Profile {
            samples: 9,
            frames: ["find", "lookup", "hot", "cold", "main"].iter().map(frame).collect(),
            stacks: vec![
                stack(&[0, 1, 2], 1, 100, 60),
                stack(&[0, 1], 1, 50, 10),
                stack(&[0, 1, 3, 4], 1, 40, -5),
                stack(&[4], 0, 30, 0),
                stack(&[0, 1, 4], 1, 20, 20),
            ],
            change: Some("an array".to_string()),
        };
        profile.keep(2);
        let expected = [
            stack(&[0, 1], 1, 110, 25),
            stack(&[0, 1, 2], 1, 100, 60),
            stack(&[3], 0, 30, 0),
        ];
        assert_eq!(profile.stacks, expected);
        let names: Vec<&str> = profile.frames.iter().map(|frame| &*frame.function).collect();
        assert_eq!(names, ["find", "lookup", "hot", "main"]);
    }

    #[test]
    fn programs_are_still_told_apart_without_callers() {
        let frame = |function: &str| ProfileFrame {
            function: function.to_string(),
            ..ProfileFrame::default()
        };
        let frames = vec![
            frame("find"),
            frame("hot"),
            ProfileFrame::of_program("/bin/one"),
            ProfileFrame::of_program("/bin/two"),
        ];
        let mut profile = Profile {
            samples: 9,
            frames: frames.clone(),
            stacks: vec![
                stack(&[0, 2], 0, 100, 0),
                stack(&[0, 1, 2], 0, 50, 0),
                stack(&[0, 1, 3], 0, 40, 0),
            ],
            change: None,
        };
        profile.keep(1);
        assert_eq!(profile.stacks.len(), 2, "{:?}", profile.stacks);
        let told = |at: usize| {
            let stack = &profile.stacks[at];
            let names = stack
                .frames
                .iter()
                .map(|&frame| &*profile.frames[frame as usize].function);
            (names.collect::<Vec<_>>().join(" < "), stack.stall_ns)
        };
        assert_eq!(told(0), ("find < process one".to_string(), 150));
        assert_eq!(told(1), ("find < process two".to_string(), 40));
    }
}
