//! Page access maps (figures 3 and 5): which pages each cpu touches, in the order of addresses and in that of hints.

use std::collections::{BTreeMap, HashMap};

use plotters::prelude::{BindKeyPoints, ChartBuilder, Color, Rectangle, TRANSPARENT};
use serde::{Deserialize, Serialize};

use super::bars::cpus_in_words;
use super::cell::{config, mapped};
use super::{Grid, View};
use crate::error::ReproduceError;
use crate::line::Line;
use crate::paper::Item;
use crate::plot::{Area, BLUE, BOLD, Drawn, TEXT, picture};
use crate::programs::Programs;
use crate::reproduce::{Reproduction, Section};

/// The most pages between two arrays in one picture.
const APART: u64 = 4096;

/// The pages of a program's arrays that its steady phase touches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Map {
    pub page_bytes: u64,
    pub cpus: u32,
    pub colors: u32,
    pub policies: Vec<String>,
    /// In the order of addresses.
    pub pages: Vec<Mapped>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mapped {
    /// Its address divided by the bytes of a page.
    pub page: u64,
    pub cpus: Vec<u32>,
    /// Under each policy.
    pub colors: Vec<Option<u32>>,
    /// In the coloring order, where the page has a hint.
    pub position: Option<u64>,
}

impl Map {
    fn of(map: &results::PageMap) -> Map {
        // Stacks and libraries have neither hints nor a place in the paper's pictures.
        let arrays = map
            .pages
            .iter()
            .filter(|page| page.array.is_some() && !page.cpus.is_empty());
        let hinted: Vec<_> = arrays
            .map(|page| Mapped {
                page: page.page,
                cpus: page.cpus.clone(),
                colors: page.colors.clone(),
                position: page.positions.iter().flatten().next().copied(),
            })
            .collect();
        // Module variables lie side by side; an array on a stack or the heap is elsewhere, and would leave the picture
        // empty.
        let pages = hinted
            .chunk_by(|page, next| next.page - page.page < APART)
            .max_by_key(|together| together.len())
            .map(<[Mapped]>::to_vec)
            .unwrap_or_default();
        Map {
            page_bytes: map.page_bytes,
            cpus: map.cpus,
            colors: map.colors,
            policies: map.policies.clone(),
            pages,
        }
    }

    /// The place of a page in a picture: none for one without a hint in the coloring order.
    fn place(&self, page: &Mapped, view: View) -> Option<u64> {
        match view {
            View::ColoringOrder => page.position,
            _ => Some(page.page - self.pages.first().map_or(0, |first| first.page)),
        }
    }

    /// For the cpu in the middle, by the distance of its pages: the pages that it touches, and those of the range from
    /// the first to the last.
    fn spread(&self, view: View) -> (u64, u64) {
        let of_cpu = |cpu: u32| {
            let touched = self.pages.iter().filter(|page| page.cpus.contains(&cpu));
            let places: Vec<u64> = touched.filter_map(|page| self.place(page, view)).collect();
            let (first, last) = (places.iter().min()?, places.iter().max()?);
            Some((last - first + 1, places.len() as u64))
        };
        let mut cpus: Vec<(u64, u64)> = (0..self.cpus).filter_map(of_cpu).collect();
        cpus.sort_unstable();
        cpus.get(cpus.len() / 2)
            .map_or((0, 0), |&(range, pages)| (pages, range))
    }

    /// A cpu's pages beyond the first of each color under a policy, on average over the cpus, in percent of its pages:
    /// those that cannot stay in its direct-mapped cache at once.
    fn doubled(&self, policy: usize) -> f64 {
        let mut of: BTreeMap<u32, (u64, HashMap<u32, u64>)> = BTreeMap::new();
        for page in &self.pages {
            let Some(color) = page.colors.get(policy).copied().flatten() else {
                continue;
            };
            for &cpu in &page.cpus {
                let (pages, colors) = of.entry(cpu).or_default();
                *pages += 1;
                *colors.entry(color).or_default() += 1;
            }
        }
        let pages: u64 = of.values().map(|(pages, _)| pages).sum();
        let first: u64 = of.values().map(|(_, colors)| colors.len() as u64).sum();
        100.0 * (pages - first) as f64 / pages.max(1) as f64
    }
}

impl Reproduction<'_> {
    pub(crate) fn pages(
        &self,
        programs: &Programs,
        item: &Item,
        grid: &Grid,
        section: &mut Section,
    ) -> Result<(), ReproduceError> {
        let mut maps = Vec::new();
        let bar = &grid.bars[0];
        for (program, cpus) in self.places(grid) {
            let row = format!("{program}, {}", cpus_in_words(cpus));
            let machine = grid.machines[0].machine(cpus)?;
            let team = self.team(programs, &program, &bar.version, cpus);
            let map = team.and_then(|team| {
                let what = format!("{} {}", item.name, team.line());
                let recording = self.recording(&team, &what, false);
                let kept = recording.kept_each(
                    std::slice::from_ref(&machine),
                    &format!("pages {}", grid.policies_in_words()),
                    |machine, trace| {
                        let mut config = config(grid, machine);
                        config.detail.placements = true;
                        config.classes = false;
                        Ok(Map::of(&mapped(&recording, trace, &config)?))
                    },
                )?;
                let map = kept.into_iter().next();
                let map = map.ok_or_else(|| ReproduceError::Host("nothing was mapped".to_string()))?;
                Ok((map, team.line()))
            });
            match map {
                Ok((map, run)) => {
                    let (touched, range) = map.spread(grid.view);
                    let mut push = |column: &str, unit: &str, value: f64| {
                        let place = self.place(item, &row, column, unit);
                        section.lines.push(Line::new(place, None, Ok(value)).of_run(&run));
                    };
                    push("pages", "each", map.pages.len() as f64);
                    push("pages of one cpu", "each", touched as f64);
                    push("from its first to its last", "each", range as f64);
                    for (index, policy) in map.policies.iter().enumerate() {
                        let column = format!("a color twice, {policy}");
                        push(&column, "percent", map.doubled(index));
                    }
                    maps.push((row, map));
                }
                Err(error) => {
                    section.failures.push(format!("{row}: {error}"));
                    let place = self.place(item, &row, "pages", "each");
                    section.lines.push(Line::new(place, None, Err(error.to_string())));
                }
            }
        }
        section.notes.push(format!(
            "the pages of its arrays that each cpu touches in one time step, in the order of {}; of one cpu: \
             the one in the middle, by how far its pages are apart; a color twice: pages of a cpu beyond the first of their color, all cpus",
            match grid.view {
                View::ColoringOrder => "the hints of policy cdpc",
                _ => "addresses",
            }
        ));
        section.drawing = (!maps.is_empty()).then(|| draw(item, &maps, grid.view));
        Ok(())
    }
}

/// Pixels of a map: beside the pages, the pages, a cpu's strip, and above and below the strips.
const BESIDE: u32 = 100;
const WIDTH: u32 = 900;
const STRIP: u32 = 12;
const AROUND: u32 = 90;

/// One strip for each cpu, a mark for each page, a line where a cache is full.
fn draw(item: &Item, maps: &[(String, Map)], view: View) -> String {
    let cpus = maps.iter().map(|(_, map)| map.cpus).max().unwrap_or(0);
    let size = (BESIDE + WIDTH, AROUND + cpus * STRIP);
    picture(&item.title, (maps.len(), 1), size, |at, area| {
        strips(area, &maps[at].0, &maps[at].1, view)
    })
}

fn strips(area: &Area, title: &str, map: &Map, view: View) -> Drawn<()> {
    let places = map.pages.iter().filter_map(|page| map.place(page, view));
    let pages = places.max().unwrap_or(0) + 1;
    let full = (0..pages).step_by(map.colors.max(1) as usize);
    // The first cpu is at the top; a strip has ten parts, so that there is room between two.
    let (bottom, named) = (map.cpus * 10, (5..map.cpus * 10).step_by(40));
    let order = match view {
        View::ColoringOrder => "pages in the coloring order",
        _ => "pages by address",
    };
    let cache = report::bytes(u64::from(map.colors) * map.page_bytes);
    let mut chart = ChartBuilder::on(area)
        .caption(title, BOLD)
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(BESIDE - 20)
        .build_cartesian_2d(
            (0..pages).with_key_points(full.collect()),
            (bottom..0).with_key_points(named.collect()),
        )?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(TEXT)
        .x_label_formatter(&|_| String::new())
        .y_label_formatter(&|at| format!("cpu {}", at / 10))
        .x_desc(format!("{order}; a line each {} pages, {cache} of cache", map.colors))
        .draw()?;
    // A single page is visible, too.
    let pixel = pages.div_ceil(u64::from(WIDTH));
    for cpu in 0..map.cpus {
        let (top, bottom) = (cpu * 10 + 1, cpu * 10 + 9);
        chart.draw_series(
            runs(map, cpu, view)
                .into_iter()
                .map(|(start, end)| Rectangle::new([(start, top), (end.max(start + pixel), bottom)], BLUE.filled())),
        )?;
    }
    Ok(())
}

/// Runs of neighbouring places that a cpu touches, each up to its end.
fn runs(map: &Map, cpu: u32, view: View) -> Vec<(u64, u64)> {
    let of = map.pages.iter().filter(|page| page.cpus.contains(&cpu));
    let mut places: Vec<u64> = of.filter_map(|page| map.place(page, view)).collect();
    places.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some((_, end)) if *end == place => *end += 1,
            _ => runs.push((place, place + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> Map {
        let page = |page, cpu, colors: [u32; 2], position| Mapped {
            page,
            cpus: vec![cpu],
            colors: colors.map(Some).to_vec(),
            position: Some(position),
        };
        // Two arrays of four pages, halves to two cpus, a cache of four colors.
        Map {
            page_bytes: 4096,
            cpus: 2,
            colors: 4,
            policies: vec!["page-coloring".into(), "cdpc".into()],
            pages: vec![
                page(8, 0, [0, 0], 0),
                page(9, 0, [1, 1], 1),
                page(10, 1, [2, 0], 4),
                page(11, 1, [3, 1], 5),
                page(12, 0, [0, 2], 2),
                page(13, 0, [1, 3], 3),
                page(14, 1, [2, 2], 6),
                page(15, 1, [3, 3], 7),
            ],
        }
    }

    #[test]
    fn hints_put_a_cpus_pages_together() {
        let map = map();
        assert_eq!(map.spread(View::Pages), (4, 6));
        assert_eq!(map.spread(View::ColoringOrder), (4, 4));
        assert_eq!((map.doubled(0), map.doubled(1)), (50.0, 0.0));
        assert_eq!(runs(&map, 0, View::Pages), [(0, 2), (4, 6)]);
        assert_eq!(runs(&map, 1, View::ColoringOrder), [(4, 8)]);
    }

    #[test]
    fn a_picture_has_a_strip_for_each_cpu() {
        let item = crate::papers::read("bugnion96");
        let item = item.items.iter().find(|item| item.name == "figure3").unwrap();
        let svg = draw(item, &[("tom<cat>v, 2 cpus".into(), map())], View::Pages);
        // Each of the two cpus has two runs.
        assert_eq!(svg.matches("fill=\"#1F6FB2\"").count(), 4);
        assert!(svg.contains("cpu 0") && svg.contains("pages by address; a line each 4 pages, 16.0 KB of cache"));
        assert!(svg.contains("tom&lt;cat&gt;v, 2 cpus") && svg.trim_end().ends_with("</svg>"));
    }
}
