//! Figures kept from one program to the next, until the machine boots again.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Effort;

/// One more with each change of how things are measured: figures that were measured another way are measured anew.
const METHOD: u32 = 17;

/// What figures belong to: another boot or another processor has others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    #[serde(default)]
    method: u32,
    boot: String,
    processor: String,
    cpus: String,
}

#[derive(Serialize, Deserialize)]
struct File<T> {
    machine: Identity,
    careful: bool,
    measured: T,
}

impl Identity {
    pub fn of(root: &sys::Root) -> Identity {
        let processor = sys::cpuinfo::processor(root).unwrap_or_default();
        Identity {
            method: METHOD,
            boot: root.text("proc/sys/kernel/random/boot_id").unwrap_or_default(),
            processor: processor.model.unwrap_or_default(),
            cpus: sys::cpus::cpus(root)
                .map(|cpus| sys::cpus::list(&cpus.online))
                .unwrap_or_default(),
        }
    }
}

/// `$XDG_CACHE_HOME/domicile`, else `~/.cache/domicile`; none for a user without a home.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("domicile"))
}

/// What is kept for this machine in the file `name`, if it was measured with at least that effort. A machine that
/// does not report its boot keeps nothing, because its figures would never grow old.
pub fn load<T: DeserializeOwned>(folder: &Path, name: &str, machine: &Identity, effort: Effort) -> Option<T> {
    /// Longer files are not ours.
    const MOST_BYTES: u64 = 1 << 20;
    let path = folder.join(name);
    // Whose file it is, nobody knows: a fifo would be waited for.
    let about = std::fs::metadata(&path).ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    let file: File<T> = toml::from_str(&text).ok()?;
    let fits = !machine.boot.is_empty() && file.machine == *machine && (file.careful || effort == Effort::Quick);
    fits.then_some(file.measured)
}

/// What is kept for this machine in the file `name`: by this user, or else by another one, where the file may be read. The figures
/// are the machine's, whoever measured them.
pub fn kept<T: DeserializeOwned>(name: &str, machine: &Identity, effort: Effort) -> Option<T> {
    folders().find_map(|folder| load(&folder, name, machine, effort))
}

/// Where figures may be kept: this user's folder, then those of others. A folder that somebody names is the only one.
fn folders() -> impl Iterator<Item = PathBuf> {
    let users = match std::env::var_os("XDG_CACHE_HOME") {
        Some(_) => String::new(),
        None => sys::Root::default().text("etc/passwd").unwrap_or_default(),
    };
    let others: Vec<PathBuf> = others(&users).collect();
    folder().into_iter().chain(others)
}

/// How long ago what [`kept`] finds was measured.
pub fn age(name: &str, machine: &Identity) -> Option<Duration> {
    let mut folders = folders();
    let folder =
        folders.find(|folder| load::<serde::de::IgnoredAny>(folder, name, machine, Effort::Quick).is_some())?;
    let written = std::fs::metadata(folder.join(name)).ok()?.modified().ok()?;
    SystemTime::now().duration_since(written).ok()
}

/// Where other users keep theirs, by the list of users: root first, whose probe many a machine has alone.
fn others(users: &str) -> impl Iterator<Item = PathBuf> {
    let homes = users.lines().filter_map(|user| user.split(':').nth(5));
    let homes = homes.filter(|home| home.starts_with('/') && *home != "/");
    homes.map(|home| Path::new(home).join(".cache/domicile"))
}

/// Keeps figures; a reader sees the old file or the new one, never a part.
pub fn store<T: Serialize>(
    folder: &Path,
    name: &str,
    machine: &Identity,
    effort: Effort,
    measured: &T,
) -> std::io::Result<()> {
    let file = File {
        machine: machine.clone(),
        careful: effort == Effort::Careful,
        measured,
    };
    let text = toml::to_string(&file).map_err(std::io::Error::other)?;
    std::fs::create_dir_all(folder)?;
    let beside = folder.join(format!("{name}.{}", std::process::id()));
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, folder.join(name)).inspect_err(|_| {
        // The half that could not take its place must not stay behind.
        let _ = std::fs::remove_file(&beside);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Others;
    use crate::{Measured, Point};

    const NAME: &str = "measured.toml";

    fn identity(boot: &str) -> Identity {
        Identity {
            method: METHOD,
            boot: boot.into(),
            processor: "p".into(),
            cpus: "0-1".into(),
        }
    }

    fn figures() -> Measured {
        Measured {
            cache_bytes: 4 << 20,
            cache_ns: 12.0,
            memory_ns: 90.5,
            tlb_reach_bytes: None,
            refill_ns: None,
            walkers: None,
            huge_refill_ns: None,
            far: Vec::new(),
            others: Some(Others {
                bytes: 8 << 20,
                gbps: 1.5,
                ns: 14.5,
                kept_once: 0.9,
            }),
            curve: vec![Point { bytes: 1024, ns: 1.0 }],
            tlb_curve: vec![],
        }
    }

    #[test]
    fn kept_until_the_next_boot() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("below");
        assert_eq!(load::<Measured>(&at, NAME, &identity("a"), Effort::Quick), None);
        store(&at, NAME, &identity("a"), Effort::Quick, &figures()).unwrap();
        assert_eq!(
            load::<Measured>(&at, NAME, &identity("a"), Effort::Quick),
            Some(figures())
        );
        assert_eq!(
            load::<Measured>(&at, NAME, &identity("b"), Effort::Quick),
            None,
            "another boot"
        );
        assert_eq!(
            load::<Measured>(&at, NAME, &identity("a"), Effort::Careful),
            None,
            "less effort than asked for"
        );
        store(&at, NAME, &identity("a"), Effort::Careful, &figures()).unwrap();
        assert_eq!(
            load::<Measured>(&at, NAME, &identity("a"), Effort::Quick),
            Some(figures())
        );
        assert_eq!(std::fs::read_dir(&at).unwrap().count(), 1);
    }

    #[test]
    fn a_spoiled_file_is_measured_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), "careful = maybe").unwrap();
        assert_eq!(
            load::<Measured>(folder.path(), NAME, &identity("a"), Effort::Quick),
            None
        );
    }

    #[test]
    fn an_unknown_boot_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), NAME, &identity(""), Effort::Careful, &figures()).unwrap();
        assert_eq!(
            load::<Measured>(folder.path(), NAME, &identity(""), Effort::Quick),
            None
        );
    }

    #[test]
    fn others_keep_theirs_in_their_homes() {
        let users = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/usr/sbin/nologin\nann:x:1000:1000:,,,:/home/ann:/bin/sh\nbroken\n";
        let folders: Vec<_> = others(users).collect();
        assert_eq!(
            folders,
            ["/root/.cache/domicile", "/home/ann/.cache/domicile"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(folder.path().join(NAME))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(
            load::<Measured>(folder.path(), NAME, &identity("a"), Effort::Quick),
            None
        );
    }
}
