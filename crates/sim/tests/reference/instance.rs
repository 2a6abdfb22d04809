//! One cache instance: sets of ways with time stamps.

use std::collections::HashMap;
use std::ops::Range;

use machine::{Cache, Index, Replacement};

use super::classes::{Class, ClassedMiss, Classes};
use super::random::SplitMix64;
use super::software_prefetch::{Coming, From};

#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Physical address / line size.
    pub number: u64,
    pub dirty: bool,
    /// Brought by this cache's prefetcher, and not looked up since.
    brought: bool,
    /// Asked for by the program ahead of use.
    pub coming: Option<Coming>,
    /// On machines that overlap: when it comes, to the cpu that asked for it.
    pub arrives: Option<Arrival>,
    used: i64,
}

/// The number of every line of others.
const OTHERS: u64 = u64::MAX;

/// When a line comes.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: u64,
    pub cpu: u32,
    pub from: From,
}

struct Set {
    ways: Vec<Option<Line>>,
    /// Tree of PLRU in the order of a heap: whether the bit points to the upper half.
    bits: Vec<bool>,
    /// Where only lines that are used again stay: what LRU would hold, the one used last in front.
    plain: Vec<u64>,
}

/// What is counted, for each cpu that caused it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    pub accesses: u64,
    pub hits: u64,
    pub misses: u64,
    pub writebacks: u64,
    pub upgrades: u64,
    pub prefetches: u64,
    pub prefetch_hits: u64,
    pub cold: u64,
    pub capacity: u64,
    pub conflict: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
    pub stall: Stall,
}

/// What a cache answers for, in units of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stall {
    pub hit: u64,
    pub upgrade: u64,
    /// Of misses that are not classed.
    pub miss: u64,
    pub cold: u64,
    pub capacity: u64,
    pub conflict: u64,
    pub true_sharing: u64,
    pub false_sharing: u64,
    /// For lines that were found and had not come.
    pub late: u64,
    /// Of the classes, in their order, and of `miss`: where no cache on the path served the miss.
    pub beyond: [u64; 6],
}

pub struct Instance {
    pub cache: Cache,
    /// Position of the cache in `machine.caches`.
    pub kind: usize,
    pub cpus: Range<u32>,
    sets: HashMap<u64, Set>,
    time: u64,
    random: SplitMix64,
    classes: Option<Classes>,
    /// Seeds chance, for lines of others.
    key: u64,
    /// Turns of others that were looked at, by set.
    others: HashMap<u64, u64>,
    /// Each line that comes counts as used.
    pub takes_all: bool,
    /// The latest lookup found a line that a prefetcher had brought, as the first.
    pub found_brought: bool,
    /// Class of the latest miss, where it was known at once.
    latest: Option<Class>,
    /// By cpu of the machine.
    pub counts: Vec<Counts>,
}

impl Instance {
    /// `number`: of the instance, counted over the whole machine.
    pub fn new(cache: &Cache, kind: usize, cpus: Range<u32>, number: u64, seed: u64, classed: bool, all: u32) -> Self {
        let lines = cache.bytes / u64::from(cache.line_bytes);
        Instance {
            cache: cache.clone(),
            kind,
            cpus,
            sets: HashMap::new(),
            time: 0,
            random: SplitMix64(SplitMix64(seed.wrapping_add(number)).next()),
            key: SplitMix64(seed.wrapping_add(number)).next(),
            classes: classed.then(|| Classes::new(lines as usize)),
            others: HashMap::new(),
            takes_all: false,
            found_brought: false,
            latest: None,
            counts: vec![Counts::default(); all as usize],
        }
    }

    fn set_number(&self, virtual_address: u64, physical_address: u64) -> u64 {
        let address = match self.cache.index {
            Index::Virtual => virtual_address,
            Index::Physical => physical_address,
        };
        let line = address / u64::from(self.cache.line_bytes);
        let way = u64::from(self.cache.ways) * u64::from(self.cache.line_bytes);
        match &self.cache.hash {
            None => line % (self.cache.bytes / way),
            Some(hash) => {
                let mut slice = 0;
                for (bit, mask) in hash.masks.iter().enumerate() {
                    slice += u64::from((address & mask).count_ones() % 2) << bit;
                }
                let sets = self.cache.bytes / way / u64::from(hash.slices);
                slice % u64::from(hash.slices) * sets + line % sets
            }
        }
    }

    /// The set and the line that a piece goes to.
    pub fn place(&self, virtual_address: u64, physical_address: u64) -> (u64, u64) {
        let set = self.set_number(virtual_address, physical_address);
        (set, self.line_number(physical_address))
    }

    fn line_number(&self, physical_address: u64) -> u64 {
        physical_address / u64::from(self.cache.line_bytes)
    }

    /// The line that holds a physical address, wherever it is.
    pub fn line(&mut self, physical_address: u64) -> Option<&mut Line> {
        let number = self.line_number(physical_address);
        let all = self.sets.values_mut().flat_map(|set| set.ways.iter_mut().flatten());
        all.into_iter().find(|line| line.number == number)
    }

    pub fn holds(&mut self, physical_address: u64) -> bool {
        self.line(physical_address).is_some()
    }

    /// First bytes of the lines held in a range of physical addresses, in their order, and whether they are dirty.
    pub fn lines_in(&self, range: &Range<u64>) -> Vec<(u64, bool)> {
        let held = self.sets.values().flat_map(|set| set.ways.iter().flatten());
        let held = held.filter(|line| line.number != OTHERS);
        let bytes = u64::from(self.cache.line_bytes);
        let mut lines: Vec<_> = held.map(|line| (line.number * bytes, line.dirty)).collect();
        lines.retain(|(address, _)| range.contains(address));
        lines.sort();
        lines
    }

    /// One access. `takes`: a miss will be followed by [`Instance::take`].
    pub fn look_up(&mut self, cpu: u32, virtual_address: u64, physical_address: u64, size: u64, takes: bool) -> bool {
        self.time += 1;
        let time = self.time;
        let set = self.set_number(virtual_address, physical_address);
        let number = self.line_number(physical_address);
        let way = self.way_of(set, number);
        let passed_over = way.is_none() && self.set(set).plain.contains(&number);
        if let Some(way) = way {
            self.use_way(set, way, time);
            self.plain_takes(set, number);
        }
        self.found_brought = self
            .line(physical_address)
            .is_some_and(|line| std::mem::take(&mut line.brought));
        self.counts[cpu as usize].prefetch_hits += u64::from(self.found_brought);
        let counts = &mut self.counts[cpu as usize];
        counts.accesses += 1;
        match way {
            Some(_) => counts.hits += 1,
            None => counts.misses += 1,
        }
        let miss = self
            .classes
            .as_mut()
            .and_then(|classes| classes.look_up(cpu, number, words(physical_address, size), way.is_some(), takes));
        let miss = miss.map(|miss| match miss.class {
            Class::Conflict if passed_over => ClassedMiss {
                class: Class::Capacity,
                ..miss
            },
            _ => miss,
        });
        self.latest = miss.map(|miss| miss.class);
        self.record(miss);
        way.is_some()
    }

    /// A cache before this one found a line that a prefetcher had brought: had it not, this one would have been looked
    /// up.
    pub fn would_be_looked_up(&mut self, physical_address: u64, takes: bool) {
        let number = self.line_number(physical_address);
        if let Some(classes) = &mut self.classes {
            classes.would_be_looked_up(number, takes);
        }
    }

    fn way_of(&self, set: u64, number: u64) -> Option<usize> {
        let ways = &self.sets.get(&set)?.ways;
        ways.iter()
            .position(|way| way.is_some_and(|line| line.number == number))
    }

    fn use_way(&mut self, set: u64, way: usize, time: u64) {
        let set = self.set(set);
        if let Some(line) = &mut set.ways[way] {
            line.used = time as i64;
        }
        // Each bit on the way down points away from the half that was used.
        let (mut node, mut low, mut high) = (0, 0, set.ways.len());
        while high - low > 1 && !set.bits.is_empty() {
            let middle = (low + high) / 2;
            let upper = way >= middle;
            set.bits[node] = !upper;
            (low, high) = if upper { (middle, high) } else { (low, middle) };
            node = 2 * node + 1 + usize::from(upper);
        }
    }

    fn set(&mut self, number: u64) -> &mut Set {
        let ways = self.cache.ways as usize;
        let tree = self.cache.replacement == Replacement::Plru;
        self.sets.entry(number).or_insert_with(|| Set {
            ways: vec![None; ways],
            bits: vec![false; if tree { ways } else { 0 }],
            plain: Vec::new(),
        })
    }

    /// The way that a new line will go to, and the first byte of the line that must leave it.
    pub fn make_room(&mut self, virtual_address: u64, physical_address: u64) -> (usize, Option<u64>) {
        let number = self.set_number(virtual_address, physical_address);
        let replacement = self.cache.replacement;
        let ways = self.cache.ways;
        let set = self.set(number);
        if let Some(free) = set.ways.iter().position(Option::is_none) {
            return (free, None);
        }
        let way = match replacement {
            Replacement::Lru | Replacement::Reuse => {
                let used = |way: &usize| set.ways[*way].map(|line| line.used);
                (0..set.ways.len()).min_by_key(used).expect("a set has ways")
            }
            Replacement::Plru => {
                let (mut node, mut low, mut high) = (0, 0, set.ways.len());
                while high - low > 1 {
                    let middle = (low + high) / 2;
                    let upper = set.bits[node];
                    (low, high) = if upper { (middle, high) } else { (low, middle) };
                    node = 2 * node + 1 + usize::from(upper);
                }
                low
            }
            Replacement::Random => self.random.below(ways) as usize,
        };
        let victim = self.sets[&number].ways[way].expect("no way was free");
        let address = |number| number * u64::from(self.cache.line_bytes);
        (way, Some(victim.number).filter(|&number| number != OTHERS).map(address))
    }

    /// How many lines of others are to be taken in now, before the set is looked at.
    pub fn others_due(&mut self, virtual_address: u64, physical_address: u64, now: u64) -> u64 {
        if self.cache.others_gbps == 0.0 {
            return 0;
        }
        let line_bytes = f64::from(self.cache.line_bytes);
        let apart = super::units(line_bytes / self.cache.others_gbps).max(1);
        let came = now / apart;
        if let Some(classes) = &mut self.classes {
            classes.others(came);
        }
        let sets = self.cache.bytes / line_bytes as u64 / u64::from(self.cache.ways);
        let set = self.set_number(virtual_address, physical_address);
        let due = came / sets + u64::from(came % sets > set);
        let taken = self.others.entry(set).or_default();
        let mut lines = 0;
        while *taken < due {
            let number = SplitMix64(self.key.wrapping_add(set << 32).wrapping_add(*taken / 8)).next();
            lines += match number >> (*taken % 8 * 8) & 0xff {
                0..95 => 0,
                95..188 => 1,
                188..235 => 2,
                235..251 => 3,
                251..255 => 4,
                _ => 5,
            };
            *taken += 1;
        }
        lines.min(self.cache.ways.into())
    }

    /// A line of others is taken in.
    pub fn take_others(&mut self, way: usize, virtual_address: u64, physical_address: u64) {
        self.time += 1;
        let time = self.time;
        let set = self.set_number(virtual_address, physical_address);
        self.set(set).ways[way] = Some(Line {
            number: OTHERS,
            dirty: false,
            brought: false,
            coming: None,
            arrives: None,
            used: time as i64,
        });
        self.use_way(set, way, time);
        self.plain_takes(set, OTHERS);
    }

    /// What LRU would hold, where only lines that are used again stay; true if it had this one.
    fn plain_takes(&mut self, set: u64, number: u64) -> bool {
        if self.cache.replacement != Replacement::Reuse || self.cache.ways == 1 {
            return true;
        }
        let ways = self.cache.ways as usize;
        let plain = &mut self.set(set).plain;
        let had = plain
            .iter()
            .position(|&other| other == number)
            .filter(|_| number != OTHERS);
        if let Some(at) = had {
            plain.remove(at);
        }
        plain.insert(0, number);
        plain.truncate(ways);
        had.is_some()
    }

    pub fn take(&mut self, way: usize, virtual_address: u64, physical_address: u64) {
        self.time += 1;
        let time = self.time;
        let number = self.line_number(physical_address);
        let set = self.set_number(virtual_address, physical_address);
        self.set(set).ways[way] = Some(Line {
            number,
            dirty: false,
            brought: false,
            coming: None,
            arrives: None,
            used: time as i64,
        });
        self.use_way(set, way, time);
        if !self.plain_takes(set, number)
            && !self.takes_all
            && let Some(line) = &mut self.set(set).ways[way]
        {
            line.used = -(time as i64);
        }
        if let Some(classes) = &mut self.classes {
            classes.taken(number);
        }
    }

    /// The line that has just been taken came ahead of use, with all that others wrote.
    pub fn taken_ahead(&mut self, physical_address: u64) {
        let number = self.line_number(physical_address);
        if let Some(classes) = &mut self.classes {
            classes.written.remove(&number);
        }
    }

    /// The line that has just been taken was the prefetcher's wish.
    pub fn brought(&mut self, cpu: u32, physical_address: u64) {
        self.counts[cpu as usize].prefetches += 1;
        if let Some(line) = self.line(physical_address) {
            line.brought = true;
        }
    }

    /// Takes the line that holds an address out, for another reason than that its own set needs the room; whether it
    /// was dirty.
    pub fn lose(&mut self, physical_address: u64, by_invalidation: bool) -> bool {
        if self.holds(physical_address) {
            self.unlist(physical_address);
        }
        self.leaves(physical_address, by_invalidation)
    }

    /// The line that holds an address makes room for another of its set; whether it was dirty.
    pub fn evict(&mut self, physical_address: u64) -> bool {
        self.leaves(physical_address, false)
    }

    fn unlist(&mut self, physical_address: u64) {
        let number = self.line_number(physical_address);
        for set in self.sets.values_mut() {
            set.plain.retain(|&other| other != number);
        }
    }

    fn leaves(&mut self, physical_address: u64, by_invalidation: bool) -> bool {
        let number = self.line_number(physical_address);
        let dirty = self.line(physical_address).is_some_and(|line| line.dirty);
        for set in self.sets.values_mut() {
            for way in &mut set.ways {
                if way.is_some_and(|line| line.number == number) {
                    *way = None;
                }
            }
        }
        let miss = self
            .classes
            .as_mut()
            .and_then(|classes| classes.lost(number, by_invalidation));
        self.record(miss);
        dirty
    }

    /// The line of an address is taken out, and it is as if it had never been here.
    pub fn forget(&mut self, physical_address: u64) {
        self.unlist(physical_address);
        self.leaves(physical_address, false);
        let number = self.line_number(physical_address);
        if let Some(classes) = &mut self.classes {
            classes.forget(number);
        }
    }

    /// A cpu below the instance accesses words.
    pub fn accessed(&mut self, physical_address: u64, size: u64) {
        let number = self.line_number(physical_address);
        let miss = self
            .classes
            .as_mut()
            .and_then(|classes| classes.accessed(number, words(physical_address, size)));
        self.record(miss);
    }

    /// A cpu off the instance writes words.
    pub fn written_elsewhere(&mut self, physical_address: u64, size: u64) {
        let number = self.line_number(physical_address);
        if let Some(classes) = &mut self.classes {
            classes.written_elsewhere(number, words(physical_address, size));
        }
    }

    /// The latest lookup missed and stalls its cpu.
    /// `beyond`: of the stall, where no cache on the path served the miss.
    pub fn stalled(&mut self, cpu: u32, physical_address: u64, stall: u64, beyond: u64) {
        let line = self.line_number(physical_address);
        if self
            .classes
            .as_mut()
            .is_some_and(|classes| classes.stalled(line, stall, beyond))
        {
            return;
        }
        let latest = self.latest;
        let of = &mut self.counts[cpu as usize].stall;
        match latest {
            None => {
                of.miss += stall;
                of.beyond[5] += beyond;
            }
            Some(class) => {
                *of.class(class) += stall;
                of.beyond[class as usize] += beyond;
            }
        }
    }

    /// What was counted so far is nothing; what is undecided will count for nothing.
    pub fn count_anew(&mut self) {
        self.counts.fill(Counts::default());
        if let Some(classes) = &mut self.classes {
            classes.discard();
        }
        for line in self.sets.values_mut().flat_map(|set| set.ways.iter_mut().flatten()) {
            line.brought = false;
            if let Some(coming) = &mut line.coming {
                coming.uncounted();
            }
        }
    }

    pub fn end(&mut self) {
        let misses = self.classes.as_mut().map(Classes::end).unwrap_or_default();
        for miss in misses {
            self.record(Some(miss));
        }
    }

    fn record(&mut self, miss: Option<ClassedMiss>) {
        let Some(miss) = miss else { return };
        let ClassedMiss { cpu, class, .. } = miss;
        if !miss.counts {
            return;
        }
        let of = &mut self.counts[cpu as usize].stall;
        *of.class(class) += miss.stall;
        of.beyond[class as usize] += miss.beyond;
        let counts = &mut self.counts[cpu as usize];
        match class {
            Class::Cold => counts.cold += 1,
            Class::Capacity => counts.capacity += 1,
            Class::Conflict => counts.conflict += 1,
            Class::TrueSharing => counts.true_sharing += 1,
            Class::FalseSharing => counts.false_sharing += 1,
        }
    }
}

impl Stall {
    fn class(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::Cold => &mut self.cold,
            Class::Capacity => &mut self.capacity,
            Class::Conflict => &mut self.conflict,
            Class::TrueSharing => &mut self.true_sharing,
            Class::FalseSharing => &mut self.false_sharing,
        }
    }
}

fn words(address: u64, size: u64) -> Range<u64> {
    address / 4..(address + size - 1) / 4 + 1
}
