//! The code at each address of a file: the same innermost functions and lines that a trace names.

use std::collections::HashMap;

use crate::elf::Elf;
use crate::symbols::look_up;

/// Lines of one file beyond which its debug information is not walked.
const MOST_ROWS: usize = 1 << 22;

/// A piece of code of one function and, if that is known, of one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub start: u64,
    pub end: u64,
    /// Number of the function in [`Code::functions`].
    function: u32,
    /// Number of the file in [`Code::files`].
    file: Option<u32>,
    pub line: Option<u32>,
}

/// All code of one file that has a name.
#[derive(Debug, Default)]
pub struct Code {
    pub rows: Vec<Row>,
    functions: Vec<String>,
    files: Vec<String>,
    /// True if the rows come from debug information.
    pub lines: bool,
}

/// Names by number.
#[derive(Default)]
struct Names {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_string(), number);
        self.names.push(name.to_string());
        number
    }
}

impl Code {
    pub fn of(elf: &Elf) -> Code {
        let (mut functions, mut files) = (Names::default(), Names::default());
        let mut rows = Vec::new();
        let loader = elf
            .debug
            .as_deref()
            .and_then(|debug| addr2line::Loader::new(debug).ok());
        if let Some(loader) = &loader
            && let Ok(ranges) = loader.find_location_range(0, u64::MAX)
        {
            for (start, bytes, location) in ranges.take(MOST_ROWS) {
                let end = start.saturating_add(bytes.max(1));
                // A row has one line, and so almost always one function; otherwise its ends differ.
                let first = look_up(loader, start).unwrap_or_default();
                let name = |spot: &crate::symbols::Spot, at| match spot.function.as_str() {
                    "" => elf.function(at).unwrap_or_default().to_string(),
                    name => name.to_string(),
                };
                rows.push(Row {
                    start,
                    end,
                    function: functions.number(&name(&first, start)),
                    file: location.file.map(|file| files.number(file)),
                    line: location.line.filter(|line| *line > 0),
                });
            }
        }
        let lines = !rows.is_empty();
        rows.sort_by_key(|row| row.start);
        // Code without a line has its name from the table of symbols.
        let mut plain = Vec::new();
        for function in &elf.functions {
            let after = rows.partition_point(|row: &Row| row.end <= function.addr);
            if rows.get(after).is_none_or(|row| row.start > function.addr) {
                plain.push(Row {
                    start: function.addr,
                    end: function.addr.saturating_add(function.bytes.max(1)),
                    function: functions.number(&function.name),
                    file: None,
                    line: None,
                });
            }
        }
        rows.extend(plain);
        rows.sort_by_key(|row| row.start);
        Code {
            rows,
            functions: functions.names,
            files: files.names,
            lines,
        }
    }

    pub fn function(&self, row: &Row) -> &str {
        self.functions.get(row.function as usize).map_or("", String::as_str)
    }

    pub fn file(&self, row: &Row) -> Option<&str> {
        self.files.get(row.file? as usize).map(String::as_str)
    }

    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(String::as_str)
    }
}
