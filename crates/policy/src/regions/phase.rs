//! A regioning phase: for a short while every region is closed but the one in use, so that each change from one to another is
//! seen (Lee12, section 3.2, figure 12).
//!
//! The regions that were left stand on a stack, the latest on top. A thread that returns to one soon finds above it the regions
//! used in between: all of that is one locality, and is merged. A thread that returns after a long time has changed its locality.
//!
//! Beyond the paper: a page that is used in every locality would tie all of them into one region. So a region of
//! several pages is in use only from its second page on. When one of its pages is touched, it and the open region
//! contest the cpu: both are closed except for pages touched since, and the first whose second page is touched gets it.
//! A page that came alone is a guest for a while: it is open without its region. If that happens again and again, the
//! page is used from everywhere.
//!
//! Stays are not measured one by one, since most are longer than a phase. A phase says for how long it watched an address space
//! and how often that changed its region: over many phases the mean stay is the one divided by the other, however short each is.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::partition::{Kind, Partition, RegionId};

/// The regioning phase of one cpu.
#[derive(Debug)]
pub struct Phase {
    pub ends_ns: u64,
    began_ns: u64,
    /// The region in use; during a contest, the one in use before it.
    open: Option<RegionId>,
    contest: Option<Contest>,
    /// When each region was left last.
    left: FxHashMap<RegionId, u64>,
    /// Regions in the order in which they were left; a region that was left again since occurs again further up.
    stack: Vec<(RegionId, u64)>,
    /// Pages that are open without their region.
    guests: Vec<Guest>,
    /// When a region was entered, by a page of it: which region that is may change.
    entries: Vec<(u64, u32)>,
    /// The part of the phase's time that faults have taken.
    fault_ns: u64,
    pub seen: Seen,
}

/// A region of fewer pages is entered with its first page.
pub const SEVERAL: usize = 4;

/// How often pages came alone while another region was in use. A phase is too short to tell: it may see as little as
/// one change.
#[derive(Debug)]
pub struct Alone {
    /// A page that came alone this often is used from everywhere. The cost is small: each cache that wants it has it.
    times: u64,
    phases: u64,
    /// By page: how often, and in which phase last.
    pages: FxHashMap<u32, (u64, u64)>,
}

impl Alone {
    /// Phases after which it is forgotten.
    const PHASES: u64 = 8;

    pub fn new(times: u64) -> Alone {
        Alone {
            times,
            phases: 0,
            pages: FxHashMap::default(),
        }
    }

    pub fn next_phase(&mut self) {
        self.phases += 1;
    }

    /// A page came alone. Returns whether it is used from everywhere.
    pub fn came(&mut self, index: u32) -> bool {
        let (times, phase) = self.pages.entry(index).or_default();
        if *phase + Self::PHASES < self.phases {
            *times = 0;
        }
        (*times, *phase) = (*times + 1, self.phases);
        *times >= self.times
    }
}

/// A page of a region of several was touched while that was not in use.
#[derive(Clone, Copy, Debug)]
struct Contest {
    since_ns: u64,
    /// The page that was touched.
    theirs: u32,
    /// A page of the open region that was touched since.
    mine: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Guest {
    index: u32,
    since_ns: u64,
}

/// For so long a region was in use, entered by a page.
struct Stay {
    region: RegionId,
    index: u32,
    ns: u64,
}

/// The observations of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub touches: u64,
    pub merges: u64,
}

/// For how long an address space was watched, and how it changed its region: from the region of one page to that of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    pub ns: u64,
    pub changes: Vec<(u32, u32)>,
}

/// After a touch it must be checked again whether these are open.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entered {
    pub regions: SmallVec<[RegionId; 4]>,
    pub pages: SmallVec<[u32; 4]>,
    /// These pages were guests, and are used from everywhere from now on.
    pub everywhere: SmallVec<[u32; 4]>,
    /// So many pages came into larger regions.
    pub joined: u64,
}

/// A touch of a page that is closed.
#[derive(Clone, Copy, Debug)]
pub struct TouchAt {
    pub index: u32,
    pub region: RegionId,
    pub now_ns: u64,
    /// The time of the touch's fault, which is not the program's time.
    pub fault_ns: u64,
}

impl Phase {
    pub fn new(now_ns: u64, phase_ns: u64) -> Phase {
        Phase {
            ends_ns: now_ns + phase_ns,
            began_ns: now_ns,
            open: None,
            contest: None,
            left: FxHashMap::default(),
            stack: Vec::new(),
            guests: Vec::new(),
            entries: Vec::new(),
            fault_ns: 0,
            seen: Seen::default(),
        }
    }

    /// A touch. `q_ns`: a region that was left for less time belongs to the regions used in between.
    pub fn touch(&mut self, touch: TouchAt, q_ns: u64, partition: &mut Partition, alone: &mut Alone) -> Entered {
        self.fault_ns += touch.fault_ns;
        self.seen.touches += 1;
        let now = touch.now_ns.saturating_sub(self.fault_ns);
        let mut entered = Entered::default();
        self.dismiss(now, q_ns, alone, &mut entered);
        if entered.everywhere.contains(&touch.index) {
            return entered;
        }
        if let Some(contest) = self.contest.take()
            && self.decide(contest, touch, now, q_ns, partition, &mut entered)
        {
            return entered;
        }
        // A merge may have given it another number.
        let region = partition.region_of(touch.index).unwrap_or(touch.region);
        if self.open == Some(region) {
            entered.regions.push(region);
        } else if partition.region(region).pages.len() >= SEVERAL {
            self.contest = Some(Contest {
                since_ns: now,
                theirs: touch.index,
                mine: None,
            });
            entered.regions.extend(self.open);
            entered.pages.push(touch.index);
        } else {
            self.enter((region, touch.index), now, q_ns, partition, &mut entered);
        }
        entered
    }

    /// A touch while there was a contest; if that goes on, it is put back. Returns true if nothing is left to be done about the touch.
    fn decide(
        &mut self,
        contest: Contest,
        touch: TouchAt,
        now: u64,
        q_ns: u64,
        partition: &mut Partition,
        entered: &mut Entered,
    ) -> bool {
        entered.regions.extend(self.open);
        entered.pages.push(contest.theirs);
        entered.pages.extend(contest.mine);
        let guest = |index| Guest {
            index,
            since_ns: contest.since_ns,
        };
        let theirs = partition.region_of(contest.theirs);
        if theirs == Some(touch.region) {
            self.enter((touch.region, touch.index), contest.since_ns, q_ns, partition, entered);
            let mine = contest.mine.filter(|&mine| partition.region_of(mine) != self.open);
            self.guests.extend(mine.map(guest));
            return true;
        }
        let mine = self.open == Some(touch.region);
        if contest.mine.is_none() {
            if let Some(theirs) = theirs.filter(|_| now.saturating_sub(contest.since_ns) >= q_ns) {
                // Nobody of the open region came for long: it was left then.
                self.enter((theirs, contest.theirs), contest.since_ns, q_ns, partition, entered);
                return false;
            }
            if mine {
                self.contest = Some(Contest {
                    mine: Some(touch.index),
                    ..contest
                });
                entered.pages.push(touch.index);
                return true;
            }
        }
        // The open region has a second page, or a third region comes: those that came alone are guests.
        self.guests.push(guest(contest.theirs));
        self.guests.extend(contest.mine.filter(|_| !mine).map(guest));
        mine
    }

    /// A region is in use from now on; one of its pages was touched.
    fn enter(
        &mut self,
        (region, index): (RegionId, u32),
        at_ns: u64,
        q_ns: u64,
        partition: &mut Partition,
        entered: &mut Entered,
    ) {
        let left = self.left.get(&region);
        let soon = left.is_some_and(|left| at_ns.saturating_sub(*left) < q_ns);
        let before = self.open.take();
        if let Some(open) = before {
            self.left.insert(open, at_ns);
            self.stack.push((open, at_ns));
        }
        let merged = soon.then(|| self.merge_down_to(region, partition, entered)).flatten();
        let open = merged.unwrap_or(region);
        self.open = Some(open);
        self.guests
            .retain(|guest| partition.region_of(guest.index) != Some(open));
        self.entries.push((at_ns, index));
        entered.regions.extend(before);
        entered.regions.push(open);
    }

    /// Guests whose region was not touched by another page in time.
    fn dismiss(&mut self, now: u64, q_ns: u64, alone: &mut Alone, entered: &mut Entered) {
        self.guests.retain(|guest| {
            let stays = now.saturating_sub(guest.since_ns) < q_ns;
            if !stays {
                match alone.came(guest.index) {
                    true => entered.everywhere.push(guest.index),
                    false => entered.pages.push(guest.index),
                }
            }
            stays
        });
    }

    /// All that was left after `region` is one locality with it.
    fn merge_down_to(
        &mut self,
        region: RegionId,
        partition: &mut Partition,
        entered: &mut Entered,
    ) -> Option<RegionId> {
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
            let pages = [into, top].map(|region| partition.region(region).pages.len());
            if let Some(one) = partition.merge(into, top) {
                entered.joined += pages[0].min(pages[1]) as u64;
                self.seen.merges += 1;
                (into, merged) = (one, true);
            }
        }
        merged.then_some(into)
    }

    /// The phase is over: guests are dismissed, and regions that were left stay left.
    pub fn end(&mut self, now_ns: u64, q_ns: u64, partition: &mut Partition, alone: &mut Alone) -> Entered {
        let end = now_ns.saturating_sub(self.fault_ns);
        let mut entered = Entered::default();
        self.dismiss(end, q_ns, alone, &mut entered);
        if let Some(contest) = self.contest.take()
            && contest.mine.is_none()
            && end.saturating_sub(contest.since_ns) >= q_ns
            && let Some(theirs) = partition.region_of(contest.theirs)
        {
            self.enter(
                (theirs, contest.theirs),
                contest.since_ns,
                q_ns,
                partition,
                &mut entered,
            );
        }
        entered
    }

    /// The observations of an ended phase for each address space, by the regions as they are now.
    pub fn watched(&self, now_ns: u64, q_ns: u64, partition: &Partition) -> BTreeMap<u32, Watched> {
        let end = now_ns.saturating_sub(self.fault_ns);
        let ends = self.entries.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let mut spaces: BTreeMap<u32, Vec<Stay>> = BTreeMap::new();
        for ((since, index), until) in self.entries.iter().zip(ends) {
            let Some(number) = partition.region_of(*index) else {
                continue;
            };
            let region = partition.region(number);
            let small = region.pages.len() < SEVERAL || region.kind == Kind::Global;
            let stays = spaces.entry(region.space).or_default();
            let ns = until.saturating_sub(*since);
            match stays.last_mut() {
                // A small one belongs to the one that it was entered from.
                Some(last) if last.region == number || small => last.ns += ns,
                None if small => {}
                _ => stays.push(Stay {
                    region: number,
                    index: *index,
                    ns,
                }),
            }
        }
        let last = self.entries.last().and_then(|(_, index)| partition.page(*index));
        let seen = spaces.into_iter().map(|(space, mut stays)| {
            let mut ns: u64 = stays.iter().map(|stay| stay.ns).sum();
            if last.is_some_and(|page| page.space == space) {
                // Threads that came in the last `q` are not counted below, so changes in it were not watched.
                ns = ns.saturating_sub(q_ns);
            }
            // Nobody stays for less than `q`; of the first stay only the end was seen.
            let mut first = true;
            stays.retain(|stay| std::mem::take(&mut first) || stay.ns >= q_ns);
            stays.dedup_by_key(|stay| stay.region);
            let changes = stays.windows(2).map(|two| (two[0].index, two[1].index)).collect();
            (space, Watched { ns, changes })
        });
        seen.collect()
    }

    /// The policy's own work is no time of the program's.
    pub fn worked(&mut self, ns: u64) {
        self.fault_ns += ns;
    }

    /// True if faults took more than half of it: regions are being found then, and the stays that were seen are not theirs.
    pub fn is_growing(&self, now_ns: u64) -> bool {
        self.fault_ns * 2 > now_ns.saturating_sub(self.began_ns)
    }

    /// The region all of whose pages are open at this moment.
    pub fn open(&self) -> Option<RegionId> {
        self.open.filter(|_| self.contest.is_none())
    }

    /// True if any page is open without its region.
    pub fn has_guests(&self) -> bool {
        self.contest.is_some() || !self.guests.is_empty()
    }

    /// True if a page is open without its region.
    pub fn is_guest(&self, index: u32) -> bool {
        let contest = self.contest.iter();
        let mut pages = contest.flat_map(|contest| contest.mine.into_iter().chain([contest.theirs]));
        pages.any(|page| page == index) || self.guests.iter().any(|guest| guest.index == index)
    }

    /// The largest local region used in the phase, other than that of page `spared` (section 3.3, table 2).
    pub fn largest(&self, partition: &Partition, spared: Option<u32>) -> Option<RegionId> {
        let spared = spared.and_then(|index| partition.region_of(index));
        let used = self.left.keys().copied().chain(self.open);
        used.filter(|&region| matches!(partition.region(region).kind, Kind::Local(_)))
            // All pages of a region may have turned out to be used from everywhere since.
            .filter(|&region| Some(region) != spared && !partition.region(region).pages.is_empty())
            .max_by_key(|&region| (partition.region(region).pages.len(), region))
    }
}
