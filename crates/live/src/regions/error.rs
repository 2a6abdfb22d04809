//! Why processes cannot be paired with caches here.

use std::io;
use std::path::PathBuf;

use sys::SysError;
use sys::cache_domains::DomainsError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionsError {
    #[error(
        "the machine's caches are not known: {0}; name the cpus of each cache with --domains, such as --domains 0-3 4-7"
    )]
    Caches(SysError),
    #[error(
        "all cpus share each cache of this machine: nothing can be gained by choosing among them. A virtual machine may hide \
         that there are several; then name the cpus of each with --domains, such as --domains 0-3 4-7"
    )]
    OneDomain,
    #[error("the cache cannot be divided: {0}")]
    Ways(#[from] crate::resctrl::WaysError),
    #[error("--domains: {0}")]
    Domains(String),
    #[error("nothing here says how much memory a process uses:{}", listed(.0))]
    NoSource(Vec<(String, String)>),
    #[error("there is no source `{0}`; the sources are {1}")]
    UnknownSource(String, String),
    #[error("{0}")]
    Nobody(String),
    #[error("the log cannot be written: {0}")]
    Log(io::Error),
    #[error("{}: {error}; name a folder that can be written with --state", path.display())]
    State { path: PathBuf, error: io::Error },
    #[error(
        "{}: {error}. The file keeps the cpus that threads had before an earlier run placed them. Nothing was changed. Run this as the \
         user whose file it is, or name another folder with --state", path.display()
    )]
    Unread { path: PathBuf, error: io::Error },
    #[error(
        "{path}: {error}. The file keeps the cpus that threads had before an earlier run placed them; it was cut off or changed. \
         Nothing was changed, and the file stays. Give the threads that it names their cpus with `taskset -p`, as far as it says \
         which, or restart their programs; then move the file away: mv '{path}' '{path}.old'", path = path.display()
    )]
    Damaged { path: PathBuf, error: serde_json::Error },
    #[error(
        "another `daemon --regions` or `run --regions-with` keeps its state in {}: let it end, or name another folder with --state",
        .0.display()
    )]
    Busy(PathBuf),
    #[error("there is no folder for the state of this user: XDG_RUNTIME_DIR is not set; name one with --state")]
    NoFolder,
}

impl From<DomainsError> for RegionsError {
    fn from(error: DomainsError) -> RegionsError {
        match error {
            DomainsError::Caches(error) => RegionsError::Caches(error),
            DomainsError::ByHand(error) => RegionsError::Domains(error),
            _ => RegionsError::OneDomain,
        }
    }
}

fn listed(sources: &[(String, String)]) -> String {
    sources.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}
