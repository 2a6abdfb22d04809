//! The source of a program with its counts: each line with its waiting time, as in `cg_annotate` and `perf annotate`.

use std::collections::BTreeMap;

use results::{Advice, Misses, SourceLine, count, percent};

use crate::tables::levels;

/// How many lines around one with counts are also shown.
const AROUND: u32 = 4;
/// Width of a column of counts.
const WIDTH: usize = 10;

/// The lines of an advice's baseline in their files, those that wait most first. `read` returns the text of a source
/// file, or why there is none; then only the counts are shown. `None` if no line has a file.
pub fn annotated(advice: &Advice, read: impl Fn(&str) -> Result<String, String>) -> Option<String> {
    let listing = Listing::of(advice, |_, _| true, &read)?;
    let mut text = format!(
        "{} on {}, under {}: of the time that its cpus wait, and misses, by line\n",
        advice.program, advice.machine.name, advice.baseline
    );
    for file in &listing.files {
        text += &file.text(&listing.levels);
    }
    Some(text)
}

/// Source files with the waits of their lines.
pub struct Listing {
    /// Levels of caches whose misses are counted.
    pub levels: Vec<u8>,
    /// The one that waits most first.
    pub files: Vec<ListedFile>,
}

pub struct ListedFile {
    pub path: String,
    /// The part of all waiting.
    pub part: f64,
    /// Why its text is missing, if so.
    pub lacks: Option<String>,
    pub lines: Vec<ListedLine>,
}

pub struct ListedLine {
    pub number: u32,
    pub text: String,
    /// The part of all waiting, and misses by level; absent for lines that are only context.
    pub counts: Option<(f64, Vec<u64>)>,
    /// True if lines before it are left out.
    pub after_gap: bool,
}

impl Listing {
    /// All files; only those are read that `wanted` accepts by position and part of all waiting.
    pub fn of(
        advice: &Advice,
        wanted: impl Fn(usize, f64) -> bool,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Option<Listing> {
        let base = advice.base()?;
        let lines = base.source_lines.as_deref().unwrap_or(&advice.source_lines);
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        for line in lines {
            if let (Some(file), Some(number)) = (line.file.as_deref(), line.line) {
                files.entry(file).or_default().add(number, line);
            }
        }
        if files.is_empty() {
            return None;
        }
        let mut files: Vec<(&str, File)> = files.into_iter().collect();
        files.sort_by_key(|(_, file)| std::cmp::Reverse(file.stall));
        let levels = levels(lines.iter().map(|line| &line.caches[..]));
        let all = base.stall_ns().max(1) as f64;
        let files = files.iter().enumerate().map(|(at, (path, file))| {
            let text = match wanted(at, file.stall as f64 / all) {
                true => read(path),
                false => Err("it was not read".to_string()),
            };
            file.listed(path, all, &levels, text)
        });
        Some(Listing {
            files: files.collect(),
            levels,
        })
    }
}

impl ListedFile {
    fn text(&self, levels: &[u8]) -> String {
        let mut text = format!("\n{}: {}\n", self.path, percent(self.part));
        if let Some(why) = &self.lacks {
            text += &format!("(its text is not here: {why})\n");
        }
        text += &format!("{:>WIDTH$}", "stall");
        for level in levels {
            text += &format!("{:>WIDTH$}", format!("L{level}"));
        }
        text += "   line\n";
        for line in &self.lines {
            if line.after_gap {
                text += &format!("{:>WIDTH$}\n", "...");
            }
            let counts = match &line.counts {
                None => " ".repeat(WIDTH * (1 + levels.len())),
                Some((part, misses)) => {
                    let mut counts = format!("{:>WIDTH$}", percent(*part));
                    for &of_level in misses {
                        counts += &format!("{:>WIDTH$}", count(of_level));
                    }
                    counts
                }
            };
            text += format!("{counts}{:>7}  {}", line.number, line.text).trim_end();
            text.push('\n');
        }
        text
    }
}

/// The lines of one file that have counts.
#[derive(Default)]
struct File<'a> {
    lines: BTreeMap<u32, Vec<&'a SourceLine>>,
    stall: u64,
}

impl<'a> File<'a> {
    fn add(&mut self, number: u32, line: &'a SourceLine) {
        self.lines.entry(number).or_default().push(line);
        self.stall = self.stall.saturating_add(line.stall_ns);
    }

    /// `all`: the total waiting time, in nanoseconds.
    fn listed(&self, path: &str, all: f64, levels: &[u8], source: Result<String, String>) -> ListedFile {
        let part = |stall: u64| stall as f64 / all;
        let text: Vec<&str> = source
            .as_deref()
            .map_or_else(|_| Vec::new(), |source| source.lines().collect());
        let mut shown = 0;
        let line = |(number, at): (u32, Option<&Vec<&SourceLine>>)| {
            let after_gap = shown > 0 && number > shown + 1;
            shown = number;
            let counts = at.map(|lines| {
                let misses = |level: &u8| {
                    lines
                        .iter()
                        .map(|line| Misses::of_level(&line.caches, *level).misses)
                        .sum()
                };
                let stall = lines.iter().map(|line| line.stall_ns).sum();
                (part(stall), levels.iter().map(misses).collect())
            });
            ListedLine {
                number,
                text: text.get(number as usize - 1).copied().unwrap_or_default().to_string(),
                counts,
                after_gap,
            }
        };
        ListedFile {
            path: path.to_string(),
            part: part(self.stall),
            lines: self.shown(text.len()).into_iter().map(line).collect(),
            lacks: source.err(),
        }
    }

    /// The numbers of the lines to show, and the counts of each.
    fn shown(&self, length: usize) -> Vec<(u32, Option<&Vec<&'a SourceLine>>)> {
        let mut numbers: BTreeMap<u32, Option<&Vec<&SourceLine>>> = BTreeMap::new();
        for (&number, lines) in &self.lines {
            let last = u32::try_from(length)
                .unwrap_or(u32::MAX)
                .min(number.saturating_add(AROUND));
            for near in number.saturating_sub(AROUND).max(1)..=last {
                numbers.entry(near).or_default();
            }
            if number > 0 {
                numbers.insert(number, Some(lines));
            }
        }
        numbers.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use results::{Outcome, Time};

    use super::*;

    fn line(file: &str, number: u32, stall_ns: u64, misses: u64) -> SourceLine {
        SourceLine {
            function: "f".to_string(),
            file: Some(file.to_string()),
            line: Some(number),
            stall_ns,
            caches: vec![Misses {
                name: "L1".to_string(),
                level: 1,
                misses,
                ..Misses::default()
            }],
            ..SourceLine::default()
        }
    }

    fn advice(lines: Vec<SourceLine>) -> Advice {
        Advice {
            program: "p".to_string(),
            baseline: "random".to_string(),
            policies: vec![Outcome {
                policy: "random".to_string(),
                time_ns: Time {
                    cache_stall: 1000,
                    ..Time::default()
                },
                source_lines: Some(lines),
                ..Outcome::default()
            }],
            ..Advice::default()
        }
    }

    #[test]
    fn counts_stand_beside_their_lines_and_the_rest_is_left_out() {
        let lines = vec![
            line("/s/a.c", 2, 600, 7),
            line("/s/a.c", 20, 100, 3),
            line("/s/b.c", 1, 50, 1),
        ];
        let source = (1..=30).map(|number| format!("text {number}\n")).collect::<String>();
        let read = |path: &str| match path {
            "/s/a.c" => Ok(source.clone()),
            _ => Err("gone".to_string()),
        };
        let text = annotated(&advice(lines), read).unwrap();
        assert!(text.contains("\n/s/a.c: 70.0%\n"), "{text}");
        assert!(text.contains("     60.0%         7      2  text 2\n"), "{text}");
        assert!(
            text.contains("                          6  text 6\n       ...\n"),
            "{text}"
        );
        assert!(
            !text.contains("text 7\n") && text.contains("text 16\n") && text.contains("text 24\n"),
            "{text}"
        );
        assert!(
            text.ends_with("(its text is not here: gone)\n     stall        L1   line\n      5.0%         1      1\n"),
            "{text}"
        );
    }

    #[test]
    fn where_no_line_is_known_there_is_nothing() {
        let nameless = SourceLine {
            function: "lib+0x1".to_string(),
            ..SourceLine::default()
        };
        assert_eq!(annotated(&advice(vec![nameless]), |_| unreachable!()), None);
    }
}
