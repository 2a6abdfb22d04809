//! Progress of long work: on standard error, and only where a person looks at it.

use std::time::Duration;

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

/// Work whose length is known: a bar with the time that is left, estimated from the rate so far.
pub fn known(what: &str, length: u64) -> ProgressBar {
    let template = "{msg} [{bar:30}] {percent:>3}%, {per_sec}, {eta} left";
    bar(ProgressBar::new(length), template, what)
}

/// Work that ends when it ends: what was done so far, and no promise.
pub fn unknown(what: &str) -> ProgressBar {
    bar(ProgressBar::no_length(), "{spinner} {msg}, {elapsed}", what)
}

/// What a recording tells of itself.
pub fn recorded(progress: &ProgressBar, what: &str, references: u64, bytes: u64) {
    progress.set_message(format!(
        "{what}: {} references, {} written",
        HumanCount(references),
        HumanBytes(bytes)
    ));
}

fn bar(bar: ProgressBar, template: &str, what: &str) -> ProgressBar {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
    }
    bar.set_message(what.to_string());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
