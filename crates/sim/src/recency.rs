//! A fully associative LRU set of any capacity, in constant time for each access.
//!
//! It answers whether a key is among the `capacity` that were used last. Two uses: the shadow of
//! a cache, which separates conflict from capacity misses, and a fully associative TLB.
//!
//! Instead of a linked list there is a log of uses and, for each key, the position of its last
//! use in the log. A use appends to the log, and marks the key's older entry stale. The keys in
//! the set are those whose last use lies at or after `tail`, which moves up, over stale entries,
//! when the set is too full. This touches far less memory than relinking a list does.
//!
//! The positions are kept in an [`Arena`], which several sets of the same keys can share, so that
//! their positions of one key lie side by side.

use sys::arrays::{Array, prefetch};

/// The state of a key before its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prior {
    /// Never used.
    Cold,
    /// Used, but not among the last `capacity`.
    Out,
    /// In the set.
    In,
}

/// Positions 0 and 1 of the log stand for "never used", as new elements of an [`Array`] are, and
/// "taken out".
const NEVER: u32 = 0;
const TAKEN_OUT: u32 = 1;
const FIRST: u32 = 2;

/// The positions of last uses, of one or several sets (lanes).
pub struct Arena {
    lanes: u32,
    /// Keys are kept in chunks of `1 << chunk_bits`, made when one of theirs is first used.
    chunk_bits: u32,
    /// The start of each chunk in `last`.
    chunks: Vec<u32>,
    last: Array<u32>,
}

pub struct Recency {
    /// Its place among the sets that share the arena.
    lane: u32,
    capacity: u32,
    live: u32,
    /// Slots (places in the arena) in the order of use, a ring.
    log: Array<u32>,
    tail: u32,
    head: u32,
}

const NO_CHUNK: u32 = u32::MAX;
/// A log entry whose key was used again, or taken out.
const STALE: u32 = u32::MAX;
/// A log entry of a key that is never asked for.
const OTHERS: u32 = u32::MAX - 1;

impl Arena {
    /// `chunk_bits`: keys that differ only in this many low bits are likely to be used together.
    pub fn new(lanes: u32, chunk_bits: u32) -> Self {
        Arena {
            lanes,
            chunk_bits,
            chunks: Vec::new(),
            last: Array::new(0),
        }
    }

    /// The place of a key's lanes, if it was ever used.
    #[inline(always)]
    fn existing(&self, key: u32) -> Option<usize> {
        let &start = self.chunks.get((key >> self.chunk_bits) as usize)?;
        let low = key & ((1 << self.chunk_bits) - 1);
        (start != NO_CHUNK).then(|| (start + low * self.lanes) as usize)
    }

    #[inline(always)]
    fn slot(&mut self, key: u32) -> usize {
        match self.existing(key) {
            Some(slot) => slot,
            None => self.new_chunk(key),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_chunk(&mut self, key: u32) -> usize {
        let chunk = (key >> self.chunk_bits) as usize;
        if chunk >= self.chunks.len() {
            self.chunks.resize(chunk + 1, NO_CHUNK);
        }
        let start = self.last.len();
        self.last.grow(start + ((self.lanes as usize) << self.chunk_bits));
        self.chunks[chunk] = start as u32;
        start + ((key & ((1 << self.chunk_bits) - 1)) * self.lanes) as usize
    }

    /// Prefetches a key's position on the host.
    #[inline(always)]
    pub fn warm(&self, key: u32) {
        if let Some(slot) = self.existing(key) {
            prefetch(&self.last, slot);
        }
    }
}

impl Recency {
    /// The set number `lane` of those that share an arena.
    pub fn new(capacity: u32, lane: u32) -> Self {
        let ring = (u64::from(capacity) * 4).next_power_of_two().clamp(1024, 1 << 31);
        Recency {
            lane,
            capacity: capacity.min(1 << 29),
            live: 0,
            log: Array::new(ring as usize),
            tail: FIRST,
            head: FIRST,
        }
    }

    fn existing(&self, arena: &Arena, key: u32) -> Option<usize> {
        arena.existing(key).map(|slot| slot + self.lane as usize)
    }

    /// Uses a key. With `insert` off, a key that is not in the set stays out of it.
    #[inline(always)]
    pub fn touch(&mut self, arena: &mut Arena, key: u32, insert: bool) -> Prior {
        let slot = arena.slot(key) + self.lane as usize;
        let last = arena.last[slot];
        if last >= self.tail {
            if last + 1 != self.head {
                self.strike(last);
                self.append(arena, slot);
            }
            return Prior::In;
        }
        if insert {
            self.append(arena, slot);
            self.live += 1;
            if self.live > self.capacity {
                self.drop_oldest();
            }
        } else if last == NEVER {
            arena.last[slot] = TAKEN_OUT;
        }
        if last == NEVER { Prior::Cold } else { Prior::Out }
    }

    #[inline(always)]
    fn strike(&mut self, position: u32) {
        let mask = self.log.len() - 1;
        self.log[position as usize & mask] = STALE;
    }

    #[inline(always)]
    fn append(&mut self, arena: &mut Arena, slot: usize) {
        self.make_place(arena);
        let mask = self.log.len() - 1;
        self.log[self.head as usize & mask] = slot as u32;
        arena.last[slot] = self.head;
        self.head += 1;
    }

    /// Makes a place in the log.
    #[inline(always)]
    fn make_place(&mut self, arena: &mut Arena) {
        if self.head - self.tail == self.log.len() as u32 || self.head == u32::MAX {
            self.renumber(arena);
        }
    }

    #[inline(always)]
    fn drop_oldest(&mut self) {
        let mask = self.log.len() - 1;
        while self.log[self.tail as usize & mask] == STALE {
            self.tail += 1;
        }
        self.tail += 1;
        self.live -= 1;
    }

    /// Rewrites the log without its stale entries; starts counting again before positions run out.
    #[cold]
    #[inline(never)]
    fn renumber(&mut self, arena: &mut Arena) {
        let mask = self.log.len() - 1;
        let restart = self.head > u32::MAX - 2 * self.log.len() as u32;
        if self.head - self.tail == self.log.len() as u32 && !restart {
            // The ring is full: written entries take the places of those that were read.
            let before = self.tail..self.head;
            self.tail = self.head;
            for position in before {
                let slot = self.log[position as usize & mask];
                if slot != STALE {
                    self.write_again(arena, slot);
                }
            }
            return;
        }
        let live = (self.tail..self.head).map(|position| self.log[position as usize & mask]);
        let slots: Vec<u32> = live.filter(|&slot| slot != STALE).collect();
        let mut start = self.head;
        if restart {
            start = FIRST;
            for last in arena
                .last
                .iter_mut()
                .skip(self.lane as usize)
                .step_by(arena.lanes as usize)
            {
                *last = (*last).min(TAKEN_OUT);
            }
        }
        self.tail = start;
        self.head = start;
        for &slot in &slots {
            self.write_again(arena, slot);
        }
    }

    /// Writes a slot, or a key that is never asked for, at the log's head.
    fn write_again(&mut self, arena: &mut Arena, slot: u32) {
        let mask = self.log.len() - 1;
        self.log[self.head as usize & mask] = slot;
        if slot != OTHERS {
            arena.last[slot as usize] = self.head;
        }
        self.head += 1;
    }

    /// Uses `keys` keys, each a new one, that are never asked for.
    pub fn others(&mut self, arena: &mut Arena, keys: u64) {
        for _ in 0..keys.min(u64::from(self.capacity)) {
            self.make_place(arena);
            let mask = self.log.len() - 1;
            self.log[self.head as usize & mask] = OTHERS;
            self.head += 1;
            self.live += 1;
            if self.live > self.capacity {
                self.drop_oldest();
            }
        }
    }

    /// Returns whether a key is in the set.
    pub fn holds(&self, arena: &Arena, key: u32) -> bool {
        self.existing(arena, key)
            .is_some_and(|slot| arena.last[slot] >= self.tail)
    }

    /// Takes a key out of the set; it stays known as used.
    pub fn take_out(&mut self, arena: &mut Arena, key: u32) {
        if let Some(slot) = self.existing(arena, key)
            && arena.last[slot] >= self.tail
        {
            self.strike(arena.last[slot]);
            arena.last[slot] = TAKEN_OUT;
            self.live -= 1;
        }
    }

    /// Takes a key out of the set, as if it had never been used.
    pub fn forget(&mut self, arena: &mut Arena, key: u32) {
        self.take_out(arena, key);
        if let Some(slot) = self.existing(arena, key) {
            arena.last[slot] = NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Random;

    #[test]
    fn agrees_with_a_list() {
        for capacity in [1usize, 7, 300] {
            let mut arena = Arena::new(2, 3);
            let mut recency = Recency::new(capacity as u32, 1);
            let mut beside = Recency::new(5, 0);
            let mut list: Vec<u32> = Vec::new();
            let mut seen = std::collections::HashSet::new();
            let mut random = Random::new(capacity as u64);
            for step in 0..50_000 {
                let key = random.below(3 * capacity as u32 / 2 + 2);
                beside.touch(&mut arena, random.below(100), true);
                if random.below(5) == 0 {
                    let keys = random.below(3);
                    recency.others(&mut arena, u64::from(keys));
                    (0..keys).for_each(|_| list.insert(0, u32::MAX));
                    list.truncate(capacity);
                    continue;
                }
                if random.below(10) == 0 {
                    list.retain(|&other| other != key);
                    if random.below(2) == 0 {
                        recency.take_out(&mut arena, key);
                    } else {
                        recency.forget(&mut arena, key);
                        seen.remove(&key);
                    }
                    continue;
                }
                let insert = random.below(4) > 0;
                let expected = match (list.contains(&key), seen.contains(&key)) {
                    (true, _) => Prior::In,
                    (false, true) => Prior::Out,
                    _ => Prior::Cold,
                };
                assert_eq!(recency.touch(&mut arena, key, insert), expected, "step {step}");
                seen.insert(key);
                if insert || expected == Prior::In {
                    list.retain(|&other| other != key);
                    list.insert(0, key);
                    list.truncate(capacity);
                }
            }
        }
    }

    #[test]
    fn goes_on_when_positions_run_out() {
        let mut arena = Arena::new(1, 3);
        let mut recency = Recency::new(2, 0);
        recency.touch(&mut arena, 9, true);
        recency.touch(&mut arena, 1, true);
        recency.touch(&mut arena, 2, true);
        let shift = u32::MAX - 5 - recency.head;
        for last in arena.last.iter_mut() {
            if *last >= recency.tail {
                *last += shift;
            }
        }
        let mask = recency.log.len() - 1;
        let old = recency.log.to_vec();
        for position in recency.tail..recency.head {
            recency.log[(position + shift) as usize & mask] = old[position as usize & mask];
        }
        recency.tail += shift;
        recency.head += shift;
        for _ in 0..10 {
            assert_eq!(recency.touch(&mut arena, 1, true), Prior::In);
            assert_eq!(recency.touch(&mut arena, 2, true), Prior::In);
        }
        assert!(recency.head < 1000);
        assert_eq!(recency.touch(&mut arena, 9, true), Prior::Out);
        assert_eq!(recency.touch(&mut arena, 8, true), Prior::Cold);
        assert_eq!(recency.touch(&mut arena, 2, true), Prior::Out);
    }
}
