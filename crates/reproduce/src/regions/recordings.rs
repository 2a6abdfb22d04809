//! How many recordings a number of this paper comes from, and where simulations are kept.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ReproduceError;
use crate::record::{hash_file, keep};
use crate::reproduce::Reproduction;
use crate::watch::Step;

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

    /// Simulates once for everything that the result depends on: this program, and `key`.
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

    /// A result that took minutes is not discarded because it cannot be kept.
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
