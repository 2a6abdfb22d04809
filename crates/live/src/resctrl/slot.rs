//! A slot of ways, and the name that its group has in the tree: the name tells its owner and the caches of its ways
//! to other programs, also after its owner died.

use policy::slots::Kind;
use sys::Root;

use super::choose::Wanted;
use super::{Mask, Ways, WaysError};

/// Ways for threads. Freed when it is dropped: its threads then have the default group's ways again.
pub struct WaySlot {
    ways: Ways,
    name: String,
    kind: Kind,
    bytes: u64,
    wanted: Vec<(u32, Wanted)>,
    process: u32,
}

impl WaySlot {
    pub(super) fn new(ways: Ways, name: String, kind: Kind, bytes: u64, wanted: Vec<(u32, Wanted)>) -> WaySlot {
        WaySlot {
            ways,
            name,
            kind,
            bytes,
            wanted,
            process: std::process::id(),
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Bytes of its ways, in the cache where they are least.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its ways in each cache, by the kernel's number of the cache.
    pub fn masks(&self) -> impl Iterator<Item = (u32, Mask)> + '_ {
        self.wanted.iter().map(|(cache, wanted)| (*cache, wanted.ways))
    }

    /// Its group, as the folder is called.
    pub fn group(&self) -> &str {
        &self.name
    }

    /// From now on this thread (and those that it starts) bring lines into these ways only.
    pub fn add(&self, thread: u32) -> Result<(), WaysError> {
        let state = self.ways.lock();
        let path = format!("{}/tasks", self.name);
        state
            .tree
            .append(&path, &format!("{thread}\n"))
            .map_err(|error| match error.raw_os_error() {
                Some(ESRCH) => WaysError::NoThread { thread },
                _ => state.tree.cannot("write", &path, error),
            })
    }

    /// Gives the ways back.
    pub fn free(mut self) -> Result<(), WaysError> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), WaysError> {
        let wanted = std::mem::take(&mut self.wanted);
        // Freed already; or a child of fork, whose parent has it still.
        if wanted.is_empty() || self.process != std::process::id() {
            return Ok(());
        }
        let mut state = self.ways.lock();
        let _lock = state.tree.lock()?;
        state.unmake(&self.name, self.kind, &wanted)
    }
}

impl Drop for WaySlot {
    fn drop(&mut self) {
        // Nobody is left to hear of an error.
        let _ = self.leave();
    }
}

/// There is no such process (Linux's number is the same on all its machines).
const ESRCH: i32 = 3;

const PREFIX: &str = "domicile.";

/// `domicile.PROCESS.NUMBER.private.0-1,4`: the caches last.
pub(super) fn group_name(number: u32, kind: Kind, caches: &[u32]) -> String {
    let kind = match kind {
        Kind::Private => "private",
        Kind::Shared => "shared",
    };
    format!(
        "{PREFIX}{}.{number}.{kind}.{}",
        std::process::id(),
        sys::cpus::list(caches)
    )
}

pub(super) fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The caches in which a group of ours has ways; none for others.
pub(super) fn caches_of(name: &str) -> Vec<u32> {
    let caches = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit('.').next());
    caches.and_then(sys::cpus::parse_list).unwrap_or_default()
}

pub(super) fn kind_of(name: &str) -> Kind {
    if name.contains(".shared.") {
        Kind::Shared
    } else {
        Kind::Private
    }
}

/// Returns whether it is a group of ours whose process has ended.
pub(super) fn is_dead(name: &str, system: &Root) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('.').next());
    let Some(process) = process.and_then(|process| process.parse::<u32>().ok()) else {
        return false;
    };
    process != std::process::id() && !system.path(&format!("proc/{process}")).exists()
}
