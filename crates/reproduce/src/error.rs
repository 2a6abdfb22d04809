//! Errors, and what to do about them.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum ReproduceError {
    #[error(
        "the papers' programs are not built: looked in {}; build them with `make -C workloads` in the source tree, or point \
         DOMICILE_WORKLOADS at the folder that has them", looked_in.join(", ")
    )]
    NoPrograms { looked_in: Vec<String> },

    #[error("there is no program {name} in {}; build it with `make -C workloads`", folder.display())]
    NoProgram { name: String, folder: PathBuf },

    #[error(
        "there is no trace {name} in {}; record it with `make traces TRACES_FLAGS=\"{flags}\"` in the source tree, or name its \
         folder by --traces", folder.display()
    )]
    NoTrace {
        name: String,
        folder: PathBuf,
        /// Of `make traces`.
        flags: String,
    },

    #[error("{line}: {what}")]
    Program { line: String, what: String },

    #[error("recording {line}: {source}")]
    Record {
        line: String,
        source: capture::CaptureError,
    },

    #[error("simulating {line}: {source}")]
    Simulate { line: String, source: sim::SimError },

    #[error("{}: {what}: {source}", path.display())]
    File {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },

    #[error(transparent)]
    Trace(#[from] trace::TraceError),

    #[error(transparent)]
    Machine(#[from] machine::MachineError),

    #[error(transparent)]
    Paper(#[from] crate::paper::Malformed),

    #[error("{0}")]
    Host(String),
}
