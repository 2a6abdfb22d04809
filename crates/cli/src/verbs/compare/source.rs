//! How a side of a comparison is given: as a result, a trace, or a command.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use results::{Document, SideKind};

use crate::failure::Failure;
use crate::verbs::saved;

/// One of them, recognized by the files that exist.
pub enum Source {
    Result(PathBuf, Document),
    Trace(PathBuf),
    Command(Command),
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// As it was given.
    pub text: String,
    /// The program first; at least that.
    pub words: Vec<OsString>,
}

impl Source {
    /// A file that begins with `{` is a result; another file that is not a program is a trace. Anything else is a
    /// command, whose words are split as in a shell.
    pub fn of(text: &str) -> Result<Source, Failure> {
        let file = Path::new(text);
        if fs::metadata(file).is_ok_and(|about| about.is_file()) {
            let start = start(file).map_err(|error| Failure::work(format!("cannot read {text}: {error}")))?;
            let first = start.iter().find(|byte| !byte.is_ascii_whitespace());
            return match start.as_slice() {
                _ if first == Some(&b'{') => {
                    let document = saved::parse(&saved::text(file)?, file)?;
                    Ok(Source::Result(file.to_path_buf(), document))
                }
                [0x7f, b'E', b'L', b'F', ..] | [b'#', b'!', ..] => Ok(Source::Command(Command {
                    text: text.to_string(),
                    words: vec![program(file)],
                })),
                _ => Ok(Source::Trace(file.to_path_buf())),
            };
        }
        Ok(Source::Command(Command::of(text)?))
    }

    pub fn kind(&self) -> SideKind {
        match self {
            Source::Result(..) => SideKind::Result,
            Source::Trace(_) => SideKind::Trace,
            Source::Command(_) => SideKind::Command,
        }
    }

    pub fn name(&self) -> String {
        match self {
            Source::Result(file, _) | Source::Trace(file) => file.display().to_string(),
            Source::Command(command) => command.text.clone(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Source::Command(command) => write!(f, "the command `{}`", command.text),
            file => write!(f, "the {} {}", file.kind().name(), file.name()),
        }
    }
}

impl Command {
    /// The words of a command, as a shell splits them. A program that does not exist is refused, and so is what only a
    /// shell would carry out.
    pub fn of(text: &str) -> Result<Command, Failure> {
        if let Some(sign) = needs_a_shell(text).filter(|_| !Path::new(text).is_file()) {
            return Err(Failure::usage(format!(
                "`{text}`: the command runs without a shell, which `{sign}` needs: write sh -c '...' around it, or quote the \
                 `{sign}` if the program is to get it"
            )));
        }
        let words = shlex::split(text).ok_or_else(|| {
            Failure::usage(format!(
                "`{text}`: a quote is not closed, or a word ends in a backslash"
            ))
        })?;
        let program = words.first().ok_or_else(|| {
            Failure::usage("nothing was given: give a saved result, a trace, or a command in one quoted string")
        })?;
        if !is_there(program) {
            return Err(Failure::work(format!(
                "there is no file `{text}`, and no program `{program}` to run: give a saved result, a trace, or a command in one \
                 quoted string"
            )));
        }
        Ok(Command {
            text: text.to_string(),
            words: words.into_iter().map(OsString::from).collect(),
        })
    }
}

/// The first character outside of quotes that a shell would act on and not pass on to the program: a pipe, a redirection, a
/// variable.
fn needs_a_shell(text: &str) -> Option<char> {
    let mut quote = None;
    let mut characters = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => {
                characters.next();
            }
            // A comment, which is dropped.
            (None, '#') if before.is_whitespace() => while characters.next_if(|&next| next != '\n').is_some() {},
            (None, '\'' | '"') => quote = Some(character),
            // The end of a line in a pattern, say, is passed on.
            (None, '$')
                if !characters
                    .peek()
                    .is_some_and(|next| next.is_alphanumeric() || "_{(@*#?$!-".contains(*next)) => {}
            (None, '|' | '&' | ';' | '<' | '>' | '$' | '`') => return Some(character),
            _ => {}
        }
        before = character;
    }
    None
}

/// The first bytes of a file.
fn start(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(file)?.take(64).read_to_end(&mut start)?;
    Ok(start)
}

/// A program that was given as a file: without a slash it would be searched in PATH.
fn program(file: &Path) -> OsString {
    match file.components().count() {
        1 if file.is_relative() => Path::new(".").join(file).into_os_string(),
        _ => file.as_os_str().to_os_string(),
    }
}

/// Returns true if a shell would find a program.
fn is_there(program: &str) -> bool {
    let is_file = |path: &Path| fs::metadata(path).is_ok_and(|about| about.is_file());
    if program.contains('/') {
        return is_file(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_file(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = |text: &str| Command::of(text).unwrap().words;
        assert_eq!(words("sh -c 'exit 3' \"a b\""), ["sh", "-c", "exit 3", "a b"]);
        assert!(matches!(Command::of("sh 'open"), Err(Failure::Usage(_))));
        assert!(matches!(Command::of("  "), Err(Failure::Usage(_))));
        let missing = Command::of("no-such-program x").unwrap_err().to_string();
        assert!(missing.contains("no program `no-such-program`"), "{missing}");
    }

    #[test]
    fn a_command_that_needs_a_shell_is_refused() {
        for text in [
            "true | cat",
            "true>out",
            "true a&",
            "true; true",
            "true $HOME",
            "true `true`",
            "true # don't\nx | y",
        ] {
            let refused = Command::of(text).unwrap_err();
            assert!(matches!(refused, Failure::Usage(_)), "{text}");
            assert!(refused.to_string().contains("without a shell"), "{refused}");
        }
        for text in [
            "sh -c 'true | cat'",
            "sh -c \"echo $HOME\"",
            "true 'a;b' \"c>d\" e\\|f",
            "grep -c end$ f",
            "true # a|b",
        ] {
            assert_eq!(needs_a_shell(text), None, "{text}");
        }
    }

    #[test]
    fn files_are_told_by_how_they_begin() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_string()
        };
        let kind = |text: &str| Source::of(text).map(|source| source.kind());
        let result = file("a.json", " \n{\"policy\": \"random\", \"time_ns\": {}}");
        assert_eq!(kind(&result).unwrap(), SideKind::Result);
        assert_eq!(kind(&file("a script", "#!/bin/sh\n")).unwrap(), SideKind::Command);
        assert_eq!(kind(&file("a.trace", "anything")).unwrap(), SideKind::Trace);
        assert!(kind(&file("b.json", "{}")).is_err());
        assert_eq!(kind("sh -c true").unwrap(), SideKind::Command);
    }
}
