//! The program's text from a copy on its node: before `main`, for the program and its initial libraries.

use live::protocol::{TEXT_ENVIRONMENT, TextInstructions};
use replicas::{Segment, TextCopies};
use sys::mappings::{Kind, within};

use crate::modules;
use crate::outset::{alone, leave_no_trace};

/// Replaces unwritten segments by copies. Returns whether there is anything to do.
///
/// Errors: why text stays in place, for people.
pub fn start() -> Result<bool, String> {
    let Ok(text) = std::env::var(TEXT_ENVIRONMENT) else {
        return Ok(false);
    };
    let instructions = TextInstructions::read(&text).map_err(|why| format!("{TEXT_ENVIRONMENT}: {why}"))?;
    follow(&instructions).map_err(|error| format!("text stays where it is: {error}"))?;
    Ok(true)
}

fn follow(instructions: &TextInstructions) -> Result<(), replicas::Error> {
    // A program that executes another one keeps its parent.
    let meant = instructions.children || std::os::unix::process::parent_id() == instructions.command;
    if !meant {
        // Programs that others start are not concerned.
        leave_no_trace(
            &[TEXT_ENVIRONMENT, replicas::TOLD],
            instructions.preload_before.as_deref(),
        );
        return Ok(());
    }
    let segments = unwritten();
    // The command may have ended, or belong to another user: then the text stays in place.
    let Ok(store) = TextCopies::open(&instructions.store) else {
        return Ok(());
    };
    if !alone() {
        return store.leave(&segments, "threads ran before main");
    }
    // SAFETY: these segments are mapped as the dynamic linker and the kernel report, and the only thread does nothing
    // else meanwhile. This code is not replaced; the C library's code that it calls may be, which the call allows.
    unsafe { store.take(&segments) }.map(|_| ())
}

/// Segments of loaded files that their program does not write: code, and read-only data. Excluded are segments whose
/// rights differ from the file's, and a file's first segment if it holds no code: others look there for the file's
/// name.
fn unwritten() -> Vec<Segment> {
    let mut found = modules::unwritten();
    let own = unwritten as fn() -> Vec<Segment> as usize;
    found.retain(|segment| {
        // The run-time's own segments are not the program's, and have mostly done their work.
        if segment.span.contains(own) {
            return false;
        }
        let Ok(mappings) = within(segment.span) else {
            return false;
        };
        let mut end = segment.span.start;
        let whole = mappings.iter().all(|mapping| {
            let follows = mapping.span.start <= end;
            end = mapping.span.end();
            let of_file = matches!(mapping.kind, Kind::File(_)) && !mapping.shared;
            follows && of_file && mapping.read && !mapping.write && mapping.execute == segment.execute
        });
        whole && end >= segment.span.end()
    });
    found
}
