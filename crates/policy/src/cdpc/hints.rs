//! A color for each page, and the reasons for it.

use std::ops::Range;

use serde::{Serialize, Serializer};

use super::{Loop, Malformed};

/// The properties of a machine that the hints depend on, and an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Machine {
    /// A power of two.
    pub page_bytes: u64,
    /// Of the external cache: its bytes over those of a page, divided by its ways (Bugnion96, section 2.1). At least 1.
    pub colors: u32,
    /// From 1 to 128.
    pub cpus: u32,
    /// True if pages exchange colors after step 5 until no cpu whose pages fit in the cache has two of one color, which the paper
    /// promises and its steps do not always keep.
    pub fit: bool,
}

/// The preferred color of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Hint {
    /// Its address divided by the bytes of a page.
    pub page: u64,
    pub color: u32,
}

/// A preferred color for each page of the arrays, and the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hints {
    pub machine: Machine,
    /// The arrays of the segments, by number; empty if only segments were given.
    pub arrays: Vec<Array>,
    /// Uniform access sets, in the order of their path.
    pub sets: Vec<Set>,
    /// Uniform access segments, in coloring order.
    pub segments: Vec<Placed>,
    /// In coloring order: the color is the position modulo the colors. Pages that no cpu touches come last.
    #[serde(skip)]
    pub pages: Vec<Hint>,
    /// Some cpu touches each of the first `used` of `pages`.
    pub used: usize,
    /// Pages that have changed places with others, so that cpus that fit have no color twice.
    pub exchanged: usize,
    /// Cpus whose pages are no more than the colors, and yet have a color twice: no exchange was found that helps.
    #[serde(serialize_with = "as_list")]
    pub crowded: u128,
    /// The choice for each set of arrays, if the ways of coloring were weighed against each other: the colors of pages
    /// that were not left to the five steps are those of a static policy, wherever they are in the order.
    pub weighed: Vec<Weighed>,
}

/// A stretch of memory that summaries describe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Array {
    /// For people.
    pub name: String,
    pub start: u64,
    /// At least 1.
    pub bytes: u64,
    /// True if its size was given; otherwise the size is the extent of the touched bytes.
    pub known: bool,
}

/// A uniform access set: the segments that the same cpus touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Set {
    /// Bit `c`: cpu `c`; in JSON a list of numbers.
    #[serde(serialize_with = "as_list")]
    pub cpus: u128,
    /// The segments, in coloring order.
    pub segments: Range<usize>,
    /// The number of pages of these.
    pub pages: u64,
}

/// A uniform access segment in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    pub array: u32,
    #[serde(serialize_with = "as_list")]
    pub cpus: u128,
    pub pages: Range<u64>,
    /// Position of the segment in the coloring order: of the page that is laid out first, before pages changed places.
    pub position: u64,
    /// The page that is laid out first. Those after it follow, and then those before it.
    pub begin: u64,
    /// Earlier segments whose starts its own start was kept away from.
    pub conflicts: u32,
}

fn as_list<S: Serializer>(cpus: &u128, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq((0..128u32).filter(|cpu| cpus >> cpu & 1 == 1))
}

/// A way of coloring pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Choice {
    /// By the address.
    #[serde(rename = "page-coloring")]
    ByAddress,
    /// In turn, in the order in which the loops first touch pages.
    #[serde(rename = "bin-hopping")]
    ByTouch,
    /// By the five steps.
    #[serde(rename = "cdpc")]
    Directed,
}

impl Choice {
    pub(super) const ALL: [Choice; 3] = [Choice::ByAddress, Choice::ByTouch, Choice::Directed];
}

/// The choice for arrays that loops use together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Weighed {
    pub arrays: Vec<u32>,
    pub pages: u64,
    pub choice: Choice,
    /// Why: blocks that caches are predicted to bring in the loops of these arrays, for each way of coloring all arrays.
    pub brought: Vec<Brought>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Brought {
    pub by: Choice,
    /// By all cpus together, and once more for each cpu as many as the slowest one brings.
    pub blocks: u64,
}

/// The choice for arrays that loops use together, with the arrays' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedChoice {
    /// Ascending by address.
    pub arrays: Vec<String>,
    pub pages: u64,
    pub choice: Choice,
    pub brought: Vec<Brought>,
}

impl Hints {
    /// The hints of pages that some cpu touches. Pages of the arrays that no loop touches need no frame.
    pub fn touched(&self) -> impl Iterator<Item = &Hint> {
        self.pages[..self.used].iter()
    }

    /// Turns the colors of pages that are colored in turn on by `by`: others have the first ones.
    pub fn turn(&mut self, by: u32) {
        let by_address = |weighed: &&Weighed| weighed.choice == Choice::ByAddress;
        let stay: Vec<u32> = self
            .weighed
            .iter()
            .filter(by_address)
            .flat_map(|set| set.arrays.clone())
            .collect();
        let segments = self.segments.iter().filter(|segment| stay.contains(&segment.array));
        let mut stays: Vec<&Range<u64>> = segments.map(|segment| &segment.pages).collect();
        stays.sort_unstable_by_key(|pages| pages.start);
        let colors = u64::from(self.machine.colors);
        for hint in &mut self.pages {
            let before = stays.partition_point(|pages| pages.end <= hint.page);
            if !stays.get(before).is_some_and(|pages| pages.contains(&hint.page)) {
                hint.color = ((u64::from(hint.color) + u64::from(by)) % colors) as u32;
            }
        }
    }

    /// The choices of weighing, for people.
    pub fn named_choices(&self) -> Vec<NamedChoice> {
        let name = |&array: &u32| self.arrays.get(array as usize).map(|array| array.name.clone());
        let named = self.weighed.iter().map(|set| NamedChoice {
            arrays: set.arrays.iter().filter_map(name).collect(),
            pages: set.pages,
            choice: set.choice,
            brought: set.brought.clone(),
        });
        named.collect()
    }
}

impl Choice {
    /// The name of the policy that colors pages so.
    pub fn policy(self) -> &'static str {
        match self {
            Choice::ByAddress => "page-coloring",
            Choice::ByTouch => "bin-hopping",
            Choice::Directed => "cdpc",
        }
    }
}

impl Machine {
    /// Most pages that hints are made for, so that a mistaken size does not take all memory: 256 GiB of pages of 4 KiB.
    pub const PAGES: u64 = 1 << 26;

    /// Checks that there can be such a machine.
    pub fn check(&self) -> Result<(), Malformed> {
        let wrong = |why: String| {
            let place = "machine".to_owned();
            Err(Malformed { place, why })
        };
        if !self.page_bytes.is_power_of_two() {
            return wrong(format!("pages of {} bytes; allowed: a power of two", self.page_bytes));
        }
        if self.colors == 0 {
            return wrong("a cache without colors; a cache with a page in each way has one".into());
        }
        if self.cpus == 0 || self.cpus > Loop::THREADS {
            return wrong(format!("{} cpus; from 1 to {} can be", self.cpus, Loop::THREADS));
        }
        Ok(())
    }

    pub(super) fn fits(&self, pages: u64) -> Result<(), Malformed> {
        if pages <= Machine::PAGES {
            return Ok(());
        }
        Err(Malformed {
            place: "all arrays".into(),
            why: format!("{pages} pages; hints are made for at most {}", Machine::PAGES),
        })
    }
}
