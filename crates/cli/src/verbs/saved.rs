//! Saved results, read back: what `report` shows and `compare` compares.

use std::io::Read;
use std::path::Path;

use results::Document;

use crate::destination::STANDARD;
use crate::failure::Failure;

/// Longest result that is read.
const LIMIT: u64 = 1 << 30;

/// What a result's file is called in messages.
pub fn name(file: &Path) -> String {
    match file == Path::new(STANDARD) {
        true => "standard input".to_string(),
        false => file.display().to_string(),
    }
}

/// The text of a saved result; `-` is standard input.
pub fn text(file: &Path) -> Result<String, Failure> {
    read(file).map_err(|error| {
        Failure::work(format!(
            "cannot read {}: {error}; give the path of a saved result",
            name(file)
        ))
    })
}

/// A text, read from this file, as a result.
pub fn parse(text: &str, file: &Path) -> Result<Document, Failure> {
    Document::parse(text).map_err(|error| {
        Failure::work(format!(
            "{}: {error}; give a result of `domicile advise`, `domicile simulate --json` or `domicile compare --json`",
            name(file)
        ))
    })
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let source: Box<dyn Read> = match file == Path::new(STANDARD) {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file)?),
    };
    source.take(LIMIT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LIMIT {
        return Err(std::io::Error::other(format!("it is longer than {LIMIT} bytes")));
    }
    Ok(text)
}
