//! Figure 9 as a picture: a panel for each machine and order, a curve for each stay.

use std::fmt::Write;

use super::grid::Grid;
use crate::plot::{ceiling, escape, number};

const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 40.0;
/// From the shortest stay to the longest.
const COLORS: [&str; 8] = [
    "#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#d0b000",
];

/// All grids, two panels in a row. What is as fast either way is the line at 1.
pub fn panels(title: &str, grids: &[(String, Grid)]) -> String {
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="11" fill="#333">"##,
        WIDTH * grids.len().min(2) as f64,
        HEIGHT * grids.len().div_ceil(2) as f64
    );
    let _ = writeln!(svg, "<title>{}</title>", escape(title));
    for (at, (name, grid)) in grids.iter().enumerate() {
        let (x, y) = ((at % 2) as f64 * WIDTH, (at / 2) as f64 * HEIGHT);
        let _ = writeln!(svg, r#"<g transform="translate({x} {y})">"#);
        panel(&mut svg, name, grid);
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, name: &str, grid: &Grid) {
    let gains = grid.points.iter().flatten().map(sim::calibrate::Point::gain);
    let top = ceiling(gains.fold(1.0, f64::max));
    let last = grid.sizes_kb.len().saturating_sub(1).max(1) as f64;
    let x = |size: usize| LEFT + size as f64 / last * (WIDTH - LEFT - RIGHT);
    let y = |gain: f64| HEIGHT - BOTTOM - gain / top * (HEIGHT - TOP - BOTTOM);
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="16" text-anchor="middle" font-weight="bold">{}</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        escape(name)
    );
    for step in 0..=4 {
        let gain = top * f64::from(step) / 4.0;
        let at = y(gain);
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {at:.1}H{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
            WIDTH - RIGHT,
            LEFT - 5.0,
            at + 4.0,
            number(gain)
        );
    }
    let one = y(1.0);
    let _ = writeln!(
        svg,
        r##"<path d="M{LEFT} {one:.1}H{:.1}" stroke="#999" stroke-dasharray="4 3"/>"##,
        WIDTH - RIGHT
    );
    for (size, kb) in grid.sizes_kb.iter().enumerate() {
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            x(size),
            HEIGHT - BOTTOM + 15.0,
            number((*kb as f64 / 102.4).round() / 10.0)
        );
    }
    for (at, stay) in grid.stays.iter().enumerate() {
        let color = COLORS[at * (COLORS.len() - 1) / grid.stays.len().saturating_sub(1).max(1)];
        let points: Vec<String> = (0..grid.sizes_kb.len())
            .map(|size| format!("{:.1} {:.1}", x(size), y(grid.points[size][at].gain())))
            .collect();
        let _ = writeln!(
            svg,
            r#"<path d="M{}" fill="none" stroke="{color}" stroke-width="1.8"><title>2^{stay} reads</title></path>"#,
            points.join("L")
        );
        let key = TOP + 14.0 * at as f64 + 6.0;
        let _ = writeln!(
            svg,
            r#"<path d="M{0:.1} {key:.1}h14" stroke="{color}" stroke-width="2"/><text x="{1:.1}" y="{2:.1}">2^{stay}</text>"#,
            WIDTH - RIGHT + 8.0,
            WIDTH - RIGHT + 26.0,
            key + 4.0
        );
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">MB of each of two regions; curves: reads of a stay</text>"#,
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 8.0
    );
    let _ = writeln!(svg, r#"<text x="4" y="16">times as fast</text>"#);
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::calibrate::Point;

    #[test]
    fn each_grid_has_a_panel_and_each_stay_a_curve() {
        let point = Point {
            confined_ns: 3.0,
            followed_ns: 1.0,
        };
        let grid = Grid {
            sizes_kb: vec![1024, 2048],
            stays: vec![8, 10, 12],
            points: vec![vec![point; 3]; 2],
        };
        let svg = panels("a < b", &[("one".to_string(), grid.clone()), ("two".to_string(), grid)]);
        assert_eq!(svg.matches("<g ").count(), 2);
        assert_eq!(svg.matches("reads</title>").count(), 6);
        assert!(svg.contains("a &lt; b") && !svg.contains("NaN") && svg.trim_end().ends_with("</svg>"));
    }
}
