//! Names as they are shown: those of C++ and Rust can be longer than a screen is wide.
//!
//! Saved results, and names in plans of cache slots, keep the whole name.

/// Characters of a name that is shown.
const MOST: usize = 60;

/// A name of a function or of data, in at most 60 characters: without the suffixes by which compilers tell equal names
/// apart, then with arguments of templates folded (`std::vector<…>`), then cut in the middle.
pub fn short(name: &str) -> String {
    let name = without_hashes(name);
    if fits(&name) {
        return name;
    }
    let inner = folded(&name, 1);
    if fits(&inner) {
        return inner;
    }
    let outer = folded(&name, 0);
    if fits(&outer) {
        return outer;
    }
    let characters: Vec<char> = outer.chars().collect();
    let (head, tail) = (MOST / 2, MOST - MOST / 2 - 1);
    let head = characters[..head].iter();
    head.chain(&['…'])
        .chain(&characters[characters.len() - tail..])
        .collect()
}

fn fits(name: &str) -> bool {
    name.chars().count() <= MOST
}

/// Without Rust's hashes (`f::h0123456789abcdef`, `crate[0123456789abcdef]::f`) and LLVM's (`f.llvm.123`).
pub(crate) fn without_hashes(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let hash = hash(rest);
        // The end of the name, or of its part.
        let ends = !rest[hash..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let hash = if ends { hash } else { 0 };
        if hash > 0 {
            rest = &rest[hash..];
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// Bytes of the hash that a text begins with; 0: it begins with none.
fn hash(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    match text {
        _ if text.starts_with("::h") && digits(&text[3..]) == 16 => 19,
        _ if text.starts_with('[') && (8..=16).contains(&digits(&text[1..])) => {
            let end = 1 + digits(&text[1..]);
            if text[end..].starts_with(']') { end + 1 } else { 0 }
        }
        _ if text.starts_with(".llvm.") => 6 + text[6..].bytes().take_while(u8::is_ascii_digit).count(),
        _ => 0,
    }
}

/// A name with `…` in place of the text in brackets deeper than `depth`. A name that begins with a bracket (`<T as
/// Trait>::f`) keeps the text in it: nothing else names the owner.
fn folded(name: &str, depth: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len());
    // Of each open bracket, whether it counts.
    let mut open: Vec<bool> = Vec::new();
    for (at, &c) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map_or(' ', |at| characters[at]);
        let after = characters.get(at + 1).copied().unwrap_or(' ');
        let deep = open.iter().filter(|counts| **counts).count();
        let operator = out.trim_end_matches(['<', '>', '=']).ends_with("operator");
        match c {
            '<' if !operator && after != '-' && (before != ' ' || deep > 0 || at == 0) && closes(&characters[at..]) => {
                let counts = before.is_alphanumeric() || "_:~".contains(before);
                if deep <= depth {
                    out.push(c);
                    if counts && deep == depth {
                        out.push('…');
                    }
                }
                open.push(counts);
            }
            '>' if !operator && before != '-' && !open.is_empty() => {
                open.pop();
                if open.iter().filter(|counts| **counts).count() <= depth {
                    out.push(c);
                }
            }
            _ if deep <= depth => out.push(c),
            _ => {}
        }
    }
    out
}

/// Returns whether the bracket that a text begins with is closed in it.
fn closes(text: &[char]) -> bool {
    let mut depth = 0i32;
    for (at, c) in text.iter().enumerate() {
        match c {
            '<' => depth += 1,
            '>' if at > 0 && text[at - 1] != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stay() {
        for name in [
            "main",
            "std::vector<int>::push_back(int&&)",
            "heap: makea (cg.c:412)",
            "operator<(a, b)",
            "",
        ] {
            assert_eq!(short(name), name);
        }
    }

    #[test]
    fn hashes_are_left_out() {
        for (name, shown) in [
            ("core::ptr::drop::h0123456789abcdef", "core::ptr::drop"),
            ("alloc[9f3c2b1a00d1e2f3]::vec::grow", "alloc::vec::grow"),
            ("work.llvm.1234567890", "work"),
            // Names of their own.
            ("a::h0123456789abcdefg", "a::h0123456789abcdefg"),
            ("table[12]", "table[12]"),
        ] {
            assert_eq!(short(name), shown);
        }
    }

    #[test]
    fn arguments_of_templates_are_folded_from_the_inside() {
        let map = "std::map<std::string, std::vector<std::pair<int, std::string>>>::operator[](std::string const&)";
        assert_eq!(short(map), "std::map<…>::operator[](std::string const&)");
        let vector =
            "heap: std::vector<std::pair<long, double>, std::allocator<std::pair<long, double>>> ← main (a.cc:7)";
        assert_eq!(short(vector), "heap: std::vector<…> ← main (a.cc:7)");
        let nested = "std::vector<std::pair<unsigned long, unsigned long>, my_alloc>::insert";
        assert_eq!(short(nested), "std::vector<std::pair<…>, my_alloc>::insert");
        let shift = "std::operator<< <std::char_traits<char>>(std::basic_ostream<char, std::char_traits<char>>&, char)";
        assert!(short(shift).starts_with("std::operator<<"), "{}", short(shift));
        let rust = "<alloc::vec::Vec<my_crate::deeply::nested::module::Thing> as core::clone::Clone>::clone";
        assert!(
            short(rust).starts_with("<alloc::vec::Vec<…> as core::clone::"),
            "{}",
            short(rust)
        );
    }

    #[test]
    fn what_is_still_long_is_cut_in_the_middle() {
        let long = format!("heap: {} (file.cc:12)", "a".repeat(100));
        let shown = short(&long);
        assert_eq!(shown.chars().count(), 60);
        assert!(shown.starts_with("heap: aaa") && shown.ends_with("aaa (file.cc:12)") && shown.contains('…'));
        for odd in [
            "<".repeat(80),
            ">".repeat(80),
            format!("{}<", "ä".repeat(70)),
            "a->b".repeat(30),
        ] {
            assert!(short(&odd).chars().count() <= 60);
        }
    }
}
