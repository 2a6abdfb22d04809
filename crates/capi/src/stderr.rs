//! Messages on standard error, where there is no other way to report them.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a line. If it cannot be written, it is lost, and the program continues.
pub(crate) fn say(text: Arguments) {
    let _ = std::io::stderr().write_fmt(format_args!("domicile: {text}\n"));
}
