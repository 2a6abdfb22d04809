//! Ownership of memory: the heap's blocks and the mappings of an address space.

use std::collections::{BTreeMap, HashMap};

use trace::{Allocation, Event, StackId};

#[derive(Clone, Copy, Debug)]
struct Owned {
    bytes: u64,
    stack: StackId,
    kind: Allocation,
}

/// The allocations of an address space, as far as later events may concern them.
#[derive(Clone, Default)]
pub struct Allocations {
    heap: HashMap<u64, Owned>,
    /// Mappings by address; they do not overlap.
    maps: BTreeMap<u64, Owned>,
    /// The last block that was freed: a realloc that fails takes it back.
    freed: Option<(u64, Owned)>,
}

fn event(addr: u64, owned: Owned) -> Event {
    Event::Alloc {
        addr,
        bytes: owned.bytes,
        stack: owned.stack,
        kind: owned.kind,
    }
}

impl Allocations {
    pub fn alloc(&mut self, addr: u64, bytes: u64, stack: StackId) -> Event {
        let owned = Owned {
            bytes,
            stack,
            kind: Allocation::Heap,
        };
        self.heap.insert(addr, owned);
        event(addr, owned)
    }

    /// `None` for memory that was never allocated.
    pub fn free(&mut self, addr: u64) -> Option<Event> {
        let owned = self.heap.remove(&addr)?;
        self.freed = Some((addr, owned));
        Some(Event::Free { addr })
    }

    /// A block was not freed after all, because its realloc failed.
    pub fn restore(&mut self, addr: u64) -> Option<Event> {
        let (_, owned) = self.freed.take().filter(|(at, _)| *at == addr)?;
        self.heap.insert(addr, owned);
        Some(event(addr, owned))
    }

    /// Adds a mapping, which replaces older ones in its range.
    pub fn map(&mut self, addr: u64, bytes: u64, stack: StackId, kind: Allocation) -> Vec<Event> {
        let mut events = self.unmap(addr, bytes);
        if bytes > 0 {
            let owned = Owned { bytes, stack, kind };
            self.maps.insert(addr, owned);
            events.push(event(addr, owned));
        }
        events
    }

    /// Everything that is allocated now, mappings first, as a forked child inherits it; at most `most`, the larger
    /// ones.
    pub fn all(&self, most: usize) -> Vec<Event> {
        let mut heap: Vec<_> = self.heap.iter().collect();
        heap.sort_unstable_by_key(|(addr, owned)| (std::cmp::Reverse(owned.bytes), **addr));
        self.maps
            .iter()
            .chain(heap)
            .take(most)
            .map(|(addr, owned)| event(*addr, *owned))
            .collect()
    }

    /// Ends the mappings of a range; their parts outside the range stay.
    pub fn unmap(&mut self, addr: u64, bytes: u64) -> Vec<Event> {
        let end = addr.saturating_add(bytes);
        let hit: Vec<(u64, Owned)> = self
            .maps
            .range(..end)
            .rev()
            .take_while(|(at, owned)| at.saturating_add(owned.bytes) > addr)
            .map(|(at, owned)| (*at, *owned))
            .collect();
        let mut events = Vec::new();
        for (at, owned) in hit {
            self.maps.remove(&at);
            events.push(Event::Free { addr: at });
            let old_end = at.saturating_add(owned.bytes);
            for (from, to) in [(at, addr.min(old_end)), (end.max(at), old_end)] {
                if from < to {
                    let rest = Owned {
                        bytes: to - from,
                        ..owned
                    };
                    self.maps.insert(from, rest);
                    events.push(event(from, rest));
                }
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_in_a_mapping_leaves_both_ends() {
        let mut a = Allocations::default();
        a.map(0x1000, 0x4000, 3, Allocation::Map);
        let events = a.unmap(0x2000, 0x1000);
        let part = |addr, bytes| Event::Alloc {
            addr,
            bytes,
            stack: 3,
            kind: Allocation::Map,
        };
        assert_eq!(
            events,
            [Event::Free { addr: 0x1000 }, part(0x1000, 0x1000), part(0x3000, 0x2000)]
        );
        assert_eq!(a.unmap(0x2000, 0x1000), []);
        assert_eq!(a.unmap(0, u64::MAX).len(), 2);
    }

    #[test]
    fn a_child_begins_with_the_larger_blocks() {
        let mut a = Allocations::default();
        for i in 0..10 {
            a.alloc(0x100 * i, i, 0);
        }
        a.map(0x10000, 4096, 1, Allocation::Map);
        let all = a.all(3);
        assert_eq!(all.len(), 3);
        assert!(matches!(
            all[0],
            Event::Alloc {
                kind: Allocation::Map,
                ..
            }
        ));
        assert!(matches!(all[1], Event::Alloc { bytes: 9, .. }));
    }

    #[test]
    fn mapping_over_something_ends_it() {
        let mut a = Allocations::default();
        a.map(0x1000, 0x1000, 1, Allocation::Map);
        let events = a.map(0x1000, 0x1000, 2, Allocation::File);
        assert_eq!(events[0], Event::Free { addr: 0x1000 });
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn a_block_is_freed_once_and_may_come_back() {
        let mut a = Allocations::default();
        let alloc = a.alloc(0x10, 24, 7);
        assert_eq!(a.free(0x10), Some(Event::Free { addr: 0x10 }));
        assert_eq!(a.free(0x10), None);
        assert_eq!(a.restore(0x10), Some(alloc));
        assert_eq!(a.restore(0x10), None);
        assert_eq!(a.free(0x10), Some(Event::Free { addr: 0x10 }));
    }
}
