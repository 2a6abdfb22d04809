//! Errors in a machine, with all that is needed to correct them: the file, the line, the key, the value found and what
//! is allowed.

use std::path::PathBuf;

/// Why there is no machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The name is not that of a preset; names of files have a `/` or end in `.toml`.
    #[error("there is no machine named `{name}`{}; `domicile machine list` names them all, and a description of your own is given as a path (with a `/` or ending in `.toml`)", did_you_mean(.nearest))]
    UnknownName { name: String, nearest: Option<String> },

    #[error("{}: cannot be read: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },

    #[error("{}: {bytes} bytes is too long for a machine description; at most {limit} are read", .path.display())]
    TooLong { path: PathBuf, bytes: u64, limit: u64 },

    /// Not TOML.
    #[error("{file}:{line}:{column}: not valid TOML: {message}")]
    Syntax {
        file: String,
        line: usize,
        column: usize,
        message: String,
    },

    /// Valid TOML, but not a valid machine.
    #[error("{file}:{line}: {fault}")]
    Description { file: String, line: usize, fault: Fault },

    /// A machine that did not come from a file, or was changed after it was read.
    #[error("machine `{machine}`: {fault}")]
    Invalid { machine: String, fault: Fault },

    /// Linux did not report enough.
    #[error("this machine cannot be described: {0}; name a preset instead (`domicile machine list`)")]
    Host(#[from] sys::SysError),
}

/// One thing that is wrong with a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// `key` is dotted, with the position in its file for each `[[cache]]`: `cache[1].ways`.
    #[error("{key}: found {found}; allowed: {allowed}")]
    Value {
        key: String,
        found: String,
        allowed: String,
    },
    #[error("{key}: this key is required and missing{}; give it {allowed}", meant_by(.misspelt))]
    Missing {
        key: String,
        allowed: String,
        /// A key that stands in its place, and looks like it.
        misspelt: Option<String>,
    },
    #[error("{key}: there is no such key{}; the keys here are {}", did_you_mean(.nearest), .known.join(", "))]
    Unknown {
        key: String,
        nearest: Option<String>,
        known: Vec<String>,
    },
}

impl Fault {
    pub(crate) fn value(key: impl Into<String>, found: impl ToString, allowed: impl Into<String>) -> Fault {
        Fault::Value {
            key: key.into(),
            found: found.to_string(),
            allowed: allowed.into(),
        }
    }

    /// The dotted key that is at fault.
    pub fn key(&self) -> &str {
        match self {
            Fault::Value { key, .. } | Fault::Missing { key, .. } | Fault::Unknown { key, .. } => key,
        }
    }
}

fn meant_by(misspelt: &Option<String>) -> String {
    misspelt
        .as_ref()
        .map_or(String::new(), |name| format!(" (did you mean it by `{name}`?)"))
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or(String::new(), |name| format!(" (did you mean `{name}`?)"))
}

/// The candidate that takes the fewest edits to become `word` (swapping two letters is one edit), or else one that
/// begins with it or has it as a part between hyphens (`zen3` of `zen3-milan`). None if all are too far away to be
/// meant (more than a third of its letters).
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    // Longer than any name that we have: not a slip of the finger.
    if word.chars().count() > 64 {
        return None;
    }
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let near = candidates
        .iter()
        .map(|candidate| (strsim::osa_distance(word, candidate), *candidate))
        .filter(|(edits, candidate)| *edits <= (candidate.len() / 3).max(1));
    let near = near.min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate);
    let lower = word.to_lowercase();
    let part = |candidate: &&&str| candidate.split('-').any(|part| part == lower);
    let begins = |candidate: &&&str| lower.len() >= 3 && candidate.starts_with(&lower);
    let meant = candidates
        .iter()
        .find(part)
        .or_else(|| candidates.iter().find(begins))
        .copied();
    // A part of a name says more than a name that looks like it.
    meant.or(near).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        assert_eq!(nearest("way", ["ways", "write"]).as_deref(), Some("ways"));
        assert_eq!(nearest("wrtie", ["ways", "write"]).as_deref(), Some("write"));
        assert_eq!(nearest("associativity", ["ways", "write"]), None);
        let machines = ["zen4-genoa", "zen3-milan", "host"];
        for word in ["zen3", "milan", "Milan", "zen3-mi", "zen3-milna"] {
            assert_eq!(nearest(word, machines).as_deref(), Some("zen3-milan"), "{word}");
        }
        assert_eq!(nearest("ze", machines), None);
    }
}
