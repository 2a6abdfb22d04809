//! Bars, one beside the other for each number of cpus, as a picture for the book.

use plotters::prelude::*;

use super::bars::Drawings;
use super::cell::Simulated;
use crate::paper::Item;
use crate::plot::{Area, Axes, Drawn, PANEL, legend, picture};

type Part = (&'static str, RGBColor, fn(&Simulated) -> u64);

/// From the bottom up.
const PARTS: [Part; 6] = [
    ("execution", RGBColor(59, 110, 165), |s| s.busy),
    ("on-chip misses", RGBColor(143, 184, 222), |s| s.stall.on_chip),
    ("replacement misses", RGBColor(201, 71, 59), |s| s.stall.replacement()),
    ("sharing and upgrades", RGBColor(232, 163, 61), |s| {
        s.stall.true_sharing + s.stall.false_sharing + s.stall.upgrade
    }),
    ("waiting for prefetches", RGBColor(123, 90, 166), |s| {
        s.prefetch + s.stall.late
    }),
    ("overheads", RGBColor(187, 187, 187), Simulated::overhead),
];

/// A panel for each program and machine, then the legend; nothing where nothing was simulated.
pub fn bars(item: &Item, drawings: &Drawings) -> Option<String> {
    let mut panels: Vec<(&str, usize)> = Vec::new();
    for drawn in drawings.drawn.iter().filter(|drawn| drawn.simulated.is_ok()) {
        let panel = (drawn.program.as_str(), drawn.machine);
        if !panels.contains(&panel) {
            panels.push(panel);
        }
    }
    let parts = || PARTS.iter().rev().map(|(name, color, _)| (name.to_string(), *color));
    let bars = || {
        let names = drawings.grid.bars.iter().map(|bar| bar.name.as_str());
        let lines = ["", "bars from left to right:"].into_iter().chain(names);
        // White on the white picture: an invisible key.
        lines.map(|line| (line.to_string(), WHITE))
    };
    (!panels.is_empty()).then(|| {
        picture(&item.title, (panels.len() + 1, 2), PANEL, |at, area| {
            match panels.get(at) {
                Some((program, machine)) => panel(area, drawings, program, *machine),
                None => legend(area, parts().chain(bars())),
            }
        })
    })
}

fn panel(area: &Area, drawings: &Drawings, program: &str, machine: usize) -> Drawn<()> {
    let grid = drawings.grid;
    let drawn = drawings.drawn.iter();
    let bars: Vec<_> = drawn
        .filter(|bar| bar.program == program && bar.machine == machine)
        .collect();
    let mut groups: Vec<u32> = bars.iter().map(|bar| bar.cpus).collect();
    groups.dedup();
    let ms = |ns: u64| ns as f64 / 1e6;
    let simulated = bars.iter().filter_map(|bar| bar.simulated.as_ref().ok());
    let title = match grid.machines.len() {
        1 => program.to_string(),
        _ => format!("{program}, {}", grid.machines[machine].name),
    };
    let axes = Axes {
        title: &title,
        marks: groups.iter().map(u32::to_string).collect(),
        below: "cpus",
        beside: 0.5,
        most: simulated.map(|of| ms(of.total)).fold(0.0, f64::max),
        unit: "ms",
    };
    let mut chart = axes.draw(area)?;
    let width = 0.8 / grid.bars.len() as f64;
    for bar in &bars {
        let (Ok(simulated), Some(group)) = (&bar.simulated, groups.iter().position(|cpus| *cpus == bar.cpus)) else {
            continue;
        };
        let left = group as f64 - 0.4 + bar.bar as f64 * width;
        let mut below = 0.0;
        chart.draw_series(PARTS.map(|(_, color, part)| {
            let bottom = below;
            below += ms(part(simulated));
            Rectangle::new([(left, bottom), (left + 0.9 * width, below)], color.filled())
        }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::bars::Drawn;

    #[test]
    fn bars_have_their_parts_and_names_stay_text() {
        let paper = crate::papers::read("bugnion96");
        let item = paper.items.iter().find(|item| item.name == "figure8").unwrap();
        let grid = item.grid.as_ref().unwrap();
        let bar = |program: &str, cpus, bar, ms: Result<u64, String>| Drawn {
            program: program.to_string(),
            cpus,
            machine: 0,
            bar,
            simulated: ms.map(|ms| Simulated {
                total: ms * 1_000_000,
                busy: ms * 1_000_000,
                ..Simulated::default()
            }),
            run: String::new(),
        };
        let drawn = vec![
            bar("tom<cat>", 4, 0, Ok(300)),
            bar("tom<cat>", 4, 1, Ok(150)),
            bar("tom<cat>", 8, 0, Err("it was not built".to_string())),
            bar("swim", 4, 0, Err("it was not built".to_string())),
        ];
        let svg = bars(item, &Drawings { grid, drawn }).unwrap();
        assert_eq!(svg.matches("bold").count(), 1);
        assert!(svg.contains("tom&lt;cat&gt;") && svg.contains("CDPC, prefetching") && svg.contains("overheads"));
        let execution = svg.split("<rect ").filter(|bar| bar.contains("#3B6EA5"));
        let heights: Vec<f64> = execution
            .filter_map(|bar| bar.split("height=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        // Two bars, and the legend's key.
        assert_eq!(heights.len(), 3);
        assert!((heights[0] / heights[1] - 2.0).abs() < 0.02, "{heights:?}");
        let drawn = vec![bar("swim", 4, 0, Err("it was not built".to_string()))];
        assert_eq!(bars(item, &Drawings { grid, drawn }), None);
    }
}
