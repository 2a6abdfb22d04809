//! Errors, worded so that a user knows what to do. After any of these errors, all pages hold their
//! old content.

use std::io;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A facility that is needed does not work here; what to change is in the text.
    #[error("{what}: {why}")]
    Unavailable { what: String, why: String },
    /// The probe looked, and found no page colors on this machine.
    #[error("page colors: {why}")]
    NoColors { why: String },
    /// Pages that cannot get frames of our choice; nothing was done to the range.
    #[error("the page at {address:#x} cannot be colored: {why}")]
    Unfit { address: usize, why: String },
    /// The range is no range of pages, or a wish is none that can be fulfilled.
    #[error("{0}")]
    Wish(String),
    /// Frames of a color ran out before all pages had theirs.
    #[error("{wanted} frames of color {color} were needed and {found} found among {looked} frames; {advice}")]
    NoFrames {
        color: u32,
        wanted: u64,
        found: u64,
        looked: u64,
        advice: String,
    },
    /// Pages that nobody has touched so far are more than may be filled now; nothing was done to the range.
    #[error(
        "{} MiB that hold nothing yet would be filled, and {} MiB may be now, of what this machine or its control groups have left; touch what is needed first, or color less at a time",
        .wanted >> 20,
        .room >> 20
    )]
    Memory { wanted: u64, room: u64 },
    /// More mappings would be needed than the budget allows.
    #[error(
        "this would take {wanted} mappings more while the process has {now} and may have {budget}; raise the budget or vm.max_map_count, or use UFFDIO_MOVE (Linux 6.8)"
    )]
    Mappings { wanted: usize, now: usize, budget: usize },
    /// The kernel refused something.
    #[error("{doing}: {error}")]
    System { doing: &'static str, error: io::Error },
}

impl From<machine::NotColors> for Error {
    fn from(not: machine::NotColors) -> Error {
        Error::Unavailable {
            what: "page colors".to_string(),
            why: not.to_string(),
        }
    }
}

impl Error {
    /// For `map_err`.
    pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::System { doing, error }
    }
}
