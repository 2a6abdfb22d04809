//! Numbers of several recordings of the same program.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ReproduceError;
use crate::record::{hash_file, keep};
use crate::reproduce::Reproduction;
use crate::watch::Step;

/// A number of each recording, or why it has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Several(pub Vec<Result<f64, String>>);

impl Several {
    fn values(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().filter_map(|value| value.clone().ok()).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The lower of the two in the middle; the reason where more than half have none.
    pub fn median(&self) -> Result<f64, String> {
        let values = self.values();
        if values.len() * 2 <= self.0.len() {
            let reason = self.0.iter().find_map(|value| value.clone().err());
            return Err(reason.unwrap_or_else(|| "there is no recording".to_string()));
        }
        Ok(values[(values.len() - 1) / 2])
    }

    /// The least and the most, in words, where they differ.
    pub fn spread(&self) -> Option<String> {
        let (least, most) = self.range()?;
        let words = format!("{} recordings: {} to {}", self.0.len(), short(least), short(most));
        (short(least) != short(most)).then_some(words)
    }

    pub fn range(&self) -> Option<(f64, f64)> {
        let values = self.values();
        Some((*values.first()?, *values.last()?))
    }
}

/// A number in three digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

impl Reproduction<'_> {
    /// How many recordings a number is the median of.
    pub(super) fn recordings(&self) -> u64 {
        self.options.rounds.unwrap_or(if self.options.full { 9 } else { 3 }) as u64
    }

    /// The same in words.
    pub(super) fn recordings_in_words(&self) -> String {
        match self.recordings() {
            1 => "numbers are of one recording".to_string(),
            many => format!(
                "numbers are medians of {many} recordings, which lie elsewhere, begin later and read in another order"
            ),
        }
    }

    /// What is simulated once for all that it depends on: this program, and `key`.
    pub(super) fn kept<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        simulate: impl FnOnce() -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        let keeping = &self.options.keeping;
        let mut hasher = DefaultHasher::new();
        if let Ok(own) = std::env::current_exe() {
            hash_file(&own, &mut hasher)?;
        }
        hasher.write(key.as_bytes());
        let path = keeping.folder.join(format!("lee12-{:016x}.json", hasher.finish()));
        let found = std::fs::read(&path).ok().filter(|_| !keeping.afresh);
        if let Some(known) = found.and_then(|text| serde_json::from_slice(&text).ok()) {
            return Ok(known);
        }
        let value = simulate()?;
        self.remember(&keeping.folder, &path, &value);
        Ok(value)
    }

    /// What took minutes is not thrown away because it cannot be kept.
    fn remember(&self, folder: &Path, path: &Path, value: &impl Serialize) {
        let kept = std::fs::create_dir_all(folder).and_then(|()| keep(path, value));
        if let Err(error) = kept {
            let why = format!("cannot keep it in {}: {error}", path.display());
            (self.watch)(Step::Unkept {
                what: "lee12",
                why: &why,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_of_those_that_have_a_number() {
        let none = || Err("nothing".to_string());
        assert_eq!(Several(vec![Ok(3.0), Ok(1.0), Ok(2.0)]).median(), Ok(2.0));
        assert_eq!(Several(vec![Ok(3.0), Ok(1.0), none()]).median(), Ok(1.0));
        assert_eq!(
            Several(vec![Ok(3.0), none(), none()]).median(),
            Err("nothing".to_string())
        );
        let spread = Several(vec![Ok(30.0), Ok(1.0), Ok(2.0)]).spread();
        assert_eq!(spread.as_deref(), Some("3 recordings: 1.00 to 30.0"));
        assert_eq!(Several(vec![Ok(1.0), Ok(1.001)]).spread(), None);
        assert_eq!(Several::default().range(), None);
    }
}
