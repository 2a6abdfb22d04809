//! The progress of the work, for a display.

/// A step of the work.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A program runs under the recorder. `expected` is the paper's own count of references.
    Recording {
        what: &'a str,
        references: u64,
        expected: u64,
        bytes: u64,
    },
    Simulating {
        what: &'a str,
        done: u64,
        total: u64,
    },
    /// Run number `run` of `runs` begins.
    Timing {
        what: &'a str,
        run: usize,
        runs: usize,
    },
    /// The cache that this process gets is measured.
    Measuring {
        what: &'a str,
    },
    /// The counts could not be kept for later; they are still used.
    Unkept {
        what: &'a str,
        why: &'a str,
    },
}

/// Called from time to time, from any thread.
pub type Watch<'a> = &'a (dyn Fn(Step) + Sync);
