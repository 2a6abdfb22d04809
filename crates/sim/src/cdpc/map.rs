//! The page access map of a program: which cpus touch each of its pages, and which color the page has under each policy
//! (Bugnion96, figures 3 and 5).

use std::collections::HashMap;

use policy::Page;
use results::{MappedArray, MappedPage, PageMap};

use super::arrays::Owner;
use super::explain::list;
use super::touches::Touches;
use crate::config::Config;
use crate::outcome::Simulated;

/// Puts a map together from the touches, and the placements by the policies of `config`.
pub fn map(config: &Config, touches: &Touches, runs: &[Simulated]) -> PageMap {
    let machine = &config.machine;
    let mut arrays: Vec<MappedArray> = Vec::new();
    let mut known: HashMap<(u32, String, u64), u32> = HashMap::new();
    let mut number = |process: u32, name: &str, start: u64, bytes: u64| {
        *known.entry((process, name.to_string(), start)).or_insert_with(|| {
            arrays.push(MappedArray {
                process,
                name: name.to_string(),
                start,
                bytes,
            });
            arrays.len() as u32 - 1
        })
    };
    // The compiler's name of an array says more than the symbol that it lies in.
    let mut hinted: HashMap<Page, u32> = HashMap::new();
    for of_run in runs.iter().filter_map(|run| run.hints.as_ref()) {
        for (space, hints) in &of_run.spaces {
            for segment in &hints.segments {
                let Some(array) = hints.arrays.get(segment.array as usize) else {
                    continue;
                };
                let array = number(*space, &array.name, array.start, array.bytes);
                for page in segment.pages.clone() {
                    let page = Page {
                        space: *space,
                        number: page,
                    };
                    hinted.entry(page).or_insert(array);
                }
            }
        }
    }
    let colors: Vec<HashMap<Page, u32>> = runs
        .iter()
        .map(|run| run.placements.iter().copied().collect())
        .collect();
    let positions: Vec<HashMap<Page, u64>> = runs.iter().map(positions).collect();
    let mut pages: Vec<MappedPage> = touches
        .pages
        .iter()
        .map(|touched| {
            let page = Page {
                space: touched.space,
                number: touched.page,
            };
            let array = hinted.get(&page).copied().or_else(|| match touched.owner {
                Owner::Array(array) => {
                    let about = &touches.arrays[array as usize];
                    Some(number(about.space, &about.name, about.start, about.bytes))
                }
                Owner::Unnamed | Owner::Small => None,
            });
            MappedPage {
                process: touched.space,
                page: touched.page,
                array,
                cpus: list(touched.cpus),
                parallel: list(touched.parallel),
                colors: colors.iter().map(|of| of.get(&page).copied()).collect(),
                positions: positions.iter().map(|of| of.get(&page).copied()).collect(),
            }
        })
        .collect();
    pages.sort_by_key(|page| (page.process, page.page));
    PageMap {
        machine: machine.name.clone(),
        page_bytes: machine.page_bytes,
        cpus: machine.cpus,
        colors: crate::frames::colors(machine),
        policies: runs.iter().map(|run| run.outcome.policy.clone()).collect(),
        arrays,
        pages,
    }
}

fn positions(run: &Simulated) -> HashMap<Page, u64> {
    let spaces = run.hints.iter().flat_map(|hints| &hints.spaces);
    let pages = spaces.flat_map(|(space, hints)| {
        let page = |number| Page { space: *space, number };
        (0u64..).zip(&hints.pages).map(move |(at, hint)| (page(hint.page), at))
    });
    pages.collect()
}
