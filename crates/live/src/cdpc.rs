//! Colors for the arrays of a parallel program, from what its compiler says of its loops (Bugnion96, section 5).
//!
//! Loops come one by one: those whose values are constants before `main`, others right before they run. The paper
//! colors once, at start-up, when all is known. Here:
//!
//! - [`Coloring::start`] colors what was said before `main`: pages that nobody has touched get their colors as they
//!   arrive.
//! - [`Coloring::hear`] of a loop with arrays that are new, or new again, colors these. Pages that have a color already
//!   change it only when enough came together that it pays: [`budget`] tells when, so that all exchanges of a run are at
//!   most a few for each page.
//! - Loops that are told again, and loops that swap the arrays of others, change nothing: the same pages keep their colors.
//!
//! A page that two arrays share has one color like any other: hints are by page. What cannot be colored stays where it
//! is, and [`Outcome`] tells why.

mod budget;
mod collection;
mod fit;
mod outcome;
mod preference;

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use policy::cdpc::Loop;

use crate::daemon::Client;
use crate::found::{self, Unknown};
use crate::{Colors, Config, Engine, Error, Others, PAGE_BYTES};
use budget::Budget;
use collection::{Collection, Heard};
pub use outcome::{Moment, Outcome};
pub use preference::{Order, UnknownOrder};

/// Reasons that are kept of one kind.
const MOST_NOTES: usize = 16;

/// The colors of one process's arrays.
pub struct Coloring {
    order: Order,
    colors: Colors,
    engine: Engine,
    loops: Collection,
    budget: Budget,
    /// The color that each page was last meant to have, by number of the page.
    preferred: BTreeMap<u64, u16>,
    started: bool,
    /// Loops that were heard of since all hints were last computed together.
    pending: usize,
    start: Moment,
    later: Moment,
    /// Pages that have no color of our choice, and why.
    left: BTreeMap<u64, String>,
    notes: Vec<String>,
}

impl Coloring {
    /// Finds the colors of this machine and what moves pages. Frames come from the daemon where it runs and has the same
    /// colors, else from the process's own pool.
    ///
    /// Errors: those of [`found::found`] and [`Engine::open`].
    pub fn open(order: Order) -> Result<Coloring, Error> {
        let daemon = Client::find();
        let forced = std::env::var_os(found::VARIABLE).is_some();
        let colors = match &daemon {
            Ok(client) if !forced => client.colors().clone(),
            _ => found::found(Unknown::Refuse)?,
        };
        let mut config = Config::new(colors.clone());
        let same = |theirs: &Colors| {
            (theirs.first_bit, theirs.bits, theirs.color_bytes) == (colors.first_bit, colors.bits, colors.color_bytes)
        };
        if let Ok(client) = daemon
            && same(client.colors())
        {
            config.supply = Some(Box::new(client));
        }
        Ok(Coloring::with(order, colors, Engine::open(config)?))
    }

    /// With an engine for these colors.
    pub fn with(order: Order, colors: Colors, engine: Engine) -> Coloring {
        Coloring {
            order,
            colors,
            engine,
            loops: Collection::default(),
            budget: Budget::default(),
            preferred: BTreeMap::new(),
            started: false,
            pending: 0,
            start: Moment::default(),
            later: Moment::default(),
            left: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    pub fn colors(&self) -> &Colors {
        &self.colors
    }

    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether a loop was heard of, so that hearing it again changes nothing that was said.
    pub fn knows(&self, told: &Loop) -> bool {
        self.loops.knows(told)
    }

    /// Whether [`Coloring::start`] is over.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// The loops so far.
    pub fn loops(&self) -> &[Loop] {
        self.loops.all()
    }

    /// Before `main`: colors the pages of all loops that were heard of.
    ///
    /// # Safety
    /// As for [`Engine::color`]: the arrays of the loops are the program's memory, and `others` is true.
    pub unsafe fn start(&mut self, others: Others) {
        let first = !std::mem::replace(&mut self.started, true);
        if first && !self.loops.all().is_empty() {
            // SAFETY: the caller's promise.
            unsafe { self.color(&HashSet::new(), first, others) };
        }
    }

    /// A loop is about to run, or will one day. Before [`Coloring::start`] it is kept for that.
    ///
    /// # Safety
    /// As for [`Engine::color`] with [`Others::Running`], of the loop's arrays and those heard of before.
    pub unsafe fn hear(&mut self, told: Loop) {
        if let Some(why) = fit::beyond(&told) {
            return self.refuse(why);
        }
        let heard = self.loops.add(told);
        let fresh = match heard {
            Heard::TooMany => return,
            Heard::Known if self.pending == 0 => return,
            // The program is where it was before: what it does over and over is known.
            Heard::Known => HashSet::new(),
            Heard::New { ref pages } => {
                self.pending += 1;
                pages.iter().flat_map(|pages| pages.clone()).collect()
            }
        };
        if self.started {
            self.budget.heard(self.loops.all().len(), heard == Heard::Known);
            if !fresh.is_empty() || self.budget.may_compute(self.preferred.len()) {
                // SAFETY: the caller's promise.
                unsafe { self.color(&fresh, false, Others::Running) };
            }
        }
    }

    /// What was not understood of a summary.
    pub fn refuse(&mut self, why: String) {
        self.loops.refused += 1;
        self.note(why);
    }

    /// Colors pages. Those that have a color already and are not `fresh` change it if the budget allows.
    ///
    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn color(&mut self, fresh: &HashSet<u64>, first: bool, others: Others) {
        let began = Instant::now();
        let wanted = if first || self.budget.may_compute(self.preferred.len()) {
            self.all_together(fresh, first)
        } else {
            self.behind_the_others(fresh)
        };
        match wanted {
            Ok(wanted) => {
                let mut moment = if first { self.start.clone() } else { self.later.clone() };
                let placing = Instant::now();
                // SAFETY: the caller's promise.
                unsafe { self.place(&wanted, others, &mut moment) };
                moment.placing += placing.elapsed();
                moment.times += u64::from(!wanted.is_empty());
                moment.duration += began.elapsed();
                *(if first { &mut self.start } else { &mut self.later }) = moment;
            }
            Err(error) => self.note(error.to_string()),
        }
    }

    /// Which pages get which color, when all loops are seen together.
    fn all_together(&mut self, fresh: &HashSet<u64>, first: bool) -> Result<Vec<(u64, u16)>, policy::cdpc::Malformed> {
        let hints = match self.order.hints(self.loops.all(), self.colors.count(), 0) {
            Ok(hints) => hints,
            // One that cannot be must not take the others with it.
            Err(_) => {
                let (order, colors) = (self.order, self.colors.count());
                for wrong in self
                    .loops
                    .retain(|told| order.hints(std::slice::from_ref(told), colors, 0))
                {
                    self.note(wrong.to_string());
                }
                self.order.hints(self.loops.all(), self.colors.count(), 0)?
            }
        };
        let differs = |&(page, color): &(u64, u16)| self.preferred.get(&page).is_some_and(|&was| was != color);
        let changed = hints
            .iter()
            .filter(|hint| differs(hint) && !fresh.contains(&hint.0))
            .count();
        let all = first || self.budget.may_change(changed, self.preferred.len());
        self.budget.computed(hints.len());
        if all {
            self.pending = 0;
            self.budget.changed(changed, self.loops.all().len());
        }
        let is_wanted = |hint: &(u64, u16)| {
            let new = fresh.contains(&hint.0) || !self.preferred.contains_key(&hint.0);
            new || (all && differs(hint))
        };
        let mut wanted: Vec<_> = hints.into_iter().filter(is_wanted).collect();
        wanted.sort_unstable();
        Ok(wanted)
    }

    /// The new pages alone, colored on from where the others end.
    fn behind_the_others(&self, fresh: &HashSet<u64>) -> Result<Vec<(u64, u16)>, policy::cdpc::Malformed> {
        let Some(newest) = self.loops.all().last() else {
            return Ok(Vec::new());
        };
        let from = (self.preferred.len() % self.colors.count() as usize) as u32;
        let mut hints = self
            .order
            .hints(std::slice::from_ref(newest), self.colors.count(), from)?;
        hints.retain(|hint| fresh.contains(&hint.0) || !self.preferred.contains_key(&hint.0));
        hints.sort_unstable();
        Ok(hints)
    }

    /// # Safety
    /// As for [`Engine::color`].
    unsafe fn place(&mut self, wanted: &[(u64, u16)], others: Others, moment: &mut Moment) {
        let fit = match fit::runs(wanted) {
            Ok(fit) => fit,
            Err(error) => return self.note(format!("nothing was colored: /proc/self/maps: {error}")),
        };
        moment.pages += wanted.len() as u64;
        let unfit: BTreeMap<u64, &str> = fit.left.into_iter().collect();
        // Colors that pages have already, for those that keep them.
        let mut before = BTreeMap::new();
        for &(page, color) in wanted {
            match unfit.get(&page) {
                None => {
                    let was = self.preferred.insert(page, color);
                    if self.left.remove(&page).is_none()
                        && let Some(was) = was
                    {
                        before.insert(page, was);
                    }
                }
                // One that has a color already and cannot change it any more (constants) keeps that.
                Some(_) if self.preferred.contains_key(&page) => moment.pages -= 1,
                Some(why) => {
                    self.preferred.insert(page, color);
                    self.left.insert(page, why.to_string());
                }
            }
        }
        for run in fit.runs {
            let first = (run.pages.start / PAGE_BYTES) as u64;
            // SAFETY: the caller's promise; `fit` left out what is not mapped for the program to write.
            match unsafe { self.engine.color(run.pages, &run.wish, others) } {
                Ok(done) => {
                    moment.kept += done.kept as u64;
                    moment.colored += (done.filled + done.exchanged) as u64;
                    moment.supplied += done.supplied as u64;
                    for left in done.left {
                        self.left
                            .insert((left.address / PAGE_BYTES) as u64, left.why.to_string());
                    }
                }
                Err(error) => {
                    let why = error.to_string();
                    for page in first..first + run.pages.count as u64 {
                        match before.get(&page) {
                            Some(&was) => {
                                self.preferred.insert(page, was);
                                moment.pages -= 1;
                            }
                            None => {
                                self.left.insert(page, why.clone());
                            }
                        }
                    }
                }
            }
        }
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MOST_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests;
