//! Frames of a profile, resolved once: functions, names that are safe in every form, and only valid indices.

use std::borrow::Cow;
use std::collections::HashMap;

use results::{Profile, ProfileFrame, ProfileStack};

use crate::Value;

/// The name of an unnamed function, file or structure, as in Callgrind and others.
pub const UNKNOWN: &str = "???";

/// A profile with its frames resolved.
pub struct Stacks<'a> {
    pub functions: Vec<Function<'a>>,
    pub frames: Vec<Frame>,
    pub stacks: Vec<Stack<'a>>,
    /// The change that [`Stack::avoided_ns`] refers to.
    pub change: Option<&'a str>,
}

/// A function of a file; two of one name in two files are two.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function<'a> {
    pub name: Cow<'a, str>,
    pub file: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Index into [`Stacks::functions`].
    pub function: usize,
    pub line: Option<u32>,
}

/// A stack with only valid indices. It has at least one frame.
pub struct Stack<'a> {
    /// Innermost first.
    pub frames: Vec<usize>,
    pub structure: Cow<'a, str>,
    pub stall_ns: u64,
    pub misses: u64,
    pub avoided_ns: Option<i64>,
}

impl<'a> Stacks<'a> {
    pub fn of(profile: &'a Profile) -> Stacks<'a> {
        let mut functions = Functions::default();
        let mut frames: Vec<Frame> = profile.frames.iter().map(|frame| functions.frame(frame)).collect();
        let nowhere = frames.len();
        let known = |frame: &u32| usize::try_from(*frame).map_or(nowhere, |frame| frame.min(nowhere));
        let stack = |stack: &'a ProfileStack| Stack {
            frames: match &stack.frames[..] {
                [] => vec![nowhere],
                frames => frames.iter().map(known).collect(),
            },
            structure: clean(&stack.structure),
            stall_ns: stack.stall_ns,
            misses: stack.misses,
            avoided_ns: stack.avoided_ns,
        };
        let stacks: Vec<_> = profile.stacks.iter().map(stack).collect();
        // Only if a stack needs it, so that otherwise no list of functions contains it.
        if stacks.iter().any(|stack| stack.frames.contains(&nowhere)) {
            frames.push(functions.unknown());
        }
        Stacks {
            functions: functions.all,
            frames,
            stacks,
            change: profile.change.as_deref(),
        }
    }

    pub fn function(&self, frame: usize) -> &Function<'a> {
        &self.functions[self.frames[frame].function]
    }
}

impl Stack<'_> {
    /// Its weight; none if unknown.
    pub fn weight(&self, value: Value) -> i64 {
        match value {
            Value::Stall => signed(self.stall_ns),
            Value::Misses => signed(self.misses),
            Value::Avoided => self.avoided_ns.unwrap_or(0),
        }
    }
}

#[derive(Default)]
struct Functions<'a> {
    all: Vec<Function<'a>>,
    index: HashMap<Function<'a>, usize>,
}

impl<'a> Functions<'a> {
    fn frame(&mut self, frame: &'a ProfileFrame) -> Frame {
        let file = frame.file.as_deref().filter(|file| !file.is_empty()).map(clean);
        let function = self.index(Function {
            name: clean(&frame.function),
            file,
        });
        Frame {
            function,
            line: frame.line,
        }
    }

    fn unknown(&mut self) -> Frame {
        let function = self.index(Function {
            name: UNKNOWN.into(),
            file: None,
        });
        Frame { function, line: None }
    }

    fn index(&mut self, function: Function<'a>) -> usize {
        let all = &mut self.all;
        *self.index.entry(function).or_insert_with_key(|function| {
            all.push(function.clone());
            all.len() - 1
        })
    }
}

/// A name on one line, without spaces around it, and not empty: in text forms a name ends with its line.
pub fn clean(name: &str) -> Cow<'_, str> {
    match name.trim() {
        "" => UNKNOWN.into(),
        name if name.contains(char::is_control) => name.replace(char::is_control, " ").into(),
        name => name.into(),
    }
}

/// Forms have signed numbers. No simulated value reaches their limit.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
