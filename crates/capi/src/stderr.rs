//! What this library says on standard error, where nothing else can carry it.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line. Where it cannot be written there is nobody to say so to, and the program goes on.
pub(crate) fn say(text: Arguments) {
    let _ = std::io::stderr().write_fmt(format_args!("domicile: {text}\n"));
}
