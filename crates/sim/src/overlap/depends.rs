//! The sites that each site waits for, and the times at which the loads came that they wait for.
//!
//! A site that others wait for, or that a change of the program is about, has a number. By thread and number it keeps
//! the load that the next dependent load has to wait for: the last load, or if several chains are followed in turn, one
//! before it.

use std::collections::{HashMap, VecDeque};

use trace::Dependence;

use crate::clock::Units;

/// The effect of changes of the program on loads, by site. The numbers are at least 1.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    /// Sites that wait for these wait for the load this many before.
    pub chains: HashMap<u32, usize>,
    /// These are asked for this many loads ahead.
    pub ahead: HashMap<u32, usize>,
}

const NOBODY: u32 = u32::MAX;

#[derive(Default)]
pub struct Depends {
    /// By site: the numbers of those that it waits for, and whether for the one alone that was carried out last.
    on: Vec<(Vec<u32>, bool)>,
    /// By site: its number.
    numbers: Vec<u32>,
    /// By number: its change.
    changed: Vec<Option<Changed>>,
    /// By thread and number: the time at which the awaited load came.
    came: Vec<Vec<Units>>,
    /// By thread and number: the ordinal among all loads of the last one.
    order: Vec<Vec<u64>>,
    loads: u64,
    /// By thread: the latest of those times so far.
    latest: Vec<Units>,
    /// By thread and number: times of the last loads of changed sites, the oldest in front.
    last: Vec<Vec<VecDeque<Units>>>,
}

/// How a change has a site's loads wait. The numbers are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    /// Sites that wait for it wait for the load this many before.
    Chains(usize),
    /// Its loads begin when the load this many before would have begun.
    Ahead(usize),
}

impl Depends {
    pub fn new(dependences: &[Dependence], loads: &Loads) -> Depends {
        let mut depends = Depends::default();
        for Dependence { site, on, either } in dependences {
            let on = on.iter().map(|&from| depends.number(from)).collect();
            let site = *site as usize;
            if depends.on.len() <= site {
                depends.on.resize(site + 1, (Vec::new(), false));
            }
            depends.on[site] = (on, *either);
        }
        for (&site, &chains) in &loads.chains {
            let number = depends.number(site) as usize;
            depends.changed[number] = Some(Changed::Chains(chains));
        }
        for (&site, &ahead) in &loads.ahead {
            let number = depends.number(site) as usize;
            depends.changed[number] = Some(Changed::Ahead(ahead));
        }
        depends
    }

    /// The number of a site that something waits for.
    pub fn number(&mut self, site: u32) -> u32 {
        let site = site as usize;
        if self.numbers.len() <= site {
            self.numbers.resize(site + 1, NOBODY);
        }
        if self.numbers[site] == NOBODY {
            self.numbers[site] = self.changed.len() as u32;
            self.changed.push(None);
        }
        self.numbers[site]
    }

    #[inline(always)]
    fn number_of(&self, site: u32) -> Option<usize> {
        let number = self.numbers.get(site as usize).filter(|number| **number != NOBODY);
        number.map(|number| *number as usize)
    }

    /// Returns whether others wait for a site, or a change is about it.
    #[inline(always)]
    pub fn is_known(&self, site: u32) -> bool {
        self.number_of(site).is_some()
    }

    /// Returns whether a change is about the site, so that each of its loads matters later.
    #[inline]
    pub fn is_changed(&self, site: u32) -> bool {
        self.number_of(site)
            .is_some_and(|number| self.changed[number].is_some())
    }

    /// Returns whether a site waits for itself, as a locked instruction does.
    #[inline]
    pub fn is_own(&self, site: u32) -> bool {
        let Some(number) = self.number_of(site) else {
            return false;
        };
        let on = self.on.get(site as usize);
        on.is_some_and(|(on, _)| on.contains(&(number as u32)))
    }

    /// The time at which the source of a site's address has come.
    #[inline]
    pub fn address(&self, thread: u32, site: u32) -> Units {
        match self.on.get(site as usize) {
            None => 0,
            Some((on, false)) => self.came(thread, on),
            Some((on, true)) => {
                let order = self.order.get(thread as usize);
                let carried_out = |number: &&u32| order.and_then(|order| order.get(**number as usize));
                on.iter()
                    .max_by_key(carried_out)
                    .map_or(0, |last| self.came(thread, std::slice::from_ref(last)))
            }
        }
    }

    /// When the loads of these numbers have come that are waited for.
    pub fn came(&self, thread: u32, on: &[u32]) -> Units {
        let Some(came) = self.came.get(thread as usize) else {
            return 0;
        };
        let came = |number: &u32| came.get(*number as usize).copied();
        on.iter().filter_map(came).max().unwrap_or(0)
    }

    /// A load of a site would begin at a time: when it is asked for instead, by a prefetch ahead.
    #[inline]
    pub fn begins(&mut self, thread: u32, site: u32, at: Units) -> Option<Units> {
        let number = self.number_of(site)?;
        let Some(Changed::Ahead(ahead)) = self.changed[number] else {
            return None;
        };
        let last = self.last(thread, number);
        last.push_back(at);
        match last.len() > ahead {
            true => last.pop_front(),
            false => None,
        }
    }

    /// A load comes; `first`: the first piece of its reference.
    #[inline]
    pub fn comes(&mut self, thread: u32, site: u32, at: Units, first: bool) {
        let Some(number) = self.number_of(site) else {
            return;
        };
        let of = thread as usize;
        if self.came.len() <= of {
            self.came.resize(of + 1, Vec::new());
            self.order.resize(of + 1, Vec::new());
            self.latest.resize(of + 1, 0);
        }
        // Many threads never run loads that others wait for.
        if self.came[of].is_empty() {
            self.came[of] = vec![0; self.changed.len()];
            self.order[of] = vec![0; self.changed.len()];
        }
        self.loads += 1;
        self.order[of][number] = self.loads;
        self.latest[of] = self.latest[of].max(at);
        if let Some(Changed::Chains(chains)) = self.changed[number] {
            let last = self.last(thread, number);
            match last.back_mut().filter(|_| !first) {
                Some(same) => *same = at.max(*same),
                None => last.push_back(at),
            }
            if last.len() > chains {
                last.pop_front();
            }
            self.came[of][number] = match last.len() == chains {
                true => last[0],
                false => 0,
            };
            return;
        }
        let came = &mut self.came[of][number];
        *came = if first { at } else { at.max(*came) };
    }

    fn last(&mut self, thread: u32, number: usize) -> &mut VecDeque<Units> {
        let (thread, numbers) = (thread as usize, self.changed.len());
        if self.last.len() <= thread {
            self.last.resize(thread + 1, Vec::new());
        }
        let of_thread = &mut self.last[thread];
        if of_thread.is_empty() {
            *of_thread = vec![VecDeque::new(); numbers];
        }
        &mut of_thread[number]
    }

    /// The latest time at which anything that the thread's addresses come from has come.
    #[inline(always)]
    pub fn latest(&self, thread: u32) -> Units {
        self.latest.get(thread as usize).copied().unwrap_or(0)
    }
}
