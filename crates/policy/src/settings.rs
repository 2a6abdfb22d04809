//! A policy's declaration of itself, and the values of its parameters.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use serde::Serialize;

use crate::seam::Policy;

/// The matter that a policy decides; one of each kind can be combined with `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Color,
    Home,
    /// In which order work items run.
    Order,
    /// The cpus of threads.
    Threads,
}

/// The values a parameter may take, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    pub name: &'static str,
    pub summary: &'static str,
    pub unit: &'static str,
    pub range: Range,
    pub default: u64,
    /// The names of values, if they have any: those of 0, 1 ... in the range. A name or its number is given.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub names: &'static [&'static str],
}

#[derive(Clone, Copy, Serialize)]
pub struct Entry {
    pub name: &'static str,
    pub kind: Kind,
    pub summary: &'static str,
    /// Paper and section, or the system it is known from.
    pub source: &'static str,
    pub params: &'static [Param],
    #[serde(skip)]
    pub traits: Traits,
    #[serde(skip)]
    pub(crate) build: fn(&Settings) -> Result<Box<dyn Policy>, PolicyError>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.name.hash(to);
    }
}

/// Properties of a policy that are known without building it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The default of its kind: it decides if no part of a name does.
    pub default: bool,
    /// It stands for Linux's own behavior.
    pub linux: bool,
    /// It colors pages by hints, which are computed before the run.
    pub hints: bool,
    /// It goes by summaries of parallel loops, and cannot do without.
    pub summaries: bool,
    /// Hints are weighed against it.
    pub weighed: bool,
    /// It gets the statements about cache slots.
    pub slots: bool,
    /// `numactl --interleave` does the same.
    pub interleaves: bool,
    /// It closes pages, so that threads follow their data.
    pub follows: bool,
    pub later: Later,
}

impl Traits {
    pub(crate) const NONE: Traits = Traits {
        default: false,
        linux: false,
        hints: false,
        summaries: false,
        weighed: false,
        slots: false,
        interleaves: false,
        follows: false,
        later: Later::Stays,
    };
}

/// The treatment of a page once it has a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    Stays,
    /// It stays, too: the policy knew beforehand where misses would come from, which no real system does.
    Foretold,
    /// It moves by the touches that the kernel sees.
    Balanced,
    /// It moves by its misses.
    Moves,
    /// It is copied by its misses.
    Copied,
    MovesOrCopied,
}

impl Later {
    /// True if the policy copies pages.
    pub fn copies(self) -> bool {
        matches!(self, Later::Copied | Later::MovesOrCopied)
    }

    /// True if the policy gets a callback for misses.
    pub fn on_misses(self) -> bool {
        self == Later::Moves || self.copies()
    }

    /// True if a page keeps one home throughout the run, which a program can choose.
    pub fn stays(self) -> bool {
        self == Later::Stays
    }
}

/// An error in a policy's name or its parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    #[error("there is no policy `{name}`; the policies are {known} (one of each kind can be combined with `+`)")]
    Unknown { name: String, known: String },
    #[error("`{name}` combines two policies that both choose {what}; keep one of them")]
    SameKind { name: String, what: &'static str },
    #[error("policy `{policy}` has no parameter `{param}`; {known}")]
    UnknownParam {
        policy: String,
        param: String,
        known: String,
    },
    #[error("`{text}` is not of the form policy.parameter=value, as in `random.seed=7`")]
    Form { text: String },
    #[error("`{policy}.{param}` is {value}; allowed is a whole number from {least} to {most}")]
    OutOfRange {
        policy: String,
        param: String,
        value: String,
        least: u64,
        most: u64,
    },
    #[error("`{policy}.{param}` is {value}; allowed is one of {known}")]
    UnknownValue {
        policy: String,
        param: String,
        value: String,
        known: String,
    },
}

/// The unit of parameters that are a list of numbers, with `:` between them, each in the range; the default is one number.
pub(crate) const WEIGHTS: &str = "weights";

/// The parameters of one policy: the given values, over the defaults.
#[derive(Clone)]
pub struct Settings {
    values: BTreeMap<&'static str, Vec<u64>>,
}

impl Settings {
    /// Those of a policy; settings of others are passed over.
    pub(crate) fn of(entry: &Entry, sets: &[String]) -> Result<Settings, PolicyError> {
        let mut values: BTreeMap<_, _> = entry
            .params
            .iter()
            .map(|param| (param.name, vec![param.default]))
            .collect();
        for text in sets {
            let (policy, name, value) = split(text)?;
            if policy != entry.name {
                continue;
            }
            let param =
                entry
                    .params
                    .iter()
                    .find(|param| param.name == name)
                    .ok_or_else(|| PolicyError::UnknownParam {
                        policy: policy.to_string(),
                        param: name.to_string(),
                        known: if entry.params.is_empty() {
                            "it has none".to_string()
                        } else {
                            format!("it has {}", join(entry.params.iter().map(|param| param.name)))
                        },
                    })?;
            let numbers = match param.unit {
                WEIGHTS => value
                    .split(':')
                    .map(|value| number(policy, param, value))
                    .collect::<Result<_, _>>()?,
                _ => vec![number(policy, param, value)?],
            };
            values.insert(param.name, numbers);
        }
        Ok(Settings { values })
    }

    /// A parameter that the policy's entry declares.
    pub(crate) fn integer(&self, name: &str) -> u64 {
        self.list(name)[0]
    }

    /// A parameter that is a list, with at least one number.
    pub(crate) fn list(&self, name: &str) -> &[u64] {
        self.values
            .get(name)
            .expect("a policy reads only parameters that its entry declares")
    }
}

/// The number that a parameter's text stands for.
fn number(policy: &str, param: &Param, value: &str) -> Result<u64, PolicyError> {
    let Range { least, most } = param.range;
    let named = param.names.iter().position(|known| *known == value);
    let read = match param.unit {
        "bytes" => results::quantities::bytes(value),
        _ => results::quantities::count(value),
    };
    let number = named.map(|at| at as u64).or_else(|| read.ok());
    if let Some(number) = number.filter(|number| (least..=most).contains(number)) {
        return Ok(number);
    }
    let (policy, param_name, value) = (policy.to_string(), param.name.to_string(), value.to_string());
    Err(match param.names {
        [] => PolicyError::OutOfRange {
            policy,
            param: param_name,
            value,
            least,
            most,
        },
        names => PolicyError::UnknownValue {
            policy,
            param: param_name,
            value,
            known: join(names.iter().copied()),
        },
    })
}

pub(crate) fn split(text: &str) -> Result<(&str, &str, &str), PolicyError> {
    let form = || PolicyError::Form { text: text.to_string() };
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    let (policy, param) = name.split_once('.').ok_or_else(form)?;
    Ok((policy, param, value))
}

pub(crate) fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
