//! Finds the Valgrind tool.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::options::CaptureError;

/// The tool, found.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The `valgrind` launcher.
    pub valgrind: PathBuf,
    /// The value that `VALGRIND_LIB` must have.
    pub folder: PathBuf,
}

/// The file that identifies the tool's folder.
pub const EXECUTABLE: &str = "domicile-amd64-linux";
const ENVIRONMENT: &str = "DOMICILE_VALGRIND_LIB";
/// Beside the executable, after `make install`.
const INSTALLED: &str = "../libexec/domicile/valgrind";
/// In the source tree that this was built from.
const BUILT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../capture/valgrind/build");

/// Looks for the tool: in `given`, or else where `DOMICILE_VALGRIND_LIB` says, beside this
/// executable, in the source tree; and for `valgrind` in `PATH`.
pub fn find(given: Option<&Path>) -> Result<Tool, CaptureError> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(CaptureError::Unsupported);
    }
    let executable = std::env::current_exe().ok().and_then(|p| p.canonicalize().ok());
    let places = places(given, std::env::var_os(ENVIRONMENT), executable.as_deref());
    let folder = places
        .iter()
        .find(|p| p.join(EXECUTABLE).is_file())
        .and_then(|p| p.canonicalize().ok())
        .ok_or_else(|| CaptureError::NoTool {
            looked_in: places.iter().map(|p| p.display().to_string()).collect(),
        })?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let valgrind = lookup(OsStr::new("valgrind"), &path).ok_or_else(|| CaptureError::NoValgrind {
        what: "no `valgrind` in PATH".into(),
    })?;
    for beside in ["default.supp", "vgpreload_core-amd64-linux.so"] {
        // Links into the valgrind package dangle if it was removed.
        if !folder.join(beside).exists() {
            return Err(CaptureError::NoValgrind {
                what: format!("{} is missing", folder.join(beside).display()),
            });
        }
    }
    Ok(Tool { valgrind, folder })
}

/// The places to search, in order. A place that the caller gives is the only one.
fn places(given: Option<&Path>, environment: Option<OsString>, executable: Option<&Path>) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.to_path_buf()];
    }
    if let Some(folder) = environment.filter(|f| !f.is_empty()) {
        return vec![PathBuf::from(folder)];
    }
    let installed = executable.and_then(Path::parent).map(|bin| bin.join(INSTALLED));
    installed.into_iter().chain([PathBuf::from(BUILT)]).collect()
}

/// The executable file that a shell would run for `name`.
pub fn lookup(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let runs = |p: &Path| {
        p.metadata()
            .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    if name.as_encoded_bytes().contains(&b'/') {
        let direct = PathBuf::from(name);
        return runs(&direct).then_some(direct);
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|p| runs(p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_where_looks_nowhere_else() {
        let given = places(Some(Path::new("/a")), Some("/b".into()), None);
        assert_eq!(given, [PathBuf::from("/a")]);
        assert_eq!(places(None, Some("/b".into()), None), [PathBuf::from("/b")]);
        let searched = places(None, None, Some(Path::new("/opt/d/bin/domicile")));
        assert_eq!(searched[0], PathBuf::from("/opt/d/bin/../libexec/domicile/valgrind"));
        assert_eq!(searched.len(), 2);
    }

    #[test]
    fn a_missing_tool_says_what_to_do() {
        let error = find(Some(Path::new("/nowhere"))).unwrap_err().to_string();
        assert!(
            error.contains("/nowhere") && error.contains("make -C capture/valgrind"),
            "{error}"
        );
    }

    #[test]
    fn programs_are_looked_up_as_a_shell_does() {
        let path = OsStr::new("/nonexistent:/bin:/usr/bin");
        assert!(lookup(OsStr::new("sh"), path).is_some());
        assert!(lookup(OsStr::new("no-such-program-here"), path).is_none());
        assert!(lookup(OsStr::new("/bin/sh"), OsStr::new("")).is_some());
        assert!(lookup(OsStr::new("/etc/passwd"), OsStr::new("")).is_none());
    }
}
