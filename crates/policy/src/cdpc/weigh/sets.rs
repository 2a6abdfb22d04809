//! Arrays that loops use together, directly or by others: they are weighed together.

use std::collections::BTreeMap;

use super::super::hints::Placed;
use super::pages::Pages;
use super::visits::Visits;

#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The loops of each set, by number.
    pub(super) loops: Vec<Vec<usize>>,
    /// The arrays of each set, ascending.
    pub(super) arrays: Vec<Vec<u32>>,
    /// The set that each array is in.
    of: BTreeMap<u32, usize>,
}

impl Sets {
    /// The set of an array, if any loop uses it.
    pub(super) fn of_array(&self, array: u32) -> Option<usize> {
        self.of.get(&array).copied()
    }
}

/// The sets of arrays that the visits are to.
pub(super) fn of(visits: &Visits, pages: &Pages, segments: &[Placed]) -> Sets {
    let mut arrays: Vec<u32> = segments.iter().map(|segment| segment.array).collect();
    arrays.sort_unstable();
    arrays.dedup();
    let mut array_of = vec![0; pages.len()];
    for segment in segments {
        let place = arrays.partition_point(|&array| array < segment.array);
        let first = pages.number(segment.pages.start).unwrap_or(0) as usize;
        array_of[first..first + (segment.pages.end - segment.pages.start) as usize].fill(place);
    }
    // A forest in which each array points to one of its set, and a loop to one of its arrays.
    let mut parent: Vec<usize> = (0..arrays.len()).collect();
    let mut loops: Vec<Option<usize>> = Vec::with_capacity(visits.loops.len());
    let mut used = vec![false; arrays.len()];
    for parts in &visits.loops {
        let visited = parts.iter().flat_map(|(_, part)| &visits.all[part.clone()]);
        let mut first = None;
        for visit in visited {
            let array = array_of[visit.page as usize];
            used[array] = true;
            let one = root(&mut parent, array);
            let other = root(&mut parent, *first.get_or_insert(array));
            parent[one] = other;
        }
        loops.push(first);
    }
    let mut sets = Sets::default();
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    for place in (0..arrays.len()).filter(|&place| used[place]) {
        let set = *numbers.entry(root(&mut parent, place)).or_insert(sets.arrays.len());
        if set == sets.arrays.len() {
            sets.arrays.push(Vec::new());
            sets.loops.push(Vec::new());
        }
        sets.arrays[set].push(arrays[place]);
        sets.of.insert(arrays[place], set);
    }
    for (number, first) in loops.into_iter().enumerate() {
        if let Some(first) = first {
            sets.loops[numbers[&root(&mut parent, first)]].push(number);
        }
    }
    sets
}

fn root(parent: &mut [usize], mut array: usize) -> usize {
    while parent[array] != array {
        parent[array] = parent[parent[array]];
        array = parent[array];
    }
    array
}
