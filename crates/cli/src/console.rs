//! Standard output: text for people, in colors where they help, or JSON.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use serde::Serialize;

use crate::failure::Failure;

/// Columns where the output is not a terminal and nothing else sets them.
const COLUMNS: usize = 100;

/// True if the user asked for results and errors only.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Prints no notes from now on.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// Prints a line on standard error that is no error: a note about the work.
pub fn note(text: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        say(&format!("domicile: {text}\n"));
    }
}

/// The same, printed even with --quiet: the results cover less than was asked for.
pub fn warn(text: impl std::fmt::Display) {
    say(&format!("domicile: {text}\n"));
}

/// Prints whole lines of notes that already have a prefix.
pub fn note_lines(text: &str) {
    if !SILENT.load(Ordering::Relaxed) {
        say(text);
    }
}

/// Prints text on standard error. If that fails, the text is lost, and the work continues.
pub fn say(text: &str) {
    let mut out = anstream::stderr();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints text on standard output at once: nothing stays buffered until the end, where its failure would be another's.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

pub struct Console {
    json: bool,
    out: Out,
}

/// The destination of results.
enum Out {
    Output(BufWriter<AutoStream<io::Stdout>>),
    /// Standard output belongs to a program.
    Error(BufWriter<AutoStream<io::Stderr>>),
}

impl Out {
    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Out::Output(out) => out,
            Out::Error(out) => out,
        }
    }
}

impl Console {
    pub fn new(json: bool) -> Self {
        Console {
            json,
            out: Out::Output(BufWriter::new(anstream::stdout())),
        }
    }

    /// Leaves standard output to a program that we start. Unless it is a terminal, a file or another program reads that
    /// program's output, and our text would spoil it: results then go to standard error. JSON stays, because it was
    /// asked for.
    pub fn make_room(&mut self) -> Result<(), Failure> {
        if !self.json && !io::stdout().is_terminal() {
            self.flush()?;
            self.out = Out::Error(BufWriter::new(anstream::stderr()));
        }
        Ok(())
    }

    /// Returns true if the user asked for JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// One value as one line of JSON.
    pub fn line<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let text =
            serde_json::to_string(value).map_err(|error| Failure::work(format!("cannot print JSON: {error}")))?;
        writeln!(self.out.writer(), "{text}")?;
        Ok(())
    }

    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes(text.as_bytes())
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.writer().write_all(bytes)?;
        Ok(())
    }

    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.writer().flush()?;
        Ok(())
    }

    /// Columns that a table may fill.
    pub fn columns(&self) -> usize {
        if let Some(columns) = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()) {
            return columns;
        }
        let size = match &self.out {
            Out::Output(_) if io::stdout().is_terminal() => terminal_size::terminal_size_of(io::stdout()),
            Out::Error(_) if io::stderr().is_terminal() => terminal_size::terminal_size_of(io::stderr()),
            _ => None,
        };
        size.map_or(COLUMNS, |(width, _)| width.0.into())
    }
}

/// A path quoted for a shell, for commands that are proposed.
pub fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Only bytes that no path has are refused.
    shlex::try_quote(&path).map_or_else(|_| path.to_string(), |quoted| quoted.into_owned())
}
