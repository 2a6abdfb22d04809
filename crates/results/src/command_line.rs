//! Commands as a shell reads them.

/// Letters that no shell reads as anything else, beside letters and digits.
const PLAIN: &str = "+-./:@_,%=";

/// A program and its arguments, to be typed again: words that a shell would read otherwise are quoted.
pub fn command_line<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let words = words.into_iter().enumerate();
    let quoted = words.map(|(at, word)| {
        let word = word.as_ref();
        let plain = |letter: char| letter.is_alphanumeric() || PLAIN.contains(letter);
        // `A=B` before a command is no part of it, and zsh looks for a command after `=`.
        let assigns = word.starts_with('=') || at == 0 && word.contains('=');
        match !word.is_empty() && !assigns && word.chars().all(plain) {
            true => word.to_string(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_read_otherwise_are_quoted() {
        for (words, expected) in [
            (&["./prog", "-n", "--size=4,5"][..], "./prog -n --size=4,5"),
            (&["sh", "-c", "echo it; exit 3"], "sh -c 'echo it; exit 3'"),
            (&["a=b", "", "don't", "=x", "é"], "'a=b' '' 'don'\\''t' '=x' é"),
            (&[], ""),
        ] {
            assert_eq!(command_line(words), expected);
        }
    }
}
