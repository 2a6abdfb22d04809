//! Why pages cannot follow their users here.

use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomesError {
    #[error("the machine's nodes are not known: {0}")]
    Nodes(#[from] sys::SysError),
    #[error("the machine has one memory node: there is nowhere else for a page to be")]
    OneNode,
    #[error("policy `{0}` moves nothing while a program runs; those that do are {1}")]
    Still(String, String),
    #[error(
        "settings `gain` and `adapt` of policy `{0}` weigh what misses and moves take, which is not known of a running system; \
         leave them out"
    )]
    Prices(String),
    #[error(
        "policy `{0}` chooses colors, too, and pages that move between nodes get no colors; name the one that chooses homes"
    )]
    Colors(String),
    #[error(transparent)]
    Policy(#[from] policy::PolicyError),
    #[error("nothing here says which pages a process touches:{}", listed(.0))]
    NoSource(Vec<(String, String)>),
    #[error("there is no source `{0}`; the sources are {1}")]
    UnknownSource(String, String),
    #[error("{0}")]
    Nobody(String),
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
}

fn listed(sources: &[(String, String)]) -> String {
    sources.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}
