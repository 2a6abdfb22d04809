//! The points of a sweep, in groups that share a decoding of their trace.

use std::path::PathBuf;

use policy::Name;
use results::ProgramChange;

use crate::error::SweepError;
use crate::settings::{Setting, settings};
use crate::spec::Spec;

/// The machine on which a trace is simulated, and the program as which it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub trace: PathBuf,
    pub machine: String,
    /// `None`: as many as the machine has.
    pub cpus: Option<u32>,
    pub changes: Vec<String>,
    pub seed: u64,
    pub points: Vec<Point>,
}

/// One simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its place in the sweep.
    pub number: u64,
    pub policy: Name,
    pub setting: Setting,
    /// All that it is, in words: two points of a sweep never have the same.
    pub key: String,
}

impl Group {
    /// The changes, read.
    ///
    /// Pre: [`Spec::parse`] has read them once.
    pub fn program_changes(&self) -> Vec<ProgramChange> {
        self.changes.iter().filter_map(|change| change.parse().ok()).collect()
    }
}

/// All points of a sweep, in its order: the last axis of `trace, machine, cpus, changes, seed, policy, parameters` changes fastest.
///
/// Errors: a policy or parameter that there is not, a parameter that no policy of the sweep has; too many points.
pub fn groups(spec: &Spec) -> Result<Vec<Group>, SweepError> {
    for name in &spec.machines {
        if let Err(error @ machine::MachineError::UnknownName { .. }) = measured::load(&spec.machine(name)) {
            return Err(refused(error));
        }
    }
    let sets = spec.sets();
    let mut of_policies = Vec::new();
    for policy in &spec.policies {
        let name: Name = policy.parse().map_err(refused)?;
        let own: Vec<String> = sets
            .iter()
            .filter(|set| name.has(set.split('.').next().unwrap_or_default()))
            .cloned()
            .collect();
        for setting in settings(&name, &own)? {
            policy::build(&name, &setting.sets).map_err(refused)?;
            of_policies.push((name.clone(), setting));
        }
    }
    if let Some(set) = sets.iter().find(|set| {
        let policy = set.split('.').next().unwrap_or_default();
        !of_policies.iter().any(|(name, _)| name.has(policy))
    }) {
        return Err(refused(format!(
            "`{set}` sets a parameter of a policy that is not swept over"
        )));
    }
    let or_one = |list: &[u32]| match list {
        [] => vec![None],
        list => list.iter().copied().map(Some).collect::<Vec<_>>(),
    };
    let changes = if spec.changes.is_empty() {
        vec![Vec::new()]
    } else {
        spec.changes.clone()
    };
    let seeds = if spec.seeds.is_empty() {
        vec![1]
    } else {
        spec.seeds.clone()
    };
    let mut groups = Vec::new();
    let mut number = 0;
    for trace in &spec.traces {
        for machine in &spec.machines {
            for cpus in or_one(&spec.cpus) {
                for changes in &changes {
                    for &seed in &seeds {
                        let mut group = Group {
                            trace: trace.clone(),
                            machine: machine.clone(),
                            cpus,
                            changes: changes.clone(),
                            seed,
                            points: Vec::new(),
                        };
                        for (policy, setting) in &of_policies {
                            group.points.push(Point {
                                number,
                                policy: policy.clone(),
                                setting: setting.clone(),
                                key: key(&group, policy, setting),
                            });
                            number += 1;
                        }
                        groups.push(group);
                    }
                }
            }
        }
    }
    Ok(groups)
}

fn key(group: &Group, policy: &Name, setting: &Setting) -> String {
    let cpus = group.cpus.map_or_else(|| "own".to_string(), |cpus| cpus.to_string());
    [
        group.trace.display().to_string(),
        group.machine.clone(),
        cpus,
        group.changes.join(" + "),
        group.seed.to_string(),
        policy.to_string(),
        setting.sets.join(" "),
    ]
    .join("\u{1f}")
}

fn refused(what: impl std::fmt::Display) -> SweepError {
    SweepError::Spec {
        path: "the sweep".into(),
        what: what.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<Vec<Group>, SweepError> {
        groups(&Spec::parse(text, Path::new("")).unwrap())
    }

    #[test]
    fn a_parameter_is_an_axis_of_its_policy_alone() {
        let groups = of("traces = ['a', 'b']\nmachines = ['simos-r4400']\nseeds = [1, 2]\npolicies = ['page-coloring', 'migrate']\n[set]\n'migrate.trigger' = [16, 64]").unwrap();
        assert_eq!(groups.len(), 4);
        let all: Vec<&Point> = groups.iter().flat_map(|group| &group.points).collect();
        assert_eq!(all.len(), 12);
        assert!(all.iter().zip(0..).all(|(point, number)| point.number == number));
        let swept: Vec<String> = groups[0]
            .points
            .iter()
            .map(|point| point.setting.swept.join(" "))
            .collect();
        assert_eq!(swept, ["", "trigger=16", "trigger=64"]);
        let keys: HashSet<&String> = all.iter().map(|point| &point.key).collect();
        assert_eq!(keys.len(), 12);
    }

    #[test]
    fn what_nobody_takes_is_refused() {
        for text in [
            "traces = ['a']\nmachines = ['simos-r4400']\npolicies = ['page-colouring']",
            "traces = ['a']\nmachines = ['simos-r4400']\npolicies = ['page-coloring']\n[set]\n'migrate.trigger' = 16",
            "traces = ['a']\nmachines = ['simos-r4400']\npolicies = ['migrate']\n[set]\n'migrate.triger' = 16",
        ] {
            assert!(of(text).is_err(), "{text}");
        }
    }
}
