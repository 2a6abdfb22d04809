//! Allocation sites by the names that advice has for them, as [`results::site::Site`] takes them apart.

use results::site::{Place, Site, base};

use super::code::{Code, Row};
use super::{LocateError, Program, Range, near};

/// The code of a site, from the inside out: each element of the chain is on the call stack, and a call from the last
/// one gets the memory. Only code that is passed over lies between the call and `malloc`.
pub type Chain = Vec<Vec<Range>>;

/// `libx.so.1+0x12f0`: an address in a module.
fn offset(function: &str) -> Option<(&str, u64)> {
    let (module, offset) = function.rsplit_once("+0x")?;
    Some((module, u64::from_str_radix(offset, 16).ok()?))
}

/// True if a function has this name: the whole name, or the name without its parameters.
fn is_called(function: &str, name: &str) -> bool {
    function == name || (!name.contains('(') && function.split('(').next() == Some(name))
}

impl Program {
    /// The code that a site's name stands for.
    pub fn site(&self, site: &Site) -> Result<Chain, LocateError> {
        let whole = site.to_string();
        let Some((last, inner)) = site.chain.split_last() else {
            return Ok(vec![self.code_named(&whole, "", site.place.as_ref())?]);
        };
        let mut chain = Vec::new();
        for function in inner {
            chain.push(self.code_named(&whole, function, None)?);
        }
        chain.push(self.code_named(&whole, last, site.place.as_ref())?);
        Ok(chain)
    }

    /// Code of the program and its libraries that may lie behind a site's function on a call stack without being the
    /// site: every function whose name `passed` accepts. `sites` says in which modules it can matter.
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
            && let Some(module) = self
                .modules
                .iter()
                .position(|m| base(&m.path.to_string_lossy()) == file)
        {
            return Ok(vec![Range {
                module,
                start: at,
                end: at + 1,
            }]);
        }
        // Advice names a library's private memory after the library.
        if place.is_none()
            && let Some(module) = self
                .modules
                .iter()
                .position(|m| base(&m.path.to_string_lossy()) == function)
        {
            return Ok(vec![Range {
                module,
                start: 0,
                end: u64::MAX,
            }]);
        }
        let mut near_lines = Vec::new();
        for (module, loaded) in self.modules.iter().enumerate() {
            let path = loaded.path.to_string_lossy();
            let in_module = |file: &str| base(&path) == file;
            // A place with a module excludes all other modules; a place with a line excludes libraries without debug
            // information.
            let elsewhere = match place {
                Some(Place::File(file)) => self.is_module(file) && !in_module(file),
                Some(Place::Line { .. }) => module > 0 && loaded.elf.debug.is_none(),
                None => false,
            };
            if elsewhere {
                continue;
            }
            let code = self.code(module);
            let fits = |row: &&Row| {
                let at = match place {
                    None => true,
                    Some(Place::Line { file, line }) => {
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
            if let Some(Place::Line { file, .. }) = place {
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
            (Some(Place::Line { file, .. }), Some(from), Some(to)) => {
                format!("{function} is in {program}, but at lines {from} to {to} of {file}: it has changed since")
            }
            (Some(Place::Line { .. }), ..) if !self.code(0).lines => format!(
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

    use results::site::Symbol;

    use super::*;

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
            let done = Command::new("cc")
                .args(flags)
                .arg("-o")
                .arg(&path)
                .arg(&source)
                .status();
            assert!(done.unwrap().success());
            Program::find(path.as_os_str())
        };
        let program = build("sites", &["-g", "-O0"]).unwrap();
        let table = program.data(&Symbol::parse("table"), None).unwrap();
        assert_eq!((table.len(), table[0].range.end - table[0].range.start), (1, 4096));
        assert!(table[0].writable && table[0].range.module == 0);
        let near = program.data(&Symbol::parse("tabel"), None).unwrap_err().to_string();
        assert!(near.ends_with("did you mean table?"), "{near}");

        let inside = |range: &Range, function: &str| {
            let elf = &program.modules[0].elf;
            elf.function(range.start) == Some(function) && elf.function(range.end - 1) == Some(function)
        };
        let site = |name: &str| program.site(&Site::parse(name).unwrap());
        let all = |ranges: &[Range], function| !ranges.is_empty() && ranges.iter().all(|r| inside(r, function));
        let direct = site("heap: main (sites.c:9)").unwrap();
        assert!(direct.len() == 1 && all(&direct[0], "main"));
        assert_eq!(site("sites.c:9").unwrap(), direct);
        let through = site("heap: my_alloc ← main (sites.c:10)").unwrap();
        assert!(through.len() == 2 && all(&through[0], "my_alloc") && all(&through[1], "main"));
        assert_ne!(through[1], direct[0]);
        let passed = program.passed(&direct.concat(), |name| name.contains("alloc"));
        assert!(passed.iter().any(|r| inside(r, "my_alloc")) && !passed.iter().any(|r| inside(r, "main")));

        let moved = site("heap: main (sites.c:90)").unwrap_err().to_string();
        assert!(moved.contains("at lines 8 to 13 of sites.c"), "{moved}");
        let unlike = site("heap: grwo").unwrap_err().to_string();
        assert!(unlike.ends_with("did you mean grow?"), "{unlike}");

        let plain = build("plain", &["-O0"]).unwrap();
        let why = plain
            .site(&Site::parse("heap: main (sites.c:9)").unwrap())
            .unwrap_err()
            .to_string();
        assert!(why.contains("no debug information"), "{why}");
        assert!(
            plain.site(&Site::parse("heap: main (plain)").unwrap()).is_ok()
                && plain.data(&Symbol::parse("table"), None).is_ok()
        );
        let stripped = build("bare", &["-s"]).unwrap();
        assert!(
            stripped
                .data(&Symbol::parse("table"), None)
                .unwrap_err()
                .to_string()
                .contains("stripped")
        );
        let fixed = build("fixed", &["-static"]).err().unwrap().to_string();
        assert!(fixed.contains("statically linked"), "{fixed}");
        assert!(Program::find(OsStr::new("/dev/null")).is_err());
    }
}
