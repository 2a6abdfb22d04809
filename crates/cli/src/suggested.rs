//! Completions for options that also take other values: files beside presets, policies joined by `+`.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use policy::Name;

/// Any text; these are suggested.
#[derive(Clone)]
pub struct Suggested(fn() -> Vec<&'static str>);

/// Machines by name, and this one.
pub fn machines() -> Suggested {
    Suggested(|| {
        let presets = machine::presets().iter().map(|preset| preset.name);
        presets.chain(["host"]).collect()
    })
}

/// Policies by name; each can be joined to others.
pub fn policies() -> Suggested {
    Suggested(|| policy::registry().iter().map(|entry| entry.name).collect())
}

/// One of these policies.
pub fn policy(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = Name> {
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Name>())
}

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn shells_complete_machines_and_policies() {
        for shell in [
            clap_complete::Shell::Bash,
            clap_complete::Shell::Zsh,
            clap_complete::Shell::Fish,
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::command(), "domicile", &mut script);
            let script = String::from_utf8(script).unwrap();
            for name in ["flash-cc-numa", "bin-hopping"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
    }
}
