//! One thread that follows its data: the policy's observations, and its requests.

use std::collections::{HashMap, HashSet};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use policy::{Action, Domains, Interest, Nature, Observation, Page, Policy, Ran, Tick, Touched, World};
use results::{LiveClosing, LiveFollowing};
use sys::awake::Awake;
use sys::memory::PAGE;
use sys::traced::{Closing, Event, On, Registers, Ticking, Traced};
use sys::{Root, affinity, tasks, traced};

use super::FollowingError;
use super::clock::Clock;
use super::closed::Closed;
use super::image::Image;
use super::moments::Moments;
use super::stops::Other;

/// The thread, by the policy's number: there is one.
const THREAD: u32 = 0;
/// The policy is asked no more often than this: each time stops the program.
const WAKE_LEAST: Duration = Duration::from_millis(1);

pub struct Host {
    pub(super) traced: Traced,
    pub(super) image: Image,
    pub(super) closed: Closed,
    pub(super) moments: Moments,
    pub(super) policy: Option<Box<dyn Policy>>,
    pub(super) interest: Interest,
    pub(super) world: World,
    pub(super) domains: Domains,
    /// Linux's numbers of cpus, by the policy's.
    pub(super) cpus: Vec<u32>,
    /// The cpu that the thread is kept on.
    pub(super) at: Option<u32>,
    /// The cpus that it could run on before.
    pub(super) home: Vec<u32>,
    /// The programs that the process has run.
    pub(super) space: u32,
    pub(super) clock: Clock,
    /// Cpus that do not sleep while anything is closed.
    pub(super) awake: Option<Awake>,
    pub(super) next_tick_ns: u64,
    pub(super) next_scan_ns: u64,
    pub(super) switch_ns: u64,
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
    /// A call that was put off is about to be made: the thread must not be interrupted before.
    pub(super) again: bool,
    pub(super) aside: Option<String>,
    /// Pages that were opened for the fork that it is in, and the cpus that they were closed to.
    pub(super) opened: Option<Vec<(u64, u128)>>,
    /// It has begun another program, in the call that it is in.
    pub(super) fresh: bool,
    /// It ignores the signal of faults.
    pub(super) ignores_faults: bool,
    /// Tasks that it started: all still traced, those that stopped before their starter was known, and threads that
    /// wait until it leaves its call.
    pub(super) others: HashMap<u32, Other>,
    pub(super) early: HashSet<u32>,
    pub(super) held: Vec<u32>,
    /// Registers at the touch before, and how often they were the same.
    pub(super) last: Option<Registers>,
    pub(super) times: u32,
    /// It is no longer traced.
    pub(super) left: bool,
    /// Its end, where that came while it was handled.
    pub(super) ended: Option<Event>,
    pub(super) found: LiveFollowing,
}

impl Host {
    pub fn process(&self) -> u32 {
        self.traced.process()
    }

    /// Runs the program to its end.
    pub fn run(mut self) -> Result<LiveFollowing, FollowingError> {
        let ticking = Ticking::every(self.wake_time())?;
        let mut ran = self.ran();
        self.clock.begin(ran);
        self.next_tick_ns = self.interest.tick_ns;
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
                    if task == self.process() {
                        self.clock.stop(self.ran());
                    }
                    let handled = self.stopped(task, stop);
                    // If it was killed while it was handled, its end is the next event.
                    if let Err(error) = handled
                        && !traced::has_died(&error)
                    {
                        // The program must not end because we cannot follow it.
                        let again = self.postponed.take().filter(|_| !self.in_call);
                        self.step_aside(&format!("it cannot be followed any more: {error}"), again)?;
                    }
                }
                None => {
                    // Cpus sleep as long as the program does.
                    let before = std::mem::replace(&mut ran, self.ran());
                    self.keep_awake(ran != before);
                }
            }
            if self.is_followed() && self.is_due() {
                self.interrupt_if_running();
            }
        };
        drop(ticking);
        Ok(self.outcome(status))
    }

    /// The cpu time of the process.
    fn ran(&self) -> Duration {
        // The process has ended, and its time is no longer read.
        sys::clock::process_time(self.process()).unwrap_or_default()
    }

    /// The policy's time.
    fn now_ns(&mut self) -> u64 {
        let ran = self.ran();
        self.clock.now_ns(ran)
    }

    /// The time between checks for a due question to the policy: half the least time between
    /// questions.
    fn wake_time(&self) -> Duration {
        Duration::from_nanos(self.interest.tick_ns.min(self.interest.accessed_ns) / 2).max(WAKE_LEAST)
    }

    /// Returns whether the policy is to be told of accessed pages, or of a tick.
    pub(super) fn is_due(&mut self) -> bool {
        self.now_ns() >= self.next_scan_ns.min(self.next_tick_ns)
    }

    /// Keeps cpus from sleeping while the program runs and anything is closed.
    pub(super) fn keep_awake(&self, runs: bool) {
        if let Some(awake) = &self.awake {
            awake.keep(runs && self.closed.is_any());
        }
    }

    /// Cpus may sleep from now on, whatever is closed.
    pub(super) fn let_sleep(&mut self) {
        if let Some(awake) = self.awake.take() {
            self.found.awake_ns = awake.time().as_nanos() as u64;
        }
    }

    /// The stopped thread goes on.
    pub(super) fn resume(&mut self, on: On, signal: i32) -> io::Result<()> {
        let ran = self.ran();
        self.clock.go_on(ran);
        self.traced.go_on(self.process(), on, signal)
    }

    /// A thread that sleeps, or is in a system call, has touched nothing; it is left alone.
    fn interrupt_if_running(&self) {
        if self.in_call || self.again {
            return;
        }
        let found = tasks::of(&Root::default(), self.process()).unwrap_or_default();
        if found.iter().any(|task| task.number == self.process() && task.runs) {
            // It may have ended meanwhile.
            let _ = self.traced.interrupt(self.process());
        }
    }

    /// Returns whether the policy is asked still.
    pub(super) fn is_followed(&self) -> bool {
        self.policy.is_some()
    }

    /// The program goes on as if it had never been followed. `again`: a call that was put off is made now.
    ///
    /// Pre: the thread has left its call.
    pub(super) fn step_aside(&mut self, why: &str, again: Option<usize>) -> io::Result<()> {
        let task = self.process();
        self.closed.open_all();
        // It goes on with the pages that could be opened: to end it would be worse.
        if let Err(error) = self.write_keys().and_then(|()| self.settle())
            && traced::has_died(&error)
        {
            return Err(error);
        }
        self.policy_report();
        self.policy = None;
        self.let_sleep();
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

    /// Releases a stopped task: it goes on untraced, with all pages open, on the cpus that its parent
    /// could use.
    pub(super) fn release(&mut self, task: u32) -> io::Result<()> {
        self.open_to(task)?;
        self.others.remove(&task);
        self.traced.leave(task, 0)
    }

    /// Opens all pages to a stopped task, and all cpus.
    ///
    /// Pre: no page is shut by its protection.
    pub(super) fn open_to(&self, task: u32) -> io::Result<()> {
        let closed = &self.closed;
        if closed.means() == Closing::Keys {
            self.traced
                .change_rights(task, |before| closed.rights(before, 0, false))?;
        }
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
        self.let_sleep();
        let signal = status.signal().map(|signal| 128 + signal);
        LiveFollowing {
            exit_code: status.code().or(signal),
            cache: self.domains.name.clone(),
            caches: self.domains.count(),
            cache_bytes: self.domains.bytes,
            closed_by: match self.closed.means() {
                Closing::Keys => LiveClosing::Keys,
                Closing::Protection => LiveClosing::Mprotect,
            },
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
        self.world.now_ns = self.now_ns();
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
        let now_ns = self.now_ns();
        if now_ns >= self.next_scan_ns {
            self.next_scan_ns = now_ns + self.interest.accessed_ns.max(WAKE_LEAST.as_nanos() as u64);
            self.look()?;
            let present = self.image.present(&self.traced)?;
            let accessed = self.moments.accessed(space, present.into_iter());
            let actions = self.observe(
                |policy, world, actions| policy.observe_accessed(&accessed, world, actions),
                cpu,
            );
            self.carry_out(&actions, cpu)?;
        }
        if now_ns >= self.next_tick_ns {
            // At whole multiples, as in the simulator: phases begin and end there.
            let tick_ns = self.interest.tick_ns.max(WAKE_LEAST.as_nanos() as u64);
            self.next_tick_ns = now_ns - now_ns % tick_ns + tick_ns;
            let tick = Observation::Tick(Tick {
                cpu,
                ran: Some(Ran { thread: THREAD, space }),
            });
            let actions = self.observe(|policy, world, actions| policy.observe(&tick, world, actions), cpu);
            self.carry_out(&actions, cpu)?;
        }
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
            // The program goes on, whatever the policy decided.
            let at = self.at.unwrap_or(cpu);
            let closed = self.closed.of(page);
            if closed >> at & 1 == 1 {
                self.closed.set(page, closed & !(1 << at));
            }
            // A thread that touches page after page hardly runs when it is to be interrupted.
            if self.is_due() {
                return self.tick();
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
        self.closed.shut_to(self.at.filter(|_| self.shut));
        if !self.closed.is_stale() {
            return Ok(());
        }
        self.look()?;
        self.image.change(&self.traced, self.traced.process(), &mut self.closed)
    }

    /// Reads the mappings, if they may have changed since: not while any is shut, when the program has made no call.
    fn look(&mut self) -> io::Result<()> {
        match self.closed.has_shut() {
            true => Ok(()),
            false => {
                if self.image.look(&self.traced)? {
                    self.closed.forget_moves();
                }
                Ok(())
            }
        }
    }

    pub(super) fn keep_on(&mut self, cpu: u32) -> io::Result<()> {
        if self.at != Some(cpu) {
            affinity::allow(Some(self.process()), &[self.cpus[cpu as usize]])?;
            self.at = Some(cpu);
        }
        Ok(())
    }

    /// If any page is closed, the thread stays on its cpu with the rights of that cpu; else Linux places it.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.keep_awake(true);
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
        match closed.means() {
            Closing::Keys => self
                .traced
                .change_rights(self.traced.process(), |before| closed.rights(before, cpu, shut))?,
            Closing::Protection => self.write_keys()?,
        }
        self.settled = Some(wanted);
        Ok(())
    }

    /// Another program runs in the process: the record of the earlier one is dropped.
    pub(super) fn begin_image(&mut self) -> io::Result<()> {
        let closing = self.closed.means();
        self.image = Image::begin(&self.traced, closing)?;
        self.closed = Closed::by(closing);
        self.again = false;
        self.opened = None;
        self.settled = None;
        self.moments.begin_anew();
        self.space += 1;
        self.settle()
    }
}
