//! Results that were saved, read back.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::advice::Advice;
use crate::comparison::Comparison;
use crate::outcome::Outcome;
use crate::saved::{SCHEMA, Version};

/// A saved result: the output of `advise --json`, `simulate --json` or `compare --json`.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Advice(Box<Advice>),
    Outcomes(Vec<Outcome>),
    Comparison(Box<Comparison>),
}

/// Why a text is not a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    #[error("line {line}: not valid JSON: {source}")]
    Json { line: usize, source: serde_json::Error },
    #[error("this {what} is damaged, or no version of domicile wrote it: `{field}`: {source}")]
    Shape {
        what: &'static str,
        /// The place in it: `policies[0].time_ns.busy`.
        field: String,
        source: serde_json::Error,
    },
    #[error("this result is damaged: `{field}` is {number}, and no number of a result is beyond 2^53")]
    Large { field: String, number: String },
    #[error("this result is damaged: `{field}` is {number}, and {rule}")]
    Beyond {
        field: String,
        number: String,
        /// The rule that such a number obeys.
        rule: &'static str,
    },
    #[error(
        "it was written by {tool} in schema {found}, and this version reads schemas up to {}: read it with that version or a newer one",
        SCHEMA.major
    )]
    Newer { found: Version, tool: String },
    #[error("its schema is {0}, which is no version such as {SCHEMA}")]
    Schema(Value),
    #[error(
        "neither an advice (an object with `policies` and `where`), nor the outcomes of a simulation \
         (objects with `policy` and `time_ns`), nor a comparison (an object with `before`, `after` and `time`)"
    )]
    Other,
}

/// The JSON objects of a saved result, as they are, if this version can read their schema.
pub fn values(text: &str) -> Result<Vec<Value>, Unreadable> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        let value = value.map_err(|source| Unreadable::Json {
            line: source.line(),
            source,
        })?;
        let found = version(&value)?;
        if found.major > SCHEMA.major {
            let tool = value.get("tool").and_then(Value::as_str);
            return Err(Unreadable::Newer {
                found,
                tool: tool.unwrap_or("another version of domicile").to_string(),
            });
        }
        countable(&value, &mut String::new())?;
        values.push(value);
    }
    Ok(values)
}

/// Fields that may hold any number: addresses, and numbers of pages and of lines of memory.
const ADDRESSES: [&str; 4] = ["address", "line", "page", "start"];

/// Parts of a whole, with the error of a sum.
const SHARES: RangeInclusive<f64> = 0.0..=1.000_001;
const PERCENTAGES: RangeInclusive<f64> = 0.0..=100.000_1;
/// The share of the time that a change can save; it may cost any.
const GAINS: RangeInclusive<f64> = f64::MIN..=*SHARES.end();

/// The rule that a field breaks by its name and its number, or by its two numbers.
fn beyond(name: &str, field: &Value) -> Option<&'static str> {
    let outside = |bounds: &RangeInclusive<f64>| field.as_f64().is_some_and(|number| !bounds.contains(&number));
    match name {
        "gain" | "later_gain" => outside(&GAINS).then_some("nothing saves more than all of the time, which is 1"),
        "local_percent" => outside(&PERCENTAGES).then_some("percentages lie between 0 and 100"),
        "range" | "gain_varied" => {
            let ends: Vec<f64> = field.as_array()?.iter().filter_map(Value::as_f64).collect();
            let wrong = ends.iter().any(|end| !GAINS.contains(end)) || !ends.is_sorted();
            wrong.then_some("a range is the least and the most that is saved of the time, which is 1")
        }
        _ => {
            let is_share = name == "share" || name == "fraction" || name.ends_with("_share");
            (is_share && outside(&SHARES)).then_some("shares lie between 0 and 1")
        }
    }
}

/// Counts and nanoseconds of real runs stay far below: sums of larger ones would overflow.
fn countable(value: &Value, at: &mut String) -> Result<(), Unreadable> {
    const MOST: u64 = 1 << 53;
    let length = at.len();
    match value {
        Value::Number(number) => {
            let large = number.as_u64().is_some_and(|number| number > MOST)
                || number.as_i64().is_some_and(|number| number.unsigned_abs() > MOST)
                || number.as_f64().is_some_and(|number| number.abs() > MOST as f64);
            if large {
                return Err(Unreadable::Large {
                    field: at.clone(),
                    number: number.to_string(),
                });
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                *at += &format!("[{index}]");
                countable(item, at)?;
                at.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| !ADDRESSES.contains(&name.as_str())) {
                if length > 0 {
                    at.push('.');
                }
                *at += name;
                countable(field, at)?;
                if let Some(rule) = beyond(name, field) {
                    return Err(Unreadable::Beyond {
                        field: at.clone(),
                        number: field.to_string(),
                        rule,
                    });
                }
                at.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
    Ok(())
}

/// A value of its type, or which of its fields is not.
fn typed<T: DeserializeOwned>(value: Value, what: &'static str) -> Result<T, Unreadable> {
    serde_path_to_error::deserialize(value).map_err(|error| Unreadable::Shape {
        what,
        field: error.path().to_string(),
        source: error.into_inner(),
    })
}

/// The version of a result's schema; a result without one is of version 0.
fn version(value: &Value) -> Result<Version, Unreadable> {
    let Some(schema) = value.get("schema") else {
        return Ok(Version::default());
    };
    let version = schema.as_str().and_then(|text| text.parse().ok());
    version.ok_or_else(|| Unreadable::Schema(schema.clone()))
}

impl Document {
    /// Reads one JSON object, or one a line.
    pub fn parse(text: &str) -> Result<Document, Unreadable> {
        let mut values = values(text)?;
        if let [advice] = values.as_slice()
            && advice.get("policies").is_some_and(Value::is_array)
            && advice.get("where").is_some_and(Value::is_array)
        {
            let advice = typed(values.swap_remove(0), "advice")?;
            return Ok(Document::Advice(advice));
        }
        if let [comparison] = values.as_slice()
            && ["before", "after", "time"]
                .iter()
                .all(|part| comparison.get(part).is_some_and(Value::is_object))
        {
            let comparison = typed(values.swap_remove(0), "comparison")?;
            return Ok(Document::Comparison(comparison));
        }
        let run = |value: &Value| value.get("policy").is_some_and(Value::is_string) && value.get("time_ns").is_some();
        if values.is_empty() || !values.iter().all(run) {
            return Err(Unreadable::Other);
        }
        let outcomes = values.into_iter().map(|value| typed(value, "outcome"));
        let outcomes = outcomes.collect::<Result<_, _>>()?;
        Ok(Document::Outcomes(outcomes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Document::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn what_is_damaged_is_named() {
        let outcome = |time: &str| format!("{{\"policy\": \"a\", \"time_ns\": {time}}}");
        Document::parse(&outcome("{\"busy\": 1200.4}")).unwrap();
        for (text, named) in [
            (outcome("{\"busy\": -1}"), "`time_ns.busy`: invalid value: integer `-1`"),
            (outcome("{\"busy\": -0.5}"), "`time_ns.busy`"),
            (outcome("{\"busy\": 1e300}"), "`time_ns.busy` is 1e+300"),
            (outcome("{\"busy\": \"long\"}"), "expected nanoseconds, 0 or more"),
            (
                outcome("{\"busy\": 9223372036854775808}"),
                "`time_ns.busy` is 9223372036854775808",
            ),
            (
                outcome("{\"busy\": 0}, \"caches\": [{\"misses\": 1e300}]"),
                "`caches[0].misses` is 1e+300",
            ),
            (
                outcome("{\"busy\": 0}, \"profile\": {\"samples\": 1, \"frames\": []}"),
                "`profile`: missing field `stacks`",
            ),
            (
                "{\"policies\": [{\"tlb\": 1}], \"where\": []}".to_string(),
                "`policies[0].tlb`",
            ),
            (
                outcome("{\"busy\": 0}, \"memory\": {\"local_percent\": 900.0}"),
                "`memory.local_percent` is 900.0, and percentages lie between 0 and 100",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(named), "{error}");
            assert!(!error.contains("untagged"), "{error}");
        }
    }

    #[test]
    fn gains_beyond_their_bounds_are_named() {
        let advice = |more: &str| format!("{{\"policies\": [], \"where\": [], {more}}}");
        for fine in [
            "\"todo\": [{\"gain\": 1.0, \"range\": [-0.5, 1.0]}]",
            "\"sharing\": {\"placements\": [{\"gain\": -7.5}]}",
        ] {
            Document::parse(&advice(fine)).unwrap();
        }
        for (more, named) in [
            (
                "\"todo\": [{\"gain\": 1.5}]",
                "`todo[0].gain` is 1.5, and nothing saves",
            ),
            ("\"slots\": {\"gain\": 7}", "`slots.gain` is 7"),
            (
                "\"homes\": {\"remedies\": [{\"later_gain\": 2}]}",
                "`homes.remedies[0].later_gain`",
            ),
            (
                "\"todo\": [{\"range\": [0.1, 40.0]}]",
                "`todo[0].range` is [0.1,40.0], and a range",
            ),
            ("\"todo\": [{\"range\": [0.5, 0.1]}]", "`todo[0].range` is [0.5,0.1]"),
            ("\"homes\": {\"local_percent\": -1}", "`homes.local_percent` is -1"),
        ] {
            let error = refused(&advice(more));
            assert!(error.contains(named), "{error}");
        }
    }
}
