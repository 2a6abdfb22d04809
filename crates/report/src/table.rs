//! Tables for terminals: aligned columns that fit the width there is.

use anstyle::{AnsiColor, Style};

pub const HEADING: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();
pub const NAME: Style = AnsiColor::Cyan.on_default();
pub const GOOD: Style = AnsiColor::Green.on_default();
pub const BAD: Style = AnsiColor::Red.on_default();
pub const PLAIN: Style = Style::new();

/// Columns of space between two columns of a table.
const GAP: usize = 2;
/// The narrowest that a text that may be cut is cut to.
const LEAST: usize = 12;

/// How a column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Text, to the left, never cut.
    Left,
    /// Numbers, to the right, never cut.
    Right,
    /// Text, to the left, cut in the middle where the table would be too wide.
    Cut,
    /// Text, to the left, broken into lines where the table would be too wide. The last column only.
    Wrap,
}

#[derive(Clone, Debug)]
pub struct Cell {
    pub text: String,
    pub style: Style,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell {
            text: text.into(),
            style: PLAIN,
        }
    }
}

impl Cell {
    pub fn styled(text: impl Into<String>, style: Style) -> Self {
        Cell {
            text: text.into(),
            style,
        }
    }
}

/// A table under construction; every row has as many cells as there are columns.
pub struct Table {
    columns: Vec<Column>,
    titles: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub fn new<T: Into<String>>(columns: impl IntoIterator<Item = (Column, T)>) -> Self {
        let (columns, titles) = columns
            .into_iter()
            .map(|(column, title)| (column, title.into()))
            .unzip();
        Table {
            columns,
            titles,
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table in at most `width` columns, each line indented by two.
    pub fn render(&self, width: usize) -> String {
        let widths = self.widths(width.saturating_sub(2));
        let mut text = String::new();
        if self.titles.iter().any(|title| !title.is_empty()) {
            let titles: Vec<_> = self.titles.iter().map(|title| Cell::styled(title, FAINT)).collect();
            self.line(&mut text, &titles, &widths);
        }
        for row in &self.rows {
            self.line(&mut text, row, &widths);
        }
        text
    }

    fn widths(&self, width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|title| columns(title)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(&cell.text));
            }
        }
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut excess = total.saturating_sub(width);
        // Wrapped text gives way before text that would be lost.
        for kind in [Column::Wrap, Column::Cut] {
            for (column, own) in self.columns.iter().zip(&mut widths) {
                let least = if kind == Column::Wrap { 2 * LEAST } else { LEAST };
                if *column == kind && *own > least {
                    let narrower = (*own - least).min(excess);
                    *own -= narrower;
                    excess -= narrower;
                }
            }
        }
        widths
    }

    fn line(&self, text: &mut String, cells: &[Cell], widths: &[usize]) {
        let mut line = String::from("  ");
        let mut at = 2;
        for (number, ((column, cell), &width)) in self.columns.iter().zip(cells).zip(widths).enumerate() {
            let mut lines = match column {
                Column::Left | Column::Right => vec![cell.text.clone()],
                Column::Cut => vec![cut(&cell.text, width)],
                Column::Wrap => wrap(&cell.text, width),
            }
            .into_iter();
            let first = lines.next().unwrap_or_default();
            let last = cells[number + 1..].iter().all(|cell| cell.text.is_empty());
            let space = match column {
                Column::Right => " ".repeat(width.saturating_sub(columns(&first))),
                _ if last => String::new(),
                _ => " ".repeat(width.saturating_sub(columns(&first))),
            };
            let style = if first.is_empty() { PLAIN } else { cell.style };
            line += &match column {
                Column::Right => format!("{space}{style}{first}{style:#}"),
                _ => format!("{style}{first}{style:#}{space}"),
            };
            for next in lines {
                line += &format!("\n{}{style}{next}{style:#}", " ".repeat(at));
            }
            line += &" ".repeat(GAP);
            at += width + GAP;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Columns that a text takes on a terminal, for the scripts that names are written in.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A text in at most `width` columns, what is too much left out of its middle.
pub fn cut(text: &str, width: usize) -> String {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() <= width {
        return text.to_string();
    }
    let kept = width.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let head = characters[..head].iter();
    head.chain(&['…'])
        .chain(&characters[characters.len() - tail..])
        .collect()
}

/// What does not leave a line for the next one in the middle of a text.
const TIE: char = '\u{a0}';

/// A text that is not broken into lines.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', &TIE.to_string())
}

/// A text in lines of at most `width` columns, broken at spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines.iter().map(|line| line.replace(TIE, " ")).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::*;

    #[test]
    fn tables_align_and_fit() {
        let mut table = Table::new([
            (Column::Cut, "name"),
            (Column::Right, "misses"),
            (Column::Wrap, "what it is"),
        ]);
        table.row(["a_rather_long_name_of_a_structure".into(), "12".into(), "short".into()]);
        table.row([
            "b".into(),
            "1200".into(),
            "a text that goes on for more than one line".into(),
        ]);
        assert_eq!(
            strip_str(&table.render(50)).to_string(),
            "  name            misses  what it is\n  \
               a_rathe…ucture      12  short\n  \
               b                 1200  a text that goes on for\n                          more than one line\n"
        );
        let wide = table.render(200);
        assert!(wide.contains("a_rather_long_name_of_a_structure"));
        assert_eq!(wide.lines().count(), 3);
    }

    #[test]
    fn cutting_keeps_both_ends() {
        assert_eq!(cut("abcdefgh", 5), "ab…gh");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("abc", 0), "…");
    }
}
