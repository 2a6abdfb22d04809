//! Folded stacks: a line for each, from the outermost function to the waiting line and its data, and the weight.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Value;
use crate::stacks::{Stack, Stacks};

/// A sorted line for each stack with a positive weight. Widths cannot be negative, so stacks that a change makes wait
/// longer are left out.
pub fn stacks(of: &Stacks, value: Value) -> Vec<u8> {
    let mut lines: BTreeMap<String, i64> = BTreeMap::new();
    for stack in &of.stacks {
        let weight = stack.weight(value);
        if weight > 0 {
            let sum = lines.entry(line(of, stack)).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
    let mut text = String::new();
    for (line, weight) in lines {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{line} {weight}");
    }
    text.into_bytes()
}

fn line(of: &Stacks, stack: &Stack) -> String {
    let mut line = calls(of, stack);
    let innermost = stack.frames[0];
    if let (Some(file), Some(number)) = (&of.function(innermost).file, of.frames[innermost].line) {
        let file = file.rsplit('/').next().unwrap_or(file);
        // Writing to a String cannot fail.
        let _ = write!(line, " ({}:{number})", one_frame(file));
    }
    // The closing bracket also separates a structure's number from the weight.
    let _ = write!(line, ";[{}]", one_frame(&stack.structure));
    line
}

/// The functions of a stack, the outermost first.
pub fn calls(of: &Stacks, stack: &Stack) -> String {
    let names = stack
        .frames
        .iter()
        .rev()
        .map(|frame| one_frame(&of.function(*frame).name));
    let line = names.collect::<Vec<_>>().join(";");
    // Readers take a line that begins like this for a comment.
    if line.starts_with('#') {
        format!("_{line}")
    } else {
        line
    }
}

/// A name that cannot end its frame.
fn one_frame(name: &str) -> Cow<'_, str> {
    if name.contains(';') {
        name.replace(';', ":").into()
    } else {
        name.into()
    }
}
