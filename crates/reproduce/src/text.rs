//! Sections as tables for terminals: the paper's number, ours, and the ratio.

use report::{Cell, Column, Exact, Role, Table};

use crate::line::Line;
use crate::reproduce::Section;

/// A section in `columns` columns of a terminal.
pub fn text(section: &Section, columns: usize) -> String {
    let item = &section.item;
    let table = table(section);
    let mut out = format!("{}\n{}", table.title(), table.text(columns));
    let mut reasons: Vec<String> = Vec::new();
    for line in &section.lines {
        if let Some(reason) = &line.reason {
            let for_row = format!("no number for {}: {reason}", line.row);
            let for_column = format!("no number for {}: {reason}", line.column);
            // In tables of counts a reason applies to a column, in tables of times to a row.
            let text = if item.absent.as_ref() == Some(reason) {
                format!("no numbers where there are none from here: {reason}")
            } else if item.runs.iter().any(|run| run.of == line.column) {
                for_column
            } else {
                for_row
            };
            if !reasons.contains(&text) {
                reasons.push(text);
            }
        }
    }
    for note in reasons.iter().chain(&section.notes) {
        out += &format!("  {note}\n");
    }
    out
}

/// The paper's numbers and ours, line by line. The unit is in the last column if the table has several.
pub fn table(section: &Section) -> Table {
    let item = &section.item;
    let mut table = Table::new(
        format!("{}: {} (section {})", heading(&item.name), item.title, item.section),
        [
            Column::new(Role::Label, "").named("row"),
            Column::new(Role::Text, "").named("column"),
            Column::new(Role::Number, "paper"),
            Column::new(Role::Number, "here"),
            Column::new(Role::Number, "here/paper"),
            Column::new(Role::Text, "").named("unit"),
        ],
    );
    let cell = |value: Option<f64>, words: String| match value {
        Some(value) => Cell::number(Exact::Real(value), words),
        None => Cell::from(words),
    };
    let mut last = "";
    for line in &section.lines {
        table.row([
            Cell::from(&line.row).again(line.row == last),
            line.column.as_str().into(),
            cell(line.paper_value, number(line.paper_value, line)),
            cell(line.value, number(line.value, line) + &spread(line)),
            cell(line.ratio, ratio(line.ratio)),
            unit(line, &item.unit).into(),
        ]);
        last = &line.row;
    }
    table
}

/// `Table 3` for `table3`.
fn heading(name: &str) -> String {
    let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (word, number) = name.split_at(digits);
    let mut letters = word.chars();
    let first = letters
        .next()
        .map(|c| c.to_ascii_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{} {number}", letters.as_str()).trim_end().to_string()
}

/// Null threads cost a hundredth of the paper's: that must not print as 0.
pub(crate) fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_string(),
        Some(ratio) if ratio < 0.0995 && ratio > 0.0 => format!("{ratio:.4}"),
        Some(ratio) => format!("{ratio:.2}"),
    }
}

/// The unit, if it is not the table's.
fn unit(line: &Line, table: &str) -> String {
    if line.unit == table {
        String::new()
    } else {
        line.unit.clone()
    }
}

pub(crate) fn number(value: Option<f64>, line: &Line) -> String {
    let Some(value) = value else {
        return "-".to_string();
    };
    match line.unit.as_str() {
        "thousands" | "each" => grouped(value),
        "percent" => format!("{value:.1}"),
        // Null threads cost nanoseconds now.
        "microseconds" => format!("{value:.4}"),
        _ if value.abs() < 1.0 => format!("{value:.3}"),
        _ => format!("{value:.2}"),
    }
}

/// The least and the most of several, if they differ as printed.
pub(crate) fn spread(line: &Line) -> String {
    let (Some(&least), Some(&most)) = (line.each.first(), line.each.last()) else {
        return String::new();
    };
    let [least, most] = [least, most].map(|value| number(Some(value), line));
    match least == most {
        true => String::new(),
        false => format!(" ({least} to {most})"),
    }
}

/// A number without its fraction, its digits in groups of three.
fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Place;
    use crate::papers;

    #[test]
    fn a_section_reads_like_the_papers_table() {
        let paper = papers::read("philbin96");
        let item = paper.items.iter().find(|item| item.name == "table3").unwrap();
        let place = |row, column, unit| Place {
            paper: "philbin96",
            item: "table3",
            row,
            column,
            unit,
        };
        let section = Section {
            item: item.clone(),
            lines: vec![
                Line::new(place("L2 misses", "Untiled", "thousands"), Some(68225.0), Ok(67000.4)),
                Line::new(
                    place("L2 misses", "Tiled", "thousands"),
                    Some(738.0),
                    Err("not built".into()),
                ),
                Line::new(place("bins", "Threaded", "each"), Some(81.0), Ok(81.0)),
            ],
            notes: vec!["a note".into()],
            failures: Vec::new(),
            drawing: None,
        };
        let text = anstream::adapter::strip_str(&text(&section, 100)).to_string();
        assert!(text.starts_with("Table 3: Matrix multiply memory references"), "{text}");
        assert!(text.contains("68,225  67,000        0.98"), "{text}");
        assert!(text.contains("no number for Tiled: not built\n  a note\n"), "{text}");
        let bins = text.lines().find(|line| line.contains("bins")).unwrap();
        assert!(bins.contains("1.00") && bins.trim_end().ends_with("each"), "{text}");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(0.4), "0");
        assert_eq!(grouped(999.0), "999");
        assert_eq!(grouped(1_048_576.0), "1,048,576");
        assert_eq!(
            (ratio(Some(1.0)).as_str(), ratio(Some(0.0056)).as_str()),
            ("1.00", "0.0056")
        );
        assert_eq!((ratio(Some(0.0)).as_str(), ratio(None).as_str()), ("0.00", "-"));
        assert_eq!(heading("figure4"), "Figure 4");
        assert_eq!(heading("table10"), "Table 10");
    }
}
