//! The sets of values to sweep over, as a TOML file states them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use results::ProgramChange;
use serde::{Deserialize, Deserializer};

use crate::error::SweepError;

/// A sweep. Every list is an axis, and all combinations are points; a parameter is an axis of those policies alone that have it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Files, from the folder of the specification, or addresses of another storage (`s3://...`).
    pub traces: Vec<PathBuf>,
    /// Names of presets, machine files (with a `/` or the ending `.toml`) from the folder of the specification, or `host`.
    pub machines: Vec<String>,
    pub policies: Vec<String>,
    /// By `policy.parameter`: a value, a list, or text as `--set` takes it (`16..128..16`). A table of a policy has its parameters.
    #[serde(default, deserialize_with = "by_parameter")]
    pub set: BTreeMap<String, Values>,
    /// Numbers of cpus that each machine is given; none: its own.
    #[serde(default)]
    pub cpus: Vec<u32>,
    /// Changes of the program's data, each a list that is made together; none: the program as it is.
    #[serde(default)]
    pub changes: Vec<Vec<String>>,
    /// For everything that is random; none: 1.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Simulates the caches once for each trace and machine, and replays policies of homes over the misses, as `simulate --fast`.
    #[serde(default)]
    pub fast: bool,
    /// The folder in which files are looked for.
    #[serde(skip)]
    folder: PathBuf,
}

/// The values of a parameter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Values {
    Several(Vec<Value>),
    One(Value),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Truth(bool),
    Whole(i64),
    Number(f64),
    Text(String),
}

/// `migrate.trigger = 64`, of which TOML makes a table, is `"migrate.trigger" = 64`.
fn by_parameter<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Values>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Entry {
        Policy(BTreeMap<String, Values>),
        Parameter(Values),
    }
    let mut all = BTreeMap::new();
    for (name, entry) in BTreeMap::<String, Entry>::deserialize(from)? {
        match entry {
            Entry::Parameter(values) => drop(all.insert(name, values)),
            Entry::Policy(own) => {
                all.extend(
                    own.into_iter()
                        .map(|(parameter, values)| (format!("{name}.{parameter}"), values)),
                );
            }
        }
    }
    Ok(all)
}

impl std::fmt::Display for Value {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Truth(truth) => out.write_str(if *truth { "yes" } else { "no" }),
            Value::Whole(number) => number.fmt(out),
            Value::Number(number) => number.fmt(out),
            Value::Text(text) => out.write_str(text),
        }
    }
}

impl Spec {
    /// Reads a file.
    ///
    /// Errors: it cannot be read, or is no specification; an axis is empty.
    pub fn read(path: &Path) -> Result<Spec, SweepError> {
        let text = std::fs::read_to_string(path).map_err(|error| SweepError::File {
            path: path.to_path_buf(),
            error,
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Spec::parse(&text, folder).map_err(|what| SweepError::Spec {
            path: path.to_path_buf(),
            what,
        })
    }

    /// Reads a text; traces are looked for from `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Spec, String> {
        let mut spec: Spec = toml::from_str(text).map_err(|error| error.to_string().trim().to_string())?;
        for (axis, length) in [
            ("traces", spec.traces.len()),
            ("machines", spec.machines.len()),
            ("policies", spec.policies.len()),
        ] {
            if length == 0 {
                return Err(format!("`{axis}` is empty: name one at least"));
            }
        }
        for change in spec.changes.iter().flatten() {
            change.parse::<ProgramChange>().map_err(|error| error.to_string())?;
        }
        if spec.fast && !spec.changes.is_empty() {
            return Err("`changes` need the whole simulation: leave them or `fast` out".to_string());
        }
        if let Some((name, _)) = spec
            .set
            .iter()
            .find(|(_, values)| matches!(values, Values::Several(all) if all.is_empty()))
        {
            return Err(format!("`{name}` has no value: give one at least"));
        }
        spec.folder = folder.to_path_buf();
        Ok(spec)
    }

    /// All that it says.
    pub fn words(&self) -> String {
        let spec = Spec {
            folder: PathBuf::new(),
            ..self.clone()
        };
        format!("{spec:?}")
    }

    /// The place of a trace.
    pub fn place_of(&self, trace: &Path) -> PathBuf {
        match trace.to_string_lossy().contains("://") {
            true => trace.to_path_buf(),
            false => self.folder.join(trace),
        }
    }

    /// The name under which a machine is looked for.
    pub fn machine(&self, name: &str) -> String {
        match name.contains('/') || name.ends_with(".toml") {
            true => self.folder.join(name).display().to_string(),
            false => name.to_string(),
        }
    }

    /// Parameters as `--set` takes them.
    pub fn sets(&self) -> Vec<String> {
        let set = |(key, values): (&String, &Values)| {
            let values = match values {
                Values::One(value) => value.to_string(),
                Values::Several(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
            };
            format!("{key}={values}")
        };
        self.set.iter().map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "traces = ['a.dtr']\nmachines = ['simos-r4400']\npolicies = ['random']\n";

    #[test]
    fn traces_are_looked_for_beside_the_file() {
        let spec = Spec::parse(LEAST, Path::new("/there")).unwrap();
        assert_eq!(spec.place_of(&spec.traces[0]), PathBuf::from("/there/a.dtr"));
        assert_eq!(spec.place_of(Path::new("s3://b/a.dtr")), PathBuf::from("s3://b/a.dtr"));
        assert_eq!(spec.machine("m.toml"), "/there/m.toml");
        assert_eq!(spec.machine("host"), "host");
    }

    #[test]
    fn values_are_as_on_the_command_line() {
        let text =
            format!("{LEAST}[set]\n'migrate.trigger' = [16, 64]\nmigrate.hold = '1..3..1'\nmigrate.adapt = true\n");
        let sets = Spec::parse(&text, Path::new("")).unwrap().sets();
        assert_eq!(
            sets,
            ["migrate.adapt=yes", "migrate.hold=1..3..1", "migrate.trigger=16,64"]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, says) in [
            (
                "traces = []\nmachines = ['simos-r4400']\npolicies = ['y']".to_string(),
                "`traces` is empty",
            ),
            (format!("{LEAST}polices = ['random']"), "polices"),
            (format!("{LEAST}changes = [['stretch']]"), "stretch"),
            (
                format!("{LEAST}fast = true\nchanges = [['huge-pages']]"),
                "whole simulation",
            ),
        ] {
            let error = Spec::parse(&text, Path::new("")).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
