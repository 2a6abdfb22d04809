//! From a [`Plan`] to TOML that people read: each proposal with its reason as a comment.

use std::fmt::Write;

use super::{Plan, What};
use crate::slots::Kind;

/// Longest line of a comment.
const WIDTH: usize = 100;

impl Plan {
    /// The plan as TOML; [`Plan::read`] gives it back, without the comments.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for line in &self.about {
            comment(&mut text, line);
        }
        for slot in &self.slots {
            head(&mut text, "[[slot]]", slot.why.as_deref());
            key(&mut text, "name", &string(&slot.name));
            key(&mut text, "bytes", &size(slot.bytes));
            let kind = match slot.kind {
                Kind::Private => "private",
                Kind::Shared => "shared",
            };
            key(&mut text, "kind", &string(kind));
        }
        for data in &self.data {
            head(&mut text, "[[data]]", data.why.as_deref());
            match &data.what {
                What::Symbol { symbol, module } => {
                    key(&mut text, "symbol", &string(&symbol.to_string()));
                    if let Some(module) = module {
                        key(&mut text, "module", &string(module));
                    }
                }
                What::Site {
                    site,
                    at_least,
                    at_most,
                } => {
                    key(&mut text, "site", &string(&site.to_string()));
                    if *at_least > 0 {
                        key(&mut text, "at_least", &size(*at_least));
                    }
                    if *at_most < u64::MAX {
                        key(&mut text, "at_most", &size(*at_most));
                    }
                }
            }
            let slot = data.slot.and_then(|slot| self.slots.get(slot));
            key(&mut text, "slot", &string(slot.map_or("none", |slot| &slot.name)));
            if !data.cpus.is_empty() {
                key(&mut text, "cpus", &format!("{:?}", data.cpus));
            }
        }
        text
    }
}

fn head(text: &mut String, table: &str, why: Option<&str>) {
    if !text.is_empty() {
        text.push('\n');
    }
    if let Some(why) = why {
        comment(text, why);
    }
    text.push_str(table);
    text.push('\n');
}

/// A comment, cut between words where it is long. Control characters would end it, or be refused.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() > 1 && line.chars().count() + word.chars().count() >= WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.extend(word.chars().filter(|c| !c.is_control()));
    }
    text.push_str(&line);
    text.push('\n');
}

fn key(text: &mut String, key: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{key} = {value}");
}

fn string(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// In the largest unit that divides it; as text, if it exceeds TOML's integers.
fn size(bytes: u64) -> String {
    match [("GiB", 30), ("MiB", 20), ("KiB", 10)]
        .iter()
        .find(|(_, shift)| bytes > 0 && bytes.is_multiple_of(1 << shift))
    {
        Some((unit, shift)) => format!("\"{} {unit}\"", bytes >> shift),
        None if bytes > i64::MAX as u64 => format!("\"{bytes} B\""),
        None => bytes.to_string(),
    }
}
