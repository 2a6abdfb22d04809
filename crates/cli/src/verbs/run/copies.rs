//! Replication beside a policy that moves pages: the program's text on the nodes of its processes, and what the
//! programs' replicated data reports.

use std::process::Command;

use live::homes::moving;
use live::protocol::{TEXT_ENVIRONMENT, TextInstructions, VERSION};
use policy::{Later, Name};
use replicas::{TextCopies, Way};
use results::{HomesCopies, HomesReplication, ReplicationMode};

use super::started;
use crate::failure::Failure;

/// Prepared before the program starts.
pub struct Copies {
    store: Result<TextCopies, String>,
    /// True if text should be copied, and why it cannot be.
    text: bool,
    no_text: Option<String>,
}

impl Copies {
    /// Passes the store to the program, and, with `text`, loads the run-time that takes copies from it. The report says
    /// what is unavailable: pages move regardless.
    pub fn prepare(command: &mut Command, text: bool, children: bool, folder: &std::path::Path) -> Copies {
        let store = TextCopies::create().map_err(|error| error.to_string());
        let mut copies = Copies {
            store,
            text,
            no_text: None,
        };
        let Ok(store) = &copies.store else { return copies };
        command.env(replicas::TOLD, store.path());
        if !text {
            return copies;
        }
        let library = started::runtime().and_then(|path| started::preloadable(path, folder));
        let library = match library {
            Ok(library) => library,
            Err(failure) => {
                copies.no_text = Some(failure.to_string());
                return copies;
            }
        };
        let before = std::env::var("LD_PRELOAD").ok().filter(|before| !before.is_empty());
        let instructions = TextInstructions {
            version: VERSION,
            store: store.path(),
            command: std::process::id(),
            children,
            preload_before: before.clone(),
        };
        command
            .env("LD_PRELOAD", started::preloads(&library, before.as_deref()))
            .env(TEXT_ENVIRONMENT, instructions.text());
        copies
    }

    /// The outcome.
    pub fn report(&self) -> Vec<HomesReplication> {
        let store = match &self.store {
            Ok(store) => store,
            Err(why) => return self.text.then(|| none(why.clone())).into_iter().collect(),
        };
        let mut all: Vec<_> = self.text.then(|| self.of_text(store)).into_iter().collect();
        for (mode, way) in [
            (ReplicationMode::Handles, Way::Handles),
            (ReplicationMode::Mappings, Way::Mappings),
        ] {
            if let Ok(taken) = store.taken(way)
                && taken.data > 0
            {
                all.push(HomesReplication {
                    mode,
                    users: taken.data.into(),
                    bytes: taken.most_bytes,
                    ..HomesReplication::default()
                });
            }
        }
        all
    }

    fn of_text(&self, store: &TextCopies) -> HomesReplication {
        if let Some(why) = &self.no_text {
            return none(why.clone());
        }
        let state = match store.state() {
            Ok(state) => state,
            Err(error) => return none(error.to_string()),
        };
        let near = state.processes.iter().filter(|process| process.near > 0).count() as u64;
        let why = state.processes.iter().rev().find_map(|process| process.why.clone());
        let loaded = !state.processes.is_empty();
        let copies = state.copies.iter().map(|&(node, bytes)| HomesCopies { node, bytes });
        HomesReplication {
            mode: ReplicationMode::Text,
            users: near + state.more,
            bytes: state.copies.iter().map(|(_, bytes)| bytes).sum(),
            nodes: copies.collect(),
            left_bytes: state.processes.iter().map(|process| process.left).sum(),
            why: why.or((!loaded).then(|| {
                "the run-time was not loaded (a program that is linked statically, or has capabilities of its own?)"
                    .to_string()
            })),
        }
    }
}

fn none(why: String) -> HomesReplication {
    HomesReplication {
        why: Some(why),
        ..HomesReplication::default()
    }
}

/// Returns true if text is copied under a policy: as requested, else if the policy makes copies.
pub fn are_wanted(asked: Option<&str>, policy: Option<&Name>) -> Result<bool, Failure> {
    let is = |so: fn(Later) -> bool| policy.is_some_and(|policy| policy.is(|traits| so(traits.later)));
    match asked {
        None => Ok(is(Later::copies)),
        Some(asked) if is(Later::on_misses) => Ok(asked == "yes"),
        Some(_) => Err(Failure::usage(format!(
            "--text is for policies that choose where memory is: add `--policy` with one of {}",
            moving().join(", ")
        ))),
    }
}
