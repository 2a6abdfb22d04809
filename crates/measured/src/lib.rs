//! The part of the machine that this process really gets: the capacity of its last-level cache, the cost of
//! a miss, the reach of its TLB, and the colors of its pages, measured by timing.
//!
//! The kernel reports the size of a cache, not the part that a guest or one of many tenants gets, so everything that
//! sizes blocks of work by the cache asks here. [`measured`] is the one way in: it measures once and keeps the answer
//! for this machine until its next boot.
//!
//! The method is that of lmbench's `lat_mem_rd` (McVoy and Staelin 1996): loads that each wait for
//! the one before, over working sets of growing size ([`chase`]); the sizes at which the time of a
//! load rises are the capacities ([`knee`]). Colors have a trial of their own ([`mod@colors`]).
#![forbid(unsafe_code)]

mod chase;
mod colors;
mod core_share;
mod here;
mod knee;
mod others;
pub mod processor;
mod rounds;
mod saved;

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use machine::host;
use machine::{Cache, Kind, Machine};

pub use core_share::{CoreShare, WHOLE};
pub use here::{at_this_moment, here, load};
pub use others::Others;

pub use colors::{
    Bits, ColorReport, ColorVerdict, Effect, Finding, FrameSource, NotValidated, Step, Times, Translation, Validated,
    color_report, colors, kept_colors,
};

/// One point of a curve: the time of each load over a working set of this many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub bytes: u64,
    /// Nanoseconds a load.
    pub ns: f64,
}

/// The measured figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The largest working set that the caches hold, in bytes.
    pub cache_bytes: u64,
    /// A load from the cache level beyond the processor's private ones, in nanoseconds.
    pub cache_ns: f64,
    /// A load from memory, in nanoseconds: the cost of a miss.
    pub memory_ns: f64,
    /// Bytes of pages over which translation costs no more than a load from the last cache; none
    /// where that held for all that was looked at.
    pub tlb_reach_bytes: Option<u64>,
    /// The time that translation adds to a load of a page clearly beyond that, in nanoseconds.
    pub refill_ns: Option<f64>,
    /// The number of translations at once: the time that one adds when loads wait for each other, divided by the time
    /// between two loads when they do not, since only translation then holds them up. None if the reach is not known,
    /// or too large to go four times beyond.
    #[serde(default)]
    pub walkers: Option<u32>,
    /// The time that translation adds to a load on huge pages of as many bytes; none if they are translated whole.
    #[serde(default)]
    pub huge_refill_ns: Option<f64>,
    /// The points at which page tables leave the caches, step by step; none if that was not seen.
    #[serde(default)]
    pub far: Vec<Far>,
    /// The lines that others bring into the last level; none if this process loses nothing to them.
    #[serde(default)]
    pub others: Option<Others>,
    /// Time over working set, every line of each page.
    pub curve: Vec<Point>,
    /// Time that the TLB adds, over bytes of pages of which one line each is used.
    pub tlb_curve: Vec<Point>,
}

/// Page tables that leave the caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Far {
    /// Bytes of pages whose entries stay.
    pub bytes: u64,
    /// The time that translation adds to a load of a page clearly beyond that, in nanoseconds.
    pub refill_ns: f64,
}

/// The time that a measurement may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few loads over few sizes: about a second.
    Quick,
    /// The median of several rounds over many sizes: some seconds.
    Careful,
}

const NAME: &str = "measured.toml";

/// The figures of this machine: those kept since its last boot, by another user where this one may read them, else measured now and kept in
/// `$XDG_CACHE_HOME/domicile` (`~/.cache/domicile`) where that can be written.
///
/// Kept figures that were measured with less effort than asked for are measured again.
pub fn measured(effort: Effort) -> Measured {
    let machine = saved::Identity::of(&sys::Root::default());
    if let Some(kept) = saved::kept(NAME, &machine, effort) {
        return kept;
    }
    keep(&machine, effort, measure(effort))
}

/// A figure that cannot be kept is measured again the next time: nothing is lost but time.
fn keep(machine: &saved::Identity, effort: Effort, fresh: Measured) -> Measured {
    if let Some(folder) = saved::folder() {
        let _ = saved::store(&folder, NAME, machine, effort, &fresh);
    }
    fresh
}

/// Keeps something else that was found out about this machine, in a file of that name, until it boots again. Returns whether it could
/// be kept.
pub fn keep_beside<T: Serialize>(name: &str, found: &T) -> bool {
    let machine = saved::Identity::of(&sys::Root::default());
    saved::folder().is_some_and(|folder| saved::store(&folder, name, &machine, Effort::Careful, found).is_ok())
}

/// The value kept so.
pub fn kept_beside<T: DeserializeOwned>(name: &str) -> Option<T> {
    saved::kept(name, &saved::Identity::of(&sys::Root::default()), Effort::Careful)
}

/// The figures of this machine that were kept since its last boot; none where it was not measured.
pub fn kept() -> Option<Measured> {
    saved::kept(NAME, &saved::Identity::of(&sys::Root::default()), Effort::Quick)
}

/// The time since they were measured.
pub fn kept_age() -> Option<Duration> {
    saved::age(NAME, &saved::Identity::of(&sys::Root::default()))
}

/// Measures now, and keeps the figures instead of those that were kept.
pub fn measured_afresh(effort: Effort) -> Measured {
    keep(&saved::Identity::of(&sys::Root::default()), effort, measure(effort))
}

/// This process's share of one level of the caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelGot {
    pub cache: String,
    pub level: u8,
    /// Bytes of this level in the machine's description.
    #[serde(rename = "told_bytes")]
    pub described_bytes: u64,
    /// Bytes of the largest working set that it held.
    pub got_bytes: u64,
    /// Nanoseconds a load that it serves.
    pub ns: f64,
}

impl Measured {
    /// This process's share of each level of the caches of `machine`, the innermost first.
    pub fn levels(&self, machine: &Machine) -> Vec<LevelGot> {
        let mut caches: Vec<_> = machine
            .caches
            .iter()
            .filter(|cache| cache.kind != Kind::Instruction)
            .collect();
        caches.sort_by_key(|cache| cache.level);
        let described: Vec<u64> = caches.iter().map(|cache| cache.bytes).collect();
        let got = knee::levels(&self.curve, &described);
        let level = |(cache, knee): (&&Cache, knee::Knee)| LevelGot {
            cache: cache.name.clone(),
            level: cache.level,
            described_bytes: cache.bytes,
            got_bytes: knee.bytes,
            ns: knee.inside_ns,
        };
        caches.iter().zip(got).map(level).collect()
    }
}

/// Measures now, and keeps nothing.
pub fn measure(effort: Effort) -> Measured {
    let described = Described::of_this_machine();
    let sizes = sizes(described.innermost, described.largest, effort);
    let curve = timed(&sizes, Vec::new(), &described, effort);
    let tlb_curve = chase::pages(described.page_bytes, described.largest, effort);
    let figures = figures(curve, tlb_curve, &described, effort);
    Measured {
        walkers: walkers(&figures, described.page_bytes, effort),
        huge_refill_ns: huge_refill_ns(&figures, described.page_bytes, effort),
        others: described.others(&figures, effort),
        ..figures
    }
}

/// The time that translation adds to a load on huge pages, if it adds as much to one on small ones as a walk takes:
/// next to nothing if the TLB has an entry for each huge page. A host that keeps its guest's memory in small pages
/// makes it an entry for each of these.
fn huge_refill_ns(figures: &Measured, page_bytes: u64, effort: Effort) -> Option<f64> {
    let reach = figures.tlb_reach_bytes?;
    let small = figures.tlb_curve.iter().find(|point| point.bytes >= 4 * reach)?;
    let huge_ns = chase::huge_pages(page_bytes, small.bytes, effort)?;
    // A walk of a huge page has no more levels than one of a small page: any longer time was a busy moment.
    (huge_ns > small.ns * SPLIT).then_some(huge_ns.min(small.ns))
}

/// Huge pages that cost a smaller part of what small ones do are translated whole.
const SPLIT: f64 = 0.25;

/// For pages clearly beyond the TLB's reach, whose tables are still in the caches: compares the time of translations
/// one after the other with that of translations side by side, which take less.
fn walkers(figures: &Measured, page_bytes: u64, effort: Effort) -> Option<u32> {
    let reach = figures.tlb_reach_bytes?;
    let one = figures.tlb_curve.iter().find(|point| point.bytes >= 4 * reach)?;
    let times = chase::pages_at_once(page_bytes, one.bytes / page_bytes, effort);
    Some((times.round() as u32).clamp(1, WALKERS_MOST))
}

/// No known processor walks for this many loads at a time.
const WALKERS_MOST: u32 = 16;

/// The kept figures with the last level and memory timed again, in some seconds, and kept in place of the others:
/// neighbors' use of a shared cache changes within minutes. None if nothing was kept.
pub fn last_level_again() -> Option<Measured> {
    let machine = saved::Identity::of(&sys::Root::default());
    let kept = |effort| saved::kept::<Measured>(NAME, &machine, effort).map(|kept| (kept, effort));
    let (before, effort) = kept(Effort::Careful).or_else(|| kept(Effort::Quick))?;
    let described = Described::of_this_machine();
    let beyond = |bytes: &u64| *bytes > described.private;
    let sizes: Vec<u64> = sizes(described.innermost, described.largest, Effort::Quick)
        .into_iter()
        .filter(beyond)
        .collect();
    let inner = before.curve.into_iter().filter(|point| !beyond(&point.bytes));
    let curve = timed(&sizes, inner.collect(), &described, Effort::Quick);
    let figures = figures(curve, before.tlb_curve, &described, Effort::Quick);
    let others = described.others(&figures, Effort::Quick);
    let fresh = Measured {
        walkers: before.walkers,
        huge_refill_ns: before.huge_refill_ns,
        others: others.map(|others| Others {
            // The processor's, and no matter of the moment.
            kept_once: before.others.map_or(others.kept_once, |before| before.kept_once),
            ..others
        }),
        ..figures
    };
    Some(keep(&machine, effort, fresh))
}

/// Points that are known, and those of `sizes`. The end of the last level is looked at more closely: most figures of a
/// program hang on it.
fn timed(sizes: &[u64], mut curve: Vec<Point>, described: &Described, effort: Effort) -> Vec<Point> {
    let lines = |sizes: &[u64]| chase::lines(sizes, described.page_bytes, effort);
    curve.extend(lines(sizes));
    curve.extend(lines(&knee::close_by(&curve, described.private, described.page_bytes)));
    curve.sort_by_key(|point| point.bytes);
    curve
}

/// The figures that follow from two curves, with the times of the last level and of memory taken by lines that no
/// prefetcher brings.
fn figures(curve: Vec<Point>, tlb_curve: Vec<Point>, described: &Described, effort: Effort) -> Measured {
    let capacity = knee::capacity(&curve, described.private);
    let largest = curve.iter().map(|point| point.bytes).max().unwrap_or(described.largest);
    // Half of the lines of as much memory.
    let apart_ns = chase::lines_apart(largest / 2, described.page_bytes, effort);
    // Half-way between the capacities of the cache before and of this one, likewise.
    let inside = (described.private as f64 * capacity.bytes as f64).sqrt() as u64;
    let inside_ns = chase::lines_apart(inside / 2, described.page_bytes, effort);
    let reach = knee::reach(&tlb_curve, knee::within(&curve, described.private));
    Measured {
        cache_bytes: capacity.bytes,
        cache_ns: inside_ns.clamp(capacity.inside_ns, apart_ns.max(capacity.outside_ns)),
        // Never less than by all lines, even after a busy moment.
        memory_ns: apart_ns.max(capacity.outside_ns),
        tlb_reach_bytes: reach.map(|reach| reach.bytes),
        refill_ns: reach.map(|reach| reach.outside_ns),
        walkers: None,
        huge_refill_ns: None,
        far: reach.map_or_else(Vec::new, |reach| knee::far(&tlb_curve, &reach)),
        others: None,
        curve,
        tlb_curve,
    }
}

/// Linux's report of the caches: where to look.
struct Described {
    /// Bytes of the innermost data cache.
    innermost: u64,
    /// Bytes of the last cache before the last level.
    private: u64,
    /// Bytes of the last level.
    largest: u64,
    page_bytes: u64,
}

impl Described {
    fn others(&self, figures: &Measured, effort: Effort) -> Option<Others> {
        others::others(self.private, self.largest, self.page_bytes, figures.memory_ns, effort)
    }

    fn of_this_machine() -> Described {
        let usual = Described {
            innermost: 32 << 10,
            private: 512 << 10,
            largest: 32 << 20,
            page_bytes: 4096,
        };
        let Ok(report) = host(&sys::Root::default()) else {
            return usual;
        };
        let mut bytes: Vec<u64> = report
            .machine
            .caches
            .iter()
            .filter(|cache| cache.kind != Kind::Instruction)
            .map(|cache| cache.bytes)
            .collect();
        bytes.sort_unstable();
        let (Some(&innermost), Some(&largest)) = (bytes.first(), bytes.last()) else {
            return usual;
        };
        Described {
            innermost,
            private: bytes[bytes.len().saturating_sub(2)],
            largest,
            page_bytes: report.machine.page_bytes,
        }
    }
}

/// Most memory that a measurement takes.
const BYTES_MAX: u64 = 256 << 20;

/// Working sets from the innermost cache to well beyond the last level.
fn sizes(innermost: u64, largest: u64, effort: Effort) -> Vec<u64> {
    let (beyond, halves) = match effort {
        Effort::Quick => (2, 1),
        Effort::Careful => (4, 2),
    };
    let most = (largest * beyond).clamp(16 << 20, BYTES_MAX);
    let mut sizes = Vec::new();
    let mut bytes = innermost.clamp(4 << 10, 1 << 20) / 2;
    while bytes < most {
        sizes.push(bytes);
        if halves == 2 {
            sizes.push(bytes + bytes / 2);
        }
        bytes *= 2;
    }
    sizes.retain(|&bytes| bytes < most);
    sizes.push(most);
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_span_the_caches() {
        let sizes = sizes(32 << 10, 32 << 20, Effort::Careful);
        assert_eq!(sizes.first(), Some(&(16 << 10)));
        assert_eq!(sizes.last(), Some(&(128 << 20)));
        assert!(sizes.is_sorted());
        assert!(super::sizes(48 << 10, 1 << 40, Effort::Quick).last() <= Some(&BYTES_MAX));
    }

    #[test]
    fn this_machine_gets_a_cache_within_what_was_looked_at() {
        let measured = measure(Effort::Quick);
        let (first, last) = (measured.curve[0], measured.curve[measured.curve.len() - 1]);
        assert!(
            (first.bytes..=last.bytes).contains(&measured.cache_bytes),
            "{measured:?}"
        );
        assert!(measured.memory_ns > 0.0 && measured.cache_ns > 0.0, "{measured:?}");
    }
}
