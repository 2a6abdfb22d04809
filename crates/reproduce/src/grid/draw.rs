//! Bars, one beside the other for each number of cpus, as a drawing (SVG) for the book.

use std::fmt::Write;

use super::bars::Drawings;
use super::cell::Simulated;
use crate::paper::Item;
use crate::plot::{ceiling, escape, number};

const HEIGHT: f64 = 200.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 34.0;
const BAR: f64 = 12.0;
const GAP: f64 = 14.0;
/// Panels in a row.
const ACROSS: usize = 3;

type Part = (&'static str, &'static str, fn(&Simulated) -> u64);

/// From the bottom up.
const PARTS: [Part; 6] = [
    ("execution", "#3b6ea5", |s| s.busy),
    ("on-chip misses", "#8fb8de", |s| s.stall.on_chip),
    ("replacement misses", "#c9473b", |s| s.stall.replacement()),
    ("sharing and upgrades", "#e8a33d", |s| {
        s.stall.true_sharing + s.stall.false_sharing + s.stall.upgrade
    }),
    ("waiting for prefetches", "#7b5aa6", |s| s.prefetch + s.stall.late),
    ("overheads", "#bbbbbb", Simulated::overhead),
];

/// A panel for each program and machine; nothing where nothing was simulated.
pub fn bars(item: &Item, drawings: &Drawings) -> Option<String> {
    let grid = drawings.grid;
    let mut panels: Vec<(String, usize)> = Vec::new();
    for drawn in drawings.drawn.iter().filter(|drawn| drawn.simulated.is_ok()) {
        let panel = (drawn.program.clone(), drawn.machine);
        if !panels.contains(&panel) {
            panels.push(panel);
        }
    }
    let groups = |program: &str| {
        let cells = drawings.cells().into_iter().filter(|(name, _)| *name == program);
        cells.map(|(_, cpus)| cpus).collect::<Vec<u32>>()
    };
    let most = panels.iter().map(|(program, _)| groups(program).len()).max()?;
    let group = grid.bars.len() as f64 * BAR + GAP;
    let width = LEFT + most as f64 * group + GAP;
    let down = panels.len().div_ceil(ACROSS);
    let across = panels.len().min(ACROSS);
    let legend = 18.0 * (1 + grid.bars.len().div_ceil(2)) as f64 + 36.0;
    let mut svg = String::new();
    let full = (across as f64 * width).max(560.0);
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full:.0} {:.0}" font-family="sans-serif" font-size="10" fill="#333">"##,
        down as f64 * HEIGHT + legend
    );
    let _ = writeln!(svg, "<title>{}</title>", escape(&item.title));
    for (index, (program, machine)) in panels.iter().enumerate() {
        let (x, y) = ((index % ACROSS) as f64 * width, (index / ACROSS) as f64 * HEIGHT);
        let _ = writeln!(svg, r#"<g transform="translate({x:.1} {y:.1})">"#);
        let title = match grid.machines.len() {
            1 => program.clone(),
            _ => format!("{program}, {}", grid.machines[*machine].name),
        };
        panel(&mut svg, drawings, &title, (program, *machine), &groups(program), width);
        svg.push_str("</g>\n");
    }
    let mut y = down as f64 * HEIGHT + 14.0;
    for (index, (name, color, _)) in PARTS.iter().enumerate() {
        let x = 10.0 + (index % 3) as f64 * 180.0;
        if index == 3 {
            y += 16.0;
        }
        let _ = writeln!(
            svg,
            r#"<rect x="{x}" y="{:.1}" width="10" height="10" fill="{color}"/><text x="{}" y="{y:.1}">{name}</text>"#,
            y - 9.0,
            x + 15.0
        );
    }
    let names: Vec<&str> = grid.bars.iter().map(|bar| bar.name.as_str()).collect();
    let _ = writeln!(
        svg,
        r#"<text x="10" y="{:.1}">bars from left to right: {}</text></svg>"#,
        y + 18.0,
        escape(&names.join("; "))
    );
    Some(svg)
}

fn panel(svg: &mut String, drawings: &Drawings, title: &str, of: (&str, usize), groups: &[u32], width: f64) {
    let (program, machine) = of;
    let bars: Vec<_> = (drawings.drawn.iter())
        .filter(|drawn| drawn.program == program && drawn.machine == machine)
        .filter_map(|drawn| Some((drawn.cpus, drawn.bar, drawn.simulated.as_ref().ok()?)))
        .collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let top = ceiling(bars.iter().fold(0.0f64, |most, bar| most.max(ms(bar.2.total))));
    let bottom = HEIGHT - BOTTOM;
    let scale = (bottom - TOP) / top;
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="16" text-anchor="middle" font-weight="bold">{}</text><text x="2" y="26">ms</text>"#,
        (LEFT + width) / 2.0,
        escape(title)
    );
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let y = bottom - value * scale;
        let _ = writeln!(
            svg,
            r##"<path d="M{LEFT} {y:.1}H{:.1}" stroke="#ddd"/><text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"##,
            width - GAP,
            LEFT - 4.0,
            y + 3.0,
            number(value)
        );
    }
    let group = drawings.grid.bars.len() as f64 * BAR + GAP;
    for (at, cpus) in groups.iter().enumerate() {
        let left = LEFT + GAP / 2.0 + at as f64 * group;
        let _ = writeln!(
            svg,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{cpus}</text>"#,
            left + (group - GAP) / 2.0,
            bottom + 13.0
        );
        for (_, bar, simulated) in bars.iter().filter(|bar| bar.0 == *cpus) {
            let mut y = bottom;
            let x = left + *bar as f64 * BAR;
            for (name, color, part) in PARTS {
                let height = ms(part(simulated)) * scale;
                y -= height;
                if height > 0.05 {
                    let _ = writeln!(
                        svg,
                        r#"<rect x="{x:.1}" y="{y:.2}" width="{:.1}" height="{height:.2}" fill="{color}"><title>{program}, {cpus} cpus, {}: {name} {:.1} ms</title></rect>"#,
                        BAR - 1.5,
                        escape(&drawings.grid.bars[*bar].name),
                        ms(part(simulated))
                    );
                }
            }
        }
    }
    let _ = writeln!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">cpus</text>"#,
        (LEFT + width) / 2.0,
        bottom + 26.0
    );
}
