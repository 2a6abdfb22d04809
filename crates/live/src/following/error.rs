//! Why a program cannot follow its data here.

use std::io;

use policy::PolicyError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowingError {
    #[error(
        "this processor or kernel has no protection keys (pkeys(7): {0}). Without `--close-by keys` pages are closed by their protection \
         (mprotect(2)), which takes longer"
    )]
    NoKeys(io::Error),
    #[error("all cpus that may be used share each cache: nothing can be gained by going to another")]
    OneDomain,
    #[error(
        "{0} runs with the rights of another user or group, which it would lose while it is traced; run it as that user"
    )]
    SetId(String),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error("it could not be started: {0}")]
    Start(io::Error),
    #[error("a move could not be measured: the thread stopped {0} times at pages that are closed to its cpu")]
    Stops(usize),
    #[error("it cannot be traced: {0}")]
    Trace(#[from] io::Error),
}
