//! Uniform access segments derived from the pages that cpus touch, if no compiler described them.

use std::collections::HashMap;

use policy::cdpc::{self, Array, Hints, Machine, Segment};

use super::arrays::{ArrayId, BLOCK_PAGES, Owner};
use super::touches::{Touched, Touches};
use crate::error::SimError;

/// Touched pages without a name that lie at most this far apart are one array; with fewer in all they are none.
const APART: u64 = BLOCK_PAGES;

/// The hints of each process, by process; with `ways` of the cache, weighed against static policies.
pub fn derive(touches: &Touches, machine: &Machine, ways: Option<u32>) -> Result<Vec<(u32, Hints)>, SimError> {
    let mut pages: Vec<&Touched> = touches.pages.iter().collect();
    pages.sort_unstable_by_key(|touched| (touched.space, touched.page));
    let mut hints = Vec::new();
    for of_space in pages.chunk_by(|a, b| a.space == b.space) {
        if let Some(own) = of_process(of_space, touches, machine, ways)? {
            hints.push((of_space[0].space, own));
        }
    }
    Ok(hints)
}

/// Arrays and their segments, as they are found.
#[derive(Default)]
struct Found {
    arrays: Vec<Array>,
    /// The numbers of those that have a name.
    numbers: HashMap<ArrayId, u32>,
    segments: Vec<Segment>,
}

impl Found {
    fn add(&mut self, array: Array) -> u32 {
        self.arrays.push(array);
        self.arrays.len() as u32 - 1
    }

    fn page(&mut self, array: u32, page: u64, cpus: u128) {
        match self.segments.last_mut() {
            Some(last) if last.array == array && last.pages.end == page && last.cpus == cpus => last.pages.end += 1,
            _ => self.segments.push(Segment {
                array,
                pages: page..page + 1,
                cpus,
            }),
        }
    }

    fn named(&mut self, owner: ArrayId, touches: &Touches) -> u32 {
        if let Some(&number) = self.numbers.get(&owner) {
            return number;
        }
        let about = &touches.arrays[owner as usize];
        let number = self.add(Array {
            name: about.name.clone(),
            start: about.start,
            bytes: about.bytes,
            known: true,
        });
        self.numbers.insert(owner, number);
        number
    }

    /// Pages in a row without a name.
    fn unnamed(&mut self, run: &[(u64, u128)], machine: &Machine) {
        let (start, end) = (run[0].0, run[run.len() - 1].0 + 1);
        let array = self.add(Array {
            name: format!("{:#x}", start * machine.page_bytes),
            start: start * machine.page_bytes,
            bytes: (end - start).saturating_mul(machine.page_bytes),
            known: false,
        });
        for &(page, cpus) in run {
            self.page(array, page, cpus);
        }
    }
}

/// The hints of one process, from its pages in ascending order; `None`: there is nothing to hint at.
fn of_process(
    pages: &[&Touched],
    touches: &Touches,
    machine: &Machine,
    ways: Option<u32>,
) -> Result<Option<Hints>, SimError> {
    // The touches of one thread alone show no partition, unless all are made so.
    let parallel = pages.iter().any(|touched| touched.parallel != 0);
    let cpus = |touched: &Touched| if parallel { touched.parallel } else { touched.cpus };
    let mut found = Found::default();
    let mut unnamed = Vec::new();
    for touched in pages.iter().filter(|touched| cpus(touched) != 0) {
        match touched.owner {
            Owner::Array(owner) => {
                let array = found.named(owner, touches);
                found.page(array, touched.page, cpus(touched));
            }
            Owner::Unnamed => unnamed.push((touched.page, cpus(touched))),
            Owner::Small => {}
        }
    }
    for run in unnamed.chunk_by(|a, b| b.0 - a.0 <= APART) {
        if run.len() as u64 >= APART {
            found.unnamed(run, machine);
        }
    }
    if found.segments.is_empty() {
        return Ok(None);
    }
    let groups = match parallel {
        true => &touches.together,
        false => &touches.together_alone,
    };
    let numbered = |group: &Vec<ArrayId>| {
        group
            .iter()
            .filter_map(|array| found.numbers.get(array).copied())
            .collect()
    };
    let together: Vec<Vec<u32>> = groups.iter().map(numbered).collect();
    let hints = match ways {
        Some(ways) => cdpc::weighed_order(&found.segments, &together, machine, ways),
        None => cdpc::order(&found.segments, &together, machine),
    };
    let mut hints = hints.map_err(|error| SimError::Hints(error.to_string()))?;
    hints.arrays = found.arrays;
    Ok(Some(hints))
}
