//! The region of each page: each is in exactly one at any time (Lee12, section 2.1), and regions are of one of four
//! kinds (section 3.3, figure 13).

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::page::Page;
use crate::random::Random;

/// Number of a region; those of regions that are no more are used again.
pub type RegionId = u32;

/// The present kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is known, yet or any more: a page by itself.
    Seed,
    /// Pages that are used together; no cache is theirs.
    Regular,
    /// Used from the cpus of this cache only.
    Local(u32),
    /// Used from everywhere: code, stacks, shared pages.
    Global,
}

/// Pages of one address space that are used together.
#[derive(Clone, Debug)]
pub struct Region {
    pub space: u32,
    pub kind: Kind,
    /// By the world's numbers, in no order.
    pub pages: SmallVec<[u32; 4]>,
}

/// The place of a page.
#[derive(Clone, Copy)]
struct At {
    region: RegionId,
    /// Its place in [`Region::pages`].
    place: u32,
    page: Page,
}

/// All pages that were ever touched, in regions.
#[derive(Default)]
pub struct Partition {
    /// By the world's number of the page; `None`: a number not seen so far.
    pages: Vec<Option<At>>,
    regions: Vec<Region>,
    /// Numbers of regions that are no more.
    free: Vec<RegionId>,
    /// The global region of each address space.
    global: FxHashMap<u32, RegionId>,
}

impl Partition {
    /// A page is seen for the first time: a seed region of its own. Returns its region, also if it was known.
    pub fn meet(&mut self, index: u32, page: Page) -> RegionId {
        if let Some(at) = self.at(index) {
            return at.region;
        }
        if self.pages.len() <= index as usize {
            self.pages.resize(index as usize + 1, None);
        }
        let region = self.new_region(page.space);
        self.put(index, page, region);
        region
    }

    /// The region of a page; `None`: the page was not heard of.
    pub fn region_of(&self, index: u32) -> Option<RegionId> {
        self.at(index).map(|at| at.region)
    }

    /// A page by its number.
    pub fn page(&self, index: u32) -> Option<Page> {
        self.at(index).map(|at| at.page)
    }

    pub fn region(&self, region: RegionId) -> &Region {
        &self.regions[region as usize]
    }

    /// All regions that have pages.
    pub fn regions(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        (0..).zip(&self.regions).filter(|(_, region)| !region.pages.is_empty())
    }

    /// A number that stays the same while the same pages have the same caches. Others give another number, but for a chance of 2^-64.
    pub fn fingerprint(&self) -> u64 {
        let mut sum = 0_u64;
        for (_, region) in self.regions() {
            if let Kind::Local(cache) = region.kind {
                let pages = region.pages.iter();
                let mixed = pages.map(|&page| Random::new(u64::from(page) << 32 | u64::from(cache)).number());
                sum = mixed.fold(sum, u64::wrapping_add);
            }
        }
        sum
    }

    /// Pages that were seen.
    pub fn pages(&self) -> usize {
        self.pages.iter().flatten().count()
    }

    pub fn set_kind(&mut self, region: RegionId, kind: Kind) {
        self.regions[region as usize].kind = kind;
    }

    /// Two regions become one, of the number of the larger one. It is local where either was, of the larger one's cache first;
    /// else regular. Global regions and those of different address spaces stay apart: `None`.
    pub fn merge(&mut self, a: RegionId, b: RegionId) -> Option<RegionId> {
        let (one, other) = (self.region(a), self.region(b));
        if a == b || one.space != other.space || [one.kind, other.kind].contains(&Kind::Global) {
            return None;
        }
        let (into, from) = match one.pages.len() >= other.pages.len() {
            true => (a, b),
            false => (b, a),
        };
        let kind = match (self.region(into).kind, self.region(from).kind) {
            (kind @ Kind::Local(_), _) | (_, kind @ Kind::Local(_)) => kind,
            _ => Kind::Regular,
        };
        let pages = std::mem::take(&mut self.regions[from as usize].pages);
        self.free.push(from);
        for index in pages {
            self.append(index, into);
        }
        self.set_kind(into, kind);
        Some(into)
    }

    /// Each page of a region becomes a seed region of its own.
    pub fn tear_down(&mut self, region: RegionId) {
        let pages = self.region(region).pages.clone();
        for &index in pages.iter().skip(1) {
            self.take_out(index);
        }
        self.set_kind(region, Kind::Seed);
    }

    /// A page leaves its region, and is a seed region of its own.
    pub fn take_out(&mut self, index: u32) -> Option<RegionId> {
        let at = self.at(index)?;
        if self.region(at.region).pages.len() == 1 {
            self.set_kind(at.region, Kind::Seed);
            return Some(at.region);
        }
        self.remove(at);
        let region = self.new_region(at.page.space);
        self.put(index, at.page, region);
        Some(region)
    }

    /// A page is used from everywhere from now on.
    pub fn make_global(&mut self, index: u32) {
        let Some(at) = self.at(index) else { return };
        if self.region(at.region).kind == Kind::Global {
            return;
        }
        self.remove(at);
        let space = at.page.space;
        let region = match self.global.get(&space) {
            Some(&region) => region,
            None => {
                let region = self.new_region(space);
                self.set_kind(region, Kind::Global);
                self.global.insert(space, region);
                region
            }
        };
        self.put(index, at.page, region);
    }

    fn at(&self, index: u32) -> Option<At> {
        self.pages.get(index as usize).copied().flatten()
    }

    fn new_region(&mut self, space: u32) -> RegionId {
        let region = Region {
            space,
            kind: Kind::Seed,
            pages: SmallVec::new(),
        };
        match self.free.pop() {
            Some(number) => {
                self.regions[number as usize] = region;
                number
            }
            None => {
                self.regions.push(region);
                self.regions.len() as RegionId - 1
            }
        }
    }

    fn put(&mut self, index: u32, page: Page, region: RegionId) {
        let pages = &mut self.regions[region as usize].pages;
        pages.push(index);
        self.pages[index as usize] = Some(At {
            region,
            place: pages.len() as u32 - 1,
            page,
        });
    }

    /// A known page joins a region; it is in no list of pages any more.
    fn append(&mut self, index: u32, region: RegionId) {
        if let Some(at) = self.at(index) {
            self.put(index, at.page, region);
        }
    }

    /// Takes a page out of its region's list. A region without pages is no more.
    fn remove(&mut self, at: At) {
        let pages = &mut self.regions[at.region as usize].pages;
        pages.swap_remove(at.place as usize);
        if let Some(&moved) = pages.get(at.place as usize)
            && let Some(other) = &mut self.pages[moved as usize]
        {
            other.place = at.place;
        }
        if pages.is_empty() && self.regions[at.region as usize].kind != Kind::Global {
            self.free.push(at.region);
        }
    }
}
