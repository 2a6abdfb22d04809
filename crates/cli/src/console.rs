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

/// The same, printed even with --quiet: the results are of less than was asked for.
pub fn warn(text: impl std::fmt::Display) {
    say(&format!("domicile: {text}\n"));
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
    out: Out,
}

/// Where results go.
enum Out {
    Output(BufWriter<AutoStream<io::Stdout>>),
    /// Standard output is another's.
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

    /// A program that we start has standard output. Where that is no terminal, a file or another program gets what it writes, and
    /// text of ours would spoil it: results go to standard error then. JSON was asked for, and the program has to make room.
    pub fn make_room(&mut self) -> Result<(), Failure> {
        if !self.json && !io::stdout().is_terminal() {
            self.flush()?;
            self.out = Out::Error(BufWriter::new(anstream::stderr()));
        }
        Ok(())
    }

    /// Whether the user asked for JSON.
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

/// A path as a shell reads it, for commands that are proposed.
pub fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    // Refused are only bytes that no path has.
    shlex::try_quote(&path).map_or_else(|_| path.to_string(), |quoted| quoted.into_owned())
}
