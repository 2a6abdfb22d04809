//! Nanoseconds as results had them before they had a schema: `1200.0`.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

/// Nanoseconds, rounded.
struct Ns(u64);

impl<'de> Deserialize<'de> for Ns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ns, D::Error> {
        deserializer.deserialize_any(NsVisitor)
    }
}

struct NsVisitor;

impl Visitor<'_> for NsVisitor {
    type Value = Ns;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("nanoseconds, 0 or more")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Ns, E> {
        Ok(Ns(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Ns, E> {
        let whole = u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self));
        whole.map(Ns)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Ns, E> {
        match number >= 0.0 {
            true => Ok(Ns(number.round() as u64)),
            false => Err(E::invalid_value(Unexpected::Float(number), &self)),
        }
    }
}

pub fn ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Ns::deserialize(deserializer)?.0)
}

pub fn maybe_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Ns>::deserialize(deserializer)?.map(|ns| ns.0))
}

pub fn named_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, u64)>, D::Error> {
    let named: Vec<(String, Ns)> = Vec::deserialize(deserializer)?;
    Ok(named.into_iter().map(|(name, ns)| (name, ns.0)).collect())
}
