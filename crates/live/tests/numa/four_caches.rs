//! Real processes paired with four caches of two cpus each, as `domicile daemon --regions` does it.
//!
//! The decisions need no luck: as long as nobody has a place, they reckon with the worst that the kernel may do.

mod daemon;
mod groups;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use live::regions::{CacheDomain, Config, Here, Host, Undo, Whom, find, prepare, replay};
use sys::{Root, cpusets, tasks};

use crate::ALONE;
use crate::child::Program;
use crate::group::Group;
use daemon::Daemon;

/// Two of them do not fit into a cache of 16 MiB.
const LARGE: usize = 3072;
const SMALL: usize = 64;
const INTERVAL: Duration = Duration::from_millis(300);
/// More than an emulated machine needs for anything here.
const PATIENCE: Duration = Duration::from_secs(120);

struct Machine {
    domains: Vec<CacheDomain>,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    fn new() -> Option<Machine> {
        let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let domains = find(&Root::default()).unwrap_or_default();
        let fit = |domain: &CacheDomain| domain.cpus.len() == 2 && domain.bytes == Some(16 << 20);
        if domains.len() != 4 || !domains.iter().all(fit) {
            harness::not_here("the machine has not four caches of 16 MiB with two cpus each");
            return None;
        }
        Some(Machine { domains, _alone: alone })
    }

    /// The cache that has all of these cpus, if one has.
    fn cache(&self, cpus: &[u32]) -> Option<usize> {
        let has = |domain: &CacheDomain| cpus.iter().all(|cpu| domain.cpus.contains(cpu));
        self.domains.iter().position(has)
    }

    /// The caches to which all threads of each program are kept; none unless each program has one to itself.
    fn apart(&self, programs: &[Program]) -> Option<Vec<usize>> {
        let cache = |program| {
            let masks = masks(program);
            let mut caches = masks.values().map(|mask| self.cache(mask));
            let first = caches.next()??;
            caches.all(|cache| cache == Some(first)).then_some(first)
        };
        let caches: Vec<usize> = programs.iter().map(cache).collect::<Option<_>>()?;
        let mut different = caches.clone();
        different.sort_unstable();
        different.dedup();
        (different.len() == caches.len()).then_some(caches)
    }
}

/// A program of two threads, of which one writes to so many pages again and again.
fn striding(pages: usize) -> Program {
    let mut program = Program::start();
    program.say(&format!("stride {pages}"));
    program
}

fn large(count: usize) -> Vec<Program> {
    (0..count).map(|_| striding(LARGE)).collect()
}

/// The cpus of each thread.
fn masks(program: &Program) -> BTreeMap<u32, Vec<u32>> {
    let root = Root::default();
    let threads = tasks::demand(&root, program.id()).unwrap();
    let mask = |thread: u32| tasks::thread_mask(&root, program.id(), thread).unwrap();
    threads
        .iter()
        .map(|thread| (thread.number, mask(thread.number)))
        .collect()
}

fn all_masks(programs: &[Program]) -> BTreeMap<u32, Vec<u32>> {
    programs.iter().flat_map(masks).collect()
}

fn numbers(programs: &[Program]) -> Vec<u32> {
    programs.iter().map(Program::id).collect()
}

fn config() -> Config {
    Config {
        interval: INTERVAL,
        duration: None,
        preferred: None,
        acts: true,
        progress: None,
    }
}

/// A host in this process; `None` if the kernel does not say which pages are touched.
fn host(state: &Path, whom: Whom, log: Option<std::fs::File>) -> Option<Host<Here>> {
    let prepared = match prepare(config(), None, Some("referenced")) {
        Ok(prepared) => prepared,
        Err(error) => {
            harness::not_here(error);
            return None;
        }
    };
    let log = log.map(|file| Box::new(file) as _);
    Some(prepared.watch(whom, Undo::open(state).unwrap(), log).unwrap())
}

/// Runs intervals until the condition holds.
fn until(host: &mut Host<Here>, mut wanted: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !wanted() {
        assert!(host.interval(&mut || false).unwrap(), "nobody is left");
        assert!(begun.elapsed() < PATIENCE, "it does not come to that");
    }
}

/// Waits until the condition holds.
fn wait(mut wanted: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !wanted() {
        assert!(begun.elapsed() < PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn large_working_sets_get_different_caches_and_masks_are_as_before_at_the_end() {
    let Some(machine) = Machine::new() else { return };
    let (large, small) = (large(4), [(); 4].map(|()| striding(SMALL)));
    let before = (all_masks(&large), all_masks(&small));
    let state = tempfile::tempdir().unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let whom = Whom::Processes([numbers(&large), numbers(&small)].concat());
    let Some(mut host) = host(state.path(), whom, Some(log.reopen().unwrap())) else {
        return;
    };
    until(&mut host, || machine.apart(&large).is_some());
    // Each small one is beside a large one.
    until(&mut host, || machine.apart(&small).is_some());
    let report = host.end().unwrap();
    assert_eq!((all_masks(&large), all_masks(&small)), before);
    assert!(report.fullest_after_bytes < report.fullest_before_bytes, "{report:?}");
    assert!(report.acted && report.restored_threads >= (before.0.len() + before.1.len()) as u64);
    let replayed = replay(std::fs::read(log.path()).unwrap().as_slice()).unwrap();
    assert_eq!(replayed.before, replayed.now);
    println!("{:?}", report.domains);
}

#[test]
fn who_is_in_a_cpuset_stays_in_it() {
    let Some(machine) = Machine::new() else { return };
    let (Some(two), Some(one)) = (Group::new(), Group::new()) else {
        return;
    };
    let cpus = |domain: usize| machine.domains[domain].cpus.clone();
    // A part of the first cache and the whole second one; and the third one alone.
    let allowed = [&cpus(0)[..1], &cpus(1)].concat();
    two.write("cpuset.cpus", &sys::cpus::list(&allowed));
    one.write("cpuset.cpus", &sys::cpus::list(&cpus(2)));
    let (inside, outside, held) = (large(2), large(1), large(1));
    inside
        .iter()
        .for_each(|program| two.write("cgroup.procs", &program.id().to_string()));
    one.write("cgroup.procs", &held[0].id().to_string());
    assert_eq!(cpusets::of(&Root::default(), inside[0].id()).unwrap(), allowed);
    let all = [&inside, &outside, &held];
    let before = all.map(|programs| all_masks(programs));
    let state = tempfile::tempdir().unwrap();
    let whom = Whom::Processes(all.map(|programs| numbers(programs)).concat());
    let Some(mut host) = host(state.path(), whom, None) else {
        return;
    };
    until(&mut host, || {
        let within = |mask: &Vec<u32>| mask.iter().all(|cpu| allowed.contains(cpu));
        assert!(all_masks(&inside).values().all(within));
        assert_eq!(all_masks(&held), before[2]);
        // The third cache has a large working set already.
        let apart = machine.apart(&inside).zip(machine.apart(&outside));
        apart.is_some_and(|(_, outside)| outside == [3])
    });
    let report = host.end().unwrap();
    assert_eq!(all.map(|programs| all_masks(programs)), before);
    let said = report.processes.iter().find(|process| process.process == held[0].id());
    let why = said.unwrap().why.as_deref();
    assert_eq!(why, Some("it may use the cpus of one domain only"));
}

#[test]
fn masks_are_as_before_when_it_is_asked_to_end() {
    let Some(machine) = Machine::new() else { return };
    let mut programs = large(2);
    let before = all_masks(&programs);
    let state = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(state.path(), &Whom::Processes(numbers(&programs)), true);
    wait(|| machine.apart(&programs).is_some());
    assert!(state.path().join("regions-undo.json").exists());
    // A thread that begins meanwhile inherits the cpus.
    programs[0].say("stride 1");
    let said = daemon.terminate();
    let after = all_masks(&programs);
    let whole = &before[&programs[0].id()];
    assert!(
        after.len() == before.len() + 1 && after.values().all(|mask| mask == whole),
        "{after:?}"
    );
    assert!(said["restored_threads"].as_u64() >= Some(after.len() as u64), "{said}");
    assert!(!state.path().join("regions-undo.json").exists());
}

#[test]
fn masks_are_as_before_at_the_next_start_after_a_kill() {
    let Some(machine) = Machine::new() else { return };
    let programs = large(2);
    let before = all_masks(&programs);
    let state = tempfile::tempdir().unwrap();
    let whom = Whom::Processes(numbers(&programs));
    let daemon = Daemon::start(state.path(), &whom, true);
    wait(|| machine.apart(&programs).is_some());
    daemon.kill();
    assert!(machine.apart(&programs).is_some() && state.path().join("regions-undo.json").exists());
    // A dry run: it only restores the state left behind.
    let said = Daemon::start(state.path(), &whom, false).end();
    assert_eq!(all_masks(&programs), before);
    assert_eq!(said["recovered_threads"], before.len());
    assert!(!state.path().join("regions-undo.json").exists());
}
