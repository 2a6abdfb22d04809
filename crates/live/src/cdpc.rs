//! Colors for the arrays of a parallel program, from its compiler's descriptions of its loops (Bugnion96, section 5).
//!
//! Loops come one by one: those whose values are constants before `main`, others right before they run. The paper
//! colors once, at start-up, with all loops known. Here:
//!
//! - [`Coloring::start`] colors the arrays described before `main`: pages that nobody has touched get their colors as
//!   they arrive.
//! - [`Coloring::hear`] of a loop with arrays that are new, or new again, colors these. Pages that have a color already
//!   change it only when enough new loops make that pay: [`budget`] decides, so that a run exchanges each page at most
//!   a few times.
//! - Loops that are described again, and loops that swap the arrays of others, change nothing: the same pages keep their
//!   colors.
//!
//! Memory that was unmapped, and mapped again at the same addresses, has lost its colors. A description of a loop
//! triggers the check. The pages of a new loop are always checked. Those of a known loop are checked at most every
//! [`PATIENCE`], and so seldom that the checks take at most one part in fifty of the time ([`anew`](Coloring::anew)
//! tells what a check can see). Between checks a known loop costs one hash.
//!
//! A page that two arrays share has one color like any other: hints are by page. A page that cannot be colored stays
//! where it is, and [`Outcome`] says why.

mod budget;
mod dealing;
mod fit;
mod memory;
mod outcome;
mod placing;
mod wanted;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, Instant};

use policy::Name;
use policy::cdpc::{Added, Loop, NamedChoice, Program, Room};

use crate::daemon::Client;
use crate::discovery::ColorsFrom;
use crate::{Colors, Config, Engine, Error, Others, PAGE_BYTES};
pub(crate) use budget::Budget;
use dealing::Dealing;
pub use dealing::{UnknownPolicy, policies};
pub(crate) use fit::beyond;
pub use outcome::{Moment, Outcome};

/// Reasons that are kept of one kind.
pub(crate) const MOST_NOTES: usize = 16;
/// Loops, and summaries of all of them, that are kept.
pub(crate) const MOST_LOOPS: usize = 4096;
pub(crate) const MOST_SUMMARIES: usize = 1 << 16;

/// The pages of a loop that is known are looked at again after this time at the earliest.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// And a pause of so many times the time of the last check.
pub(crate) const REST: u32 = 50;

/// The colors of one process's arrays.
pub struct Coloring {
    /// The policy's name in the registry.
    policy: &'static str,
    dealing: Dealing,
    colors: Colors,
    engine: Engine,
    /// True if frames come from the daemon, which knows the colors of its own.
    supplied: bool,
    program: Program,
    room: Room,
    budget: Budget,
    /// The color that each page was last meant to have, by number of the page.
    preferred: BTreeMap<u64, u16>,
    started: bool,
    /// Loops that were described since all hints were last computed together.
    pending: usize,
    /// When the pages of a loop that is known may be looked at.
    next_look: Option<Instant>,
    patience: Duration,
    start: Moment,
    later: Moment,
    /// Pages that have no color of our choice, and why.
    left: BTreeMap<u64, String>,
    /// Pages for which nothing could be done at all, by the reason.
    passed_over: BTreeMap<&'static str, u64>,
    /// The choice for the sets of arrays, when all loops were last seen together.
    weighed: Vec<NamedChoice>,
    /// Repeated descriptions of known loops, and descriptions that could not be used.
    again: u64,
    refused: u64,
    notes: Vec<String>,
}

/// Pages whose colors nothing binds.
#[derive(Default)]
struct Fresh {
    /// Pages of arrays that no loop had before.
    new: HashSet<u64>,
    /// Pages of new memory at an old address.
    anew: BTreeSet<u64>,
}

impl Fresh {
    fn contains(&self, page: u64) -> bool {
        self.new.contains(&page) || self.anew.contains(&page)
    }

    fn is_empty(&self) -> bool {
        self.new.is_empty() && self.anew.is_empty()
    }
}

impl Coloring {
    /// Opens the engine that moves pages. Frames come from the daemon if it runs and has the same colors, else from the
    /// process's own pool. The policy is one of [`policies`].
    ///
    /// Errors: [`Error::Unavailable`] for another policy, and those of [`ColorsFrom::decide`] and [`Engine::open`].
    pub fn open(policy: &Name, colors: ColorsFrom) -> Result<Coloring, Error> {
        let daemon = Client::find();
        let served = || Some(daemon.as_ref().ok()?.colors().clone());
        let colors = colors.decide(served)?;
        let mut config = Config::new(colors.clone());
        let mut supplied = false;
        if let Ok(client) = daemon
            && colors.agree(client.colors())
        {
            config.supply = Some(Box::new(client));
            supplied = true;
        }
        let mut coloring = Coloring::with(policy, colors, Engine::open(config)?)?;
        coloring.supplied = supplied;
        Ok(coloring)
    }

    /// With an engine for these colors, which has no supply.
    ///
    /// Errors: [`Error::Unavailable`] for a policy that is none of [`policies`].
    pub fn with(policy: &Name, colors: Colors, engine: Engine) -> Result<Coloring, Error> {
        let (policy, dealing) = Dealing::named(policy, &colors).map_err(|why| Error::Unavailable {
            what: "coloring by described loops".into(),
            why: why.to_string(),
        })?;
        Ok(Coloring {
            policy,
            dealing,
            colors,
            engine,
            supplied: false,
            program: Program::default(),
            room: Room::new(MOST_LOOPS, MOST_SUMMARIES, u128::MAX),
            budget: Budget::default(),
            preferred: BTreeMap::new(),
            started: false,
            pending: 0,
            next_look: None,
            patience: PATIENCE,
            start: Moment::default(),
            later: Moment::default(),
            left: BTreeMap::new(),
            passed_over: BTreeMap::new(),
            weighed: Vec::new(),
            again: 0,
            refused: 0,
            notes: Vec::new(),
        })
    }

    pub fn colors(&self) -> &Colors {
        &self.colors
    }

    /// The policy's name.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// Returns whether a loop was described before. Describing such a loop again changes nothing.
    pub fn knows(&self, described: &Loop) -> bool {
        self.program.find(described).is_some()
    }

    /// Returns whether [`Coloring::start`] is over.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// The loops so far.
    pub fn loops(&self) -> &[Loop] {
        self.program.loops()
    }

    /// Before `main`: colors the pages of all loops that were described.
    ///
    /// # Safety
    /// As for [`Engine::color`]: the arrays of the loops are the program's memory, and `others` is true.
    pub unsafe fn start(&mut self, others: Others) {
        let first = !std::mem::replace(&mut self.started, true);
        if first && !self.program.loops().is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.color(&Fresh::default(), None, first, others) };
        }
    }

    /// A loop is about to run, or will one day. Before [`Coloring::start`] it is kept for that.
    ///
    /// # Safety
    /// As for [`Engine::color`] with [`Others::Running`], of the loop's arrays and those described before.
    pub unsafe fn hear(&mut self, described: Loop) {
        if let Some(why) = beyond(&described) {
            return self.refuse(why);
        }
        let mut fresh = Fresh::default();
        let (at, new) = match self.program.add(described, &mut self.room) {
            Err(why) => return self.refuse(why.to_string()),
            Ok(Added::Known { at }) => {
                self.again += 1;
                (at, false)
            }
            Ok(Added::New { at, fresh: arrays }) => {
                self.pending += 1;
                fresh.new = arrays.into_iter().flat_map(pages).collect();
                (at, true)
            }
        };
        if !self.started {
            return;
        }
        self.budget.heard(self.program.loops().len(), !new);
        let (look, compute) = (new || self.may_look(), self.may_compute());
        if !look && !compute {
            return;
        }
        let began = Instant::now();
        if look {
            fresh.anew = self.anew(at);
        }
        if self.pending == 0 {
            // The loop is known: only lost colors are restored.
            let wanted = fresh.anew.iter().map(|page| (*page, self.preferred[page])).collect();
            // SAFETY: the caller's promise.
            unsafe { self.recolor(wanted, &fresh, began) };
        } else if compute || !fresh.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.color(&fresh, new.then_some(at), false, Others::Running) };
        }
        if look {
            self.next_look = Some(Instant::now() + self.patience.max(began.elapsed() * REST));
        }
    }

    /// Returns whether describing this loop now would do more than count it.
    pub fn has_work(&mut self, described: &Loop) -> bool {
        if !self.started {
            return false;
        }
        let known = self.knows(described);
        self.budget.heard(self.program.loops().len(), known);
        !known || self.may_compute() || self.may_look()
    }

    fn leave(&mut self, pages: u64, why: &'static str) {
        if pages > 0 {
            *self.passed_over.entry(why).or_default() += pages;
        }
    }

    /// A loop that is known was described, and [`Coloring::has_work`] says that nothing is to be done.
    pub fn heard_again(&mut self) {
        self.again += 1;
    }

    /// Returns whether there is something worth computing hints for.
    fn may_compute(&self) -> bool {
        self.pending > 0 && self.budget.may_compute(self.preferred.len())
    }

    /// A loop, or those that were described before [`Coloring::start`], for which nothing can be done now, and why: its new
    /// pages are counted as left out. It is tried again when it, or another one, is described.
    pub fn pass_over(&mut self, described: Option<Loop>, why: &'static str) {
        let Some(described) = described else {
            self.started = true;
            self.pending = self.program.loops().len();
            let new: u64 = self.program.extents().map(|bytes| pages(bytes).count() as u64).sum();
            self.leave(new, why);
            return;
        };
        match self.program.add(described, &mut self.room) {
            Err(refused) => self.refuse(refused.to_string()),
            Ok(Added::Known { .. }) => self.again += 1,
            Ok(Added::New { fresh, .. }) => {
                self.pending += 1;
                let new: u64 = fresh.into_iter().map(|bytes| pages(bytes).count() as u64).sum();
                self.leave(new, why);
            }
        }
    }

    fn may_look(&self) -> bool {
        self.next_look.is_none_or(|at| Instant::now() >= at)
    }

    /// Counts a summary that was not understood, and notes why.
    pub fn refuse(&mut self, why: String) {
        self.refused += 1;
        self.note(why);
    }

    /// Colors pages. Those that have a color already and are not `fresh` change it if the budget allows.
    ///
    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn color(&mut self, fresh: &Fresh, at: Option<usize>, first: bool, others: Others) {
        let began = Instant::now();
        match self.wanted(fresh, at, first) {
            // SAFETY: the caller's promise.
            Ok(wanted) => unsafe { self.place_at(wanted, fresh, first, others, began) },
            Err(error) => self.note(error.to_string()),
        }
    }

    /// # Safety
    /// As for [`Engine::color`] with [`Others::Running`].
    unsafe fn recolor(&mut self, wanted: Vec<(u64, u16)>, fresh: &Fresh, began: Instant) {
        if !wanted.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.place_at(wanted, fresh, false, Others::Running, began) };
        }
    }

    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn place_at(&mut self, wanted: Vec<(u64, u16)>, fresh: &Fresh, first: bool, others: Others, began: Instant) {
        let mut moment = if first { self.start.clone() } else { self.later.clone() };
        let placing = Instant::now();
        // SAFETY: the caller's promise.
        unsafe { self.place(&wanted, fresh, others, &mut moment) };
        moment.placing += placing.elapsed();
        moment.times += u64::from(!wanted.is_empty());
        moment.duration += began.elapsed();
        *(if first { &mut self.start } else { &mut self.later }) = moment;
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The pages that bytes lie on.
fn pages(bytes: std::ops::Range<u64>) -> std::ops::Range<u64> {
    let page = PAGE_BYTES as u64;
    bytes.start / page..bytes.end.div_ceil(page)
}

#[cfg(test)]
pub(crate) mod tests;
