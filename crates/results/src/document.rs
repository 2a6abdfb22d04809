//! Results that were saved, read back.

use serde_json::Value;

use crate::advice::Advice;
use crate::comparison::Comparison;
use crate::outcome::Outcome;
use crate::saved::{SCHEMA, Version};

/// A saved result: what `advise --json`, `simulate --json` or `compare --json` printed.
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
    #[error("{what}: {source}")]
    Shape {
        what: &'static str,
        source: serde_json::Error,
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
        values.push(value);
    }
    Ok(values)
}

/// The version of a result's schema; what does not say is of version 0.
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
            let advice = serde_json::from_value(values.swap_remove(0)).map_err(|source| Unreadable::Shape {
                what: "this advice has a field of an unexpected kind",
                source,
            })?;
            return Ok(Document::Advice(advice));
        }
        if let [comparison] = values.as_slice()
            && ["before", "after", "time"]
                .iter()
                .all(|part| comparison.get(part).is_some_and(Value::is_object))
        {
            let comparison = serde_json::from_value(values.swap_remove(0)).map_err(|source| Unreadable::Shape {
                what: "this comparison has a field of an unexpected kind",
                source,
            })?;
            return Ok(Document::Comparison(comparison));
        }
        let run = |value: &Value| value.get("policy").is_some_and(Value::is_string) && value.get("time_ns").is_some();
        if values.is_empty() || !values.iter().all(run) {
            return Err(Unreadable::Other);
        }
        let outcomes = values.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
        let outcomes = outcomes.map_err(|source| Unreadable::Shape {
            what: "this outcome has a field of an unexpected kind",
            source,
        })?;
        Ok(Document::Outcomes(outcomes))
    }
}
