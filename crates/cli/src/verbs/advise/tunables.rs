//! Detects commands that ask malloc for memory on huge pages.

use std::ffi::OsString;

use results::allocators::{TUNABLES, asks_huge_pages as asked};

/// Returns true if a command asks malloc for huge pages: by one of its own words (of `env`, or of a shell's text), else
/// by the inherited variable.
pub fn asks_huge_pages(words: &[OsString], inherited: Option<&str>) -> bool {
    let own = words.iter().rev().find_map(|word| asked(&word.to_string_lossy()));
    own.or_else(|| asked(inherited?)).unwrap_or(false)
}

/// The same for a recorded program: recorded just now as `command`, or, if that is empty, earlier, in an unknown
/// environment.
pub fn recorded_asks(header: &trace::Header, command: &[OsString]) -> bool {
    let inherited = std::env::var(TUNABLES).ok().filter(|_| !command.is_empty());
    let recorded = std::iter::once(&header.program).chain(&header.arguments);
    let words: Vec<OsString> = recorded.map(OsString::from).chain(command.iter().cloned()).collect();
    asks_huge_pages(&words, inherited.as_deref())
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
