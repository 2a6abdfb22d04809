//! Reads saved results, which `report` shows and `compare` compares.

use std::io::Read;
use std::path::Path;

use results::Document;

use crate::destination::STANDARD;
use crate::failure::Failure;

/// The longest result that is read.
const LIMIT: u64 = 1 << 30;

/// The name of a result's file in messages.
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
    let mut bytes = Vec::new();
    let source: Box<dyn Read> = match file == Path::new(STANDARD) {
        true => Box::new(std::io::stdin()),
        false => Box::new(std::fs::File::open(file)?),
    };
    source.take(LIMIT + 1).read_to_end(&mut bytes)?;
    let refused = |why: String| Err(std::io::Error::other(why));
    if bytes.starts_with(&trace::FILE_MAGIC) {
        return refused("it is a trace, which `domicile advise` and `domicile simulate` read".to_string());
    }
    if bytes.len() as u64 > LIMIT {
        return refused(format!("it is longer than {LIMIT} bytes"));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => refused(format!(
            "it is no text from byte {} on",
            error.utf8_error().valid_up_to()
        )),
    }
}

/// The extensions of source files. A result from another person may name any file, and no other file of the user's may
/// get into a page that is passed on.
const SOURCES: [&str; 36] = [
    "C", "F", "F90", "S", "ads", "adb", "asm", "c", "c++", "cc", "cpp", "cu", "cxx", "d", "f", "f03", "f08", "f90",
    "f95", "for", "go", "h", "hh", "hpp", "hxx", "inc", "inl", "ipp", "l", "m", "mm", "nim", "rs", "s", "tcc", "y",
];

/// The text of a source file that a saved result names.
pub fn named_source(path: &str) -> Result<String, String> {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    // Headers of C++ have names like `functional`.
    let is_source = match ending {
        Some(ending) => SOURCES.contains(&ending),
        None => Path::new(path).components().any(|part| part.as_os_str() == "include"),
    };
    match is_source {
        true => source_text(path),
        false => Err("by its name it is no source".to_string()),
    }
}

/// The text of a source file; a longer file is not source.
pub fn source_text(path: &str) -> Result<String, String> {
    const MOST_BYTES: u64 = 16 << 20;
    // Checked before opening, because opening a pipe without a writer would block.
    let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no file".to_string());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
