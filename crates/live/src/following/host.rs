//! One thread that follows its data: what the policy is told, and what it asks for.

use std::collections::{HashMap, HashSet};
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use policy::{
    Action, Cost, Domains, Following, Interest, Nature, Observation, Page, Policy, Prices, Ran, Tick, Touched, World,
};
use results::{LiveClosing, LiveFollowing};
use sys::awake::Awake;
use sys::memory::PAGE;
use sys::traced::{Closing, Event, On, Registers, Ticking, Traced};
use sys::{Root, affinity, tasks, traced};

use super::clock::Clock;
use super::closed::Closed;
use super::image::Image;
use super::moments::Moments;
use super::stops::Other;
use super::{Asked, FollowingError};

/// The thread, by the policy's number: there is one.
const THREAD: u32 = 0;
/// A policy's tick is no shorter than this: each stops the program.
const TICK_LEAST: Duration = Duration::from_millis(1);

/// From one phase to the next, in us: four times as long as in the paper.
const PERIOD_US: u64 = 4_000_000;

/// Per mille of that time that a phase takes here.
///
/// A touch of a closed page takes tens of microseconds instead of one or two. In the paper's hundredth of a second a phase would see a
/// hundred pages, and find no region. This one touches each page that can be in all caches some times over, as regions join step by step,
/// and begins where an eighth of it may pass in touches; `regions.cost` bounds the time of all phases.
fn share(domains: &Domains, touch_ns: u64) -> u64 {
    const TOUCHES: u64 = 24;
    let pages = u64::from(domains.count()) * domains.bytes / PAGE as u64;
    let phase_ns = (TOUCHES * pages).saturating_mul(touch_ns);
    phase_ns.div_ceil(PERIOD_US).clamp(10, 1000)
}

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
    /// Where it could run before.
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
    /// A call that was put off is about to be made: the thread is not to be interrupted before.
    pub(super) again: bool,
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
    pub fn process(&self) -> u32 {
        self.traced.process()
    }

    /// The policy, with what a move takes here.
    pub fn decide_by(&mut self, asked: &Asked) -> Result<(), FollowingError> {
        // The policy takes the time of touches out of what it sees; the user's word on it goes first.
        let of = asked
            .policy
            .of(policy::Kind::Threads)
            .map_or("regions", |entry| entry.name);
        let mut settings = vec![
            format!("{of}.fault={}", self.switch_ns.max(1)),
            format!("{of}.period={PERIOD_US}"),
            format!("{of}.share={}", share(&self.domains, self.switch_ns)),
        ];
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
        let tick = self.tick_time();
        let ticking = Ticking::every(tick)?;
        self.clock.begin(self.ran());
        self.next_tick_ns = tick.as_nanos() as u64;
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
                    self.clock.stop(self.ran());
                    let handled = self.stopped(task, stop);
                    self.clock.go_on(self.ran());
                    // If it was killed while it was handled, its end is the next event.
                    if let Err(error) = handled
                        && !traced::has_died(&error)
                    {
                        // A program is not ended because we cannot follow it.
                        let again = self.postponed.take().filter(|_| !self.in_call);
                        self.step_aside(&format!("it cannot be followed any more: {error}"), again)?;
                    }
                }
                None => {}
            }
            if self.is_followed() && self.now_ns() >= self.next_tick_ns {
                self.interrupt_if_running();
            }
        };
        drop(ticking);
        Ok(self.outcome(status))
    }

    /// What the process has had of a cpu.
    fn ran(&self) -> Duration {
        // It has ended, and is not asked of any more.
        sys::clock::process_time(self.process()).unwrap_or_default()
    }

    /// The policy's time.
    fn now_ns(&mut self) -> u64 {
        let ran = self.ran();
        self.clock.now_ns(ran)
    }

    fn tick_time(&self) -> Duration {
        Duration::from_nanos(self.interest.tick_ns).max(TICK_LEAST)
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
        // It goes on with what could be opened: to end it would be worse.
        if let Err(error) = self.write_keys().and_then(|()| self.settle())
            && traced::has_died(&error)
        {
            return Err(error);
        }
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
            kept_awake: self.awake.as_ref().map_or(0, Awake::count),
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
        self.next_tick_ns = now_ns + self.tick_time().as_nanos() as u64;
        if now_ns >= self.next_scan_ns {
            self.next_scan_ns = now_ns + self.interest.accessed_ns.max(1);
            self.look()?;
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
            // A thread that touches page after page hardly runs when it is to be interrupted.
            if self.now_ns() >= self.next_tick_ns {
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
            false => self.image.look(&self.traced),
        }
    }

    pub(super) fn keep_on(&mut self, cpu: u32) -> io::Result<()> {
        if self.at != Some(cpu) {
            affinity::allow(Some(self.process()), &[self.cpus[cpu as usize]])?;
            self.at = Some(cpu);
        }
        Ok(())
    }

    /// Where anything is closed, the thread stays on its cpu and has the rights of that; else it runs as Linux has it.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if let Some(awake) = &self.awake {
            awake.keep(self.closed.is_any());
        }
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

    /// Another program runs in the process: what was known of the one before is gone.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_as_long_as_touches_take() {
        let domains = |bytes| Domains {
            bytes,
            of_cpu: vec![0, 1],
            ..Domains::none(2)
        };
        // 1024 pages, 24 times 80 us each: 1.97 of 4 s; and what a touch takes in the simulator.
        assert_eq!(share(&domains(2 << 20), 80_000), 492);
        assert_eq!(share(&domains(2 << 20), 1_500), 10);
        assert_eq!(share(&domains(16 << 10), 80_000), 10);
        assert_eq!(share(&domains(1 << 30), 80_000), 1000);
    }
}
