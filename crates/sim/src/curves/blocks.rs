//! Blocks of memory by the place that asked for them and by size: as finely as a plan of slots can distinguish.

use std::collections::{BTreeMap, HashMap};

use trace::{Allocation, StackId};

use crate::structures::{Description, Tables, places};

/// Number of a class.
pub type ClassId = u32;

/// Sizes that are kept apart of one place; other blocks count for the nearest of them.
const SIZES: usize = 4;

/// The classes, and which live block is of which.
pub struct Blocks {
    /// For each stack; `None`: it has no name.
    places: Vec<Option<Description>>,
    classes: Vec<Class>,
    by_name: HashMap<String, Vec<ClassId>>,
    /// End and class of live blocks, by process and start.
    live: BTreeMap<(u32, u64), (u64, ClassId)>,
    /// The last result: process, start, end, class.
    last: (u32, u64, u64, ClassId),
}

/// Blocks of about one size from one place.
pub struct Class {
    pub what: Description,
    /// Bytes of the first block.
    pub size: u64,
    live: u64,
}

impl Blocks {
    pub fn new(tables: &Tables) -> Blocks {
        Blocks {
            places: places(tables),
            classes: Vec::new(),
            by_name: HashMap::new(),
            live: BTreeMap::new(),
            last: (0, 0, 0, 0),
        }
    }

    pub fn alloc(&mut self, space: u32, addr: u64, bytes: u64, stack: StackId, kind: Allocation) {
        let end = addr.saturating_add(bytes);
        self.cut(space, addr, end);
        let Some(class) = self.class(stack, kind, bytes) else {
            return;
        };
        let of = &mut self.classes[class as usize];
        of.live += bytes;
        of.what.blocks += 1;
        of.what.bytes = of.what.bytes.max(of.live);
        self.live.insert((space, addr), (end, class));
    }

    pub fn free(&mut self, space: u32, addr: u64) {
        if let Some((end, class)) = self.live.remove(&(space, addr)) {
            let of = &mut self.classes[class as usize];
            of.live = of.live.saturating_sub(end - addr);
        }
        self.last = (0, 0, 0, 0);
    }

    /// The earlier blocks there have been freed unseen.
    fn cut(&mut self, space: u32, addr: u64, end: u64) {
        while let Some((&(_, start), _)) = self.live.range((space, 0)..(space, end)).next_back()
            && self.live.get(&(space, start)).is_some_and(|(end, _)| *end > addr)
        {
            self.free(space, start);
        }
        self.last = (0, 0, 0, 0);
    }

    fn class(&mut self, stack: StackId, kind: Allocation, bytes: u64) -> Option<ClassId> {
        let prefix = match kind {
            Allocation::Heap => "heap",
            Allocation::Map => "mmap",
            Allocation::File | Allocation::Stack => return None,
        };
        let place = self.places.get(stack as usize)?.as_ref()?;
        let name = format!("{prefix}: {}", place.name);
        let known = self.by_name.entry(name.clone()).or_default();
        let off = |class: &ClassId| self.classes[*class as usize].size.abs_diff(bytes);
        let nearest = known.iter().copied().min_by_key(off);
        if let Some(nearest) = nearest.filter(|near| known.len() >= SIZES || off(near) <= bytes / 4) {
            return Some(nearest);
        }
        let class = self.classes.len() as ClassId;
        known.push(class);
        self.classes.push(Class {
            what: Description { name, ..place.clone() },
            size: bytes,
            live: 0,
        });
        Some(class)
    }

    #[inline]
    pub fn find(&mut self, space: u32, addr: u64) -> Option<ClassId> {
        let (last_space, start, end, class) = self.last;
        if last_space == space && (start..end).contains(&addr) {
            return Some(class);
        }
        let (&(_, start), &(end, class)) = self.live.range((space, 0)..=(space, addr)).next_back()?;
        if addr >= end {
            return None;
        }
        self.last = (space, start, end, class);
        Some(class)
    }

    /// The readable name of a class, and the sizes that a plan knows it by: from and to, both included. Bounds between
    /// two sizes of one place lie half way; `least`: the smallest block that there is.
    pub fn describe(&self, class: ClassId, least: u64) -> (Description, u64, u64) {
        let of = &self.classes[class as usize];
        let others = self.classes.iter().filter(|other| other.what.name == of.what.name);
        let sizes: Vec<u64> = others.map(|other| other.size).collect();
        let half = |a: u64, b: u64| a / 2 + b / 2;
        let below = sizes.iter().filter(|size| **size < of.size).max();
        let above = sizes.iter().filter(|size| **size > of.size).min();
        let from = below.map_or(least, |below| half(*below, of.size) + 1);
        let to = above.map_or(u64::MAX, |above| half(of.size, *above));
        (of.what.clone(), from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{Frame, Location, Stack};

    /// `make`, called from two lines of `main`, and `other`, called from one.
    fn tables() -> (Vec<Stack>, Vec<Location>) {
        let stack = |pcs: &[u64]| Stack {
            process: 0,
            frames: pcs.iter().map(|&pc| Frame { pc }).collect(),
        };
        let location = |pc, function: &str, line| Location {
            process: 0,
            pc,
            function: function.to_string(),
            file: Some("/src/prog.c".to_string()),
            line: Some(line),
            inlined_into: Vec::new(),
        };
        let stacks = vec![stack(&[1, 3]), stack(&[1, 4]), stack(&[2, 5])];
        let locations = [("make", 10), ("other", 20), ("main", 30), ("main", 31), ("main", 32)];
        let locations = (1..)
            .zip(locations)
            .map(|(pc, (function, line))| location(pc, function, line));
        (stacks, locations.collect())
    }

    #[test]
    fn blocks_are_kept_apart_by_caller_and_size() {
        let (stacks, locations) = tables();
        let mut blocks = Blocks::new(&Tables {
            stacks: &stacks,
            locations: &locations,
            ..Tables::default()
        });
        let heap = Allocation::Heap;
        blocks.alloc(0, 0x10000, 0x8000, 0, heap);
        blocks.alloc(0, 0x20000, 0x8100, 0, heap);
        blocks.alloc(0, 0x40000, 0x20000, 0, heap);
        blocks.alloc(0, 0x80000, 0x8000, 1, heap);
        blocks.alloc(0, 0xa0000, 0x8000, 2, heap);
        let at = |blocks: &mut Blocks, addr| {
            let class = blocks.find(0, addr)?;
            let (what, from, to) = blocks.describe(class, 0x4000);
            Some((what.name, from, to, what.blocks))
        };
        let one = "heap: make ← main (prog.c:30)".to_string();
        // Half way between the two sizes.
        assert_eq!(at(&mut blocks, 0x17fff), Some((one.clone(), 0x4000, 0x14000, 2)));
        assert_eq!(at(&mut blocks, 0x20000), Some((one.clone(), 0x4000, 0x14000, 2)));
        assert_eq!(at(&mut blocks, 0x40000), Some((one, 0x14001, u64::MAX, 1)));
        let two = "heap: make ← main (prog.c:31)".to_string();
        assert_eq!(at(&mut blocks, 0x80000), Some((two, 0x4000, u64::MAX, 1)));
        assert_eq!(
            at(&mut blocks, 0xa0000).map(|found| found.0),
            Some("heap: other (prog.c:20)".to_string())
        );
        assert_eq!(at(&mut blocks, 0x18000), None);
        assert_eq!(blocks.find(1, 0x10000), None);
        // Freed, seen or unseen.
        blocks.free(0, 0x10000);
        assert_eq!(blocks.find(0, 0x10000), None);
        blocks.alloc(0, 0x80100, 0x4000, 2, heap);
        assert_eq!(blocks.find(0, 0x80000), None);
    }
}
