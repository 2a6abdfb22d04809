//! The arrays that are used together, and step 3: the order of the segments within a set (Bugnion96, section 5.2).
//!
//! Segments of arrays that a loop uses together are adjacent; the path over them is greedy and takes the lowest address
//! where it can choose. An array is used together with itself: a set may have several segments of one array, which then
//! follow each other by address. So the path is one over arrays. It starts with the lowest address; the paper starts
//! anywhere.

use super::path::path;
use super::segments::Segment;

/// The arrays that are used together.
#[derive(Debug)]
pub(super) struct Together {
    /// Numbers of the arrays, ascending.
    arrays: Vec<u32>,
    /// The lists that each array is in, ascending.
    lists: Vec<Vec<u32>>,
    /// The same as bits, the number of the list modulo 64.
    bits: Vec<u64>,
    /// Lists in all.
    count: usize,
}

impl Together {
    /// For the arrays of the segments.
    pub(super) fn new(segments: &[Segment], together: &[Vec<u32>]) -> Together {
        let mut arrays: Vec<u32> = segments.iter().map(|segment| segment.array).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let mut known: Vec<Vec<u32>> = together
            .iter()
            .map(|list| {
                let places = list.iter().filter_map(|array| arrays.binary_search(array).ok());
                let mut list: Vec<u32> = places.map(|place| place as u32).collect();
                list.sort_unstable();
                list.dedup();
                list
            })
            .filter(|list| list.len() > 1)
            .collect();
        known.sort_unstable();
        known.dedup();
        let mut lists = vec![Vec::new(); arrays.len()];
        let mut bits = vec![0; arrays.len()];
        for (number, list) in (0u32..).zip(&known) {
            for &array in list {
                lists[array as usize].push(number);
                bits[array as usize] |= 1 << (number % 64);
            }
        }
        Together {
            arrays,
            lists,
            bits,
            count: known.len(),
        }
    }

    /// True if the two arrays differ and some loop uses both. Either is one of the arrays of the segments.
    pub(super) fn both(&self, one: u32, other: u32) -> bool {
        let (Some(one), Some(other)) = (self.place(one), self.place(other)) else {
            return false;
        };
        if one == other || self.bits[one] & self.bits[other] == 0 {
            return false;
        }
        if self.count <= 64 {
            return true;
        }
        let (one, mut other) = (&self.lists[one], self.lists[other].iter().peekable());
        one.iter().any(|list| {
            while other.next_if(|&theirs| theirs < list).is_some() {}
            other.peek() == Some(&list)
        })
    }

    fn place(&self, array: u32) -> Option<usize> {
        // Nearly always all numbers are there.
        match self.arrays.get(array as usize) {
            Some(&same) if same == array => Some(array as usize),
            _ => self.arrays.binary_search(&array).ok(),
        }
    }
}

/// Step 3: the segments of a set, which come by address, in the order of their path.
pub(super) fn arranged(set: &[usize], segments: &[Segment], together: &Together) -> Vec<usize> {
    if set.len() < 2 {
        return set.to_vec();
    }
    // The arrays by the address of their first segment, with their segments here. Segments of an array are in a row
    // unless arrays lie within each other.
    let mut rows: Vec<&[usize]> = set.chunk_by(|&a, &b| segments[a].array == segments[b].array).collect();
    let array = |row: &[usize]| segments[row[0]].array;
    rows.sort_by_key(|row| (array(row), row[0]));
    let mut nodes: Vec<&[&[usize]]> = rows.chunk_by(|a, b| array(a) == array(b)).collect();
    nodes.sort_by_key(|rows| rows[0][0]);
    // Lists are renumbered, so that a set of few segments costs little however many loops there are.
    let lists = |rows: &[&[usize]]| match together.place(array(rows[0])) {
        Some(place) => together.lists[place].as_slice(),
        None => &[],
    };
    let mut numbers: Vec<u32> = nodes.iter().flat_map(|rows| lists(rows)).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let groups: Vec<Vec<u32>> = nodes
        .iter()
        .map(|rows| {
            let numbered = lists(rows)
                .iter()
                .map(|list| numbers.partition_point(|number| number < list));
            numbered.map(|number| number as u32).collect()
        })
        .collect();
    let path = path(&groups, numbers.len());
    path.into_iter().flat_map(|node| nodes[node].concat()).collect()
}
