//! The host: tells policies of a running system's accesses, and carries out their requests.
//!
//! One interval after the other, and in each:
//!
//! 1. It sees which processes there are, and looks several times where their threads run ([`super::whereabouts`]).
//! 2. It asks the source which pages each process touched ([`super::sources`]), and the kernel on which nodes they are.
//! 3. It tells the process's policy: free frames and pressure, then a miss for each count of each page, then a tick to each cpu.
//! 4. It carries out the moves ([`super::carry`]), for a part of the interval at most. Moves that there was no time for
//!    come first the next time. Copies and their ends are counted, and not made: Linux has no transparent replicas.
//!
//! Pages are reported in the order of their addresses, [`Config::pages`] at most of each process and interval, and the
//! next interval continues where the last one ended.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use results::{HomesInterval, HomesProcess, KernelBalancing};

use super::carry::{Left, Wanted, carry_out};
use super::decisions::Decisions;
use super::error::HomesError;
use super::layout::Layout;
use super::linux::{Linux, Unit};
use super::log::{Asked, Begins, Entry, Log, VERSION};
use super::scale::settings;
use super::sources::{Choice, Lost};
use super::tally::Tally;
use super::watched::Watched;
use super::{Config, Whom};

mod report;

/// Looks at threads in an interval.
const LOOKS: u32 = 8;
/// The longest sleep between two checks for a stop.
const NAP: Duration = Duration::from_millis(50);
/// The part of an interval in which pages may be moved: a quarter, for all processes together.
const MOVING: u32 = 4;

pub struct Host<L: Linux> {
    linux: L,
    layout: Layout,
    choice: Choice,
    config: Config,
    whom: Whom,
    decisions: Decisions,
    log: Log,
    /// The watched processes, by number.
    watched: HashMap<u32, Watched>,
    /// Processes that cannot be watched: they are not tried again.
    refused: HashMap<u32, u64>,
    spaces: u32,
    begun: Duration,
    own_begun: Duration,
    interval_begun: Duration,
    moving: Duration,
    /// Nodes that were under pressure at the last look.
    pressed: BTreeSet<u32>,
    tally: Tally,
    processes: Vec<HomesProcess>,
    balancing: Option<KernelBalancing>,
    notes: Vec<String>,
}

impl<L: Linux> Host<L> {
    /// Nothing is watched before the first interval.
    ///
    /// Errors: the machine has one node; the policy moves nothing, or its settings are wrong; the log cannot be written.
    pub fn new(
        mut linux: L,
        layout: Layout,
        choice: Choice,
        config: Config,
        whom: Whom,
        log: Log,
    ) -> Result<Host<L>, HomesError> {
        if layout.count() < 2 {
            return Err(HomesError::OneNode);
        }
        let mut all = settings(&config.policy, choice.source.scale(), config.interval);
        all.extend(config.settings.iter().cloned());
        let decisions = Decisions::new(config.policy.clone(), all, layout.world())?;
        let begun = linux.now();
        let mut host = Host {
            own_begun: linux.own_time(),
            linux,
            layout,
            choice,
            config,
            whom,
            decisions,
            log,
            watched: HashMap::new(),
            refused: HashMap::new(),
            spaces: 0,
            begun,
            interval_begun: begun,
            moving: Duration::ZERO,
            pressed: BTreeSet::new(),
            tally: Tally::default(),
            processes: Vec::new(),
            balancing: None,
            notes: Vec::new(),
        };
        host.log.write(&Entry::Begins(Begins {
            version: VERSION,
            policy: host.decisions.name().to_string(),
            settings: host.decisions.settings().to_vec(),
            source: host.choice.source.name().to_string(),
            nodes: host.layout.nodes().to_vec(),
            cpus_of_node: host.layout.per_node(),
            page_bytes: host.decisions.world().page_bytes,
        }))?;
        Ok(host)
    }

    /// Notes the kernel's own balancing, for the report.
    pub fn balancing(&mut self, balancing: Option<KernelBalancing>) {
        self.balancing = balancing;
        if balancing.is_some_and(|balancing| balancing.among_nodes) {
            self.notes.push(
                "the kernel's own balancing is on (kernel.numa_balancing): it moves pages, too, and what it moved is not \
                 counted here"
                    .to_string(),
            );
        }
    }

    /// Goes on, interval by interval, until no process is left to watch, the time is up, or `stop` returns
    /// true.
    pub fn run(&mut self, mut stop: impl FnMut() -> bool) -> Result<(), HomesError> {
        while self.interval(&mut stop)? {}
        self.log.flush()
    }

    /// One interval. Returns whether another one is to follow.
    pub fn interval(&mut self, stop: &mut impl FnMut() -> bool) -> Result<bool, HomesError> {
        self.meet()?;
        if self.watched.is_empty() && self.whom.ends() {
            return Ok(false);
        }
        let goes_on = self.wait(stop);
        self.pressure()?;
        let (local, remote) = (self.tally.samples.local, self.tally.samples.remote);
        let moved = self.tally.moves.moved;
        let numbers: BTreeSet<u32> = self.watched.keys().copied().collect();
        let each = self.config.interval / MOVING / u32::try_from(numbers.len().max(1)).unwrap_or(u32::MAX);
        for process in numbers {
            let wanted = match self.observe(process)? {
                Ok(wanted) => wanted,
                Err(lost) => {
                    self.leave(process, Some(lost.to_string()))?;
                    continue;
                }
            };
            self.carry(process, wanted, each)?;
        }
        let now = self.linux.now();
        self.tally.interval(HomesInterval {
            from_ns: nanos(self.interval_begun - self.begun),
            to_ns: nanos(now - self.begun),
            local: self.tally.samples.local - local,
            remote: self.tally.samples.remote - remote,
            moved: self.tally.moves.moved - moved,
        });
        self.interval_begun = now;
        self.log.flush()?;
        let time_left = self.config.duration.is_none_or(|most| now - self.begun < most);
        Ok(goes_on && time_left)
    }

    /// Watches processes that have come, and no longer those that have gone.
    fn meet(&mut self) -> Result<(), HomesError> {
        let there = match self.linux.members(&self.whom) {
            Ok(there) => there,
            Err(error) if self.watched.is_empty() => return Err(HomesError::Nobody(error.to_string())),
            // If they cannot be listed just now, the next look asks again.
            Err(_) => return Ok(()),
        };
        let began: HashMap<u32, u64> = there
            .iter()
            .filter_map(|&process| Some((process, self.linux.began(process)?)))
            .collect();
        let gone: Vec<u32> = self.watched.keys().copied().collect();
        for process in gone {
            if began.get(&process) != Some(&self.watched[&process].began) {
                self.leave(process, Some(Lost::Gone.to_string()))?;
            }
        }
        self.refused.retain(|process, was| began.get(process) == Some(was));
        let mut new: Vec<u32> = began.keys().copied().collect();
        new.sort_unstable();
        for process in new {
            if !self.watched.contains_key(&process) && !self.refused.contains_key(&process) {
                self.join(process, began[&process])?;
            }
        }
        Ok(())
    }

    fn join(&mut self, process: u32, began: u64) -> Result<(), HomesError> {
        let name = self.linux.name(process);
        let at = self.processes.len();
        self.processes.push(HomesProcess {
            process,
            name: name.clone(),
            ..HomesProcess::default()
        });
        if let Err(lost) = self.choice.source.begin(process) {
            self.processes[at].ended = Some(lost.to_string());
            self.refused.insert(process, began);
            return Ok(());
        }
        if self.config.tell_writes {
            self.linux.clear_written(process);
        }
        let space = self.spaces;
        self.spaces += 1;
        let mut watched = Watched::new(space, began, at);
        watched.whereabouts.look(&self.linux.tasks(process), &self.layout);
        // The cpus that threads ran on before tell nothing of the pages that they touch now.
        watched.whereabouts.take();
        self.watched.insert(process, watched);
        self.tell(&Entry::Joins { space, process, name }).map(|_| ())
    }

    fn leave(&mut self, process: u32, why: Option<String>) -> Result<(), HomesError> {
        self.choice.source.end(process);
        let Some(watched) = self.watched.remove(&process) else {
            return Ok(());
        };
        self.processes[watched.report].ended.clone_from(&why);
        if why.is_some() {
            self.refused.insert(process, watched.began);
        }
        let late: u64 = watched.late.iter().map(|wanted| u64::from(wanted.unit.pages)).sum();
        if late > 0 {
            let gone = why.is_some();
            self.tally.failed(if gone { Left::Gone } else { Left::Late }, late);
        }
        let why = why.unwrap_or_else(|| "it was watched to the end".to_string());
        let space = watched.space;
        self.tell(&Entry::Leaves { space, why }).map(|_| ())
    }

    /// Sleeps until the interval is over, looking at threads. Returns whether to go on after it.
    fn wait(&mut self, stop: &mut impl FnMut() -> bool) -> bool {
        let end = self.interval_begun + self.config.interval;
        let part = self.config.interval / LOOKS;
        loop {
            let now = self.linux.now();
            if stop() {
                return false;
            }
            if now >= end {
                return true;
            }
            self.linux.sleep(part.min(NAP).min(end - now));
            for (&process, watched) in &mut self.watched {
                watched.whereabouts.look(&self.linux.tasks(process), &self.layout);
            }
        }
    }

    /// Looks at the free memory, and finds the nodes that have become short of it.
    fn pressure(&mut self) -> Result<(), HomesError> {
        let layout = &self.layout;
        let linux = &mut self.linux;
        let frames: Vec<u64> = layout
            .nodes()
            .iter()
            .map(|&node| linux.free_frames(node).unwrap_or(u64::MAX))
            .collect();
        self.tell(&Entry::Free { frames: frames.clone() })?;
        let least = self.decisions.interest().pressure_frames;
        let at = self.now_ns();
        let spaces = self.spaces_there();
        for (node, free_frames) in (0..).zip(frames) {
            if free_frames >= least {
                self.pressed.remove(&node);
            } else if self.pressed.insert(node) {
                for &space in &spaces {
                    let asked = self.tell(&Entry::Pressure {
                        at,
                        space,
                        node,
                        free_frames,
                    })?;
                    self.count_copies(&asked, &HashMap::new());
                }
            }
        }
        Ok(())
    }

    fn spaces_there(&self) -> Vec<u32> {
        let mut spaces: Vec<u32> = self.watched.values().map(|watched| watched.space).collect();
        spaces.sort_unstable();
        spaces
    }

    /// Tells a process's policy of the pages that it touched. Returns the moves to make.
    fn observe(&mut self, process: u32) -> Result<Result<Vec<Wanted>, Lost>, HomesError> {
        let touched = match self.choice.source.look(process) {
            Ok(touched) => touched,
            Err(lost) => return Ok(Err(lost)),
        };
        let Some(watched) = self.watched.get_mut(&process) else {
            return Ok(Ok(Vec::new()));
        };
        watched.whereabouts.look(&self.linux.tasks(process), &self.layout);
        let seen = watched.seen(
            process,
            &touched,
            &mut self.linux,
            &self.layout,
            &self.config,
            &mut self.tally.samples,
        );
        let seen = match seen {
            Ok(seen) => seen,
            Err(lost) => return Ok(Err(lost)),
        };
        let space = watched.space;
        let units: HashMap<u64, Unit> = seen.iter().map(|seen| (seen.misses.page, seen.unit)).collect();
        let mut asked = Vec::new();
        for mut seen in seen {
            seen.misses.at = self.now_ns();
            asked.extend(self.tell(&Entry::Misses(seen.misses))?);
        }
        asked.extend(self.ticks(space)?);
        self.count_copies(&asked, &units);
        let mut wanted = Vec::new();
        for asked in asked {
            if let Asked::Move { page, node, .. } = asked
                && let (Some(&unit), Some(node)) = (units.get(&page), self.layout.linux_node(node))
            {
                self.tally.moves.asked += u64::from(unit.pages);
                wanted.push(Wanted { unit, node });
            }
        }
        Ok(Ok(wanted))
    }

    /// Hot pages that wait for others wait no longer than the policy wants to.
    fn ticks(&mut self, space: u32) -> Result<Vec<Asked>, HomesError> {
        let wait = self.decisions.interest().tick_ns;
        let mut asked = Vec::new();
        if wait == 0 {
            return Ok(asked);
        }
        self.linux.sleep(Duration::from_nanos(wait).min(self.config.interval));
        let at = self.now_ns();
        for cpu in 0..self.decisions.world().cpus {
            asked.extend(self.tell(&Entry::Tick { at, space, cpu })?);
        }
        Ok(asked)
    }

    fn count_copies(&mut self, asked: &[Asked], units: &HashMap<u64, Unit>) {
        let pages = |page: &u64| units.get(page).map_or(1, |unit| u64::from(unit.pages));
        for asked in asked {
            match asked {
                Asked::Move { .. } => {}
                Asked::Copy { page, .. } => self.tally.moves.copies_not_made += pages(page),
                Asked::Collapse { page, .. } => self.tally.moves.collapses_not_made += pages(page),
            }
        }
    }

    fn carry(&mut self, process: u32, new: Vec<Wanted>, within: Duration) -> Result<(), HomesError> {
        let Some(watched) = self.watched.get_mut(&process) else {
            return Ok(());
        };
        let wanted = watched.with_late(new, &mut self.tally);
        if wanted.is_empty() {
            return Ok(());
        }
        let (space, report) = (watched.space, watched.report);
        let begun = self.linux.now();
        let became = carry_out(&mut self.linux, process, wanted, begun + within);
        self.moving += self.linux.now() - begun;
        for (wanted, outcome) in became {
            let pages = u64::from(wanted.unit.pages);
            match outcome {
                Ok(()) => {
                    self.tally.moves.moved += pages;
                    self.processes[report].pages_moved += pages;
                }
                Err(Left::Late) => {
                    if let Some(watched) = self.watched.get_mut(&process) {
                        watched.late.push(wanted);
                    }
                    continue;
                }
                Err(left) => self.tally.failed(left, pages),
            }
            self.log.write(&Entry::Became {
                space,
                page: super::watched::number(wanted.unit),
                pages: wanted.unit.pages,
                node: outcome.is_ok().then(|| self.layout.node(wanted.node)).flatten(),
                why: outcome.err().map(Left::why),
            })?;
        }
        Ok(())
    }

    /// Tells the policies an entry, and writes the entry and their requests to the log.
    fn tell(&mut self, entry: &Entry) -> Result<Vec<Asked>, HomesError> {
        let mut asked = Vec::new();
        self.decisions.tell(entry, &mut asked);
        self.log.write(entry)?;
        for &asked in &asked {
            self.log.write(&Entry::Asks(asked))?;
        }
        Ok(asked)
    }

    fn now_ns(&mut self) -> u64 {
        nanos(self.linux.now() - self.begun)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
