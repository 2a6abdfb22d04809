//! Figures as pictures (SVG) for the book: the common part, and the figure of times over block sizes; grids draw
//! themselves.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::data::float::pretty_print_float;
use plotters::prelude::*;

use crate::reproduce::Section;

pub(crate) type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
pub(crate) type Drawn<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;
type Chart<'a, 's> = ChartContext<'a, SVGBackend<'s>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub(crate) const TEXT: (&str, u32) = ("sans-serif", 16);
pub(crate) const BOLD: (&str, u32, FontStyle) = ("sans-serif", 17, FontStyle::Bold);
pub(crate) const BLUE: RGBColor = RGBColor(31, 111, 178);
/// Pixels of a panel: two are about as wide as the book's text.
pub(crate) const PANEL: (u32, u32) = (410, 285);
const TITLE: u32 = 30;

/// A picture of panels of one size, this many in a row. It has a white background, because a page may be dark.
pub(crate) fn picture(
    title: &str,
    (panels, across): (usize, usize),
    (width, height): (u32, u32),
    draw: impl Fn(usize, &Area) -> Drawn<()>,
) -> String {
    let across = panels.clamp(1, across);
    let down = panels.div_ceil(across);
    let size = (across as u32 * width, down as u32 * height + TITLE);
    let mut svg = String::new();
    let mut draw_all = || -> Drawn<()> {
        let all = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        all.fill(&WHITE)?;
        let (above, below) = all.split_vertically(TITLE);
        above.titled(title, ("sans-serif", 19))?;
        let areas = below.split_evenly((down, across));
        for (at, area) in areas.iter().enumerate().take(panels) {
            draw(at, area)?;
        }
        all.present()
    };
    draw_all().expect("all areas have room, and text takes all that is written");
    svg
}

/// A chart whose scale begins at zero, so that a flat curve looks flat.
pub(crate) struct Axes<'t> {
    pub title: &'t str,
    /// The labels of the places 0, 1, 2 and so on of the horizontal axis.
    pub marks: Vec<String>,
    pub below: &'t str,
    /// Room before the first place and after the last.
    pub beside: f64,
    pub most: f64,
    pub unit: &'t str,
}

impl Axes<'_> {
    pub fn draw<'a, 's>(&self, area: &'a Area<'s>) -> Drawn<Chart<'a, 's>> {
        let last = self.marks.len() as f64 - 1.0;
        let name = |at: &f64| match at.fract() {
            0.0 => self.marks.get(*at as usize).cloned().unwrap_or_default(),
            _ => String::new(),
        };
        let mut chart = ChartBuilder::on(area)
            .caption(self.title, BOLD)
            .margin(8)
            .margin_right(18)
            .x_label_area_size(42)
            .y_label_area_size(57)
            .build_cartesian_2d(-self.beside..last + self.beside, 0.0..self.most * 1.05)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .label_style(TEXT)
            .x_labels(self.marks.len())
            .x_label_formatter(&name)
            .y_label_formatter(&|value| pretty_print_float(*value, false))
            .y_labels(6)
            .x_desc(self.below)
            .y_desc(self.unit)
            .draw()?;
        Ok(chart)
    }
}

/// Names after their colors, one below the other.
pub(crate) fn legend(area: &Area, keys: impl IntoIterator<Item = (String, RGBColor)>) -> Drawn<()> {
    for (line, (name, color)) in (0..).zip(keys) {
        let key = EmptyElement::at((0, 34 + 20 * line)) + Rectangle::new([(0, 0), (12, 12)], color.filled());
        area.draw(&(key + Text::new(name, (18, 0), TEXT)))?;
    }
    Ok(())
}

/// A section's drawing. For times: one panel for each curve that has numbers; `None` if no curve has two.
pub fn plot(section: &Section) -> Option<String> {
    if section.drawing.is_some() {
        return section.drawing.clone();
    }
    let (rows, columns) = (&section.item.rows, &section.item.columns);
    let curves = rows.iter().map(|row| (row.name.as_str(), points(section, &row.name)));
    let curves: Vec<(&str, Vec<(f64, f64)>)> = curves.filter(|(_, points)| points.len() >= 2).collect();
    (!curves.is_empty()).then(|| {
        picture(&section.item.title, (curves.len(), 2), PANEL, |at, area| {
            let (title, points) = &curves[at];
            let axes = Axes {
                title,
                // Sizes double from one to the next: the axis is logarithmic.
                marks: columns.clone(),
                below: "bytes of a block in each dimension",
                beside: 0.1,
                most: points.iter().map(|point| point.1).fold(0.0, f64::max),
                unit: "seconds",
            };
            let line = LineSeries::new(points.iter().copied(), BLUE.filled().stroke_width(2));
            axes.draw(area)?.draw_series(line.point_size(3))?;
            Ok(())
        })
    })
}

/// The points of a curve: places of their columns, and seconds.
fn points(section: &Section, row: &str) -> Vec<(f64, f64)> {
    let place = |column: &String| section.item.columns.iter().position(|other| other == column);
    let lines = section.lines.iter().filter(|line| line.row == row);
    lines
        .filter_map(|line| Some((place(&line.column)? as f64, line.value?)))
        .collect()
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
        let mut section = section(|r, c| Some(1.0 + r as f64 + c as f64));
        section.item.title = "times < & > sizes".to_string();
        let svg = plot(&section).unwrap();
        assert_eq!(svg.matches("bold").count(), 4);
        assert_eq!(svg.matches("<circle").count(), 4 * 7);
        assert!(svg.contains("N-body") && svg.contains("128K") && svg.contains("seconds"));
        assert!(svg.contains("times &lt; &amp; &gt; sizes") && svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn what_has_no_numbers_is_not_drawn() {
        assert_eq!(plot(&section(|_, _| None)), None);
        let svg = plot(&section(|r, _| (r == 2).then_some(2.0))).unwrap();
        assert_eq!(svg.matches("bold").count(), 1);
        assert!(svg.contains("SOR") && !svg.contains("NaN"));
        let of_no_time = section(|_, _| Some(0.0));
        assert!(plot(&of_no_time).is_some_and(|svg| !svg.contains("NaN")));
    }
}
