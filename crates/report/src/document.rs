//! Results that were saved, read back.

use serde_json::Value;

use crate::advice::Advice;
use crate::outcome::Outcome;

/// A saved result: what `advise --json` or `simulate --json` printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Document {
    Advice(Box<Advice>),
    Outcomes(Vec<Outcome>),
}

/// Why a text is not a result.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("line {line}: not valid JSON: {source}")]
    Json { line: usize, source: serde_json::Error },
    #[error("{what}: {source}")]
    Shape {
        what: &'static str,
        source: serde_json::Error,
    },
    #[error(
        "neither an advice (an object with `policies` and `where`) nor the outcomes of a simulation \
         (objects with `policy` and `time_ns`)"
    )]
    Other,
}

impl Document {
    /// Reads one JSON object, or one a line.
    pub fn parse(text: &str) -> Result<Document, Unreadable> {
        let mut values = Vec::new();
        for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            values.push(value.map_err(|source| Unreadable::Json {
                line: source.line(),
                source,
            })?);
        }
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

    /// For terminals, in at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        match self {
            Document::Advice(advice) => crate::advice(advice, width),
            Document::Outcomes(outcomes) => crate::outcomes(outcomes, width),
        }
    }

    /// As one HTML page.
    pub fn page(&self) -> String {
        match self {
            Document::Advice(advice) => crate::advice_page(advice),
            Document::Outcomes(outcomes) => crate::outcomes_page(outcomes),
        }
    }
}
