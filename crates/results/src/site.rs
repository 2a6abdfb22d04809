//! The names that `advise` gives to variables and to allocation sites, taken apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A variable, as `p`, `p (cg.c:40)` or, where a trace has several programs, `p [cg]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbol {
    pub name: String,
    /// The program it belongs to, where the name says.
    pub program: Option<String>,
    /// The place of its declaration; for readers, it decides nothing.
    pub place: Option<(String, u32)>,
}

impl Symbol {
    pub fn parse(text: &str) -> Symbol {
        let (rest, place) = match split_brackets(text, '(', ')') {
            Some((rest, inner)) => match file_and_line(inner) {
                Some(place) => (rest, Some(place)),
                // `operator()` and the like are part of a name.
                None => (text.trim(), None),
            },
            None => (text.trim(), None),
        };
        let (name, program) = match split_brackets(rest, '[', ']') {
            Some((name, program)) => (name, Some(program.to_string())),
            None => (rest, None),
        };
        Symbol {
            name: name.to_string(),
            program,
            place,
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(program) = &self.program {
            write!(f, " [{program}]")?;
        }
        if let Some((file, line)) = &self.place {
            write!(f, " ({file}:{line})")?;
        }
        Ok(())
    }
}

/// How a block came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// malloc and its family, `new`.
    Heap,
    /// mmap.
    Map,
}

/// A frame of the call stack that asked for memory, as far as its parts are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    pub function: Option<&'a str>,
    /// Path of the source file.
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    /// Path of the executable or library.
    pub module: Option<&'a str>,
    /// Place of the call in the module: its address there, as a disassembler shows it.
    pub offset: Option<u64>,
}

/// A place that allocates.
///
/// ```text
/// cg.c:412                                        file and line alone
/// makea                                           function alone
/// heap: makea (cg.c:412)                          function, file and line
/// heap: grow ← addRow (libtable.so.1)             a wrapper of malloc, who called it, and the file that has no lines
/// mmap: cg+0x12f0 ← main                          a place without a name, and the nearest named one around it
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Site {
    /// `None`: either.
    pub memory: Option<Memory>,
    /// Functions from the innermost outwards, or places in a module (`cg+0x12f0`); may be empty.
    pub chain: Vec<String>,
    /// The place of the outermost of the chain; without a chain, any frame.
    pub place: Option<Place>,
}

/// The part in parentheses.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// Last part of the path of a source file, and a line.
    Line { file: String, line: u32 },
    /// Last part of the path of a source file, of an executable or of a library.
    File(String),
}

impl Site {
    /// `None` if nothing is named.
    pub fn parse(text: &str) -> Option<Site> {
        let text = trim_arrows(text);
        let (memory, rest) = match (text.strip_prefix("heap: "), text.strip_prefix("mmap: ")) {
            (Some(rest), _) => (Some(Memory::Heap), trim_arrows(rest)),
            (_, Some(rest)) => (Some(Memory::Map), trim_arrows(rest)),
            _ => (None, text),
        };
        let (rest, place) = match split_brackets(rest, '(', ')') {
            Some((rest, inner)) if !base(inner).trim().is_empty() => {
                let place = match file_and_line(inner) {
                    Some((file, line)) => Place::Line { file, line },
                    None => Place::File(base(inner).trim().to_string()),
                };
                (rest, Some(place))
            }
            _ => (rest, None),
        };
        let alone = place.is_none() && !rest.contains('←') && !rest.contains("<-");
        if alone && let Some((file, line)) = file_and_line(rest) {
            return Some(Site {
                memory,
                chain: Vec::new(),
                place: Some(Place::Line { file, line }),
            });
        }
        let chain: Vec<String> = rest
            .split(['←'])
            .flat_map(|part| part.split("<-"))
            .map(|part| part.trim().to_string())
            .filter(|part| !part.is_empty())
            .collect();
        (!chain.is_empty() || place.is_some()).then_some(Site { memory, chain, place })
    }

    /// Returns whether `stack`, innermost frame first, is a stack of this place.
    ///
    /// The frames of the chain follow one another from the inside out; unnamed frames may lie
    /// between them (inlined functions, wrappers that the name passes over).
    pub fn is(&self, stack: &[Frame], memory: Memory) -> bool {
        if self.memory.is_some_and(|wanted| wanted != memory) {
            return false;
        }
        let Some((last, inner)) = self.chain.split_last() else {
            return stack.iter().any(|frame| self.is_at(frame));
        };
        let mut frames = stack.iter();
        let inner = inner.iter().all(|name| frames.any(|frame| is_function(frame, name)));
        // With a place after a nameless frame's caller, the place is that of either.
        inner && frames.any(|frame| is_function(frame, last) && self.is_at(frame))
    }

    fn is_at(&self, frame: &Frame) -> bool {
        match &self.place {
            None => true,
            Some(Place::Line { file, line }) => {
                frame.line == Some(*line) && frame.file.is_some_and(|path| base(path) == file)
            }
            Some(Place::File(file)) => [frame.file, frame.module]
                .iter()
                .flatten()
                .any(|path| base(path) == file),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.memory {
            Some(Memory::Heap) => f.write_str("heap: ")?,
            Some(Memory::Map) => f.write_str("mmap: ")?,
            None => {}
        }
        f.write_str(&self.chain.join(" ← "))?;
        let (open, close) = if self.chain.is_empty() { ("", "") } else { (" (", ")") };
        match &self.place {
            Some(Place::Line { file, line }) => write!(f, "{open}{file}:{line}{close}"),
            // Alone it would read as a function.
            Some(Place::File(file)) => write!(f, "{}({file})", if self.chain.is_empty() { "" } else { " " }),
            None => Ok(()),
        }
    }
}

/// Arrows without a function at their ends say nothing.
fn trim_arrows(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let shorter = text.trim_matches(|c: char| c == '←' || c.is_whitespace());
        let shorter = shorter.strip_prefix("<-").unwrap_or(shorter);
        let shorter = shorter.strip_suffix("<-").unwrap_or(shorter);
        if shorter == text {
            return text;
        }
        text = shorter;
    }
}

fn is_function(frame: &Frame, name: &str) -> bool {
    if frame.function.is_some_and(|function| plain(function) == plain(name)) {
        return true;
    }
    let Some((module, offset)) = name.rsplit_once("+0x") else {
        return false;
    };
    u64::from_str_radix(offset, 16).is_ok_and(|offset| frame.offset == Some(offset))
        && frame.module.is_some_and(|path| base(path) == base(module))
}

/// The C library's own names for its functions.
fn plain(function: &str) -> &str {
    function.trim_start_matches("__GI_")
}

/// `rest (inner)`: the last pair of brackets, if the text ends with it and something else, or
/// nothing, stands before it.
fn split_brackets(text: &str, open: char, close: char) -> Option<(&str, &str)> {
    let text = text.trim();
    let inside = text.strip_suffix(close)?;
    let at = inside.rfind(open)?;
    let before = &inside[..at];
    (before.is_empty() || before.ends_with([' ', '←']) || before.ends_with("<-"))
        .then(|| (before.trim(), inside[at + open.len_utf8()..].trim()))
}

fn file_and_line(text: &str) -> Option<(String, u32)> {
    let (file, line) = text.trim().rsplit_once(':')?;
    let file = base(file).trim();
    // `std::vector` has no number after its last colon; arrows separate functions.
    let is_file = !file.is_empty() && !file.ends_with(':') && !file.contains('←') && !file.contains("<-");
    is_file.then_some(())?;
    Some((file.to_string(), line.parse().ok()?))
}

/// The last part of a path.
pub fn base(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_advice_are_taken_verbatim() {
        for text in [
            "heap: makea (cg.c:412)",
            "heap: sqlite3MemMalloc ← sqlite3VdbeMemGrow (libsqlite3.so.0)",
            "mmap: cg+0x12f0 ← main",
            "heap: libX11.so.6",
            "cg.c:412",
            "makea",
        ] {
            assert_eq!(Site::parse(text).unwrap().to_string(), text);
        }
        for text in ["p", "p (cg.c:40)", "p [cg]", "p [cg] (cg.c:40)", "operator() (a)"] {
            assert_eq!(Symbol::parse(text).to_string(), text);
        }
        assert_eq!(Symbol::parse("p (/src/cg.c:40)").name, "p");
        assert_eq!(Site::parse("  "), None);
    }

    #[test]
    fn a_stack_is_recognised_by_what_the_name_says() {
        let malloc = Frame {
            function: Some("malloc"),
            module: Some("/lib/libc.so.6"),
            ..Frame::default()
        };
        let wrapper = Frame {
            function: Some("xmalloc"),
            file: Some("/src/mem.c"),
            line: Some(9),
            module: Some("/bin/cg"),
            offset: Some(0x1100),
        };
        let caller = Frame {
            function: Some("makea"),
            file: Some("/src/cg.c"),
            line: Some(412),
            module: Some("/bin/cg"),
            offset: Some(0x12f0),
        };
        let stack = [malloc, wrapper, caller];
        let is = |text: &str| Site::parse(text).unwrap().is(&stack, Memory::Heap);
        assert!(is("heap: makea (cg.c:412)") && is("makea") && is("cg.c:412") && is("mem.c:9"));
        assert!(is("xmalloc ← makea (cg.c:412)") && is("xmalloc <- makea") && is("cg+0x12f0") && is("makea (cg)"));
        assert!(!is("mmap: makea (cg.c:412)"));
        assert!(!is("makea ← xmalloc") && !is("makea (cg.c:413)") && !is("other") && !is("cg+0x12f1"));
        assert!(!is("makea (lu.c:412)") && !is("xmalloc (cg.c:412)"));
    }
}
