//! Standard output: text for people, in colors where they help, or JSON.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use serde::Serialize;

use crate::failure::Failure;

/// Columns where the output is not a terminal and nothing says otherwise.
const COLUMNS: usize = 100;

/// Whether the user wants results and errors alone.
static SILENT: AtomicBool = AtomicBool::new(false);

/// No notes from now on.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// A line on standard error that is no error: what the user may want to know of the work.
pub fn note(text: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        say(&format!("domicile: {text}\n"));
    }
}

/// Whole lines of notes that say by themselves whose they are.
pub fn note_lines(text: &str) {
    if !SILENT.load(Ordering::Relaxed) {
        say(text);
    }
}

/// Text on standard error. Where that cannot be written there is nobody to say so to, and the work goes on.
pub fn say(text: &str) {
    let mut out = anstream::stderr();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Text on standard output, at once: nothing of it is left for the end, when its failure would be another's.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

pub struct Console {
    json: bool,
    out: BufWriter<AutoStream<io::Stdout>>,
}

impl Console {
    pub fn new(json: bool) -> Self {
        Console {
            json,
            out: BufWriter::new(anstream::stdout()),
        }
    }

    /// Whether the user asked for JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// One value as one line of JSON.
    pub fn line<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let text =
            serde_json::to_string(value).map_err(|error| Failure::work(format!("cannot print JSON: {error}")))?;
        writeln!(self.out, "{text}")?;
        Ok(())
    }

    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes())?;
        Ok(())
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush()?;
        Ok(())
    }

    /// Columns that a table may fill.
    pub fn columns(&self) -> usize {
        if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()) {
            return columns;
        }
        if !io::stdout().is_terminal() {
            return COLUMNS;
        }
        terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| width.0.into())
    }
}

/// A path as a shell reads it, for commands that are proposed.
pub fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Refused are only bytes that no path has.
    shlex::try_quote(&path).map_or_else(|_| path.to_string(), |quoted| quoted.into_owned())
}
