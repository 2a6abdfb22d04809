//! The registry: every policy's name, parameters, ranges and source, and how to build one.
//!
//! Someone who adds a policy adds its file and one [`Entry`] here; the command line, `policy list`,
//! the sweeps and the documentation learn of it from this table.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::order::HINTS_MAX;
use crate::work::{self, WorkOrder};
use crate::{Combined, Policy, color, homes};

/// What a policy decides; one of each kind can be combined with `+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Color,
    Home,
    /// In which order work items run.
    Order,
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
    /// Where values have names: those of 0, 1 ... in the range. A name or its number is given.
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
    build: fn(&Settings) -> Result<Box<dyn Policy>, PolicyError>,
}

const ANY: Range = Range {
    least: 0,
    most: u64::MAX,
};

const REGISTRY: &[Entry] = &[
    Entry {
        name: "page-coloring",
        kind: Kind::Color,
        summary: "consecutive virtual pages get consecutive colors",
        source: "Bugnion96, section 2.1 (IRIX, Windows NT)",
        params: &[Param {
            name: "offset",
            summary: "color of page 0",
            unit: "colors",
            range: ANY,
            default: 0,
            names: &[],
        }],
        build: color::page_coloring::build,
    },
    Entry {
        name: "bin-hopping",
        kind: Kind::Color,
        summary: "the colors in turn, in the order of page faults",
        source: "Bugnion96, section 2.1 (Digital UNIX)",
        params: &[
            Param {
                name: "start",
                summary: "color of the first page touched",
                unit: "colors",
                range: ANY,
                default: 0,
                names: &[],
            },
            Param {
                name: "race",
                summary: "seed of the race of cpus that fault together; 0: decided by the order of their clocks",
                unit: "",
                range: ANY,
                default: 0,
                names: &[],
            },
        ],
        build: color::bin_hopping::build,
    },
    Entry {
        name: "random",
        kind: Kind::Color,
        summary: "a random color for each page",
        source: "the usual baseline; a kernel without coloring",
        params: &[Param {
            name: "seed",
            summary: "seed of the generator",
            unit: "",
            range: ANY,
            default: 1,
            names: &[],
        }],
        build: color::random::build,
    },
    Entry {
        name: "cdpc",
        kind: Kind::Color,
        summary: "compiler-directed page coloring: each cpu's part of all arrays lies together in the cache",
        source: "Bugnion96, section 5",
        params: &[
            Param {
                name: "from",
                summary: "where the hints come from: what the compiler said of each parallel loop, or which cpus touch which \
                          pages; auto: from what the compiler said, if it said anything",
                unit: "",
                range: Range { least: 0, most: 2 },
                default: 0,
                names: color::cdpc::FROM,
            },
            Param {
                name: "weigh",
                summary: "give arrays the colors of page coloring or bin hopping where their loops are predicted to gain nothing by \
                          hints; no: the paper's order for all",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 1,
                names: color::cdpc::WEIGH,
            },
            Param {
                name: "rest",
                summary: "colors for pages without a hint",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 0,
                names: color::cdpc::REST,
            },
        ],
        build: color::cdpc::build,
    },
    Entry {
        name: "slots",
        kind: Kind::Color,
        summary: "data sets get the colors of their cache slots, as the program or a plan says; the rest random colors",
        source: "Ding11, section 3",
        params: &[
            Param {
                name: "seed",
                summary: "seed of the generator for pages that are in no data set",
                unit: "",
                range: ANY,
                default: 1,
                names: &[],
            },
            Param {
                name: "rest",
                summary: "colors for pages that are in no data set: any, or all but those of private slots",
                unit: "",
                range: Range { least: 0, most: 1 },
                default: 0,
                names: color::slots::REST,
            },
        ],
        build: color::slots::build,
    },
    Entry {
        name: "first-touch",
        kind: Kind::Home,
        summary: "a page lives on the node of the cpu that touches it first",
        source: "Verghese96, section 6",
        params: &[],
        build: homes::first_touch::build,
    },
    Entry {
        name: "round-robin",
        kind: Kind::Home,
        summary: "the nodes in turn, in the order of page faults",
        source: "Verghese96, section 6",
        params: &[Param {
            name: "start",
            summary: "node of the first page touched",
            unit: "nodes",
            range: ANY,
            default: 0,
            names: &[],
        }],
        build: homes::round_robin::build,
    },
    Entry {
        name: "order",
        kind: Kind::Order,
        summary: "marked work items with hints in the same block of memory run one after another",
        source: "Philbin96, sections 2 and 3",
        params: ORDER,
        build: work::build,
    },
];

const ORDER: &[Param] = &[
    Param {
        name: "block",
        summary: "side of a block along each hint's dimension; 0: together they fill the last cache, or the TLB's reach",
        unit: "bytes",
        range: ANY,
        default: 0,
        names: &[],
    },
    Param {
        name: "hints",
        summary: "how many of an item's hints count, the first ones; 0: all",
        unit: "hints",
        range: Range {
            least: 0,
            most: HINTS_MAX as u64,
        },
        default: 0,
        names: &[],
    },
    Param {
        name: "fold",
        summary: "1: the same hints in another order are the same block",
        unit: "",
        range: Range { least: 0, most: 1 },
        default: 0,
        names: &[],
    },
    Param {
        name: "tour",
        summary: "in which order bins run",
        unit: "",
        range: Range {
            least: 0,
            most: work::TOURS.len() as u64 - 1,
        },
        default: 0,
        names: work::TOURS,
    },
    Param {
        name: "workers",
        summary: "workers among which the tour is dealt, each on a cpu of its own; 0: as many as cpus",
        unit: "workers",
        range: Range {
            least: 0,
            most: u32::MAX as u64,
        },
        default: 1,
        names: &[],
    },
    Param {
        name: "gap",
        summary: "references between two items beyond which the second begins a new run; 0: 256, or 1024 with fetches",
        unit: "references",
        range: ANY,
        default: 0,
        names: &[],
    },
];

/// All policies, in the order in which they are listed to people.
pub fn registry() -> &'static [Entry] {
    REGISTRY
}

/// The entry of a name that stands for one policy (not a combination).
pub fn entry(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}

/// What is wrong with a policy's name or its parameters.
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

/// The parameters of one policy: what was set, over the defaults.
pub struct Settings {
    values: BTreeMap<&'static str, u64>,
}

impl Settings {
    /// A parameter that the policy's entry declares.
    pub(crate) fn integer(&self, name: &str) -> u64 {
        *self
            .values
            .get(name)
            .expect("a policy reads only parameters that its entry declares")
    }
}

/// Builds the policy that a name stands for: one policy, or a combination with `+`.
///
/// `sets` are texts of the form `policy.parameter=value`; those that name a policy outside the
/// combination are passed over (they may be meant for another policy of the same run), but a
/// name that no policy has is an error. What no part decides falls to the defaults: homes by
/// first touch, colors by page coloring.
pub fn build(name: &str, sets: &[String]) -> Result<Box<dyn Policy>, PolicyError> {
    let mut entries = Vec::new();
    for part in name.split('+') {
        let entry = entry(part).ok_or_else(|| PolicyError::Unknown {
            name: part.to_string(),
            known: join(REGISTRY.iter().map(|e| e.name)),
        })?;
        if entries.iter().any(|other: &&Entry| other.kind == entry.kind) {
            let what = match entry.kind {
                Kind::Color => "a page's color",
                Kind::Home => "a page's home",
                Kind::Order => "the order of work",
            };
            return Err(PolicyError::SameKind {
                name: name.to_string(),
                what,
            });
        }
        entries.push(entry);
    }
    for (kind, default) in [(Kind::Home, "first-touch"), (Kind::Color, "page-coloring")] {
        if !entries.iter().any(|entry| entry.kind == kind) {
            entries.extend(entry(default));
        }
    }
    let parts = entries
        .iter()
        .map(|entry| (entry.build)(&settings(entry, sets)?))
        .collect::<Result<Vec<_>, _>>()?;
    check_names(sets)?;
    Ok(Box::new(Combined::new(parts)))
}

fn settings(entry: &Entry, sets: &[String]) -> Result<Settings, PolicyError> {
    let mut values: BTreeMap<_, _> = entry.params.iter().map(|param| (param.name, param.default)).collect();
    for text in sets {
        let (policy, name, value) = split(text)?;
        if policy != entry.name {
            continue;
        }
        let param = entry
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
        values.insert(param.name, number(policy, param, value)?);
    }
    Ok(Settings { values })
}

/// The number that a parameter's text stands for.
fn number(policy: &str, param: &Param, value: &str) -> Result<u64, PolicyError> {
    let Range { least, most } = param.range;
    let named = param.names.iter().position(|known| *known == value);
    let number = named.map(|at| at as u64).or_else(|| value.parse().ok());
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

/// The parameters of policy `order`, where the name has it as a part; `sets` as in [`build`].
pub fn work_order(name: &str, sets: &[String]) -> Result<Option<WorkOrder>, PolicyError> {
    let order = name
        .split('+')
        .filter_map(entry)
        .find(|entry| entry.kind == Kind::Order);
    order
        .map(|entry| Ok(WorkOrder::new(&settings(entry, sets)?)))
        .transpose()
}

fn check_names(sets: &[String]) -> Result<(), PolicyError> {
    for text in sets {
        let (policy, _, _) = split(text)?;
        if entry(policy).is_none() {
            let known = join(REGISTRY.iter().map(|e| e.name));
            return Err(PolicyError::Unknown {
                name: policy.to_string(),
                known,
            });
        }
    }
    Ok(())
}

fn split(text: &str) -> Result<(&str, &str, &str), PolicyError> {
    let form = || PolicyError::Form { text: text.to_string() };
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    let (policy, param) = name.split_once('.').ok_or_else(form)?;
    Ok((policy, param, value))
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
