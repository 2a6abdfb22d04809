//! The request: checks that it makes sense, and writes it to the trace's header.

use std::fs::File;
use std::time::Duration;

use trace::{Chosen, Header, TraceError, Writer};

use crate::ending::ENDED_WITH;
use crate::options::{CaptureError, Options};

/// The most bytes of lines that warm caches: their table takes half as much memory again.
const WARM_MOST: u64 = 1 << 30;

pub fn check(options: &Options) -> Result<(), CaptureError> {
    if options.from.as_deref() == Some("") {
        return Err(CaptureError::BadOptions(
            "a function without a name to record from (--from)".into(),
        ));
    }
    if options.window == Some(0) {
        return Err(CaptureError::BadOptions("a window of 0 references".into()));
    }
    if options.duration == Some(Duration::ZERO) {
        return Err(CaptureError::BadOptions("a duration of no time".into()));
    }
    if options.windows == 0 {
        return Err(CaptureError::BadOptions("0 windows".into()));
    }
    if options.warm_bytes > WARM_MOST {
        return Err(CaptureError::BadOptions("more than 1 GiB to warm caches with".into()));
    }
    if options.windows > 1 && options.window.is_none() {
        return Err(CaptureError::BadOptions(
            "several windows need a size (--window N)".into(),
        ));
    }
    Ok(())
}

/// Between the writer of a trace and the way its run broke off.
const BROKE_OFF: &str = "; ";

/// Marks the trace as broken off, with the reason.
pub fn mark(header: &mut Header, broke: &str) {
    header.origin = format!("{}{BROKE_OFF}{broke}", Header::RECORDED);
}

/// How the trace's run broke off: the trace ends there. `None` if it ended normally, as far as the trace says.
pub fn broke_off(header: &Header) -> Option<&str> {
    let broke = header.origin.strip_prefix(Header::RECORDED)?.strip_prefix(BROKE_OFF)?;
    // Older traces contain only a status other than 0.
    let status = broke.strip_prefix(ENDED_WITH);
    let only_a_status = status.is_some_and(|status| status.parse::<i32>().is_ok());
    (!only_a_status).then_some(broke)
}

/// The header of the trace; once the trace is finished, with the number of references of the run.
pub fn header(options: &Options, of_references: Option<u64>) -> Header {
    Header {
        program: options.program.to_string_lossy().into_owned(),
        arguments: options.args.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        origin: Header::RECORDED.into(),
        machine: options.machine.clone(),
        page_bytes: 4096,
        counts_instructions: true,
        has_fetches: options.fetches,
        has_pcs: options.pcs,
        chosen: part(options).then(|| Chosen {
            from: options.from.clone(),
            duration_ms: options
                .duration
                .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            skipped: options.skip,
            windows: options.windows,
            references: options.window,
            warmed: options.warms(),
            of_references,
        }),
        ..Header::default()
    }
}

/// True if less than all of the run is asked for.
fn part(options: &Options) -> bool {
    options.skip > 0 || options.window.is_some() || options.from.is_some() || options.duration.is_some()
}

pub fn writer(options: &Options, file: File) -> Result<Writer, TraceError> {
    let how = trace::Options {
        background: true,
        ..trace::Options::default()
    };
    Writer::new(file, &header(options, None), how)
}
