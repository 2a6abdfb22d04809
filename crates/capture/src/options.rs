//! The request for a recording, and its outcome.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

/// Describes what to record and where to.
#[derive(Clone, Debug)]
pub struct Options {
    /// A path, or a name to look up in `PATH`.
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Variables of the program's environment, besides those that this process has.
    pub environment: Vec<(OsString, OsString)>,
    /// The trace to write.
    pub output: PathBuf,
    /// Recording begins when a process first enters this function; `None`: at its start. Windows and what is passed
    /// over count from there.
    pub from: Option<String>,
    /// The length of the recording, from its beginning; then the program is ended (SIGTERM, and SIGKILL if that
    /// does not suffice).
    pub duration: Option<Duration>,
    /// The latest end of the recording, from the program's start on (with a tenth of that if it begins late); then the program is
    /// ended likewise.
    pub within: Option<Duration>,
    /// An interrupt (SIGINT, Ctrl-C) ends the recording: the program gets it, and is ended if it continues for some
    /// seconds. A second one kills the program, and discards the recording ([`CaptureError::GivenUp`]).
    pub interrupt_ends: bool,
    /// References to pass over before recording begins.
    pub skip: u64,
    /// References in each window; `None` records all that follows `skip`.
    pub window: Option<u64>,
    /// Windows to take, spread evenly over the run; 1 takes the first.
    pub windows: u32,
    /// Each window stands for a part of the run; this seed chooses its place within that part.
    pub windows_seed: u64,
    /// Before each of several windows, this many bytes of recently touched lines are recorded, to warm caches; 0: none.
    pub warm_bytes: u64,
    /// Record instruction fetches as references too.
    pub fetches: bool,
    /// Record software prefetches as references too. Slower: the program's registers are kept up to date at every
    /// instruction.
    pub prefetches: bool,
    /// Keep the program counter of each reference.
    pub pcs: bool,
    /// Sample call stacks. Without program counters there are none.
    pub call_stacks: bool,
    /// Record the processes that the program starts, too.
    pub follow_children: bool,
    /// Read symbols and debug information into the trace when the program has ended.
    pub symbols: bool,
    /// The name of the machine, for people to read.
    pub machine: String,
    /// Send the program's output to standard error, if standard output is needed for a result.
    pub output_to_stderr: bool,
    /// Discard the program's output.
    pub discard_output: bool,
    /// Folder of the Valgrind tool; `None` finds it.
    pub tool: Option<PathBuf>,
}

/// The outermost caches of most machines.
const WARM_BYTES: u64 = 32 << 20;

impl Options {
    /// True if each window has a part that only warms caches.
    pub(crate) fn warms(&self) -> bool {
        self.windows > 1 && self.window.is_some() && self.warm_bytes > 0
    }

    /// Records all of `program`, with program counters and symbols.
    pub fn new(
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
        output: impl AsRef<Path>,
    ) -> Options {
        Options {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            output: output.as_ref().to_path_buf(),
            from: None,
            duration: None,
            within: None,
            interrupt_ends: false,
            skip: 0,
            window: None,
            windows: 1,
            windows_seed: 1,
            warm_bytes: WARM_BYTES,
            fetches: false,
            prefetches: false,
            pcs: true,
            call_stacks: true,
            follow_children: true,
            symbols: true,
            machine: String::new(),
            output_to_stderr: false,
            discard_output: false,
            tool: None,
        }
    }
}

/// The progress of the recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// References that the program has made.
    pub references: u64,
    /// Bytes of trace so far.
    pub bytes: u64,
    /// True when the program has ended and its symbols are being read.
    pub finishing: bool,
}

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Exit {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Code(0),
        }
    }
}

impl Exit {
    /// The status that a shell would report: the code, or 128 and the signal.
    pub fn code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

/// The outcome of a recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub exit: Exit,
    /// The last signal that asked the recorder to end meanwhile (Ctrl-C), and that the program got.
    pub interrupted: Option<i32>,
    /// It was ended by the recorder, when its time was up ([`Options::duration`]).
    pub ended_by_us: bool,
    /// Why the run does not count as whole: a signal killed the program, it ended with a status other than 0, or it was
    /// interrupted. It is a clause whose first part (up to a colon) can stand alone. `None`: it ended normally.
    pub broke: Option<String>,
    pub summary: trace::Summary,
    /// References that the program made while it was watched, recorded or not.
    pub references_seen: u64,
    /// Notes for the reader of the trace: missing parts, and the reasons.
    pub notes: Vec<String>,
    /// Set if the trace could not be written to its end; the part that was kept can be read.
    pub failure: Option<String>,
}

/// Why there is no recording, or not all of it.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error("valgrind is not installed: {what}; install it (Debian: apt install valgrind) and try again")]
    NoValgrind { what: String },

    #[error(
        "the recorder's Valgrind tool is not built: looked in {}; build it with `make -C capture/valgrind`, or point \
         DOMICILE_VALGRIND_LIB at the folder that has domicile-amd64-linux", looked_in.join(", ")
    )]
    NoTool { looked_in: Vec<String> },

    #[error("cannot run {}: {what}", program.display())]
    NoProgram { program: PathBuf, what: String },

    #[error("bad recording options: {0}")]
    BadOptions(String),

    #[error("recording works on x86-64 Linux only; import a trace of another tool instead (`domicile import`)")]
    Unsupported,

    #[error("{what}: {source}")]
    System { what: &'static str, source: io::Error },

    #[error(
        "Valgrind did not start the program{}; try `valgrind --tool=none` on it",
        if log.is_empty() { String::new() } else { format!(" ({log})") }
    )]
    DidNotStart { log: String },

    #[error("the recording was given up: interrupted twice")]
    GivenUp,

    #[error(transparent)]
    Trace(#[from] trace::TraceError),
}

impl CaptureError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> CaptureError {
        move |source| CaptureError::System { what, source }
    }
}
