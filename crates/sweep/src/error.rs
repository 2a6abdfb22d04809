//! Errors of a sweep as a whole. A point that fails is a row.

use std::path::PathBuf;

use crate::settings::NotSettings;

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: std::io::Error },
    #[error("{}: {what}", path.display())]
    Spec { path: PathBuf, what: String },
    #[error(transparent)]
    Settings(#[from] NotSettings),
    #[error("{}: it is of another sweep: {what}; give the results another name, or remove the file", path.display())]
    OtherSweep { path: PathBuf, what: String },
    #[error("{}: no results of a sweep: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
}
