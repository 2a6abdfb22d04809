//! Changes of a program's data, or of its work, that are simulated without changing the program.
//!
//! A change is written as JSON, tagged by `kind`, or on one line as a person types it:
//! `KIND,KEY=VALUE,...,data=NAME`. The name comes last and is taken as it is, because names of data have commas.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A change of the program in simulation. `data` is a name as reports show it: a static variable (`grid`), an
/// allocation site (`heap: main (mm.c:12)`: all its blocks), a declared array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProgramChange {
    /// Rows of `row_bytes` are followed by `pad_bytes` of padding.
    Pad {
        data: String,
        row_bytes: u64,
        pad_bytes: u64,
    },
    /// A matrix of rows of `columns` elements is stored column by column.
    Transpose {
        data: String,
        element_bytes: u64,
        columns: u64,
    },
    /// Arrays that are used at one index become one array of elements with a part of each: the inverse of `Fields`.
    /// They lie one after the other in `data`, `part_bytes` each, or they are `data` and those that `with` names; a
    /// name that occurs several times stands for as many blocks, one after the other.
    Interleave {
        data: String,
        element_bytes: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part_bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        with: Vec<String>,
    },
    /// Of each element, every group of fields goes to its own array; bytes that no group names make a last one. A
    /// single group reorders the fields, or leaves out unused ones.
    Fields {
        data: String,
        element_bytes: u64,
        groups: Vec<Vec<Field>>,
    },
    /// The data begins this many bytes later; of several blocks the second twice as many, the third three times.
    Shift { data: String, bytes: u64 },
    /// Each element begins at a line of its own.
    Separate { data: String, element_bytes: u64 },
    /// The work is done block by block, by blocks of `bytes` of the data: another order of the references, as if the
    /// work on different blocks were independent.
    Tile { data: String, bytes: u64 },
    /// The loops around the line `line` (`file.c:12`), which walk over the data, are interchanged: in each sweep over
    /// the data the iterations run in the order of the addresses, as if they were independent.
    Interchange { data: String, line: String },
    /// The loads of the line `line` follow this many chains in turn: each link waits for the load that is `chains`
    /// loads before it.
    Chains { data: String, line: String, chains: u64 },
    /// A prefetch instruction requests the loads of the line `line` `ahead` of them earlier.
    Prefetch { data: String, line: String, ahead: u64 },
    /// The TLB has one entry for each 2 MiB; absent `data`: for all data.
    HugePages {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<String>,
    },
}

/// Bytes of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub offset: u64,
    pub bytes: u64,
}

/// Why a text is no change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAChange(String);

impl ProgramChange {
    /// The data that it is about; `None`: all data.
    pub fn data(&self) -> Option<&str> {
        match self {
            ProgramChange::Pad { data, .. }
            | ProgramChange::Transpose { data, .. }
            | ProgramChange::Fields { data, .. }
            | ProgramChange::Shift { data, .. }
            | ProgramChange::Separate { data, .. }
            | ProgramChange::Interchange { data, .. }
            | ProgramChange::Chains { data, .. }
            | ProgramChange::Prefetch { data, .. }
            | ProgramChange::Interleave { data, .. }
            | ProgramChange::Tile { data, .. } => Some(data),
            ProgramChange::HugePages { data } => data.as_deref(),
        }
    }

    /// For people.
    pub fn in_words(&self) -> String {
        match self {
            ProgramChange::Pad {
                data,
                row_bytes,
                pad_bytes,
            } => format!(
                "{data}: rows of {row_bytes} bytes padded to {}",
                row_bytes.saturating_add(*pad_bytes)
            ),
            ProgramChange::Transpose {
                data,
                element_bytes,
                columns,
            } => format!("{data}: rows of {columns} elements of {element_bytes} bytes stored column by column"),
            ProgramChange::Fields {
                data,
                element_bytes,
                groups,
            } => match &groups[..] {
                [one] => format!(
                    "{data}: fields of elements of {element_bytes} bytes in the order {}",
                    fields(one)
                ),
                _ => {
                    let groups: Vec<String> = groups.iter().map(|group| fields(group)).collect();
                    format!(
                        "{data}: elements of {element_bytes} bytes split into arrays of {}",
                        groups.join(", of ")
                    )
                }
            },
            ProgramChange::Shift { data, bytes } => format!("{data}: begins {bytes} bytes later"),
            ProgramChange::Separate { data, element_bytes } => {
                format!("{data}: each element of {element_bytes} bytes on lines of its own")
            }
            ProgramChange::Tile { data, bytes } => format!("{data}: work in the order of its blocks of {bytes} bytes"),
            ProgramChange::Interleave {
                data,
                element_bytes,
                part_bytes: Some(part_bytes),
                ..
            } => format!("{data}: its arrays of {part_bytes} bytes interleaved by {element_bytes} bytes"),
            ProgramChange::Interleave {
                data,
                element_bytes,
                with,
                ..
            } => format!("{}: interleaved by {element_bytes} bytes", joined(data, with)),
            ProgramChange::Interchange { data, line } => format!("{data}: loops around {line} interchanged"),
            ProgramChange::Chains { data, line, chains } => format!("{data}: {chains} chains at a time at {line}"),
            ProgramChange::Prefetch { data, line, ahead } => {
                format!("{data}: prefetched {ahead} loads ahead at {line}")
            }
            ProgramChange::HugePages { data: Some(data) } => format!("{data}: on huge pages"),
            ProgramChange::HugePages { data: None } => "all data on huge pages".to_string(),
        }
    }
}

/// Between the names of several arrays.
const AND: &str = " + ";

fn joined(data: &str, with: &[String]) -> String {
    with.iter().fold(data.to_string(), |all, name| all + AND + name)
}

/// `offset:bytes`, joined by `+`: as they are typed.
fn fields(group: &[Field]) -> String {
    let fields: Vec<String> = group.iter().map(Field::to_string).collect();
    fields.join("+")
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.offset, self.bytes)
    }
}

/// As it is typed.
impl fmt::Display for ProgramChange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ProgramChange::Pad {
                row_bytes, pad_bytes, ..
            } => write!(f, "pad,row_bytes={row_bytes},pad_bytes={pad_bytes}"),
            ProgramChange::Transpose {
                element_bytes, columns, ..
            } => write!(f, "transpose,element_bytes={element_bytes},columns={columns}"),
            ProgramChange::Fields {
                element_bytes, groups, ..
            } => {
                let groups: Vec<String> = groups.iter().map(|group| fields(group)).collect();
                write!(f, "fields,element_bytes={element_bytes},groups={}", groups.join("/"))
            }
            ProgramChange::Shift { bytes, .. } => write!(f, "shift,bytes={bytes}"),
            ProgramChange::Separate { element_bytes, .. } => write!(f, "separate,element_bytes={element_bytes}"),
            ProgramChange::Tile { bytes, .. } => write!(f, "tile,bytes={bytes}"),
            ProgramChange::Interleave {
                element_bytes,
                part_bytes: Some(part_bytes),
                ..
            } => write!(f, "interleave,element_bytes={element_bytes},part_bytes={part_bytes}"),
            ProgramChange::Interleave {
                data,
                element_bytes,
                with,
                ..
            } => {
                let data = joined(data, with);
                return write!(f, "interleave,element_bytes={element_bytes},data={data}");
            }
            ProgramChange::Interchange { line, .. } => write!(f, "interchange,line={line}"),
            ProgramChange::Chains { line, chains, .. } => write!(f, "chains,line={line},chains={chains}"),
            ProgramChange::Prefetch { line, ahead, .. } => write!(f, "prefetch,line={line},ahead={ahead}"),
            ProgramChange::HugePages { .. } => write!(f, "huge-pages"),
        }?;
        match self.data() {
            Some(data) => write!(f, ",data={data}"),
            None => Ok(()),
        }
    }
}

impl FromStr for ProgramChange {
    type Err = NotAChange;

    fn from_str(text: &str) -> Result<Self, NotAChange> {
        let text = text.trim();
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| NotAChange(error.to_string()));
        }
        let (kind, mut rest) = text.split_once(',').unwrap_or((text, ""));
        let mut object = Map::new();
        object.insert("kind".to_string(), kind.trim().into());
        while !rest.is_empty() {
            let Some((key, after)) = rest.split_once('=') else {
                return Err(NotAChange(format!("`{rest}` is no KEY=VALUE")));
            };
            let key = key.trim();
            let (value, after) = match key {
                "data" => (after, ""),
                _ => after.split_once(',').unwrap_or((after, "")),
            };
            let value = match key {
                "data" => value.into(),
                "line" => value.trim().into(),
                "groups" => groups(value)?,
                _ => number(key, value)?.into(),
            };
            if object.insert(key.to_string(), value).is_some() {
                return Err(NotAChange(format!("`{key}` is there twice")));
            }
            rest = after;
        }
        if kind.trim() == "interleave" && !object.contains_key("part_bytes") {
            let data = object.get("data").and_then(Value::as_str).unwrap_or_default();
            let mut names = data.split(AND).map(|name| Value::from(name.trim()));
            let (first, with) = (names.next(), names.collect::<Vec<_>>());
            if let (Some(first), false) = (first, with.is_empty()) {
                object.insert("data".to_string(), first);
                object.insert("with".to_string(), with.into());
            }
        }
        serde_json::from_value(Value::Object(object)).map_err(|error| {
            NotAChange(format!(
                "{error}; `domicile simulate --help` says what each change takes"
            ))
        })
    }
}

/// `0:8+16:4/8:8`: two groups.
fn groups(text: &str) -> Result<Value, NotAChange> {
    let field = |text: &str| {
        let Some((offset, bytes)) = text.split_once(':') else {
            return Err(NotAChange(format!(
                "`{text}` is no field of an element: write OFFSET:BYTES, fields of a group joined by `+`, groups by `/`"
            )));
        };
        let mut field = Map::new();
        field.insert("offset".to_string(), number("offset", offset)?.into());
        field.insert("bytes".to_string(), number("bytes", bytes)?.into());
        Ok(Value::Object(field))
    };
    let group = |text: &str| {
        text.split('+')
            .map(field)
            .collect::<Result<Vec<_>, _>>()
            .map(Value::Array)
    };
    let groups: Vec<Value> = text.split('/').map(group).collect::<Result<_, _>>()?;
    Ok(Value::Array(groups))
}

fn number(key: &str, text: &str) -> Result<u64, NotAChange> {
    let text = text.trim();
    let read = match key {
        "columns" | "chains" | "ahead" => crate::quantities::count(text),
        _ => crate::quantities::bytes(text),
    };
    read.map_err(|wrong| NotAChange(format!("`{key}={text}`: {wrong}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_kind() -> Vec<ProgramChange> {
        let data = || "heap: std::map<int, int> (a.cpp:3)".to_string();
        vec![
            ProgramChange::Pad {
                data: data(),
                row_bytes: 4096,
                pad_bytes: 64,
            },
            ProgramChange::Transpose {
                data: data(),
                element_bytes: 8,
                columns: 512,
            },
            ProgramChange::Fields {
                data: data(),
                element_bytes: 64,
                groups: vec![
                    vec![Field { offset: 0, bytes: 8 }, Field { offset: 16, bytes: 4 }],
                    vec![Field { offset: 8, bytes: 8 }],
                ],
            },
            ProgramChange::Shift {
                data: data(),
                bytes: 64,
            },
            ProgramChange::Separate {
                data: data(),
                element_bytes: 8,
            },
            ProgramChange::Tile {
                data: data(),
                bytes: 65536,
            },
            ProgramChange::HugePages { data: Some(data()) },
            ProgramChange::HugePages { data: None },
            ProgramChange::Interleave {
                data: data(),
                element_bytes: 8,
                part_bytes: Some(1_600_000),
                with: Vec::new(),
            },
            ProgramChange::Interleave {
                data: data(),
                element_bytes: 8,
                part_bytes: None,
                with: vec!["y".to_string(), data()],
            },
            ProgramChange::Interchange {
                data: data(),
                line: "a.cpp:7".to_string(),
            },
            ProgramChange::Chains {
                data: data(),
                line: "a.cpp:7".to_string(),
                chains: 4,
            },
            ProgramChange::Prefetch {
                data: data(),
                line: "a.cpp:7".to_string(),
                ahead: 16,
            },
        ]
    }

    #[test]
    fn changes_are_read_as_they_are_written() {
        for change in every_kind() {
            assert_eq!(change.to_string().parse::<ProgramChange>().as_ref(), Ok(&change));
            let json = serde_json::to_string(&change).expect("it is written");
            assert_eq!(json.parse::<ProgramChange>().as_ref(), Ok(&change), "{json}");
        }
        assert_eq!(
            every_kind()[2].to_string(),
            "fields,element_bytes=64,groups=0:8+16:4/8:8,data=heap: std::map<int, int> (a.cpp:3)"
        );
        let json = serde_json::to_string(&every_kind()[7]).expect("it is written");
        assert_eq!(json, r#"{"kind":"huge-pages"}"#);
    }

    #[test]
    fn numbers_of_changes_have_units() {
        let read = |text: &str| text.parse::<ProgramChange>().expect("a change").to_string();
        assert_eq!(read("tile,bytes=1MiB,data=a"), "tile,bytes=1048576,data=a");
        assert_eq!(
            read("pad,row_bytes=4K,pad_bytes=64,data=a"),
            "pad,row_bytes=4096,pad_bytes=64,data=a"
        );
        // Columns are counted, bytes are not.
        let columns = read("transpose,element_bytes=8,columns=1K,data=a");
        assert_eq!(columns, "transpose,element_bytes=8,columns=1000,data=a");
    }

    #[test]
    fn what_is_no_change_is_refused_with_its_reason() {
        let reason = |text: &str| text.parse::<ProgramChange>().expect_err("no change").to_string();
        for (text, expected) in [
            ("stretch,data=a", "unknown variant `stretch`"),
            ("pad,row_bytes=8,data=a", "missing field `pad_bytes`"),
            ("pad,row_bytes=x,pad_bytes=1,data=a", "`row_bytes=x`"),
            ("shift,bytes=1,bits=2,data=a", "unknown field `bits`"),
            ("shift,bytes=1,bytes=2,data=a", "twice"),
            ("shift,bytes", "no KEY=VALUE"),
            ("fields,element_bytes=8,groups=4,data=a", "OFFSET:BYTES"),
        ] {
            assert!(reason(text).contains(expected), "{text}: {}", reason(text));
        }
    }
}
