//! One thread that follows its data: what the policy is told, and what it asks for.

use std::collections::{HashMap, HashSet};
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy::{
    Action, Cost, Domains, Following, Interest, Nature, Observation, Page, Policy, Prices, Ran, Tick, Touched, World,
};
use results::LiveFollowing;
use sys::cache_domains::CacheDomain;
use sys::memory::PAGE;
use sys::traced::{Event, On, Registers, Ticking, Traced};
use sys::{Root, affinity, protection_keys, tasks, traced};

use super::clock::Clock;
use super::closed::Closed;
use super::image::Image;
use super::moments::Moments;
use super::stops::Other;
use super::{Asked, FollowingError};

/// The thread, by the policy's number: there is one.
const THREAD: u32 = 0;
/// How often a move is made to measure it, each way.
const MOVES: usize = 64;
/// A policy's tick is no shorter than this: each stops the program.
const TICK_LEAST: Duration = Duration::from_millis(1);

pub struct Host {
    pub(super) traced: Traced,
    pub(super) image: Image,
    pub(super) closed: Closed,
    moments: Moments,
    policy: Option<Box<dyn Policy>>,
    interest: Interest,
    world: World,
    domains: Domains,
    /// Linux's numbers of cpus, by the policy's.
    cpus: Vec<u32>,
    /// The cpu that the thread is kept on.
    pub(super) at: Option<u32>,
    /// Where it could run before.
    home: Vec<u32>,
    /// The programs that the process has run.
    space: u32,
    clock: Clock,
    next_scan_ns: u64,
    switch_ns: u64,
    /// Rights are as the cpu has them; else all is open.
    pub(super) shut: bool,
    /// Rights as they were set last: the cpu, whether shut, and how many keys there were. `None`: the program may have changed them, or
    /// the signals that it blocks.
    pub(super) settled: Option<(u32, bool, usize)>,
    /// Between the two stops of a system call.
    pub(super) in_call: bool,
    /// All stays open to the thread until the next tick: one instruction uses pages of two caches.
    pub(super) wide: bool,
    /// The call that it is in, one that was put off, and why the program is to be left alone after it.
    pub(super) call: usize,
    pub(super) arguments: [usize; 2],
    pub(super) postponed: Option<usize>,
    pub(super) aside: Option<String>,
    /// Pages that were opened for the fork that it is in, and the cpus that they were closed to.
    pub(super) opened: Option<Vec<(u64, u128)>>,
    /// It has begun another program, in the call that it is in.
    pub(super) fresh: bool,
    /// It ignores the signal of faults.
    pub(super) ignores_faults: bool,
    /// Tasks that it started: all that are traced still, those that stopped before it was known who began them, and threads that wait
    /// until it leaves its call.
    pub(super) others: HashMap<u32, Other>,
    pub(super) early: HashSet<u32>,
    pub(super) held: Vec<u32>,
    /// Registers at the touch before, and how often they were the same.
    pub(super) last: Option<Registers>,
    pub(super) times: u32,
    /// It is traced no more.
    pub(super) left: bool,
    /// Its end, where that came while it was handled.
    pub(super) ended: Option<Event>,
    pub(super) found: LiveFollowing,
}

impl Host {
    /// Starts a command, stops it before its first instruction, and measures what a move takes.
    pub fn begin(command: Command, domains: &[CacheDomain]) -> Result<Host, FollowingError> {
        protection_keys::try_key().map_err(FollowingError::NoKeys)?;
        if domains.len() < 2 {
            return Err(FollowingError::OneDomain);
        }
        let traced = Traced::begin(command).map_err(FollowingError::Start)?;
        if let Some(program) = with_other_rights(traced.process()) {
            return Err(FollowingError::SetId(program));
        }
        let home = affinity::allowed(Some(traced.process()))?;
        let (domains, cpus) = numbered(domains, &home);
        if domains.count() < 2 {
            return Err(FollowingError::OneDomain);
        }
        let count = cpus.len() as u32;
        let mut host = Host {
            image: Image::begin(&traced)?,
            closed: Closed::default(),
            moments: Moments::default(),
            policy: None,
            interest: Interest::NONE,
            world: World {
                page_bytes: PAGE as u64,
                colors: 1,
                cpus: count,
                nodes: 1,
                cpu_nodes: 1,
                free_frames: vec![u64::MAX],
                now_ns: 0,
                caches: None,
                domains: Some(Arc::new(domains.clone())),
                runnable: vec![0; count as usize],
            },
            domains,
            cpus,
            at: None,
            home,
            space: 0,
            clock: Clock::new(),
            next_scan_ns: 0,
            switch_ns: 0,
            shut: false,
            settled: None,
            in_call: false,
            wide: false,
            call: 0,
            arguments: [0; 2],
            postponed: None,
            aside: None,
            opened: None,
            fresh: false,
            ignores_faults: false,
            others: HashMap::new(),
            early: HashSet::new(),
            held: Vec::new(),
            last: None,
            times: 0,
            left: false,
            ended: None,
            found: LiveFollowing::default(),
            traced,
        };
        host.measure_move()?;
        Ok(host)
    }

    pub fn process(&self) -> u32 {
        self.traced.process()
    }

    /// Ends the program before its first instruction.
    pub fn end_before_it_runs(self) -> Result<u64, FollowingError> {
        self.traced.end()?;
        Ok(self.switch_ns)
    }

    /// Has the thread go from cache to cache, by touches of two pages of ours.
    fn measure_move(&mut self) -> Result<(), FollowingError> {
        let task = self.process();
        self.image.look(&self.traced)?;
        let pages = self.image.borrowed.touched().map(|span| (span.start / PAGE) as u64);
        let all = u128::MAX >> (128 - self.cpus.len().clamp(1, 128));
        for (cache, page) in (0..).zip(pages) {
            self.closed.set(page, all & !self.domains.mask(cache));
        }
        self.image.change(&self.traced, task, &mut self.closed)?;
        let first = self.domains.cpus(0).next().unwrap_or(0);
        self.keep_on(first)?;
        self.set_rights(true)?;
        let begun = Instant::now();
        let Host {
            traced,
            image,
            domains,
            closed,
            cpus,
            ..
        } = self;
        let (mut at, mut handled) = (0, Duration::ZERO);
        image.borrowed.touch(traced, task, MOVES, |address, _| {
            let stopped = Instant::now();
            let page = (address / PAGE) as u64;
            let cache = u32::from(page == pages[1]);
            at = domains.cpus(cache).next().unwrap_or(0);
            affinity::allow(Some(task), &[cpus[at as usize]])?;
            traced.change_rights(task, |before| closed.rights(before, at, true))?;
            handled += stopped.elapsed();
            Ok(())
        })?;
        let each = |time: Duration| time.as_nanos() as u64 / (2 * MOVES as u64 - 1);
        self.switch_ns = each(begun.elapsed());
        self.clock.around_ns = self.switch_ns.saturating_sub(each(handled));
        self.closed.open_all();
        self.image.change(&self.traced, task, &mut self.closed)?;
        self.settle()?;
        Ok(())
    }

    /// The policy, with what a move takes here.
    pub fn decide_by(&mut self, asked: &Asked) -> Result<(), FollowingError> {
        // The policy takes the time of touches out of what it sees; the user's word on it goes first.
        let of = asked
            .policy
            .of(policy::Kind::Threads)
            .map_or("regions", |entry| entry.name);
        let mut settings = vec![format!("{of}.fault={}", self.switch_ns.max(1))];
        settings.extend(asked.settings.iter().cloned());
        let mut policy = policy::build(&asked.policy, &settings)?;
        policy.take_prices(&Arc::new(Prices {
            cost: Cost {
                move_page_ns: 0.0,
                recolor_page_ns: 0.0,
                copy_page_ns: 0.0,
                collapse_ns: 0.0,
                touch_fault_ns: self.switch_ns as f64,
                move_thread_ns: self.switch_ns as f64,
            },
            nodes: 1,
            latency_ns: vec![0.0],
            following: Following {
                switch_ns: Some(self.switch_ns),
                bounds: asked.bounds,
                just_measured: asked.bounds.is_some(),
            },
        }));
        self.interest = policy.interest();
        self.clock.touch_ns = self.interest.touch_fault_ns;
        self.policy = Some(policy);
        Ok(())
    }

    /// Runs the program to its end.
    pub fn run(mut self) -> Result<LiveFollowing, FollowingError> {
        let tick = Duration::from_nanos(self.interest.tick_ns).max(TICK_LEAST);
        let ticking = Ticking::every(tick)?;
        self.clock.begin();
        let mut next_ns = tick.as_nanos() as u64;
        let task = self.process();
        self.traced.go_on(task, On::Freely, 0)?;
        let status = loop {
            let event = match self.ended.take() {
                None => match self.traced.wait(None) {
                    Err(error) if self.left && traced::is_over(&error) => break self.traced.wait_for_end()?,
                    event => event?,
                },
                ended => ended,
            };
            match event {
                Some(Event::Ended(ended, status)) if ended == task => break status,
                Some(Event::Ended(ended, _)) => {
                    self.others.remove(&ended);
                }
                Some(Event::Stopped(task, stop)) => {
                    self.clock.stop();
                    let handled = self.stopped(task, stop);
                    self.clock.go_on();
                    // If it was killed while it was handled, its end is the next event.
                    if let Err(error) = handled
                        && !traced::has_died(&error)
                    {
                        // A program is not ended because we cannot follow it.
                        self.step_aside(&format!("it cannot be traced any more: {error}"), None)?;
                    }
                }
                None => {}
            }
            if self.clock.now_ns() >= next_ns && self.is_followed() {
                next_ns = self.clock.now_ns() + tick.as_nanos() as u64;
                self.interrupt_if_running();
            }
        };
        drop(ticking);
        Ok(self.outcome(status))
    }

    /// A thread that sleeps, or is in a system call, has touched nothing; it is left alone.
    fn interrupt_if_running(&self) {
        if self.in_call {
            return;
        }
        let found = tasks::of(&Root::default(), self.process()).unwrap_or_default();
        if found.iter().any(|task| task.number == self.process() && task.runs) {
            // It may have ended meanwhile.
            let _ = self.traced.interrupt(self.process());
        }
    }

    /// Whether the policy is asked still.
    pub(super) fn is_followed(&self) -> bool {
        self.policy.is_some()
    }

    /// The program goes on as if it had never been followed. `again`: a call that was put off is made now.
    ///
    /// Pre: the thread has left its call.
    pub(super) fn step_aside(&mut self, why: &str, again: Option<usize>) -> io::Result<()> {
        let task = self.process();
        self.closed.open_all();
        self.write_keys()?;
        self.settle()?;
        self.policy_report();
        self.policy = None;
        self.found.stepped_aside = Some(why.to_string());
        if let Some(number) = again {
            self.traced.make_call_again(task, number)?;
        }
        self.left = true;
        for thread in std::mem::take(&mut self.held) {
            self.release(thread)?;
        }
        self.traced.leave(task, 0)
    }

    /// A stopped task goes on with all pages open, where its parent could run, and is traced no more.
    pub(super) fn release(&mut self, task: u32) -> io::Result<()> {
        self.open_to(task)?;
        self.others.remove(&task);
        self.traced.leave(task, 0)
    }

    /// Opens all pages to a stopped task, and all cpus.
    pub(super) fn open_to(&self, task: u32) -> io::Result<()> {
        let closed = &self.closed;
        self.traced
            .change_rights(task, |before| closed.rights(before, 0, false))?;
        affinity::allow(Some(task), &self.home)
    }

    /// A child has its parent's rights and its cpu: it may use all keys, and run where its parent could. No page of it is closed
    /// ([`Host::open_for_fork`]).
    ///
    /// Pre: it is stopped, and has memory of its own.
    pub(super) fn open_child(&mut self, child: u32) -> io::Result<()> {
        match self.at {
            None => Ok(()),
            Some(_) => self.open_to(child),
        }
    }

    fn policy_report(&mut self) {
        if let Some(policy) = &self.policy {
            self.found.regions = policy.regions();
        }
    }

    fn outcome(mut self, status: ExitStatus) -> LiveFollowing {
        use std::os::unix::process::ExitStatusExt;
        self.policy_report();
        let signal = status.signal().map(|signal| 128 + signal);
        LiveFollowing {
            exit_code: status.code().or(signal),
            cache: self.domains.name.clone(),
            caches: self.domains.count(),
            cache_bytes: self.domains.bytes,
            move_ns: self.switch_ns,
            wall_ns: self.clock.wall_ns(),
            own_ns: sys::clock::thread_time().as_nanos() as u64,
            ..self.found
        }
    }

    /// The cpu that the stopped thread is on, by the policy's number.
    fn cpu(&self) -> u32 {
        if let Some(at) = self.at {
            return at;
        }
        let found = tasks::of(&Root::default(), self.process()).unwrap_or_default();
        let on = found.iter().find(|task| task.number == self.process());
        let known = on.and_then(|task| self.cpus.iter().position(|cpu| *cpu == task.cpu));
        known.map_or(0, |cpu| cpu as u32)
    }

    fn observe(&mut self, observe: impl FnOnce(&mut dyn Policy, &World, &mut Vec<Action>), cpu: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        self.world.now_ns = self.clock.now_ns();
        self.world.runnable.fill(0);
        self.world.runnable[cpu as usize] = 1;
        if let Some(policy) = &mut self.policy {
            observe(policy.as_mut(), &self.world, &mut actions);
        }
        actions
    }

    /// A period has passed, and the thread is stopped.
    pub(super) fn tick(&mut self) -> io::Result<()> {
        self.wide = false;
        // While nothing is closed nobody sees the program's calls.
        self.image.stale |= !self.closed.is_any();
        let (cpu, space) = (self.cpu(), self.space);
        if self.clock.now_ns() >= self.next_scan_ns {
            self.next_scan_ns = self.clock.now_ns() + self.interest.accessed_ns.max(1);
            self.image.look(&self.traced)?;
            let present = self.image.present(&self.traced)?;
            let accessed = self.moments.accessed(space, present.into_iter());
            let actions = self.observe(
                |policy, world, actions| policy.observe_accessed(&accessed, world, actions),
                cpu,
            );
            self.carry_out(&actions, cpu)?;
        }
        let tick = Observation::Tick(Tick {
            cpu,
            ran: Some(Ran { thread: THREAD, space }),
        });
        let actions = self.observe(|policy, world, actions| policy.observe(&tick, world, actions), cpu);
        self.carry_out(&actions, cpu)?;
        self.write_keys()?;
        self.settle()
    }

    /// The thread has touched a closed page.
    pub(super) fn touched(&mut self, address: usize, key: u32) -> io::Result<()> {
        let page = (address / PAGE) as u64;
        let cpu = self.cpu();
        if self.closed.of(page) >> cpu & 1 == 0 {
            // The program has moved the page, with its key.
            self.closed.doubt(page, key);
        } else {
            self.moments.touched(page);
            self.clock.touch();
            let touched = Observation::Touched(Touched {
                page: Page {
                    space: self.space,
                    number: page,
                },
                index: self.moments.index(page),
                thread: THREAD,
                cpu,
                write: false,
                nature: Nature::Data,
            });
            let actions = self.observe(|policy, world, actions| policy.observe(&touched, world, actions), cpu);
            self.carry_out(&actions, cpu)?;
            // Whatever the policy says: the program goes on.
            let at = self.at.unwrap_or(cpu);
            let closed = self.closed.of(page);
            if closed >> at & 1 == 1 {
                self.closed.set(page, closed & !(1 << at));
            }
        }
        self.write_keys()?;
        self.settle()
    }

    fn carry_out(&mut self, actions: &[Action], cpu: u32) -> io::Result<()> {
        for action in actions {
            match *action {
                Action::Close { page, cpus } => {
                    let before = self.closed.of(page.number);
                    self.closed.set(page.number, before | cpus);
                    if cpus >> cpu & 1 == 1 {
                        self.moments.closed(page.number);
                    }
                }
                Action::Open { page, cpus } => {
                    let before = self.closed.of(page.number);
                    self.closed.set(page.number, before & !cpus);
                }
                Action::MoveThread { cpu, .. } => {
                    self.keep_on(cpu)?;
                    self.found.moves += 1;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn write_keys(&mut self) -> io::Result<()> {
        if !self.closed.is_stale() {
            return Ok(());
        }
        self.image.look(&self.traced)?;
        self.image.change(&self.traced, self.traced.process(), &mut self.closed)
    }

    fn keep_on(&mut self, cpu: u32) -> io::Result<()> {
        if self.at != Some(cpu) {
            affinity::allow(Some(self.process()), &[self.cpus[cpu as usize]])?;
            self.at = Some(cpu);
        }
        Ok(())
    }

    /// Where anything is closed, the thread stays on its cpu and has the rights of that; else it runs as Linux has it.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.closed.is_any() {
            let cpu = self.cpu();
            self.keep_on(cpu)?;
            return self.set_rights(!self.wide);
        }
        self.set_rights(false)?;
        if self.at.take().is_some() {
            affinity::allow(Some(self.process()), &self.home)?;
        }
        Ok(())
    }

    pub(super) fn set_rights(&mut self, shut: bool) -> io::Result<()> {
        let cpu = self.at.unwrap_or(0);
        let wanted = (cpu, shut, self.closed.key_count());
        if self.settled == Some(wanted) {
            return Ok(());
        }
        // A thread that blocks the signal of faults would lose its handler by one (force_sig in the kernel).
        let shut = shut && !self.blocks_faults()?;
        self.shut = shut;
        let closed = &self.closed;
        self.traced
            .change_rights(self.traced.process(), |before| closed.rights(before, cpu, shut))?;
        self.settled = Some(wanted);
        Ok(())
    }

    /// Another program runs in the process: what was known of the one before is gone.
    pub(super) fn begin_image(&mut self) -> io::Result<()> {
        self.image = Image::begin(&self.traced)?;
        self.closed = Closed::default();
        self.opened = None;
        self.settled = None;
        self.moments.begin_anew();
        self.space += 1;
        self.settle()
    }
}

/// The program of a process, if it should run with the rights of another user or group: the kernel gives them to nobody who is traced.
fn with_other_rights(process: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    const SET_ID: u32 = 0o6000;
    let path = format!("/proc/{process}/exe");
    let sets = std::fs::metadata(&path).is_ok_and(|file| file.mode() & SET_ID != 0);
    let name = || std::fs::read_link(&path).unwrap_or_default();
    (sets && sys::processes::this_user() != 0).then(|| name().display().to_string())
}

/// The domains by the policy's numbers of cpus, as far as these may be used, and Linux's numbers of them.
fn numbered(domains: &[CacheDomain], allowed: &[u32]) -> (Domains, Vec<u32>) {
    let mut numbered = Domains {
        name: domains
            .iter()
            .find_map(|domain| domain.level)
            .map_or("cache".into(), |level| format!("L{level}")),
        bytes: domains.iter().filter_map(|domain| domain.bytes).min().unwrap_or(0),
        of_cpu: Vec::new(),
    };
    let mut cpus = Vec::new();
    let usable = |domain: &CacheDomain| -> Vec<u32> {
        domain
            .cpus
            .iter()
            .copied()
            .filter(|cpu| allowed.contains(cpu))
            .collect()
    };
    let usable = domains.iter().map(usable).filter(|cpus| !cpus.is_empty());
    for (number, some) in (0..).zip(usable) {
        numbered.of_cpu.extend(some.iter().map(|_| number));
        cpus.extend(some);
    }
    (numbered, cpus)
}
