//! One set-associative cache: which lines it holds, their state, and who goes next.
//!
//! A line is known by a number below 2^29 that is dense over the program's footprint (see
//! [`crate::pages`]), so that an entry is 32 bits and a set of 16 ways is one line of the host.

use machine::Replacement;
use wide::u32x4;

use crate::random::Random;

/// The line differs from what lies behind the cache.
pub const DIRTY: u32 = 1;
/// The block has records of sharing: accesses to it are looked at closely.
pub const WATCH: u32 = 2;
/// The core that this cache belongs to may write the line without asking (level 1 only).
pub const PERM: u32 = 4;
/// Line numbers must be below this.
pub const LINES_MAX: u32 = (1 << 29) - 1;

const SHIFT: u32 = 3;
const EMPTY: u32 = u32::MAX;

/// A line that left a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    pub line: u32,
    pub state: u32,
}

pub struct Cache {
    ways: usize,
    /// Line number and state, set by set.
    entries: Vec<u32>,
    order: Order,
    live: usize,
}

/// Which way of a set goes next.
enum Order {
    /// One way: no choice.
    Only,
    /// LRU of up to 16 ways: the ways from the most to the least recently used, four bits each.
    Nibbles(Vec<u64>),
    /// LRU of more ways: when each way was used last.
    Stamps {
        last: Vec<u64>,
        now: u64,
    },
    /// Tree-PLRU: node `i` of a set is followed by `2i` and `2i + 1`; true points to the latter.
    Tree(Vec<bool>),
    Random(Random),
}

impl Cache {
    /// `seed` starts the generator of random replacement.
    pub fn new(sets: usize, ways: usize, replacement: Replacement, seed: u64) -> Self {
        let order = match replacement {
            _ if ways == 1 => Order::Only,
            Replacement::Lru if ways <= 16 => Order::Nibbles(vec![0xfedc_ba98_7654_3210; sets]),
            Replacement::Lru => Order::Stamps {
                last: vec![0; sets * ways],
                now: 0,
            },
            Replacement::Plru => Order::Tree(vec![false; sets * ways]),
            Replacement::Random => Order::Random(Random::new(seed)),
        };
        Cache {
            ways,
            entries: vec![EMPTY; sets * ways],
            order,
            live: 0,
        }
    }

    /// Whether it holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.live == 0
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
            2 if set[0] >> SHIFT == line => Some(start),
            2 if set[1] >> SHIFT == line => Some(start + 1),
            2 => None,
            _ => set
                .iter()
                .position(|entry| entry >> SHIFT == line)
                .map(|way| start + way),
        }
    }

    #[inline(always)]
    pub fn state(&self, at: usize) -> u32 {
        self.entries[at] & ((1 << SHIFT) - 1)
    }

    #[inline(always)]
    pub fn set_state(&mut self, at: usize, bits: u32) {
        self.entries[at] |= bits;
    }

    pub fn clear_state(&mut self, at: usize, bits: u32) {
        self.entries[at] &= !bits;
    }

    /// The line at a position becomes the most recently used of its set.
    #[inline(always)]
    pub fn used(&mut self, set: usize, at: usize) {
        let way = at - set * self.ways;
        match &mut self.order {
            Order::Nibbles(orders) => {
                let order = &mut orders[set];
                *order = first(*order, way as u64);
            }
            Order::Only | Order::Random(_) => {}
            Order::Stamps { last, now } => {
                *now += 1;
                last[at] = *now;
            }
            Order::Tree(nodes) => point_away(&mut nodes[set * self.ways..][..self.ways], way),
        }
    }

    /// Takes a line in, as the most recently used; returns the line that made room.
    #[inline]
    pub fn fill(&mut self, set: usize, line: u32, state: u32) -> Option<Gone> {
        debug_assert!(line < LINES_MAX);
        if self.live < self.entries.len() {
            let start = set * self.ways;
            let mut ways = self.entries[start..start + self.ways].iter();
            if let Some(way) = ways.position(|&entry| entry == EMPTY) {
                self.live += 1;
                self.entries[start + way] = line << SHIFT | state;
                self.used(set, start + way);
                return None;
            }
        }
        let at = set * self.ways + self.victim(set);
        let entry = std::mem::replace(&mut self.entries[at], line << SHIFT | state);
        if !matches!(self.order, Order::Nibbles(_)) {
            self.used(set, at);
        }
        Some(Gone {
            line: entry >> SHIFT,
            state: entry & ((1 << SHIFT) - 1),
        })
    }

    /// The way that makes room; with LRU it goes to the front at once.
    #[inline(always)]
    fn victim(&mut self, set: usize) -> usize {
        match &mut self.order {
            Order::Only => 0,
            Order::Nibbles(orders) => {
                let order = &mut orders[set];
                let bits = 4 * (self.ways - 1);
                let last = *order >> bits & 15;
                let upto = u64::MAX >> (60 - bits);
                *order = (*order & !upto) | ((*order << 4) & upto) | last;
                last as usize
            }
            Order::Stamps { last, .. } => {
                let set = &last[set * self.ways..][..self.ways];
                (0..self.ways).min_by_key(|&way| set[way]).unwrap_or(0)
            }
            Order::Tree(nodes) => follow(&nodes[set * self.ways..][..self.ways]),
            Order::Random(random) => random.below(self.ways as u32) as usize,
        }
    }

    /// Takes a line out, if it is there; returns its state.
    pub fn remove(&mut self, set: usize, line: u32) -> Option<u32> {
        let at = self.find(set, line)?;
        let state = self.state(at);
        self.entries[at] = EMPTY;
        self.live -= 1;
        Some(state)
    }
}

/// One bit for each way that holds the line; four ways are compared at a time.
#[inline(always)]
fn matches<const WAYS: usize>(set: &[u32], line: u32) -> u32 {
    let Ok(set) = <&[u32; WAYS]>::try_from(set) else {
        return 0;
    };
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
    const ONES: u64 = 0x1111_1111_1111_1111;
    // The lowest nibble that is zero in `differs` is where the way stands.
    let differs = order ^ (way * ONES);
    let zero = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
    let upto = u64::MAX >> (63 - zero.trailing_zeros());
    (order & !upto) | ((order << 4) & upto) | way
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
            None => cache.fill(0, line, 0).map(|gone| gone.line),
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
        for ways in [3usize, 8, 16, 17] {
            let mut cache = cache(ways, Replacement::Lru);
            let mut list: Vec<u32> = Vec::new();
            let mut random = Random::new(3);
            for _ in 0..20_000 {
                let line = random.below(2 * ways as u32);
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
