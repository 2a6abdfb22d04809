//! Figure 9 as a picture: a panel for each machine and order, a curve for each stay.

use plotters::prelude::*;

use super::grid::Grid;
use crate::plot::{Area, Axes, Drawn, PANEL, legend, picture};

/// Pixels beside a panel's chart.
const LEGEND: u32 = 62;

/// All grids, two panels in a row. The line at 1 marks equal speed.
pub fn panels(title: &str, grids: &[(String, Grid)]) -> String {
    picture(title, (grids.len(), 2), PANEL, |at, area| {
        panel(area, &grids[at].0, &grids[at].1)
    })
}

fn panel(area: &Area, title: &str, grid: &Grid) -> Drawn<()> {
    let gains = grid.points.iter().flatten().map(sim::calibrate::Point::gain);
    let mb = |kb: &u64| ((*kb as f64 / 102.4).round() / 10.0).to_string();
    let axes = Axes {
        title,
        marks: grid.sizes_kb.iter().map(mb).collect(),
        below: "MB of each of two regions; curves: reads of a stay",
        beside: 0.1,
        most: gains.fold(1.0, f64::max),
        unit: "times as fast",
    };
    let (left, right) = area.split_horizontally(PANEL.0 - LEGEND);
    let mut chart = axes.draw(&left)?;
    let ends = [0.0, grid.sizes_kb.len() as f64 - 1.0];
    chart.draw_series(DashedLineSeries::new(
        ends.map(|at| (at, 1.0)),
        4,
        3,
        BLACK.mix(0.5).into(),
    ))?;
    // The last color of the map is too light on white.
    let color = |at: usize| ViridisRGB.get_color_normalized(at as f32, 0.0, grid.stays.len() as f32);
    for at in 0..grid.stays.len() {
        let rows = grid.points.iter().enumerate();
        let gains = rows.map(|(size, row)| (size as f64, row[at].gain()));
        chart.draw_series(LineSeries::new(gains, color(at).stroke_width(2)))?;
    }
    let stays = grid.stays.iter().enumerate();
    legend(&right, stays.map(|(at, stay)| (format!("2^{stay}"), color(at))))
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
        let svg = panels(
            "a < b",
            &[("one > 1".to_string(), grid.clone()), ("two".to_string(), grid)],
        );
        assert_eq!(svg.matches("bold").count(), 2);
        for stay in ["2^8", "2^10", "2^12"] {
            assert_eq!(svg.matches(stay).count(), 2);
        }
        assert!(
            svg.contains("a &lt; b")
                && svg.contains("one &gt; 1")
                && !svg.contains("NaN")
                && svg.trim_end().ends_with("</svg>")
        );
    }
}
