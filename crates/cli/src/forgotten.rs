//! A program in place of a verb's own arguments: the user forgot the `--` before it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;

use crate::console::quoted;

/// Verbs that start a program.
const VERBS: [&str; 3] = ["advise", "record", "run"];

/// The intended command line, with `--` before the program; `None` if the error is another one.
pub fn separator(command: &Command, words: &[OsString]) -> Option<String> {
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let mut rest = words.iter().enumerate().skip(1);
    let (_, verb) = rest.find(|(_, word)| VERBS.iter().any(|verb| *word == *verb))?;
    let of_verb = command.find_subcommand(verb)?;
    let takes_value = |word: &str| -> Option<bool> {
        let (name, with_value) = word.split_once('=').map_or((word, false), |(name, _)| (name, true));
        let mut options = of_verb.get_arguments().chain(command.get_arguments());
        let option = options.find(|option| match name.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => option.get_short().is_some_and(|short| name[1..].starts_with(short)),
        })?;
        // A short option may contain its value in the same word.
        let alone = name.starts_with("--") || name.chars().count() == 2;
        Some(option.get_action().takes_values() && alone && !with_value)
    };
    let program = loop {
        let (at, word) = rest.next()?;
        match word.to_str() {
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                if takes_value(option)? {
                    rest.next();
                }
            }
            _ => break at,
        }
    };
    // The trace exists, so the error is in the words after it.
    if is_data(&words[program]) {
        return None;
    }
    let shown = |words: &[OsString]| {
        let words: Vec<String> = words.iter().map(|word| as_typed(word)).collect();
        words.join(" ")
    };
    let before = shown(&words[1..program]);
    Some(format!("domicile {before} -- {}", shown(&words[program..])))
}

/// A word quoted for a shell. One with `=` needs no quotes where it is not a command.
fn as_typed(word: &OsStr) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_=./:,+@%-".contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|byte| plain(&byte)) => text.to_string(),
        _ => quoted(Path::new(word)),
    }
}

/// Returns true if this is a file that is not executable.
fn is_data(word: &OsStr) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let about = std::fs::metadata(word);
    about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(words: &str) -> Option<String> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        separator(&crate::command(), &words)
    }

    #[test]
    fn a_program_gets_its_separator() {
        for (words, right) in [
            (
                "domicile advise sqlite3 :memory:",
                "domicile advise -- sqlite3 :memory:",
            ),
            (
                "domicile advise --json sqlite3 -batch",
                "domicile advise --json -- sqlite3 -batch",
            ),
            (
                "domicile advise --machine zen3-milan ls -l",
                "domicile advise --machine zen3-milan -- ls -l",
            ),
            (
                "domicile advise --machine=host ls -l",
                "domicile advise --machine=host -- ls -l",
            ),
            (
                "domicile record -o x.trace ls -l",
                "domicile record -o x.trace -- ls -l",
            ),
            (
                "domicile record -ox.trace ls a;b",
                "domicile record -ox.trace -- ls 'a;b'",
            ),
            ("domicile --quiet run make -j", "domicile --quiet run -- make -j"),
        ] {
            assert_eq!(meant(words).as_deref(), Some(right), "{words}");
        }
    }

    #[test]
    fn what_is_wrong_otherwise_is_left_to_others() {
        for words in [
            "domicile advise --machin zen3-milan ls",
            "domicile advise --json",
            "domicile simulate x.trace y.trace",
            "domicile advise /etc/passwd --wrong",
            "domicile advise -- ls --wrong",
        ] {
            assert_eq!(meant(words), None, "{words}");
        }
    }
}
