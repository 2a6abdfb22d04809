//! A figure as a drawing (SVG) for the book: here that of times over block sizes; grids draw themselves.

use std::fmt::Write;

use crate::reproduce::Section;

/// Pixels of one curve's panel, and the room around its axes.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 40.0;

/// A section's drawing. Of times: one panel for each curve that has numbers, two in a row; `None` if no curve has
/// two. Times begin at zero, so that what looks flat is flat.
pub fn plot(section: &Section) -> Option<String> {
    if section.drawing.is_some() {
        return section.drawing.clone();
    }
    let rows = section.item.rows.iter();
    let curves = rows.map(|row| (row.name.as_str(), points(section, &row.name)));
    let curves: Vec<(&str, Vec<Point>)> = curves.filter(|(_, points)| points.len() >= 2).collect();
    if curves.is_empty() {
        return None;
    }
    let across = curves.len().min(2);
    let down = curves.len().div_ceil(2);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="11" fill="#333">"##,
        across as f64 * WIDTH,
        down as f64 * HEIGHT
    );
    let _ = writeln!(svg, "<title>{}</title>", escape(&section.item.title));
    for (index, (name, points)) in curves.iter().enumerate() {
        let (x, y) = ((index % 2) as f64 * WIDTH, (index / 2) as f64 * HEIGHT);
        let _ = writeln!(svg, r#"<g transform="translate({x} {y})">"#);
        panel(&mut svg, name, points);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Bytes of a block, seconds, and what the block is called.
type Point<'s> = (f64, f64, &'s str);

/// The points of a curve, by size of block.
fn points<'s>(section: &'s Section, row: &str) -> Vec<Point<'s>> {
    let lines = section.lines.iter().filter(|line| line.row == row);
    let mut points: Vec<_> = lines
        .filter_map(|line| {
            Some((
                results::quantities::bytes(&line.column).ok()? as f64,
                line.value?,
                line.column.as_str(),
            ))
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn panel(svg: &mut String, name: &str, points: &[Point]) {
    let (first, last) = (points[0].0.log2(), points[points.len() - 1].0.log2());
    let most = points.iter().fold(0.0f64, |most, point| most.max(point.1));
    let top = ceiling(most);
    let x = |bytes: f64| LEFT + (bytes.log2() - first) / (last - first).max(1e-9) * (WIDTH - LEFT - RIGHT);
    let y = |seconds: f64| HEIGHT - BOTTOM - seconds / top * (HEIGHT - TOP - BOTTOM);
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="16" text-anchor="middle" font-weight="bold">{}</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        escape(name)
    );
    for step in 0..=4 {
        let seconds = top * f64::from(step) / 4.0;
        let at = y(seconds);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0,
            number(seconds)
        );
    }
    for (bytes, _, label) in points {
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(*bytes),
            HEIGHT - BOTTOM + 15.0,
            escape(label)
        );
    }
    let path: Vec<String> = points
        .iter()
        .map(|(bytes, seconds, _)| format!("{:.1} {:.1}", x(*bytes), y(*seconds)))
        .collect();
    let _ = writeln!(
        svg,
        r##"<path d="M{}" fill="none" stroke="#1f6fb2" stroke-width="2"/>"##,
        path.join("L")
    );
    for (bytes, seconds, label) in points {
        let _ = writeln!(
            svg,
            r##"<circle cx="{:.1}" cy="{:.1}" r="3" fill="#1f6fb2"><title>{}: {:.3} s</title></circle>"##,
            x(*bytes),
            y(*seconds),
            escape(label),
            seconds
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">bytes of a block in each dimension</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0
    );
    let _ = writeln!(svg, r#"<text x="4" y="16">seconds</text>"#);
}

/// The next of 1, 2, 4, 6, 8 times a power of ten: four steps of it are short numbers.
pub(crate) fn ceiling(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(most.log10().floor());
    let steps = [1.0, 2.0, 4.0, 6.0, 8.0, 10.0];
    steps
        .iter()
        .map(|step| step * power)
        .find(|&step| step >= most)
        .unwrap_or(10.0 * power)
}

pub(crate) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short.is_empty() {
        "0".to_string()
    } else {
        short.to_string()
    }
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::{Line, Place};
    use crate::papers;

    fn section(value: impl Fn(usize, usize) -> Option<f64>) -> Section {
        let item = papers::read("philbin96").items.pop().unwrap();
        assert_eq!(item.name, "figure4");
        let mut lines = Vec::new();
        for (r, row) in item.rows.iter().enumerate() {
            for (c, column) in item.columns.iter().enumerate() {
                let place = Place {
                    paper: "philbin96",
                    item: &item.name,
                    row: &row.name,
                    column,
                    unit: "seconds",
                };
                lines.push(Line::new(place, None, value(r, c).ok_or_else(|| "none".to_string())));
            }
        }
        Section {
            item,
            lines,
            notes: Vec::new(),
            failures: Vec::new(),
            drawing: None,
        }
    }

    #[test]
    fn each_curve_has_a_panel_and_each_number_a_point() {
        let svg = plot(&section(|r, c| Some(1.0 + r as f64 + c as f64))).unwrap();
        assert_eq!(svg.matches("<g ").count(), 4);
        assert_eq!(svg.matches("<circle").count(), 4 * 7);
        assert!(svg.contains("<title>128K: 1.000 s</title>") && svg.contains("<title>8M: 10.000 s</title>"));
        assert!(svg.contains("N-body") && svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn what_has_no_numbers_is_not_drawn() {
        assert_eq!(plot(&section(|_, _| None)), None);
        let svg = plot(&section(|r, _| (r == 2).then_some(2.0))).unwrap();
        assert_eq!(svg.matches("<g ").count(), 1);
        assert!(svg.contains("SOR") && !svg.contains("NaN"));
    }

    #[test]
    fn axes_end_at_short_numbers() {
        assert_eq!(
            (ceiling(0.0), ceiling(1.0), ceiling(3.1), ceiling(9.0)),
            (1.0, 1.0, 4.0, 10.0)
        );
        assert!((ceiling(0.017) - 0.02).abs() < 1e-12);
        assert_eq!(
            (number(0.5).as_str(), number(2.0).as_str(), number(0.0).as_str()),
            ("0.5", "2", "0")
        );
    }
}
