//! Why a program cannot follow its data here.

use std::io;

use policy::PolicyError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowingError {
    #[error(
        "this processor or kernel has no protection keys (pkeys(7): {0}), by which pages are closed to a cpu. `domicile simulate --policy \
         regions` says what they would gain; `domicile daemon --regions` pairs whole processes with caches without them"
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
    #[error("it cannot be traced: {0}")]
    Trace(#[from] io::Error),
}
