//! A worker on each cache, and the calls that ship work to them.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use policy::regions::conditions::{Bounds, by_size};
use results::RegionsVerdict;
use sys::cache_domains::{CacheDomain, DomainsError};
use sys::cpus::CPU_NUMBER_MAX;
use sys::{affinity, cache_domains, forks};

use crate::account::{Account, Counts, Inline};
use crate::cost::{self, Cost};
use crate::home::Home;
use crate::job::hand_over;
use crate::trial::Trial;
use crate::worker::{Outside, Worker};

/// How long a worker, or a caller, polls before it sleeps: twice the stays that pay (up to half a millisecond, Lee12,
/// figure 9). Waking a thread takes tens of microseconds in a virtual machine, which would cost more than the caches
/// save.
const SPIN: Duration = Duration::from_millis(1);
/// Work that is too short is tried again, once in this many calls: it may be longer by now.
const TRIED: u64 = 64;

/// The workers could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("the caches cannot be read: {0}")]
    Caches(#[from] DomainsError),
    #[error("a worker cannot be started: {0}")]
    Worker(#[from] io::Error),
}

/// One worker for each cache that the process may use.
pub struct Caches {
    domains: Vec<CacheDomain>,
    /// The cache of each cpu.
    of_cpu: Vec<Option<u32>>,
    /// Empty if there is only one cache.
    workers: Vec<Arc<Worker>>,
    threads: Vec<JoinHandle<()>>,
    loads: Arc<[AtomicU64]>,
    counts: Counts,
    cost: Cost,
    trial: Trial,
    /// The number of forks in the process's history when the workers were started.
    generation: u64,
}

thread_local! {
    /// The worker that this thread is, and its cache.
    static WORKER: RefCell<Option<(Arc<Worker>, u32)>> = const { RefCell::new(None) };
    /// The nesting depth of shipped work on this thread.
    static WITHIN: Cell<u32> = const { Cell::new(0) };
}

impl Caches {
    /// The outermost caches of which the machine has several, as far as this thread may use their cpus. With only one,
    /// all work runs inline.
    pub fn start() -> Result<Caches, StartError> {
        Caches::with(cache_domains::usable()?)
    }

    /// The same for given caches; their cpus are not checked.
    pub fn with(domains: Vec<CacheDomain>) -> Result<Caches, StartError> {
        forks::count()?;
        let mut all = domains.iter().flat_map(|domain| &domain.cpus);
        if let Some(cpu) = all.find(|cpu| **cpu > CPU_NUMBER_MAX) {
            return Err(io::Error::other(format!("there is no cpu {cpu}")).into());
        }
        let cpus = domains
            .iter()
            .flat_map(|domain| &domain.cpus)
            .max()
            .map_or(0, |last| last + 1);
        let mut of_cpu = vec![None; cpus as usize];
        for (cache, domain) in (0..).zip(&domains) {
            domain.cpus.iter().for_each(|&cpu| of_cpu[cpu as usize] = Some(cache));
        }
        let mut caches = Caches {
            of_cpu,
            workers: Vec::new(),
            threads: Vec::new(),
            loads: (0..domains.len().max(1)).map(|_| AtomicU64::new(0)).collect(),
            counts: Counts::default(),
            cost: Cost::default(),
            trial: Trial::default(),
            generation: forks::generation(),
            domains,
        };
        if caches.domains.len() > 1 {
            for cache in 0..caches.domains.len() as u32 {
                caches.hire(cache)?;
            }
            let other = caches.other();
            caches.cost = cost::measured(|| caches.hand(other, || ()), 2 * SPIN);
        }
        Ok(caches)
    }

    fn hire(&mut self, cache: u32) -> io::Result<()> {
        let worker = Arc::new(Worker::default());
        let cpus = self.domains[cache as usize].cpus.clone();
        let own = Arc::clone(&worker);
        let run = move || {
            // If the kernel refuses, the worker runs anywhere: slower, but correct.
            let _ = affinity::allow(None, &cpus);
            WORKER.replace(Some((Arc::clone(&own), cache)));
            own.run(SPIN);
        };
        let builder = std::thread::Builder::new()
            .name(format!("cache-{cache}"))
            .stack_size(stack());
        // The program's signal handlers run on its own threads, except those of faults: work runs here.
        let _held = sys::signals::Held::but_faults();
        self.threads.push(builder.spawn(run)?);
        while !worker.is_known() {
            std::thread::yield_now();
        }
        self.workers.push(worker);
        Ok(())
    }

    /// The caches, by number.
    pub fn domains(&self) -> &[CacheDomain] {
        &self.domains
    }

    /// The cost of a hand-over; 0 with one cache.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    pub fn account(&self) -> Account {
        self.counts.account()
    }

    /// Assigns data of this many bytes to the cache with the least data so far.
    pub fn home(&self, bytes: u64) -> Home {
        Home::new(bytes, &self.loads)
    }

    /// Runs `work` at the cache of its data and waits for it. Returns its value, and propagates its panic.
    ///
    /// If shipping cannot pay, `work` runs on this thread: the [`Account`] says why.
    pub fn ship<Value: Send>(&self, home: &Home, work: impl FnOnce() -> Value + Send) -> Value {
        assert!(
            home.is_of(&self.loads),
            "a home is of the caches that gave it: ask these for one"
        );
        let (number, is_timed) = home.called();
        let work = || {
            let _within = Within::begin();
            let began = is_timed.then(Instant::now);
            let value = work();
            if let Some(began) = began {
                home.took(began.elapsed());
            }
            value
        };
        if let Some(why) = self.inline(home, number) {
            self.counts.inline(why);
            return work();
        }
        // Work at its caller's cache is also timed: it waits for data that others bring there.
        let way = match WITHIN.get() {
            0 => self.trial.begins(),
            _ => self.trial.within(),
        };
        let began = way.is_timed().then(Instant::now);
        let why = match self.here() {
            Some(here) if here == home.cache => Some(Inline::Here),
            _ => way.stays.then_some(Inline::NoGain),
        };
        let value = match why {
            Some(why) => {
                self.counts.inline(why);
                work()
            }
            None => {
                self.counts.shipped();
                self.hand(home.cache, work)
            }
        };
        if let Some(began) = began {
            self.trial.took(way, began.elapsed());
        }
        value
    }

    /// Why work cannot, or by the rules should not, be shipped. `number`: the home's earlier calls.
    fn inline(&self, home: &Home, number: u64) -> Option<Inline> {
        if self.workers.len() < 2 {
            return Some(Inline::OneCache);
        }
        if forks::generation() != self.generation {
            return Some(Inline::Forked);
        }
        if WORKER.with_borrow(|known| known.as_ref().is_some_and(|(worker, _)| worker.is_deep())) {
            return Some(Inline::Nested);
        }
        let bounds = Bounds::by_rule(self.cost.awake_ns);
        if let Some(why) = self.by_size(&bounds) {
            return Some(why);
        }
        let is_short = |least: u64| home.mean_ns().is_some_and(|mean| mean < least);
        let pays = !is_short(bounds.stay_least_ns) && (!self.sleeps(home, is_short) || home.comes_often(SPIN));
        (!pays && !number.is_multiple_of(TRIED)).then_some(Inline::TooShort)
    }

    /// Returns true if a worker would have to be woken for work that is too short for that. Waking takes longer than a
    /// hand-over to a polling worker; only the first of frequent calls pays for it.
    fn sleeps(&self, home: &Home, is_short: impl Fn(u64) -> bool) -> bool {
        self.workers[home.cache as usize].is_asleep() && is_short(Bounds::by_rule(self.cost.asleep_ns).stay_least_ns)
    }

    /// Why all data is too little or too much for several caches. None if a cache's size is unknown.
    fn by_size(&self, bounds: &Bounds) -> Option<Inline> {
        let sizes = || self.domains.iter().map(|domain| domain.bytes);
        let (least, whole) = sizes().try_fold((u64::MAX, 0u64), |(least, whole), bytes| {
            Some((least.min(bytes?), whole.saturating_add(bytes?)))
        })?;
        let loads = self.loads.iter().map(|load| load.load(Ordering::Relaxed));
        let all = loads.fold(0, u64::saturating_add);
        match by_size(all, least, self.domains.len() as u32, bounds)? {
            RegionsVerdict::FitsOneCache => Some(Inline::FitsOneCache),
            // Caches may differ in size.
            RegionsVerdict::FitsNoCaches if all > whole => Some(Inline::FitsNoCaches),
            _ => None,
        }
    }

    /// The cache that this thread is at.
    fn here(&self) -> Option<u32> {
        let own = WORKER.with_borrow(|known| {
            let (worker, cache) = known.as_ref()?;
            let is_ours = self
                .workers
                .get(*cache as usize)
                .is_some_and(|of| Arc::ptr_eq(of, worker));
            is_ours.then_some(*cache)
        });
        own.or_else(|| self.of_cpu.get(affinity::here()).copied().flatten())
    }

    /// A cache other than the caller's.
    fn other(&self) -> u32 {
        let here = self.here();
        (0..self.domains.len() as u32)
            .find(|cache| Some(*cache) != here)
            .unwrap_or(0)
    }

    fn hand<Value: Send>(&self, cache: u32, work: impl FnOnce() -> Value + Send) -> Value {
        let worker = &self.workers[cache as usize];
        // A worker of other caches serves, too: its own callers may be waiting.
        match WORKER.with_borrow(|known| known.as_ref().map(|(own, _)| Arc::clone(own))) {
            Some(own) => hand_over(work, |errand| worker.hand(errand), SPIN, &*own),
            None => hand_over(work, |errand| worker.hand(errand), SPIN, &Outside),
        }
    }
}

/// Marks that shipped work runs on a thread.
struct Within;

impl Within {
    fn begin() -> Within {
        WITHIN.set(WITHIN.get() + 1);
        Within
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(WITHIN.get() - 1);
    }
}

/// The stack size of a worker: that of a program's first thread, since work runs on either.
fn stack() -> usize {
    const USUAL: u64 = 8 << 20;
    const MOST: u64 = 1 << 30;
    let limit = sys::processes::stack_limit().unwrap_or(USUAL);
    limit.clamp(USUAL / 4, MOST) as usize
}

impl Drop for Caches {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if forks::generation() != self.generation {
            // A child of fork does not have these threads: waiting for them would take for ever.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        self.workers.iter().for_each(|worker| worker.end());
        let is_own = WORKER.with_borrow(|known| {
            let own = known.as_ref();
            own.is_some_and(|(own, _)| self.workers.iter().any(|worker| Arc::ptr_eq(worker, own)))
        });
        if is_own {
            // Work that ends the program runs its exit handlers here: a thread that waited for itself would wait for
            // ever.
            threads.into_iter().for_each(std::mem::forget);
            return;
        }
        for thread in threads {
            let _ = thread.join();
        }
    }
}
