//! The file of a sweep's results: Parquet, whole at any moment.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use profiles::Columns;
use serde::{Deserialize, Serialize};

use crate::error::SweepError;
use crate::row::Row;
use crate::spec::Spec;

/// The key that says which sweep a file belongs to.
const OF: &str = "domicile.sweep";
/// Rows are written again after this, and never take more than a tenth of the time.
const SAVE_AFTER: Duration = Duration::from_secs(1);

/// The rows so far. Parquet has an index at its end, so that nothing can be appended: each time all rows are written to another file,
/// which then takes the name.
pub struct Rows {
    path: PathBuf,
    of: Identity,
    rows: Vec<Row>,
    saved: Instant,
    took: Duration,
    is_saved: bool,
}

impl Rows {
    /// The rows in a file, or none where there is no file.
    ///
    /// Errors: the file is no result of a sweep, or of another one.
    pub fn open(path: &Path, spec: &Spec) -> Result<Rows, SweepError> {
        let of = Identity::of(spec);
        let mut rows = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(file_error(path, error)),
            Ok(file) => read(file, &of, path)?,
        };
        // The cause of its error may be gone by now.
        rows.retain(|row| row.error.is_none());
        Ok(Rows {
            path: path.to_path_buf(),
            of,
            rows,
            saved: Instant::now(),
            took: Duration::ZERO,
            is_saved: true,
        })
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The keys of all points that are done.
    pub fn keys(&self) -> HashSet<String> {
        self.rows.iter().map(|row| row.key.clone()).collect()
    }

    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
        self.is_saved = false;
    }

    /// Writes the file where that is due.
    pub fn save_now_and_then(&mut self) -> Result<(), SweepError> {
        match self.saved.elapsed() >= SAVE_AFTER.max(10 * self.took) {
            true => self.save(),
            false => Ok(()),
        }
    }

    /// Writes all rows, in the order of their points.
    pub fn save(&mut self) -> Result<(), SweepError> {
        if self.is_saved && self.path.exists() {
            return Ok(());
        }
        let begun = Instant::now();
        self.rows.sort_by_key(|row| row.number);
        let beside = self.path.with_extension("parquet.new");
        let written = std::fs::write(&beside, self.bytes()).and_then(|()| std::fs::rename(&beside, &self.path));
        written.map_err(|error| file_error(&self.path, error))?;
        (self.saved, self.took, self.is_saved) = (Instant::now(), begun.elapsed(), true);
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        let number = |number: Option<u64>| number.map(u64::cast_signed);
        Columns::of(&self.rows)
            .about(OF, &serde_json::to_string(&self.of).unwrap_or_default())
            .number("point", |row| row.number.cast_signed())
            .text("key", |row| row.key.clone())
            .text("trace", |row| row.trace.clone())
            .text("machine", |row| row.machine.clone())
            .maybe_number("cpus", |row| row.cpus.map(i64::from))
            .text("changes", |row| row.changes.clone())
            .number("seed", |row| row.seed.cast_signed())
            .text("policy", |row| row.policy.clone())
            .text("settings", |row| row.settings.clone())
            .maybe_text("error", |row| row.error.clone())
            .maybe_text("incomplete", |row| row.incomplete.clone())
            .maybe_number("time_ns", move |row| number(row.time_ns))
            .maybe_number("stall_ns", move |row| number(row.stall_ns))
            .maybe_number("overhead_ns", move |row| number(row.overhead_ns))
            .maybe_number("references", move |row| number(row.references))
            .maybe_number("misses", move |row| number(row.misses))
            .maybe_text("outcome", |row| row.outcome.clone())
            .file()
    }
}

/// The parts that have to be the same for a sweep to go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Identity {
    /// All that the specification says.
    spec: String,
    /// The length of each trace, and each machine; none if that is not there yet.
    traces: Vec<Option<u64>>,
    machines: Vec<Option<String>>,
}

impl Identity {
    fn of(spec: &Spec) -> Identity {
        let bytes = |trace: &PathBuf| std::fs::metadata(spec.place_of(trace)).ok().map(|file| file.len());
        let described = |name: &String| {
            measured::load(&spec.machine(name))
                .ok()
                .map(|machine| machine.to_toml())
        };
        Identity {
            spec: spec.words(),
            traces: spec.traces.iter().map(bytes).collect(),
            machines: spec.machines.iter().map(described).collect(),
        }
    }

    /// The part that differs; none if a sweep can go on.
    fn differs(&self, other: &Identity) -> Option<&'static str> {
        fn same<T: PartialEq>(one: &[Option<T>], other: &[Option<T>]) -> bool {
            one.iter()
                .zip(other)
                .all(|(one, other)| one.is_none() || other.is_none() || one == other)
        }
        if self.spec != other.spec {
            return Some("another specification");
        }
        if !same(&self.traces, &other.traces) {
            return Some("a trace has another length");
        }
        (!same(&self.machines, &other.machines)).then_some("a machine is described otherwise")
    }
}

fn read(file: File, of: &Identity, path: &Path) -> Result<Vec<Row>, SweepError> {
    let damaged = |what: String| SweepError::Damaged {
        path: path.to_path_buf(),
        what,
    };
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(error.to_string()))?;
    let about = reader.metadata().file_metadata().key_value_metadata();
    let written = about.and_then(|pairs| pairs.iter().find(|pair| pair.key == OF));
    let written = written.and_then(|pair| serde_json::from_str::<Identity>(pair.value.as_deref()?).ok());
    let written = written.ok_or_else(|| damaged("it does not say of which sweep it is".to_string()))?;
    if let Some(what) = written.differs(of) {
        return Err(SweepError::OtherSweep {
            path: path.to_path_buf(),
            what: what.to_string(),
        });
    }
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(|error| damaged(error.to_string()))? {
        let mut found = Row::default();
        for (name, field) in row.map_err(|error| damaged(error.to_string()))?.get_column_iter() {
            found.take(name, field);
        }
        rows.push(found);
    }
    Ok(rows)
}

impl Row {
    /// Takes a field of a file.
    fn take(&mut self, name: &str, field: &Field) {
        let text = || match field {
            Field::Str(text) => Some(text.clone()),
            _ => None,
        };
        let number = || match field {
            Field::Long(number) => Some(number.cast_unsigned()),
            _ => None,
        };
        match name {
            "point" => self.number = number().unwrap_or_default(),
            "key" => self.key = text().unwrap_or_default(),
            "trace" => self.trace = text().unwrap_or_default(),
            "machine" => self.machine = text().unwrap_or_default(),
            "cpus" => self.cpus = number().and_then(|cpus| cpus.try_into().ok()),
            "changes" => self.changes = text().unwrap_or_default(),
            "seed" => self.seed = number().unwrap_or_default(),
            "policy" => self.policy = text().unwrap_or_default(),
            "settings" => self.settings = text().unwrap_or_default(),
            "error" => self.error = text(),
            "incomplete" => self.incomplete = text(),
            "time_ns" => self.time_ns = number(),
            "stall_ns" => self.stall_ns = number(),
            "overhead_ns" => self.overhead_ns = number(),
            "references" => self.references = number(),
            "misses" => self.misses = number(),
            "outcome" => self.outcome = text(),
            _ => {}
        }
    }
}

fn file_error(path: &Path, error: std::io::Error) -> SweepError {
    SweepError::File {
        path: path.to_path_buf(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(seed: u64) -> Spec {
        let text = format!("traces = ['a']\nmachines = ['simos-r4400']\npolicies = ['random']\nseeds = [{seed}]");
        Spec::parse(&text, Path::new("")).unwrap()
    }

    fn row(number: u64) -> Row {
        Row {
            number,
            key: format!("key {number}"),
            cpus: (number > 1).then_some(4),
            error: (number == 2).then(|| "it failed".to_string()),
            time_ns: Some(u64::from(u32::MAX) + number),
            outcome: Some("{}".to_string()),
            ..Row::default()
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written_in_the_order_of_points() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut rows = Rows::open(&path, &spec(1)).unwrap();
        for number in [3, 1, 2] {
            rows.push(row(number));
        }
        rows.save().unwrap();
        // One that failed is tried again.
        let again = Rows::open(&path, &spec(1)).unwrap();
        assert_eq!(again.rows(), [1, 3].map(row));
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1);
    }

    #[test]
    fn another_sweep_and_another_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        Rows::open(&path, &spec(1)).unwrap().save().unwrap();
        assert!(matches!(
            Rows::open(&path, &spec(2)),
            Err(SweepError::OtherSweep { .. })
        ));
        std::fs::write(&path, "no Parquet").unwrap();
        assert!(matches!(Rows::open(&path, &spec(1)), Err(SweepError::Damaged { .. })));
    }
}
