//! The site of a call: each allocation's place in the program, looked up by the return address.
//!
//! A table keeps what a return address alone shows, so that a call for no data set costs one look-up. The call stack is
//! walked only if the immediate caller is passed over (a wrapper, the C++ library).

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use live::protocol::{Instructions, What};
use results::site::Memory;

use crate::callers::{self, Frames};
use crate::modules::Modules;

/// `start..end` in memory, in order, apart from each other.
type Ranges = Vec<(usize, usize)>;

/// The allocation sites of a plan, in memory.
pub struct Sites {
    sites: Vec<Site>,
    passed: Ranges,
    /// Smaller blocks belong to no site.
    pub least: usize,
    /// True if any site includes mappings.
    pub maps: bool,
    known: Box<[AtomicU64]>,
}

struct Site {
    /// The index among the instructions' targets.
    target: u32,
    chain: Vec<Ranges>,
    from: Option<Memory>,
    bytes: (usize, usize),
}

/// The class of a call for heap memory, by its return address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallerClass {
    /// No site's.
    Nobody,
    /// The stack must be walked.
    Walk,
    /// Perhaps a site's, depending on its size; frames further out do not matter.
    Here,
}

/// Return addresses kept.
const KNOWN: usize = 1 << 12;

impl Sites {
    pub fn new(instructions: &Instructions, modules: &Modules) -> Sites {
        let place =
            |areas: &[live::protocol::Area]| ordered(areas.iter().filter_map(|area| modules.place(area)).collect());
        let sites: Vec<Site> = instructions
            .targets
            .iter()
            .enumerate()
            .filter_map(|(target, wanted)| {
                let What::Site(site) = &wanted.what else { return None };
                let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
                Some(Site {
                    target: target as u32,
                    chain: site.chain.iter().map(|areas| place(areas)).collect(),
                    from: site.from,
                    bytes: (bytes(site.bytes.0), bytes(site.bytes.1)),
                })
            })
            .collect();
        let mut passed = place(&instructions.passed);
        let libraries = instructions
            .modules
            .iter()
            .enumerate()
            .filter(|(_, module)| module.passed);
        for (number, _) in libraries {
            passed.extend(modules.get(number as u32).into_iter().flat_map(|loaded| &loaded.code));
        }
        Sites {
            least: sites.iter().map(|site| site.bytes.0).min().unwrap_or(usize::MAX),
            maps: sites.iter().any(|site| site.from != Some(Memory::Heap)),
            sites,
            passed: ordered(passed),
            known: (0..KNOWN).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The target whose block of `bytes` the call that returns to `caller` asks for.
    #[inline]
    pub fn of(&self, caller: usize, bytes: usize, from: Memory) -> Option<u32> {
        if bytes < self.least {
            return None;
        }
        // The upper bits are the address, of which 48 count; the lower bits are the class.
        let slot = &self.known[caller % KNOWN];
        let known = slot.load(Ordering::Relaxed);
        let class = if known >> 8 == caller as u64 & (u64::MAX >> 8) {
            match known & 0xff {
                1 => return None,
                2 => CallerClass::Walk,
                _ => CallerClass::Here,
            }
        } else {
            let class = self.class(caller.wrapping_sub(1));
            let code = match class {
                CallerClass::Nobody => 1,
                CallerClass::Walk => 2,
                CallerClass::Here => 3,
            };
            slot.store((caller as u64) << 8 | code, Ordering::Relaxed);
            class
        };
        self.among(class, caller, bytes, from)
    }

    #[cold]
    fn among(&self, class: CallerClass, caller: usize, bytes: usize, from: Memory) -> Option<u32> {
        let fits = |site: &&Site| {
            site.bytes.0 <= bytes && bytes <= site.bytes.1 && site.from.is_none_or(|wanted| wanted == from)
        };
        if !self.sites.iter().any(|site| fits(&site)) {
            return None;
        }
        let frames = match class {
            CallerClass::Nobody => return None,
            CallerClass::Here => {
                let mut frames = [0; callers::MOST_FRAMES];
                frames[0] = caller.wrapping_sub(1);
                frames
            }
            CallerClass::Walk => callers::walk(NonZeroUsize::new(caller)?),
        };
        self.sites
            .iter()
            .filter(fits)
            .find(|site| self.is(site, &frames))
            .map(|site| site.target)
    }

    fn class(&self, at: usize) -> CallerClass {
        let first = |site: &Site| site.chain.first().is_some_and(|ranges| within(ranges, at));
        let deeper = |site: &&Site| site.chain.len() > 1;
        if within(&self.passed, at) || self.sites.iter().filter(deeper).any(first) {
            CallerClass::Walk
        } else if self.sites.iter().any(first) {
            CallerClass::Here
        } else {
            CallerClass::Nobody
        }
    }

    /// Returns true if a call stack belongs to a site: its chain from the inside out, and before its first element only
    /// functions that are passed over.
    fn is(&self, site: &Site, frames: &Frames) -> bool {
        let mut chain = site.chain.iter().peekable();
        let mut begun = false;
        for &at in frames.iter().take_while(|&&at| at != 0) {
            if chain.next_if(|ranges| within(ranges, at)).is_some() {
                begun = true;
                if chain.peek().is_none() {
                    return true;
                }
            } else if !begun && !within(&self.passed, at) {
                return false;
            }
        }
        false
    }
}

fn within(ranges: &[(usize, usize)], at: usize) -> bool {
    let after = ranges.partition_point(|range| range.0 <= at);
    after > 0 && at < ranges[after - 1].1
}

fn ordered(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut merged: Ranges = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}
