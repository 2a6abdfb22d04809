//! A regioning phase: for a short while every region is closed but the one in use, so that each change from one to another is
//! seen (Lee12, section 3.2, figure 12).
//!
//! The regions that were left stand on a stack, the latest on top. Who returns to one soon finds above it what was used in
//! between: all of that is one locality, and is merged. Who returns after a long time has changed its locality.
//!
//! Beyond the paper: a page that is used in every locality would tie all of them into one region. So a region of several pages
//! that is returned to soon is not merged for one page alone. That page is a guest: it alone is open. If another page of its
//! region is touched, too, they are merged. If that does not happen again and again, the page is used from everywhere.

use std::collections::HashMap;

use super::partition::{Kind, Partition, RegionId};

/// The regioning phase of one cpu.
#[derive(Debug)]
pub struct Phase {
    pub ends_ns: u64,
    /// The region in use.
    open: Option<RegionId>,
    /// When each region was left last.
    left: HashMap<RegionId, u64>,
    /// Regions in the order in which they were left; what was left again since is further up, too.
    stack: Vec<(RegionId, u64)>,
    /// Pages that are open without their region.
    guests: Vec<Guest>,
    /// How often each page was a guest and nothing came of it.
    alone: HashMap<u32, u32>,
    /// When a region was returned to that had been left for long.
    changed_ns: Option<u64>,
    /// What faults have taken of the phase's time.
    fault_ns: u64,
    pub seen: Seen,
}

/// A region of fewer pages is merged for one page alone.
const SEVERAL: usize = 4;
/// A page that was so often a guest for nothing is used from everywhere.
const ALONE: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Guest {
    index: u32,
    region: RegionId,
    since_ns: u64,
}

/// What a phase has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub touches: u64,
    pub merges: u64,
    /// Changes of locality, to a region that had been left for longer than `q`, and the time from each to the next.
    pub changes: u64,
    pub stay_ns: u64,
}

/// What is to be done after a touch.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entered {
    /// All pages of this region are to be open.
    pub open: Option<RegionId>,
    /// All pages of this region are to be closed.
    pub close: Option<RegionId>,
    /// This page is to be open, without its region.
    pub guest: Option<u32>,
    /// These pages were guests: closed, or, where they are used from everywhere, to be so from now on.
    pub closed: Vec<u32>,
    pub everywhere: Vec<u32>,
}

/// A touch of a page that is closed.
#[derive(Clone, Copy, Debug)]
pub struct TouchAt {
    pub index: u32,
    pub region: RegionId,
    pub now_ns: u64,
    /// What the touch's fault has taken, which is not the program's time.
    pub fault_ns: u64,
}

impl Phase {
    pub fn new(ends_ns: u64) -> Phase {
        Phase {
            ends_ns,
            open: None,
            left: HashMap::new(),
            stack: Vec::new(),
            guests: Vec::new(),
            alone: HashMap::new(),
            changed_ns: None,
            fault_ns: 0,
            seen: Seen::default(),
        }
    }

    /// A touch. `q_ns`: a region that was left for less belongs to what was used in between.
    pub fn touch(&mut self, touch: TouchAt, q_ns: u64, partition: &mut Partition) -> Entered {
        self.fault_ns += touch.fault_ns;
        self.seen.touches += 1;
        let (region, now) = (touch.region, touch.now_ns.saturating_sub(self.fault_ns));
        let mut entered = Entered::default();
        self.dismiss(now, q_ns, &mut entered);
        if self.open() == Some(region) {
            entered.open = Some(region);
            return entered;
        }
        let away = self.left.get(&region).map(|left| now.saturating_sub(*left));
        let soon = away.is_some_and(|away| away < q_ns);
        if soon && partition.region(region).pages.len() >= SEVERAL && !self.has_other_guest(touch) {
            self.guests.push(Guest {
                index: touch.index,
                region,
                since_ns: now,
            });
            entered.guest = Some(touch.index);
            return entered;
        }
        self.guests.retain(|guest| guest.region != region);
        let before = self.open.take();
        if let Some(open) = before {
            self.left.insert(open, now);
            self.stack.push((open, now));
        }
        let merged = soon.then(|| self.merge_down_to(region, partition)).flatten();
        if away.is_some() && !soon {
            self.change(now, q_ns);
        }
        let open = merged.unwrap_or(region);
        self.open = Some(open);
        entered.open = Some(open);
        // What was merged into the open region is open with it.
        entered.close = before.filter(|&close| merged.is_none() && close != open);
        entered
    }

    /// Guests whose region was not touched by another page in time.
    fn dismiss(&mut self, now: u64, q_ns: u64, entered: &mut Entered) {
        let alone = &mut self.alone;
        self.guests.retain(|guest| {
            let stays = now.saturating_sub(guest.since_ns) < q_ns;
            if !stays {
                let times = alone.entry(guest.index).or_default();
                *times += 1;
                match *times >= ALONE {
                    true => entered.everywhere.push(guest.index),
                    false => entered.closed.push(guest.index),
                }
            }
            stays
        });
    }

    fn has_other_guest(&self, touch: TouchAt) -> bool {
        let mut guests = self.guests.iter();
        guests.any(|guest| guest.region == touch.region && guest.index != touch.index)
    }

    /// A region is in use that had been left for long. What is found so within `q` is one and the same change.
    fn change(&mut self, now: u64, q_ns: u64) {
        match self.changed_ns {
            Some(before) if now.saturating_sub(before) < q_ns => return,
            Some(before) => {
                self.seen.changes += 1;
                self.seen.stay_ns += now - before;
            }
            None => {}
        }
        self.changed_ns = Some(now);
    }

    /// All that was left after `region` is one locality with it.
    fn merge_down_to(&mut self, region: RegionId, partition: &mut Partition) -> Option<RegionId> {
        let mut into = region;
        let mut merged = false;
        while let Some((top, left)) = self.stack.pop() {
            if self.left.get(&top) != Some(&left) {
                // It was left again later, and stood further up.
                continue;
            }
            self.left.remove(&top);
            if top == region {
                break;
            }
            if let Some(one) = partition.merge(into, top) {
                self.seen.merges += 1;
                (into, merged) = (one, true);
            }
        }
        merged.then_some(into)
    }

    /// The region that the cpu uses at this moment.
    pub fn open(&self) -> Option<RegionId> {
        self.open
    }

    /// Whether a page is open without its region.
    pub fn is_guest(&self, index: u32) -> bool {
        self.guests.iter().any(|guest| guest.index == index)
    }

    /// The largest local region that was used in the phase, other than that of page `spared` (section 3.3, table 2).
    pub fn largest(&self, partition: &Partition, spared: Option<u32>) -> Option<RegionId> {
        let spared = spared.and_then(|index| partition.region_of(index));
        let used = self.left.keys().copied().chain(self.open());
        used.filter(|&region| matches!(partition.region(region).kind, Kind::Local(_)))
            .filter(|&region| Some(region) != spared)
            .max_by_key(|&region| (partition.region(region).pages.len(), region))
    }
}
