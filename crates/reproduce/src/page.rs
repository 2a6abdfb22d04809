//! A chapter of the book: parts of a page that `domicile reproduce PAPER --write-book PAGE` writes.
//!
//! A part stands between two marks, comments of Markdown, the first of which is the command that writes it:
//!
//! ```text
//! <!-- domicile reproduce philbin96 table3 -->
//! <!-- end of table3 -->
//! ```
//!
//! Each mark is on its own line; in a block of code it does not count. Everything between the marks is replaced;
//! nothing else of the page changes.

use std::fmt::Write;

use crate::claims::is_conclusion;
use crate::line::Line;
use crate::reproduce::Section;
use crate::text::{number, ratio, spread};

/// Columns of a table beside its first; if it would have more, each number gets its own row.
const MOST_BESIDE: usize = 20;

/// How many notes are shown; further ones are folded away.
const MOST_NOTES: usize = 6;

/// The part of a page that cannot be written, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    #[error("the part `{begin}` has no end; write `{end}` after it")]
    Unended { begin: String, end: String },
    #[error("the part `{begin}` is there twice")]
    Twice { begin: String },
    #[error("it has no part for {item}; put `{begin}` and `{end}` where it belongs")]
    Missing { item: String, begin: String, end: String },
}

/// How a part was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// As typed, except for the page.
    pub command: String,
    /// `2026-11-28`.
    pub date: String,
    pub machine: String,
    /// Of the tree that the page is in.
    pub commit: String,
}

fn begin(paper: &str, item: &str) -> String {
    format!("<!-- domicile reproduce {paper} {item} -->")
}

fn end(item: &str) -> String {
    format!("<!-- end of {item} -->")
}

/// The items of a paper for which a page has a part, in the page's order.
pub fn items(page: &str, paper: &str) -> Vec<String> {
    let (first, last) = begin(paper, "\n")
        .split_once('\n')
        .map(|(first, last)| (first.to_string(), last.to_string()))
        .unwrap_or_default();
    let item = |(_, line): (usize, &str)| Some(line.strip_prefix(&first)?.strip_suffix(&last)?.to_string());
    lines(page).filter_map(item).collect()
}

/// The lines of a page that are not in a block of code, and where each begins.
fn lines(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut at, mut fence) = (0, None);
    page.split_inclusive('\n').filter_map(move |line| {
        let begins = at;
        at += line.len();
        let opens = ["```", "~~~"]
            .into_iter()
            .find(|fence| line.trim_start().starts_with(fence));
        match (fence, opens) {
            (None, None) => return Some((begins, line.trim_end())),
            (None, opens) => fence = opens,
            (open, closes) if open == closes => fence = None,
            _ => {}
        }
        None
    })
}

/// The page with this section in its part.
pub fn with(page: &str, paper: &str, section: &Section, made: &Made) -> Result<String, PageError> {
    let item = &section.item.name;
    let (before, after) = around(page, paper, item)?;
    let part = format!("\n\n{}\n\n", part(section, made).trim_end());
    let part = match page.contains("\r\n") {
        true => part.replace('\n', "\r\n"),
        false => part,
    };
    Ok(format!("{before}{part}{after}"))
}

/// The page up to the end of the part's first mark, and from its last mark on.
fn around<'p>(page: &'p str, paper: &str, item: &str) -> Result<(&'p str, &'p str), PageError> {
    let (begin, end) = (begin(paper, item), end(item));
    let mut places = lines(page).filter(|(_, line)| *line == begin);
    let Some((start, _)) = places.next() else {
        let item = item.to_string();
        return Err(PageError::Missing { item, begin, end });
    };
    if places.next().is_some() {
        return Err(PageError::Twice { begin });
    }
    let behind = lines(page).filter(|(at, _)| *at > start);
    // Another part may begin before this one ends.
    let next = |(_, line): &(usize, &str)| *line == end || line.starts_with("<!-- domicile reproduce ");
    match behind.into_iter().find(next) {
        Some((stop, line)) if line == end => Ok((&page[..start + begin.len()], &page[stop..])),
        _ => Err(PageError::Unended { begin, end }),
    }
}

/// Checks that the page can take an item.
pub fn has_part(page: &str, paper: &str, item: &str) -> Result<(), PageError> {
    around(page, paper, item).map(|_| ())
}

/// The text between the marks: how it was made, the table, the notes.
fn part(section: &Section, made: &Made) -> String {
    let mut text = format!(
        "*`{}`, {}, {}, commit {}.*\n\n",
        made.command, made.date, made.machine, made.commit
    );
    if !section.lines.is_empty() {
        text += &table(section);
        text.push('\n');
    }
    let mut notes: Vec<String> = Vec::new();
    for line in &section.lines {
        if let Some(reason) = &line.reason {
            let note = format!("No number: {reason}");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    let (claims, evidence): (Vec<&String>, Vec<&String>) =
        notes.iter().chain(&section.notes).partition(|note| is_conclusion(note));
    for note in &claims {
        let _ = writeln!(text, "- {}", escaped(note));
    }
    let folded = evidence.len() > MOST_NOTES;
    if folded {
        let _ = writeln!(text, "\n<details><summary>{} more notes</summary>\n", evidence.len());
    }
    for note in &evidence {
        let _ = writeln!(text, "- {}", escaped(note));
    }
    if folded {
        text.push_str("\n</details>\n");
    }
    text
}

/// The values of a section, each beside the paper's.
fn table(section: &Section) -> String {
    let columns = distinct(section.lines.iter().map(|line| line.column.as_str()));
    let unit = &section.item.unit;
    let mut text = match unit.as_str() {
        "" | "each" => String::new(),
        unit => format!("In {unit}.\n\n"),
    };
    // A column that is not the paper's has one number.
    let of_paper = |column: &str| {
        let mut own = section.lines.iter().filter(|line| line.column == column);
        own.any(|line| line.paper_value.is_some())
    };
    let beside: usize = columns.iter().map(|column| if of_paper(column) { 3 } else { 1 }).sum();
    if beside > MOST_BESIDE {
        row(&mut text, ["", "", "paper", "here", "here/paper"].map(String::from));
        row(&mut text, ["---", "---", "---:", "---:", "---:"].map(String::from));
        let mut last = "";
        for line in &section.lines {
            let name = if line.row == last { "" } else { &line.row };
            last = &line.row;
            let [paper, here, times] = cells(line, unit);
            row(&mut text, [escaped(name), escaped(&line.column), paper, here, times]);
        }
        return text;
    }
    let mut head = vec![String::new()];
    let mut rule = vec!["---".to_string()];
    for column in &columns {
        if of_paper(column) {
            head.extend([format!("{}: paper", escaped(column)), "here".into(), "ratio".into()]);
            rule.extend(["---:", "---:", "---:"].map(String::from));
        } else {
            head.push(escaped(column));
            rule.push("---:".to_string());
        }
    }
    row(&mut text, head);
    row(&mut text, rule);
    for name in distinct(section.lines.iter().map(|line| line.row.as_str())) {
        let mut out = vec![escaped(name)];
        for column in &columns {
            let line = section
                .lines
                .iter()
                .find(|line| line.row == name && line.column == *column);
            let [paper, here, times] = line.map_or_else(Default::default, |line| cells(line, unit));
            if of_paper(column) {
                out.extend([paper, here, times]);
            } else {
                out.push(here);
            }
        }
        row(&mut text, out);
    }
    text
}

/// The paper's number, ours and the ratio, in words.
fn cells(line: &Line, unit: &str) -> [String; 3] {
    let own = match line.unit.as_str() {
        same if same == unit => "",
        "percent" => " %",
        "each" => "",
        other => &format!(" {other}"),
    };
    let value = |value: Option<f64>| match value {
        Some(_) => format!("{}{own}", number(value, line)),
        None => String::new(),
    };
    let here = match line.value {
        None => "-".to_string(),
        some => value(some) + &spread(line),
    };
    [
        value(line.paper_value),
        here,
        line.ratio.map_or_else(String::new, |times| ratio(Some(times))),
    ]
}

fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    for cell in cells {
        let _ = write!(text, "| {cell} ");
    }
    text.push_str("|\n");
}

/// Escapes characters that Markdown would interpret.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// Each once, in the order of the first.
fn distinct<'t>(all: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut each = Vec::new();
    for one in all {
        if !each.contains(&one) {
            each.push(one);
        }
    }
    each
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Place;
    use crate::papers;

    fn section(lines: &[(&str, &str, &str, Option<f64>, f64)]) -> Section {
        let paper = papers::read("philbin96");
        let item = paper.items.iter().find(|item| item.name == "table3").unwrap();
        let line = |(row, column, unit, paper, ours): &(&str, &str, &str, Option<f64>, f64)| {
            let place = Place {
                paper: "philbin96",
                item: "table3",
                row,
                column,
                unit,
            };
            Line::new(place, *paper, Ok(*ours))
        };
        Section {
            item: item.clone(),
            lines: lines.iter().map(line).collect(),
            notes: vec!["a | note".into()],
            failures: Vec::new(),
            drawing: None,
        }
    }

    fn made() -> Made {
        Made {
            command: "domicile reproduce philbin96 table3".into(),
            date: "2026-11-28".into(),
            machine: "a machine".into(),
            commit: "abc".into(),
        }
    }

    const PAGE: &str = "before\n<!-- domicile reproduce philbin96 table3 -->\nold\n<!-- end of table3 -->\nafter\n";

    #[test]
    fn a_part_is_replaced_and_nothing_else() {
        let one = section(&[
            ("L2 misses", "Untiled", "thousands", Some(68225.0), 67000.4),
            ("L1 rate", "Untiled", "percent", Some(4.8), 10.2),
            ("L2 misses", "ours", "thousands", None, 1234.0),
        ]);
        let page = with(PAGE, "philbin96", &one, &made()).unwrap();
        let expected = "before\n<!-- domicile reproduce philbin96 table3 -->\n\n\
            *`domicile reproduce philbin96 table3`, 2026-11-28, a machine, commit abc.*\n\nIn thousands.\n\n\
            |  | Untiled: paper | here | ratio | ours |\n| --- | ---: | ---: | ---: | ---: |\n\
            | L2 misses | 68,225 | 67,000 | 0.98 | 1,234 |\n| L1 rate | 4.8 % | 10.2 % | 2.12 |  |\n\n\
            - a \\| note\n\n<!-- end of table3 -->\nafter\n";
        assert_eq!(page, expected);
        assert_eq!(with(&page, "philbin96", &one, &made()).unwrap(), page, "written twice");
    }

    #[test]
    fn marks_in_code_are_none_and_ends_of_lines_stay() {
        let one = section(&[("L2 misses", "ours", "thousands", None, 1234.0)]);
        let shown = format!("```text\n{PAGE}```\n");
        assert_eq!(items(&shown, "philbin96"), [] as [&str; 0]);
        let page = with(&format!("{shown}{PAGE}"), "philbin96", &one, &made()).unwrap();
        assert!(page.starts_with(&shown) && page.contains("1,234"), "{page}");
        let page = with(&PAGE.replace('\n', "\r\n"), "philbin96", &one, &made()).unwrap();
        assert_eq!(page.matches('\n').count(), page.matches("\r\n").count(), "{page:?}");
        assert!(page.contains("1,234"), "{page}");
    }

    #[test]
    fn claims_come_first_and_many_notes_are_folded() {
        let mut one = section(&[]);
        one.notes = (0..8).map(|number| format!("note {number}")).collect();
        one.notes.push("did not hold: it is faster".into());
        let page = with(PAGE, "philbin96", &one, &made()).unwrap();
        let folded = "- did not hold: it is faster\n\n<details><summary>8 more notes</summary>\n\n- note 0\n";
        assert!(
            page.contains(folded) && page.contains("- note 7\n\n</details>\n\n<!-- end"),
            "{page}"
        );
    }

    #[test]
    fn many_columns_are_rows() {
        let columns = ["a", "b", "c", "d", "e", "f", "g"];
        let lines = columns.map(|column| ("one", column, "thousands", Some(2.0), 1.0));
        let page = with(PAGE, "philbin96", &section(&lines), &made()).unwrap();
        assert!(
            page.contains("| one | a | 2 | 1 | 0.50 |\n|  | b | 2 | 1 | 0.50 |\n"),
            "{page}"
        );
    }

    #[test]
    fn pages_say_which_items_they_have_and_what_is_wrong_with_them() {
        assert_eq!(items(PAGE, "philbin96"), ["table3"]);
        assert_eq!(items(PAGE, "ding11"), [] as [&str; 0]);
        assert_eq!(has_part(PAGE, "philbin96", "table3"), Ok(()));
        let error = |page: &str, item| has_part(page, "philbin96", item).unwrap_err().to_string();
        assert!(error(PAGE, "table5").contains("put `<!-- domicile reproduce philbin96 table5 -->`"));
        assert!(error(&PAGE.repeat(2), "table3").ends_with("is there twice"));
        let open = PAGE.replace("<!-- end of table3 -->", "");
        assert!(error(&open, "table3").contains("has no end"));
        let crossed = "<!-- domicile reproduce philbin96 table3 -->\n<!-- domicile reproduce philbin96 table5 -->\n<!-- end of table3 -->";
        assert!(error(crossed, "table3").contains("has no end"));
    }
}
