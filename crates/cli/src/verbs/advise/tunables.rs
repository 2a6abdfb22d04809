//! Whether a command has malloc's memory on huge pages.

use std::ffi::OsString;

/// The variable of glibc, and its setting: 0 is off.
pub const VARIABLE: &str = "GLIBC_TUNABLES";
const SETTING: &str = "glibc.malloc.hugetlb=";

/// Whether a command asks malloc for huge pages: by a word of its own (of `env`, or of a shell's text), else by the variable that it
/// inherits.
pub fn asks_huge_pages(words: &[OsString], inherited: Option<&str>) -> bool {
    let own = words.iter().rev().find_map(|word| asked(&word.to_string_lossy()));
    own.or_else(|| asked(inherited?)).unwrap_or(false)
}

/// What a text says of it last, if anything.
fn asked(text: &str) -> Option<bool> {
    let (_, value) = text.rsplit_once(SETTING)?;
    Some(value.starts_with(|digit: char| ('1'..='9').contains(&digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_decides_and_else_the_environment() {
        let asks = |command: &str, inherited: Option<&str>| {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            asks_huge_pages(&words, inherited)
        };
        let on = "glibc.malloc.check=1:glibc.malloc.hugetlb=1";
        assert!(asks("env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 prog", None));
        assert!(asks("prog x", Some(on)) && !asks("prog x", None));
        assert!(!asks("env GLIBC_TUNABLES=glibc.malloc.hugetlb=0 prog", Some(on)));
        assert!(!asks("env GLIBC_TUNABLES=glibc.malloc.check=1 prog", None));
    }
}
