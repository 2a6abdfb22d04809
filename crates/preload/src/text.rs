//! The program's text from a copy on its node: before `main`, for the program and the libraries that it begins with.

use protocol::{TEXT_ENVIRONMENT, TextInstructions};
use replicas::{Segment, TextCopies};
use sys::mappings::{Kind, within};

use crate::{end, modules, start};

/// Puts copies in the place of what is never written. Whether there is anything for it to do.
pub fn start() -> bool {
    let Ok(text) = std::env::var(TEXT_ENVIRONMENT) else {
        return false;
    };
    match TextInstructions::read(&text) {
        Ok(instructions) => follow(&instructions),
        Err(why) => end::say(&format!("domicile: {TEXT_ENVIRONMENT}: {why}")),
    }
    true
}

fn follow(instructions: &TextInstructions) {
    // The program keeps its parent when it becomes another one.
    let meant = instructions.children || std::os::unix::process::parent_id() == instructions.command;
    if !meant {
        // What others start is not concerned.
        start::leave_no_trace(
            &[TEXT_ENVIRONMENT, replicas::TOLD],
            instructions.preload_before.as_deref(),
        );
        return;
    }
    let segments = unwritten();
    let store = match TextCopies::open(&instructions.store) {
        Ok(store) => store,
        Err(error) => return end::say(&format!("domicile: text stays where it is: {error}")),
    };
    let became = if start::alone() {
        // SAFETY: these segments are mapped as the dynamic linker and the kernel say, and the only thread does nothing else
        // meanwhile. It is in this very text, which the call bears with.
        unsafe { store.take(&segments) }.map(|_| ())
    } else {
        store.leave(&segments, "threads ran before main")
    };
    if let Err(error) = became {
        end::say(&format!("domicile: text stays where it is: {error}"));
    }
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
