//! The program's text from a copy on its node: before `main`, for the program and the libraries that it begins with.

use live::protocol::{TEXT_ENVIRONMENT, TextInstructions};
use replicas::{Segment, TextCopies};
use sys::mappings::{Kind, within};

use crate::modules;
use crate::outset::{alone, leave_no_trace};

/// Puts copies in the place of what is never written. Whether there is anything for it to do.
///
/// Errors: why text stays where it is, for people.
pub fn start() -> Result<bool, String> {
    let Ok(text) = std::env::var(TEXT_ENVIRONMENT) else {
        return Ok(false);
    };
    let instructions = TextInstructions::read(&text).map_err(|why| format!("{TEXT_ENVIRONMENT}: {why}"))?;
    follow(&instructions).map_err(|error| format!("text stays where it is: {error}"))?;
    Ok(true)
}

fn follow(instructions: &TextInstructions) -> Result<(), replicas::Error> {
    // The program keeps its parent when it becomes another one.
    let meant = instructions.children || std::os::unix::process::parent_id() == instructions.command;
    if !meant {
        // What others start is not concerned.
        leave_no_trace(
            &[TEXT_ENVIRONMENT, replicas::TOLD],
            instructions.preload_before.as_deref(),
        );
        return Ok(());
    }
    let segments = unwritten();
    // The command may have ended before, or be another user's: who is not told of has its text where it was.
    let Ok(store) = TextCopies::open(&instructions.store) else {
        return Ok(());
    };
    if !alone() {
        return store.leave(&segments, "threads ran before main");
    }
    // SAFETY: these segments are mapped as the dynamic linker and the kernel say, and the only thread does nothing else
    // meanwhile. What is replaced is not this code, but may be the C library's that is called, which the call bears with.
    unsafe { store.take(&segments) }.map(|_| ())
}

/// Segments of the files that are loaded which their program does not write: code, and data that is only read. Those whose
/// rights are not as the file says are not among them, nor is the first one of a file where it holds no code: there others
/// look for the file's name.
fn unwritten() -> Vec<Segment> {
    let mut found = modules::unwritten();
    let own = unwritten as fn() -> Vec<Segment> as usize;
    found.retain(|segment| {
        // The run-time's own is not the program's, and most of it has done its work.
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
