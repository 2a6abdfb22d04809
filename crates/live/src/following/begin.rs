//! A program that is about to follow its data: it is started, stopped before its first instruction, and a move is measured in it.

use std::collections::{HashMap, HashSet};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use policy::{Domains, Interest, World};
use results::LiveFollowing;
use sys::awake::Awake;
use sys::cache_domains::CacheDomain;
use sys::memory::PAGE;
use sys::traced::{Closing, Traced};
use sys::{affinity, protection_keys};

use super::FollowingError;
use super::clock::Clock;
use super::closed::Closed;
use super::host::Host;
use super::image::Image;
use super::moments::Moments;

/// The number of moves that are measured, each way.
const MOVES: usize = 64;

impl Host {
    /// Starts a command, stops it before its first instruction, and measures the time of a move.
    pub fn begin(
        command: Command,
        domains: &[CacheDomain],
        closing: Option<Closing>,
        awake: bool,
    ) -> Result<Host, FollowingError> {
        let closing = match (closing, protection_keys::try_key()) {
            (Some(Closing::Keys), Err(error)) => return Err(FollowingError::NoKeys(error)),
            (Some(closing), _) => closing,
            (None, Ok(_)) => Closing::Keys,
            (None, Err(_)) => Closing::Protection,
        };
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
        // The policy sends threads to a cpu of each cache, the first where all are free.
        let first = (0..domains.count()).filter_map(|cache| domains.cpus(cache).next());
        let first: Vec<u32> = first.map(|cpu| cpus[cpu as usize]).collect();
        // Moves take longer if cpus cannot be kept awake, and that is all.
        let awake = || awake.then(|| Awake::begin(&first).ok()).flatten();
        let mut host = Host {
            awake: awake(),
            image: Image::begin(&traced, closing)?,
            closed: Closed::by(closing),
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
            next_tick_ns: 0,
            next_scan_ns: 0,
            switch_ns: 0,
            shut: false,
            settled: None,
            in_call: false,
            wide: false,
            call: 0,
            arguments: [0; 2],
            postponed: None,
            again: false,
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
        // Their time is counted from here.
        host.awake = awake();
        host.found.kept_awake = host.awake.as_ref().map_or(0, Awake::count);
        Ok(host)
    }

    /// Ends the program before its first instruction.
    pub fn end_before_it_runs(self) -> Result<u64, FollowingError> {
        self.traced.end()?;
        Ok(self.switch_ns)
    }

    /// Has the thread go from cache to cache, by touches of two pages of ours.
    fn measure_move(&mut self) -> Result<(), FollowingError> {
        let task = self.process();
        // Pages of ours are spared as a rule.
        self.image.look_at_all(&self.traced)?;
        let pages = self.image.borrowed.touched().map(|span| (span.start / PAGE) as u64);
        let all = u128::MAX >> (128 - self.cpus.len().clamp(1, 128));
        for (cache, page) in (0..).zip(pages) {
            self.closed.set(page, all & !self.domains.mask(cache));
        }
        let first = self.domains.cpus(0).next().unwrap_or(0);
        self.keep_on(first)?;
        self.closed.shut_to(Some(first));
        self.image.change(&self.traced, task, &mut self.closed)?;
        // Code of ours that touches pages lets faults through, even if the program blocks their
        // signals.
        self.shut = true;
        if self.closed.means() == Closing::Keys {
            let closed = &self.closed;
            self.traced
                .change_rights(task, |before| closed.rights(before, first, true))?;
        }
        if let Some(awake) = &self.awake {
            awake.keep(true);
        }
        self.switch_ns = self.measure_touches(pages, true)?.0;
        let around_ns = self.measure_touches(pages, false)?.1;
        self.clock.measured(around_ns);
        self.closed.open_all();
        self.image.change(&self.traced, task, &mut self.closed)?;
        self.settle()?;
        Ok(())
    }

    /// Touches two pages of ours in turn, each closed at its touch. Returns the time of one touch, and the kernel's
    /// part of the thread's time in it, in ns. The thread moves to the page's cache, or only its pages change as if it
    /// did.
    fn measure_touches(&mut self, pages: [u64; 2], moves: bool) -> Result<(u64, u64), FollowingError> {
        let task = self.process();
        let begun = Instant::now();
        let ran = || sys::clock::process_time(task);
        let begun_ran = ran()?;
        let Host {
            traced,
            image: Image { borrowed, layout, .. },
            domains,
            closed,
            cpus,
            ..
        } = self;
        let mut ours = Duration::ZERO;
        let mut stops = 0;
        borrowed.touch(traced, task, MOVES, |address| {
            stops += 1;
            let stopped = ran()?;
            let page = (address / PAGE) as u64;
            let cache = u32::from(page == pages[1]);
            let at = domains.cpus(cache).next().unwrap_or(0);
            if moves {
                affinity::allow(Some(task), &[cpus[at as usize]])?;
            }
            match closed.means() {
                Closing::Keys => traced.change_rights(task, |before| closed.rights(before, at, true))?,
                Closing::Protection => {
                    closed.shut_to(Some(at));
                    let ranges = closed.changes(layout, |_, _| true, || Ok(None))?;
                    borrowed.change(traced, task, &ranges)?;
                }
            }
            ours += ran()?.saturating_sub(stopped);
            Ok(())
        })?;
        // The first time, the thread begins where the first page is open.
        if !(2 * MOVES - 1..=2 * MOVES).contains(&stops) {
            return Err(FollowingError::Stops(stops));
        }
        let each = |time: Duration| time.as_nanos() as u64 / stops as u64;
        let kernel = ran()?.saturating_sub(begun_ran).saturating_sub(ours);
        Ok((each(begun.elapsed()), each(kernel)))
    }
}

/// The program of a process, if it should run with the rights of another user or group: the kernel gives them to no
/// traced process.
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
