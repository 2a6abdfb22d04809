//! How a verb fails, and the exit code.

use std::io;
use std::process::ExitCode;

use crate::console;

/// Why a verb did not do its work. The texts say what failed, where, and what to do next.
#[derive(Debug)]
pub enum Failure {
    /// The command line asked for something that does not exist; exit code 2.
    Usage(String),
    /// The work failed; exit code 1.
    Work(String),
    /// A program that was started ended with this status, which becomes our exit code.
    Program(String, u8),
    /// The user interrupted the work twice; exit code 130, as in a shell.
    GivenUp(String),
    /// The reader of our output closed it early; exit code 0, without a message.
    ReaderLeft,
}

impl Failure {
    pub fn usage(text: impl ToString) -> Self {
        Failure::Usage(text.to_string())
    }

    pub fn work(text: impl ToString) -> Self {
        Failure::Work(text.to_string())
    }

    /// Prints the failure on standard error.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::Usage(text) => {
                console::say(&format!("domicile: {text}\n"));
                ExitCode::from(2)
            }
            Failure::Work(text) => {
                console::say(&format!("domicile: {text}\n"));
                ExitCode::from(1)
            }
            Failure::GivenUp(text) => {
                console::say(&format!("domicile: {text}\n"));
                ExitCode::from(130)
            }
            Failure::Program(text, status) => {
                console::say(&format!("domicile: {text}\n"));
                ExitCode::from(*status)
            }
            Failure::ReaderLeft => ExitCode::SUCCESS,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Usage(text) | Failure::Work(text) | Failure::GivenUp(text) | Failure::Program(text, _) => {
                out.write_str(text)
            }
            Failure::ReaderLeft => out.write_str("whoever read the output has left"),
        }
    }
}

/// Errors of writing to standard output; file errors are reported with their path at the point of failure.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::Work(format!("cannot write to standard output: {error}")),
        }
    }
}

impl From<sweep::NotSettings> for Failure {
    fn from(error: sweep::NotSettings) -> Self {
        Failure::usage(error)
    }
}

impl From<policy::PolicyError> for Failure {
    fn from(error: policy::PolicyError) -> Self {
        Failure::Usage(format!("{error}; see `domicile policy list`"))
    }
}
