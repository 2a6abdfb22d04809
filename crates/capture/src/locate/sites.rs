//! Allocation sites by the names that advice has for them.
//!
//! ```text
//! heap: build_table (join.c:120)
//! heap: alloc_matrix ← main (mat.c:50)
//! heap: sqlite3MemMalloc ← sqlite3VdbeMemGrow (libsqlite3.so.0)
//! mmap: libx.so.1+0x100 ← x_step
//! ```
//!
//! Left of the arrow stands what is further in on the call stack. A person may leave out what is not needed to
//! tell sites apart: `build_table`, `join.c:120`.

use super::code::{Code, Row};
use super::{LocateError, Program, Range, near};

/// A site's name, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteName {
    /// A mapping of the program's own, not a block of the heap.
    pub mapped: bool,
    /// What the program calls to get the memory.
    pub through: Option<String>,
    /// The function; empty if only the place is told.
    pub function: String,
    pub place: Option<Place>,
}

/// Where a function is, as far as a name tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The last part of a source file's path, and the line.
    Line(String, u32),
    /// The last part of the path of a source file or of a module.
    File(String),
}

/// The code of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// A call from here gets memory, by itself or through code that is passed over.
    pub calls: Vec<Range>,
    /// If not empty, such code has to be between.
    pub through: Vec<Range>,
}

impl SiteName {
    pub fn parse(text: &str) -> SiteName {
        let text = text.trim();
        let (mapped, rest) = match (text.strip_prefix("mmap:"), text.strip_prefix("heap:")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => (false, text),
        };
        // Of another process of the trace: ` [sort]`.
        let rest = rest.trim();
        let rest = match rest.rsplit_once(" [") {
            Some((before, last)) if last.ends_with(']') => before.trim(),
            _ => rest,
        };
        let (through, rest) = match rest.split_once('←').or_else(|| rest.split_once("<-")) {
            Some((through, rest)) => (Some(through.trim().to_string()), rest.trim()),
            None => (None, rest),
        };
        let (function, place) = match rest.rsplit_once(" (") {
            Some((function, place)) if place.ends_with(')') && !place.trim_end_matches(')').contains(['(', ')']) => {
                (function.trim(), Some(Place::parse(&place[..place.len() - 1])))
            }
            _ => match Place::parse(rest) {
                line @ Place::Line(..) => ("", Some(line)),
                Place::File(_) => (rest, None),
            },
        };
        SiteName {
            mapped,
            through: through.filter(|through| !through.is_empty()),
            function: function.to_string(),
            place,
        }
    }
}

impl Place {
    fn parse(text: &str) -> Place {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
        match text.rsplit_once(':') {
            Some((file, line)) if !file.ends_with(':') && !file.is_empty() => match line.parse() {
                Ok(line) => Place::Line(base(file), line),
                Err(_) => Place::File(base(text)),
            },
            _ => Place::File(base(text)),
        }
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `libx.so.1+0x12f0`: an address in a module.
fn offset(function: &str) -> Option<(&str, u64)> {
    let (module, offset) = function.rsplit_once("+0x")?;
    Some((module, u64::from_str_radix(offset, 16).ok()?))
}

/// Whether a function is called so: by its whole name, or without its parameters.
fn is_called(function: &str, name: &str) -> bool {
    function == name || (!name.contains('(') && function.split('(').next() == Some(name))
}

impl Program {
    /// The code that a site's name stands for.
    pub fn site(&self, text: &str) -> Result<Calls, LocateError> {
        let name = SiteName::parse(text);
        let calls = self.code_named(text, &name.function, name.place.as_ref())?;
        let through = match &name.through {
            Some(through) => self.code_named(text, through, None)?,
            None => Vec::new(),
        };
        Ok(Calls { calls, through })
    }

    /// Code of the program and of the libraries in it that is behind a site's function on a call stack and not the
    /// site: whatever `passed` says of its name. `sites` tells in which modules it can matter.
    pub fn passed(&self, sites: &[Range], passed: impl Fn(&str) -> bool) -> Vec<Range> {
        let mut ranges = Vec::new();
        for module in 0..self.modules.len() {
            if module > 0 && !sites.iter().any(|range| range.module == module) {
                continue;
            }
            let code = self.code(module);
            let own = code.rows.iter().filter(|row| passed(code.function(row)));
            ranges.extend(own.map(|row| range(module, row)));
        }
        merged(ranges)
    }

    fn code(&self, module: usize) -> &Code {
        self.codes[module].get_or_init(|| Code::of(&self.modules[module].elf))
    }

    /// Finds code in the program, else in its libraries.
    fn code_named(&self, whole: &str, function: &str, place: Option<&Place>) -> Result<Vec<Range>, LocateError> {
        if let Some((file, at)) = offset(function)
            && let Some(module) = self.modules.iter().position(|m| base(&m.path.to_string_lossy()) == file)
        {
            return Ok(vec![Range {
                module,
                start: at,
                end: at + 1,
            }]);
        }
        let mut near_lines = Vec::new();
        for (module, loaded) in self.modules.iter().enumerate() {
            let path = loaded.path.to_string_lossy();
            let in_module = |file: &str| base(&path) == file;
            // Where the module is told, no other one is meant; where a line is told, no library without debug
            // information is.
            let elsewhere = match place {
                Some(Place::File(file)) => self.is_module(file) && !in_module(file),
                Some(Place::Line(..)) => module > 0 && loaded.elf.debug.is_none(),
                None => false,
            };
            if elsewhere {
                continue;
            }
            let code = self.code(module);
            let fits = |row: &&Row| {
                let at = match place {
                    None => true,
                    Some(Place::Line(file, line)) => {
                        row.line == Some(*line) && code.file(row).is_some_and(|path| base(path) == file)
                    }
                    Some(Place::File(file)) => in_module(file) || code.file(row).is_some_and(|path| base(path) == file),
                };
                at && (function.is_empty() || is_called(code.function(row), function))
            };
            let found: Vec<Range> = code.rows.iter().filter(fits).map(|row| range(module, row)).collect();
            if !found.is_empty() {
                return Ok(merged(found));
            }
            if let Some(Place::Line(file, _)) = place {
                let lines = code.rows.iter().filter(|row| is_called(code.function(row), function));
                let lines = lines.filter(|row| code.file(row).is_some_and(|path| base(path) == file));
                near_lines.extend(lines.filter_map(|row| row.line));
            }
        }
        Err(self.unknown(whole, function, place, &near_lines))
    }

    fn is_module(&self, file: &str) -> bool {
        self.modules.iter().any(|m| base(&m.path.to_string_lossy()) == file)
    }

    fn unknown(&self, whole: &str, function: &str, place: Option<&Place>, lines: &[u32]) -> LocateError {
        let program = self.path.display();
        let why = match (place, lines.iter().min(), lines.iter().max()) {
            (Some(Place::Line(file, _)), Some(from), Some(to)) => {
                format!("{function} is in {program}, but at lines {from} to {to} of {file}: it has changed since")
            }
            (Some(Place::Line(..)), ..) if !self.code(0).lines => format!(
                "{program} has no debug information, so that no line of it can be found; compile with -g, or name the \
                 function alone"
            ),
            _ => format!("no such code in {program} or its libraries"),
        };
        let mut near = Vec::new();
        if lines.is_empty() {
            near = near::nearest(function, self.code(0).functions());
        }
        LocateError::NoName {
            name: whole.to_string(),
            why,
            near,
        }
    }
}

fn range(module: usize, row: &Row) -> Range {
    Range {
        module,
        start: row.start,
        end: row.end,
    }
}

/// In order; those that touch together.
fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.module == range.module && range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::process::Command;

    use super::*;

    #[test]
    fn names_of_sites_are_taken_apart() {
        let parse = |text| {
            let name = SiteName::parse(text);
            (name.mapped, name.through.unwrap_or_default(), name.function, name.place)
        };
        let line = |file: &str, line| Some(Place::Line(file.into(), line));
        let file = |file: &str| Some(Place::File(file.into()));
        assert_eq!(
            parse("heap: build_table (join.c:120)"),
            (false, "".into(), "build_table".into(), line("join.c", 120))
        );
        assert_eq!(
            parse("alloc ← f(int, char) (src/a.cc:5) [sort]"),
            (false, "alloc".into(), "f(int, char)".into(), line("a.cc", 5))
        );
        assert_eq!(
            parse("mmap: libx.so.1+0x100 <- x_step"),
            (true, "libx.so.1+0x100".into(), "x_step".into(), None)
        );
        assert_eq!(parse("heap: f (libx.so)"), (false, "".into(), "f".into(), file("libx.so")));
        assert_eq!(parse("join.c:120"), (false, "".into(), "".into(), line("join.c", 120)));
        assert_eq!(parse("a::f"), (false, "".into(), "a::f".into(), None));
        let nested = "f(int, (anonymous namespace)::x)";
        assert_eq!(parse(nested), (false, "".into(), nested.into(), None));
    }

    const SOURCE: &str = "\
#include <stdlib.h>
static double table[512];
double *grow(int n) { return malloc(n * 8); }
void *my_alloc(int n) {
  void *p = malloc(n);
  return p;
}
int main(void) {
  double *a = malloc(80000);
  double *b = my_alloc(90000);
  table[3] = a != 0 && b != 0;
  return grow(3) == 0;
}
";

    #[test]
    fn names_are_found_in_a_program_and_other_names_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("sites.c");
        std::fs::write(&source, SOURCE).unwrap();
        let build = |name: &str, flags: &[&str]| {
            let path = folder.path().join(name);
            let done = Command::new("cc").args(flags).arg("-o").arg(&path).arg(&source).status();
            assert!(done.unwrap().success());
            Program::find(path.as_os_str())
        };
        let program = build("sites", &["-g", "-O0"]).unwrap();
        let table = program.data("table").unwrap();
        assert_eq!((table.len(), table[0].range.end - table[0].range.start), (1, 4096));
        assert!(table[0].writable && table[0].range.module == 0);
        let near = program.data("tabel").unwrap_err().to_string();
        assert!(near.ends_with("did you mean table?"), "{near}");

        let inside = |range: &Range, function: &str| {
            let elf = &program.modules[0].elf;
            elf.function(range.start) == Some(function) && elf.function(range.end - 1) == Some(function)
        };
        let direct = program.site("heap: main (sites.c:9)").unwrap();
        assert!(direct.through.is_empty() && direct.calls.iter().all(|r| inside(r, "main")));
        assert_eq!(program.site("sites.c:9").unwrap(), direct);
        let through = program.site("heap: my_alloc ← main (sites.c:10)").unwrap();
        assert!(through.through.iter().all(|r| inside(r, "my_alloc")));
        assert_ne!(through.calls, direct.calls);
        assert!(through.calls.iter().all(|r| inside(r, "main")));
        let passed = program.passed(&direct.calls, |name| name.contains("alloc"));
        assert!(passed.iter().any(|r| inside(r, "my_alloc")) && !passed.iter().any(|r| inside(r, "main")));

        let moved = program.site("heap: main (sites.c:90)").unwrap_err().to_string();
        assert!(moved.contains("at lines 8 to 13 of sites.c"), "{moved}");
        let unlike = program.site("heap: grwo").unwrap_err().to_string();
        assert!(unlike.ends_with("did you mean grow?"), "{unlike}");

        let plain = build("plain", &["-O1"]).unwrap();
        let why = plain.site("heap: main (sites.c:9)").unwrap_err().to_string();
        assert!(why.contains("no debug information"), "{why}");
        assert!(plain.site("heap: main (plain)").is_ok() && plain.data("table").is_ok());
        let stripped = build("bare", &["-s"]).unwrap();
        assert!(stripped.data("table").unwrap_err().to_string().contains("stripped"));
        let fixed = build("fixed", &["-static"]).err().unwrap().to_string();
        assert!(fixed.contains("statically linked"), "{fixed}");
        assert!(Program::find(OsStr::new("/dev/null")).is_err());
    }
}
