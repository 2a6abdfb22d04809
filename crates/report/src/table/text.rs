//! A table as text: aligned columns that fit the available width.

use anstyle::{AnsiColor, Style};

use super::{Cell, Column, Layout, Table, Tone};

pub const HEADING: Style = Style::new().bold();
pub const FAINT: Style = Style::new().dimmed();
pub const PLAIN: Style = Style::new();
/// The style of text that must not be overlooked.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Columns of space between two columns of a table.
const GAP: usize = 2;
/// The least width that a text is cut to.
const LEAST: usize = 12;

impl Tone {
    fn style(self) -> Style {
        match self {
            Tone::Plain => PLAIN,
            Tone::Name => AnsiColor::Cyan.on_default(),
            Tone::Faint => FAINT,
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Partly => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default(),
        }
    }
}

/// The text of a cell, and its style.
struct Written {
    text: String,
    style: Style,
}

impl Table {
    /// Rows and notes in at most `width` columns, each line indented by two.
    pub fn text(&self, width: usize) -> String {
        let titles = self.columns.iter().map(|column| Written {
            text: column.title.clone(),
            style: FAINT,
        });
        let titles: Vec<_> = titles.collect();
        let written = |cell: &Cell| Written {
            text: cell.shown(),
            style: cell.tone().style(),
        };
        let rows: Vec<Vec<_>> = self.rows().map(|row| row.iter().map(written).collect()).collect();
        let widths = self.widths(&titles, &rows, width.saturating_sub(2));
        let mut text = String::new();
        if titles.iter().any(|title| !title.text.is_empty()) {
            line(&mut text, &self.columns, &titles, &widths);
        }
        for row in &rows {
            line(&mut text, &self.columns, row, &widths);
        }
        for note in &self.notes {
            text += &paragraph("", note, width, FAINT);
        }
        text
    }

    /// The same below its title.
    pub fn section(&self, width: usize) -> String {
        match self.continued {
            true => self.text(width),
            false => format!("\n{}{}", heading(&self.title), self.text(width)),
        }
    }

    /// A list of facts: each in a line, with its subject in at least this many columns.
    pub fn facts(&self, least: usize) -> String {
        let line = |row: Vec<Cell>| {
            let words: Vec<String> = row.iter().map(Cell::words).collect();
            let (name, values) = words
                .split_first()
                .map_or(("", &[][..]), |(name, values)| (name, values));
            format!("{name:<least$} {}\n", values.join(" "))
        };
        self.rows().map(line).collect()
    }

    fn widths(&self, titles: &[Written], rows: &[Vec<Written>], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = titles.iter().map(|title| columns(&title.text)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(columns(&cell.text));
            }
        }
        let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut excess = total.saturating_sub(width);
        // Text is wrapped before other text is cut.
        for layout in [Layout::Wrap, Layout::Cut] {
            for (column, own) in self.columns.iter().zip(&mut widths) {
                let least = if layout == Layout::Wrap { 2 * LEAST } else { LEAST };
                if column.layout == layout && *own > least {
                    let narrower = (*own - least).min(excess);
                    *own -= narrower;
                    excess -= narrower;
                }
            }
        }
        widths
    }
}

fn line(text: &mut String, of: &[Column], cells: &[Written], widths: &[usize]) {
    let mut line = String::from("  ");
    let mut at = 2;
    for (number, ((column, cell), &width)) in of.iter().zip(cells).zip(widths).enumerate() {
        let mut lines = match column.layout {
            Layout::Left | Layout::Right => vec![untied(&cell.text)],
            Layout::Cut => vec![cut(&cell.text, width)],
            Layout::Wrap => wrap(&cell.text, width),
        }
        .into_iter();
        let first = lines.next().unwrap_or_default();
        let last = cells[number + 1..].iter().all(|cell| cell.text.is_empty());
        let space = match column.layout {
            Layout::Right => " ".repeat(width.saturating_sub(columns(&first))),
            _ if last => String::new(),
            _ => " ".repeat(width.saturating_sub(columns(&first))),
        };
        let style = if first.is_empty() { PLAIN } else { cell.style };
        line += &match column.layout {
            Layout::Right => format!("{space}{style}{first}{style:#}"),
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

/// A title, in a line of its own.
pub fn heading(title: &str) -> String {
    format!("{HEADING}{title}{HEADING:#}\n")
}

/// A text broken into lines, each after the first indented like the first word.
pub fn paragraph(start: &str, body: &str, width: usize, style: Style) -> String {
    let indent = " ".repeat(2 + start.chars().count());
    let lines = wrap(body, width.saturating_sub(indent.len()).max(20));
    let lines = lines.iter().enumerate().map(|(at, line)| match at {
        0 => format!("  {style}{start}{line}{style:#}\n"),
        _ => format!("{indent}{style}{line}{style:#}\n"),
    });
    lines.collect()
}

/// Columns that a text takes on a terminal, for the scripts that names are written in.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A text in at most `width` columns; the middle is left out.
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

/// A space at which a line is not broken.
const TIE: char = '\u{a0}';

/// A text that is not broken into lines.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', &TIE.to_string())
}

/// The same text with plain spaces.
pub fn untied(text: &str) -> String {
    text.replace(TIE, " ")
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
    lines.iter().map(|line| untied(line)).collect()
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;

    use super::super::Role;
    use super::*;

    #[test]
    fn tables_align_and_fit() {
        let columns = [
            Column::new(Role::Label, "name").cut(),
            Column::new(Role::Count, "misses"),
            Column::new(Role::Text, "what it is").wrap(),
        ];
        let mut table = Table::new("", columns);
        table.row([
            "a_rather_long_name_of_a_structure".into(),
            Cell::count(12),
            "short".into(),
        ]);
        table.row([
            "b".into(),
            Cell::count(1200),
            "a text that goes on for more than one line".into(),
        ]);
        assert_eq!(
            strip_str(&table.text(50)).to_string(),
            "  name            misses  what it is\n  \
               a_rathe…ucture      12  short\n  \
               b                 1200  a text that goes on for\n                          more than one line\n"
        );
        let wide = table.text(200);
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
