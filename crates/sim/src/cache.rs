//! One set-associative cache: which lines it holds, their state, and who goes next.
//!
//! A line is known by a number below 2^29 that is dense over the program's footprint (see
//! [`crate::pages`]), so that an entry is 32 bits and a set of 16 ways is one line of the host.

use machine::Replacement;
use sys::arrays::prefetch;
use wide::u32x4;

use policy::Random;

/// The line differs from what lies behind the cache.
pub const DIRTY: u32 = 1;
/// The block has records of sharing: accesses to it are looked at closely.
pub const WATCH: u32 = 2;
/// The core that this cache belongs to may write the line without asking (level 1 only).
pub const PERM: u32 = 4;
/// On machines with one cpu, where nobody asks, and beyond level 1: the cache's prefetcher brought the line, and
/// nothing has asked for it yet. Beyond level 1, on machines with prefetches of the program: one of them asked for the
/// line, which may still be on its way ([`crate::software_prefetch`]).
pub const BROUGHT: u32 = PERM;
/// Line numbers must be below this.
pub const LINES_MAX: u32 = (1 << 29) - 1;

/// The number of all lines of others ([`crate::others`]), which nobody looks up.
pub const OTHERS: u32 = LINES_MAX;

const SHIFT: u32 = 3;
/// All bits of a state are set, which no line of others has.
const EMPTY: u32 = u32::MAX;

/// A line of the program that left a cache, if there was one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(u32);

impl Gone {
    #[inline(always)]
    pub fn line(self) -> Option<u32> {
        Some(self.0 >> SHIFT).filter(|&line| line != OTHERS)
    }

    /// Whether there was a line, and it was dirty.
    #[inline(always)]
    pub fn is_dirty(self) -> bool {
        self.0 & DIRTY != 0 && self.0 != EMPTY
    }

    #[inline(always)]
    pub fn state(self) -> u32 {
        self.0 & STATE
    }
}

const STATE: u32 = (1 << SHIFT) - 1;

pub struct Cache {
    ways: usize,
    /// Line number and state, set by set.
    entries: Vec<u32>,
    /// LRU of 2 to 16 ways: the ways of each set from the most to the least recently used, four
    /// bits each. Free ways stand last.
    orders: Vec<u64>,
    /// Every other way to choose; [`Order::Lru`] where `orders` does it.
    order: Order,
    live: usize,
}

/// Which way of a set goes next.
enum Order {
    /// As `orders` says, or there is but one way.
    Lru,
    /// LRU of more than 16 ways: when each way was used last.
    Stamps {
        last: Vec<u64>,
        now: u64,
    },
    /// Tree-PLRU: node `i` of a set is followed by `2i` and `2i + 1`; true points to the latter.
    Tree(Vec<bool>),
    Random(Random),
    Reuse(Box<Reuse>),
}

/// LRU of the lines that are used again.
struct Reuse {
    /// When each way was used last, as [`Order::Stamps`]; a line that was not used again is stamped below all others.
    last: Vec<i64>,
    newest: i64,
    oldest: i64,
    /// Each line that comes counts as used.
    takes_all: bool,
    /// What plain LRU would hold.
    plain: Cache,
}

impl Reuse {
    fn new(sets: usize, ways: usize) -> Reuse {
        Reuse {
            last: vec![0; sets * ways],
            newest: 0,
            oldest: 0,
            takes_all: false,
            plain: Cache::new(sets, ways, Replacement::Lru, 0),
        }
    }

    fn used(&mut self, set: usize, at: usize, line: u32) {
        self.newest += 1;
        self.last[at] = self.newest;
        self.plain_takes(set, line);
    }

    /// A line comes to this place.
    fn comes(&mut self, set: usize, at: usize, line: u32) {
        if self.plain_takes(set, line) || self.takes_all || line == OTHERS {
            self.newest += 1;
            self.last[at] = self.newest;
        } else {
            self.oldest -= 1;
            self.last[at] = self.oldest;
        }
    }

    /// Plain LRU takes a line; returns whether it had it. All lines of others have one number, and each is another.
    fn plain_takes(&mut self, set: usize, line: u32) -> bool {
        let known = self.plain.find(set, line).filter(|_| line != OTHERS);
        match known {
            Some(at) => self.plain.used(set, at),
            None => {
                self.plain.fill::<0>(set, line, 0);
            }
        }
        known.is_some()
    }
}

impl Cache {
    /// `seed` starts the generator of random replacement.
    pub fn new(sets: usize, ways: usize, replacement: Replacement, seed: u64) -> Self {
        let order = match replacement {
            _ if ways == 1 => Order::Lru,
            Replacement::Lru if ways <= 16 => Order::Lru,
            Replacement::Lru => Order::Stamps {
                last: vec![0; sets * ways],
                now: 0,
            },
            Replacement::Plru => Order::Tree(vec![false; sets * ways]),
            Replacement::Random => Order::Random(Random::new(seed)),
            Replacement::Reuse => Order::Reuse(Box::new(Reuse::new(sets, ways))),
        };
        let nibbles = matches!(order, Order::Lru) && ways > 1;
        Cache {
            ways,
            entries: vec![EMPTY; sets * ways],
            orders: if nibbles {
                vec![0xfedc_ba98_7654_3210; sets]
            } else {
                Vec::new()
            },
            order,
            live: 0,
        }
    }

    /// Has the host fetch a set.
    #[inline(always)]
    pub fn warm(&self, set: usize) {
        prefetch(&self.entries, set * self.ways);
        prefetch(&self.orders, set);
    }

    /// From now on each line that comes counts as used, or no more.
    pub fn take_all(&mut self, all: bool) {
        if let Order::Reuse(reuse) = &mut self.order {
            reuse.takes_all = all;
        }
    }

    /// Whether it holds nothing at all.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.live == 0 && self.reuse().is_none_or(|reuse| reuse.plain.live == 0)
    }

    /// Returns whether plain LRU would hold a line that this cache missed.
    #[inline]
    pub fn plain_holds(&self, set: usize, line: u32) -> bool {
        self.reuse().is_some_and(|reuse| reuse.plain.find(set, line).is_some())
    }

    #[inline(always)]
    fn reuse(&self) -> Option<&Reuse> {
        match &self.order {
            Order::Reuse(reuse) => Some(reuse),
            _ => None,
        }
    }

    /// The ways, if there is a [`Cache::hit`] and [`Cache::fill`] made for so many; else 0.
    pub fn fixed_ways(&self) -> usize {
        match (&self.order, self.ways) {
            (Order::Lru, 1 | 2 | 4 | 8 | 16) => self.ways,
            _ => 0,
        }
    }

    /// The position of a line, good until the cache changes.
    #[inline(always)]
    pub fn find(&self, set: usize, line: u32) -> Option<usize> {
        let start = set * self.ways;
        let set = &self.entries[start..start + self.ways];
        match set.len() {
            1 => (set[0] >> SHIFT == line).then_some(start),
            8 => place(matches::<8>(set, line), start),
            16 => place(matches::<16>(set, line), start),
            4 => place(matches::<4>(set, line), start),
            12 => place(matches::<12>(set, line), start),
            _ => set
                .iter()
                .position(|entry| entry >> SHIFT == line)
                .map(|way| start + way),
        }
    }

    /// Looks a line up and makes it the most recently used; `WAYS` is [`Cache::fixed_ways`].
    #[inline(always)]
    pub fn hit<const WAYS: usize>(&mut self, set: usize, line: u32) -> Option<usize> {
        if WAYS == 0 {
            let at = self.find(set, line)?;
            self.used(set, at);
            return Some(at);
        }
        let (sets, _) = self.entries.as_chunks::<WAYS>();
        let ways = &sets[set];
        if WAYS == 1 {
            return (ways[0] >> SHIFT == line).then_some(set);
        }
        let mask = matches::<WAYS>(ways, line);
        if mask == 0 {
            return None;
        }
        let way = mask.trailing_zeros();
        let order = &mut self.orders[set];
        *order = first(*order, u64::from(way));
        Some(set * WAYS + way as usize)
    }

    #[inline(always)]
    pub fn state(&self, at: usize) -> u32 {
        self.entries[at] & STATE
    }

    #[inline(always)]
    pub fn set_state(&mut self, at: usize, bits: u32) {
        // Mostly it is set already; a store would hold up the next comparison of the set, which
        // loads several entries at once.
        let entry = &mut self.entries[at];
        if *entry | bits != *entry {
            *entry |= bits;
        }
    }

    #[inline(always)]
    pub fn clear_state(&mut self, at: usize, bits: u32) {
        let entry = &mut self.entries[at];
        if *entry & bits != 0 {
            *entry &= !bits;
        }
    }

    /// Clears bits of all lines.
    pub fn clear_all(&mut self, bits: u32) {
        for entry in self.entries.iter_mut().filter(|entry| **entry != EMPTY) {
            *entry &= !bits;
        }
    }

    /// The line at a position becomes the most recently used of its set.
    #[inline(always)]
    pub fn used(&mut self, set: usize, at: usize) {
        let way = at - set * self.ways;
        match &mut self.order {
            Order::Lru => {
                if let Some(order) = self.orders.get_mut(set) {
                    *order = first(*order, way as u64);
                }
            }
            Order::Random(_) => {}
            Order::Stamps { last, now } => {
                *now += 1;
                last[at] = *now;
            }
            Order::Tree(nodes) => point_away(&mut nodes[set * self.ways..][..self.ways], way),
            Order::Reuse(reuse) => reuse.used(set, at, self.entries[at] >> SHIFT),
        }
    }

    /// Takes a line in, as the most recently used (but see [`Replacement::Reuse`]); returns the line that made room.
    #[inline(always)]
    pub fn fill<const WAYS: usize>(&mut self, set: usize, line: u32, state: u32) -> Gone {
        debug_assert!(line <= LINES_MAX);
        let entry = line << SHIFT | state;
        let ways = if WAYS == 0 { self.ways } else { WAYS };
        let way = match (WAYS, self.orders.get_mut(set)) {
            (1, _) => 0,
            (_, Some(order)) => {
                let bits = 4 * (ways - 1);
                let last = *order >> bits & 15;
                let upto = u64::MAX >> (60 - bits);
                *order = (*order & !upto) | ((*order << 4) & upto) | last;
                last as usize
            }
            (_, None) => self.make_room(set, line),
        };
        let gone = std::mem::replace(&mut self.entries[set * ways + way], entry);
        self.live += usize::from(gone == EMPTY);
        Gone(gone)
    }

    /// The way for a new line where `orders` does not say: a free one, else the victim.
    fn make_room(&mut self, set: usize, line: u32) -> usize {
        let start = set * self.ways;
        let mut free = None;
        if self.live < self.entries.len() {
            let mut ways = self.entries[start..start + self.ways].iter();
            free = ways.position(|&entry| entry == EMPTY);
        }
        let way = free.unwrap_or_else(|| self.victim(set));
        match &mut self.order {
            Order::Reuse(reuse) => reuse.comes(set, start + way, line),
            _ => self.used(set, start + way),
        }
        way
    }

    fn victim(&mut self, set: usize) -> usize {
        match &mut self.order {
            Order::Lru => 0,
            Order::Stamps { last, .. } => least(&last[set * self.ways..][..self.ways]),
            Order::Reuse(reuse) => least(&reuse.last[set * self.ways..][..self.ways]),
            Order::Tree(nodes) => follow(&nodes[set * self.ways..][..self.ways]),
            Order::Random(random) => random.below(self.ways as u32) as usize,
        }
    }

    /// Takes a line out, if it is there, and no use of it is known any more; returns its state.
    pub fn forget(&mut self, set: usize, line: u32) -> Option<u32> {
        if let Order::Reuse(reuse) = &mut self.order {
            reuse.plain.remove(set, line);
        }
        self.remove(set, line)
    }

    /// Takes a line out, if it is there; returns its state.
    pub fn remove(&mut self, set: usize, line: u32) -> Option<u32> {
        let at = self.find(set, line)?;
        let state = self.state(at);
        self.take(set, at);
        Some(state)
    }

    /// Takes out the line at a position.
    #[inline(always)]
    pub fn take(&mut self, set: usize, at: usize) {
        if let Order::Reuse(reuse) = &mut self.order {
            reuse.plain.remove(set, self.entries[at] >> SHIFT);
        }
        self.entries[at] = EMPTY;
        self.live -= 1;
        if let Some(order) = self.orders.get_mut(set) {
            *order = last(*order, (at - set * self.ways) as u64, self.ways);
        }
    }
}

/// The way whose stamp is least.
fn least<T: Ord>(stamps: &[T]) -> usize {
    (0..stamps.len()).min_by_key(|&way| &stamps[way]).unwrap_or(0)
}

/// One bit for each way that holds the line; four ways are compared at a time.
#[inline(always)]
fn matches<const WAYS: usize>(set: &[u32], line: u32) -> u32 {
    let Ok(set) = <&[u32; WAYS]>::try_from(set) else {
        return 0;
    };
    if WAYS == 2 {
        return u32::from(set[0] >> SHIFT == line) | u32::from(set[1] >> SHIFT == line) << 1;
    }
    let (fours, _) = set.as_chunks::<4>();
    let line = u32x4::splat(line);
    let mut mask = 0;
    for (i, four) in fours.iter().enumerate() {
        let lines: u32x4 = u32x4::new(*four) >> SHIFT;
        mask |= lines.simd_eq(line).to_bitmask() << (4 * i);
    }
    mask
}

#[inline(always)]
fn place(mask: u32, start: usize) -> Option<usize> {
    (mask != 0).then(|| start + mask.trailing_zeros() as usize)
}

/// Brings a way to the front of an order of nibbles.
#[inline(always)]
fn first(order: u64, way: u64) -> u64 {
    let upto = u64::MAX >> (60 - standing(order, way));
    (order & !upto) | ((order << 4) & upto) | way
}

/// Brings a way to the end of an order of nibbles, of which `ways` count.
fn last(order: u64, way: u64, ways: usize) -> u64 {
    let end = 4 * (ways - 1);
    // The nibbles that count, but for the last.
    let upto = (1 << end) - 1;
    let below = (1u64 << standing(order, way)) - 1;
    let above = u64::MAX << end << 4;
    let above = if ways == 16 { 0 } else { above };
    (order & above) | way << end | (order >> 4 & upto & !below) | (order & below)
}

/// The bit at which the nibble of a way begins.
#[inline(always)]
fn standing(order: u64, way: u64) -> u32 {
    const ONES: u64 = 0x1111_1111_1111_1111;
    // The lowest nibble that is zero in `differs` is where the way stands.
    let differs = order ^ (way * ONES);
    let zero = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
    zero.trailing_zeros() & !3
}

fn point_away(nodes: &mut [bool], way: usize) {
    let mut node = 1;
    let mut half = nodes.len() / 2;
    while half > 0 {
        let upper = way & half != 0;
        nodes[node] = !upper;
        node = 2 * node + usize::from(upper);
        half /= 2;
    }
}

fn follow(nodes: &[bool]) -> usize {
    let mut node = 1;
    while node < nodes.len() {
        node = 2 * node + usize::from(nodes[node]);
    }
    node - nodes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(ways: usize, replacement: Replacement) -> Cache {
        Cache::new(1, ways, replacement, 7)
    }

    fn touch(cache: &mut Cache, line: u32) -> Option<u32> {
        match cache.find(0, line) {
            Some(at) => {
                cache.used(0, at);
                None
            }
            None => cache.fill::<0>(0, line, 0).line(),
        }
    }

    #[test]
    fn lru_gives_up_the_least_recently_used() {
        for ways in [2, 3, 4, 8, 16, 24] {
            let mut cache = cache(ways, Replacement::Lru);
            for line in 0..ways as u32 {
                assert_eq!(touch(&mut cache, line), None);
            }
            touch(&mut cache, 0);
            assert_eq!(touch(&mut cache, 100), Some(1), "{ways} ways");
            assert_eq!(touch(&mut cache, 0), None);
        }
    }

    #[test]
    fn lru_of_both_kinds_agrees_with_a_list() {
        for ways in [2, 3usize, 8, 15, 16, 17] {
            let mut cache = cache(ways, Replacement::Lru);
            let mut list: Vec<u32> = Vec::new();
            let mut random = Random::new(3);
            for _ in 0..20_000 {
                let line = random.below(2 * ways as u32);
                if random.below(5) == 0 {
                    assert_eq!(cache.remove(0, line).is_some(), list.contains(&line));
                    list.retain(|&other| other != line);
                    continue;
                }
                let expected = match list.iter().position(|&other| other == line) {
                    Some(at) => {
                        list.remove(at);
                        None
                    }
                    None if list.len() == ways => list.pop(),
                    None => None,
                };
                list.insert(0, line);
                assert_eq!(touch(&mut cache, line), expected);
            }
        }
    }

    #[test]
    fn the_ways_that_are_fixed_do_as_the_others() {
        let mut fixed = Cache::new(4, 8, Replacement::Lru, 0);
        let mut other = Cache::new(4, 8, Replacement::Lru, 0);
        let mut random = Random::new(5);
        for _ in 0..20_000 {
            let (set, line) = (random.below(4) as usize, random.below(12));
            let (a, b) = (fixed.hit::<8>(set, line), other.hit::<0>(set, line));
            assert_eq!(a, b);
            if a.is_none() {
                assert_eq!(fixed.fill::<8>(set, line, 0), other.fill::<0>(set, line, 0));
            }
        }
        assert_eq!(fixed.entries, other.entries);
    }

    #[test]
    fn reuse_keeps_lines_that_are_used_again() {
        let mut cache = cache(4, Replacement::Reuse);
        // Twice each: the second time they are in.
        for line in [0, 1, 2, 3, 0, 1, 2, 3] {
            assert_eq!(touch(&mut cache, line), None);
        }
        // The least recently used makes room for the first; then each takes the place of the one before.
        let passed: Vec<_> = (10..14).map(|line| touch(&mut cache, line)).collect();
        assert_eq!(passed, [Some(0), Some(10), Some(11), Some(12)]);
        // Plain LRU would hold the last four, so the second coming of 12 counts as a use, and 1 is next.
        assert!(cache.plain_holds(0, 12) && !cache.plain_holds(0, 1));
        assert_eq!(touch(&mut cache, 12), Some(13));
        assert_eq!(touch(&mut cache, 20), Some(1));
        // 13 was passed over and is known until it is forgotten.
        assert_eq!(cache.remove(0, 13), None);
        assert!(cache.plain_holds(0, 13));
        assert_eq!(cache.forget(0, 13), None);
        assert!(!cache.plain_holds(0, 13));
        assert_eq!([2, 3, 12].map(|line| touch(&mut cache, line)), [None; 3]);
        // A line that was taken out comes for the first time again.
        assert_eq!(cache.remove(0, 12), Some(0));
        assert!(!cache.plain_holds(0, 12));
        assert_eq!(touch(&mut cache, 12), None);
        assert_eq!(touch(&mut cache, 30), Some(12));
        cache.take_all(true);
        assert_eq!([40, 41].map(|line| touch(&mut cache, line)), [Some(30), Some(20)]);
        cache.take_all(false);
        assert_eq!([50, 51].map(|line| touch(&mut cache, line)), [Some(2), Some(50)]);
    }

    #[test]
    fn reuse_agrees_with_two_lists() {
        for ways in [2, 3usize, 8, 17] {
            let mut cache = cache(ways, Replacement::Reuse);
            // The line that leaves last stands in front: of the cache, and of plain LRU.
            let (mut held, mut plain): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            let mut random = Random::new(3);
            for _ in 0..20_000 {
                let line = random.below(3 * ways as u32);
                let was_held = held.contains(&line);
                if random.below(9) == 0 {
                    assert_eq!(cache.forget(0, line).is_some(), was_held);
                    held.retain(|&other| other != line);
                    plain.retain(|&other| other != line);
                    continue;
                }
                let known = plain.contains(&line);
                assert_eq!(cache.plain_holds(0, line), known);
                plain.retain(|&other| other != line);
                plain.insert(0, line);
                plain.truncate(ways);
                held.retain(|&other| other != line);
                let gone = if held.len() == ways { held.pop() } else { None };
                let at = if was_held || known { 0 } else { held.len() };
                held.insert(at, line);
                assert_eq!(touch(&mut cache, line), gone, "{ways} ways");
            }
        }
    }

    #[test]
    fn a_sweep_too_large_for_lru_keeps_nothing_with_reuse_either_and_one_that_fits_is_in_after_two_passes() {
        let mut cache = cache(8, Replacement::Reuse);
        for line in 100..108 {
            touch(&mut cache, line);
            touch(&mut cache, line);
        }
        let misses = |cache: &mut Cache, lines: std::ops::Range<u32>| {
            lines.filter(|&line| cache.find(0, line).is_none()).count()
        };
        let pass = |cache: &mut Cache| {
            for line in 0..6 {
                touch(cache, line);
            }
        };
        pass(&mut cache);
        assert_eq!(misses(&mut cache, 0..6), 5);
        pass(&mut cache);
        assert_eq!(misses(&mut cache, 0..6), 0);
    }

    #[test]
    fn plru_follows_the_bits() {
        let mut cache = cache(4, Replacement::Plru);
        for line in 0..4 {
            touch(&mut cache, line);
        }
        // Uses in order 0 1 2 3: the root points to the lower half, there to way 0.
        assert_eq!(touch(&mut cache, 10), Some(0));
        // Now the root points to the upper half, there to way 2.
        assert_eq!(touch(&mut cache, 11), Some(2));
    }

    #[test]
    fn a_removed_line_leaves_a_free_way() {
        let mut cache = cache(2, Replacement::Lru);
        touch(&mut cache, 1);
        touch(&mut cache, 2);
        assert_eq!(cache.remove(0, 1), Some(0));
        assert_eq!(cache.remove(0, 1), None);
        assert_eq!(touch(&mut cache, 3), None);
        assert!(cache.find(0, 2).is_some());
    }
}
