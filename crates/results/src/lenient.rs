//! Nanoseconds as results had them before they had a schema: `1200.0`.

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(u64),
    Float(f64),
}

impl Number {
    /// Rounded; what is below 0, or no number, is 0.
    fn whole(self) -> u64 {
        match self {
            Number::Whole(whole) => whole,
            Number::Float(float) => float.round() as u64,
        }
    }
}

pub fn ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Number::deserialize(deserializer)?.whole())
}

pub fn maybe_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(Number::whole))
}

pub fn named_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, u64)>, D::Error> {
    let named: Vec<(String, Number)> = Vec::deserialize(deserializer)?;
    Ok(named.into_iter().map(|(name, number)| (name, number.whole())).collect())
}
