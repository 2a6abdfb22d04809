//! The forms, the values for weights, and their names.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::str::FromStr;

use crate::Export;

/// A form of another viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `profile.proto`, compressed: `go tool pprof`, Speedscope, Grafana.
    Pprof,
    /// A line for each stack: `flamegraph.pl`, Inferno, Speedscope.
    Folded,
    /// A trace with counters over time, for ui.perfetto.dev.
    Perfetto,
    /// A folder of tables: DuckDB, Polars, pandas.
    Parquet,
    /// KCachegrind and `callgrind_annotate`.
    Callgrind,
}

/// The weight of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// Nanoseconds that cpus waited.
    #[default]
    Stall,
    /// Of these, the nanoseconds that the change of the result avoids.
    Avoided,
    /// Misses of the caches nearest to the cpus.
    Misses,
}

/// A name that is no form, or no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no {kind}; there are {known}")]
pub struct Unknown {
    kind: &'static str,
    name: String,
    known: String,
}

impl Format {
    pub const ALL: [Format; 5] = [
        Format::Pprof,
        Format::Folded,
        Format::Perfetto,
        Format::Parquet,
        Format::Callgrind,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Folded => "folded",
            Format::Perfetto => "perfetto",
            Format::Parquet => "parquet",
            Format::Callgrind => "callgrind",
        }
    }

    /// Returns true if it is several files in a folder.
    pub fn is_folder(self) -> bool {
        self == Format::Parquet
    }

    /// The command that opens an export that was saved at `path`, for a shell.
    pub fn viewer(self, path: &str, export: &Export) -> String {
        let quoted = quoted(path);
        match self {
            Format::Pprof => format!("go tool pprof -http=: {quoted}"),
            Format::Folded => format!("inferno-flamegraph {quoted} > {}", self::quoted(&format!("{path}.svg"))),
            // The viewer is a page. It has no command, and the user opens files in it.
            Format::Perfetto => format!("xdg-open https://ui.perfetto.dev # and open {quoted} there"),
            Format::Parquet => {
                let first = export.files.iter().find_map(|(name, _)| *name).unwrap_or_default();
                let table = format!("{}/{first}", path.trim_end_matches('/')).replace('\'', "''");
                let query = format!("SELECT * FROM '{table}' ORDER BY stall_ns DESC LIMIT 20");
                format!("duckdb -c {}", self::quoted(&query))
            }
            Format::Callgrind => format!("kcachegrind {quoted}"),
        }
    }
}

/// As one word of a shell.
fn quoted(text: &str) -> Cow<'_, str> {
    // A path with a zero byte names no file, so nothing was saved there.
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

impl Value {
    pub const ALL: [Value; 3] = [Value::Stall, Value::Avoided, Value::Misses];

    pub fn name(self) -> &'static str {
        match self {
            Value::Stall => "stall",
            Value::Avoided => "avoided",
            Value::Misses => "misses",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Value::Stall | Value::Avoided => "nanoseconds",
            Value::Misses => "count",
        }
    }
}

impl Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Format, Unknown> {
        of_name("form", name, &Format::ALL, Format::name)
    }
}

impl FromStr for Value {
    type Err = Unknown;

    fn from_str(name: &str) -> Result<Value, Unknown> {
        of_name("value", name, &Value::ALL, Value::name)
    }
}

fn of_name<T: Copy>(
    kind: &'static str,
    name: &str,
    all: &[T],
    name_of: impl Fn(T) -> &'static str,
) -> Result<T, Unknown> {
    let found = all.iter().find(|choice| name_of(**choice) == name);
    found.copied().ok_or_else(|| Unknown {
        kind,
        name: name.to_string(),
        known: all.iter().map(|choice| name_of(*choice)).collect::<Vec<_>>().join(", "),
    })
}
