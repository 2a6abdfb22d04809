//! The outcome for a program whose thread follows its data on a running system.

use serde::{Deserialize, Serialize};

use crate::Regions;

/// The result of `run --policy regions --json`: an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveFollowing {
    /// The program's exit status, or 128 and the number of the signal that killed it; absent where it was not seen to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The caches among which regions were divided, how many, and the bytes of each.
    pub cache: String,
    pub caches: u32,
    pub cache_bytes: u64,
    /// How pages were closed to cpus.
    #[serde(default)]
    pub closed_by: LiveClosing,
    /// The duration of a touch of a closed page, the policy's turn, and the thread's start on another cpu, measured
    /// before the program ran, in ns.
    pub move_ns: u64,
    /// Cpus that were kept from sleeping while pages were closed: one of each cache, or none.
    #[serde(default)]
    pub kept_awake: u32,
    /// Touches of closed pages, and how many of them moved the thread.
    pub touches: u64,
    pub moves: u64,
    /// System calls around which pages were opened and closed.
    pub calls: u64,
    /// Reason why the program was left alone; absent if it was followed to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stepped_aside: Option<String>,
    /// Regions as the policy found them; absent where it was never asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<Regions>,
    pub wall_ns: u64,
    /// Processor time of Domicile itself.
    pub own_ns: u64,
    /// Processor time, of the lowest class, of the threads that kept cpus awake; 0 where no page was ever closed while the program ran.
    #[serde(default)]
    pub awake_ns: u64,
}

/// How pages are closed to a cpu on a running system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LiveClosing {
    /// Protection keys (`pkeys(7)`).
    #[default]
    Keys,
    /// The protection of the pages (`mprotect(2)`).
    Mprotect,
}
