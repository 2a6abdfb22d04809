//! A cell: its exact content, and its text for people.

use results::{bytes, change, count, percent, short, time};

use super::text::untied;
use crate::bar::bar;

/// Characters of the longest bar.
const BAR: usize = 20;

/// An unrounded number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Exact {
    Whole(u64),
    Real(f64),
}

/// How a number is rounded for people.
#[derive(Clone, Debug, PartialEq)]
pub enum Rounding {
    Count,
    Bytes,
    /// Of nanoseconds.
    Time,
    /// Of a fraction.
    Percent,
    /// Of a ratio: `-11.3%`, `+18.1%`, `3.40x`.
    Change,
    /// This many decimals, and the unit.
    Decimals(usize, &'static str),
    Hexadecimal,
    /// A given text.
    Words(String),
}

/// The content of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// There is nothing to show.
    #[default]
    Empty,
    /// There is a value, but it is unknown.
    Unknown,
    Text(String),
    Number(Exact, Rounding),
    /// A fraction of the longest bar.
    Bar(f64),
}

/// The meaning of a cell for its reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tone {
    #[default]
    Plain,
    /// The name of something.
    Name,
    /// Of little importance.
    Faint,
    Good,
    /// Neither good nor bad.
    Partly,
    Bad,
}

impl Tone {
    /// Its name: a class of its cells in HTML.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Name => "name",
            Tone::Faint => "faint",
            Tone::Good => "good",
            Tone::Partly => "partly",
            Tone::Bad => "bad",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    value: Value,
    tone: Tone,
    /// True if it repeats the cell above it: text then leaves it blank.
    again: bool,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        let text = text.into();
        Cell::of(match text.is_empty() {
            true => Value::Empty,
            false => Value::Text(text),
        })
    }
}

impl Cell {
    pub(super) fn of(value: Value) -> Cell {
        Cell {
            value,
            ..Cell::default()
        }
    }

    pub fn empty() -> Cell {
        Cell::default()
    }

    pub fn unknown() -> Cell {
        Cell::of(Value::Unknown)
    }

    /// The name of something.
    pub fn name(text: impl Into<String>) -> Cell {
        Cell::from(text).toned(Tone::Name)
    }

    pub fn faint(text: impl Into<String>) -> Cell {
        Cell::from(text).toned(Tone::Faint)
    }

    pub fn count(value: u64) -> Cell {
        Cell::of(Value::Number(Exact::Whole(value), Rounding::Count))
    }

    /// A count, faint if it is 0.
    pub fn quiet(value: u64) -> Cell {
        let tone = if value == 0 { Tone::Faint } else { Tone::Plain };
        Cell::count(value).toned(tone)
    }

    pub fn bytes(value: u64) -> Cell {
        Cell::of(Value::Number(Exact::Whole(value), Rounding::Bytes))
    }

    pub fn time(ns: u64) -> Cell {
        Cell::of(Value::Number(Exact::Whole(ns), Rounding::Time))
    }

    pub fn share(fraction: f64) -> Cell {
        Cell::of(Value::Number(Exact::Real(fraction), Rounding::Percent))
    }

    /// A part of a whole; empty if there is no whole.
    pub fn part(part: u64, all: u64) -> Cell {
        match all {
            0 => Cell::empty(),
            all => Cell::share(part as f64 / all as f64),
        }
    }

    /// A number compared with another, good if it is less.
    pub fn change(value: f64, base: f64) -> Cell {
        let ratio = if base > 0.0 { value / base } else { 1.0 };
        let tone = if value < base { Tone::Good } else { Tone::Bad };
        Cell::of(Value::Number(Exact::Real(ratio), Rounding::Change)).toned(tone)
    }

    pub fn decimals(value: f64, digits: usize, unit: &'static str) -> Cell {
        Cell::of(Value::Number(Exact::Real(value), Rounding::Decimals(digits, unit)))
    }

    pub fn address(value: u64) -> Cell {
        Cell::of(Value::Number(Exact::Whole(value), Rounding::Hexadecimal))
    }

    /// Any number, with the given text.
    pub fn number(exact: Exact, words: impl Into<String>) -> Cell {
        Cell::of(Value::Number(exact, Rounding::Words(words.into())))
    }

    /// A bar that fills this fraction of the longest one.
    pub fn bar(fraction: f64) -> Cell {
        Cell::of(Value::Bar(fraction))
    }

    /// The same number in words.
    pub fn in_words(self, words: impl Into<String>) -> Cell {
        match self.value {
            Value::Number(exact, _) => Cell {
                value: Value::Number(exact, Rounding::Words(words.into())),
                ..self
            },
            _ => self,
        }
    }

    pub fn toned(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }

    /// The same cell, marked as a repetition of the cell above it if `again`.
    pub fn again(self, again: bool) -> Cell {
        Cell { again, ..self }
    }

    pub(super) fn into_value(self) -> Value {
        self.value
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn tone(&self) -> Tone {
        self.tone
    }

    /// True if text leaves it blank, because it repeats the cell above it.
    pub fn is_again(&self) -> bool {
        self.again
    }

    /// The exact number, if it has one.
    pub fn exact(&self) -> Option<Exact> {
        match self.value {
            Value::Number(exact, _) => Some(exact),
            Value::Bar(fraction) => Some(Exact::Real(fraction)),
            _ => None,
        }
    }

    /// The text for people; a bar is drawn instead.
    pub fn words(&self) -> String {
        untied(&self.tied())
    }

    /// The same with the ties between words that stay together.
    pub(super) fn tied(&self) -> String {
        match &self.value {
            Value::Empty | Value::Bar(_) => String::new(),
            Value::Unknown => "–".to_string(),
            Value::Text(text) if self.tone == Tone::Name => short(text),
            Value::Text(text) => text.clone(),
            Value::Number(exact, rounding) => rounding.words(*exact),
        }
    }

    /// The text for a terminal.
    pub(super) fn shown(&self) -> String {
        match &self.value {
            _ if self.again => String::new(),
            Value::Bar(fraction) => bar(*fraction, BAR),
            _ => self.tied(),
        }
    }
}

impl Rounding {
    fn words(&self, exact: Exact) -> String {
        let real = match exact {
            Exact::Whole(value) => value as f64,
            Exact::Real(value) => value,
        };
        match (self, exact) {
            (Rounding::Count, Exact::Whole(value)) => count(value),
            (Rounding::Bytes, Exact::Whole(value)) => bytes(value),
            (Rounding::Time, Exact::Whole(value)) => time(value),
            (Rounding::Hexadecimal, Exact::Whole(value)) => format!("{value:#x}"),
            (Rounding::Percent, _) => percent(real),
            (Rounding::Change, _) => change(real, 1.0),
            (Rounding::Decimals(digits, unit), _) => format!("{real:.digits$}{unit}"),
            (Rounding::Words(words), _) => words.clone(),
            (Rounding::Count | Rounding::Bytes | Rounding::Time | Rounding::Hexadecimal, Exact::Real(_)) => {
                real.to_string()
            }
        }
    }
}
