//! The host on a made-up machine, with a source that gives preset answers.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::sync::{Arc, Mutex};

use results::LiveHomes;
use sys::memory::{PAGE, Span};

use super::super::fake::{Fake, Process};
use super::super::replay::replay;
use super::super::sources::{Scale, Source, Touched};
use super::*;

const PID: u32 = 9;
const INTERVAL: Duration = Duration::from_secs(1);

/// The pages that each process touches at each look; then it has ended.
#[derive(Default)]
struct Told(HashMap<u32, VecDeque<Vec<Touched>>>);

impl Source for Told {
    fn name(&self) -> &'static str {
        "told"
    }
    fn counts(&self) -> String {
        "a word".to_string()
    }
    fn scale(&self) -> Scale {
        Scale::Looks(10)
    }
    fn begin(&mut self, process: u32) -> Result<(), Lost> {
        match self.0.contains_key(&process) {
            true => Ok(()),
            false => Err(Lost::Refused("it is not mine".to_string())),
        }
    }
    fn look(&mut self, process: u32) -> Result<Vec<Touched>, Lost> {
        self.0.get_mut(&process).and_then(VecDeque::pop_front).ok_or(Lost::Gone)
    }
    fn end(&mut self, process: u32) {
        self.0.remove(&process);
    }
}

/// A log that is read while it is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn touched(pages: std::ops::Range<usize>, counts: u32) -> Touched {
    Touched {
        span: Span::new(pages.start * PAGE, pages.len() * PAGE),
        counts,
        by: None,
        write: None,
    }
}

struct Scene {
    linux: Fake,
    looks: HashMap<u32, VecDeque<Vec<Touched>>>,
    config: Config,
    whom: Whom,
    log: Shared,
}

impl Scene {
    fn new(process: Process, looks: Vec<Vec<Touched>>) -> Scene {
        Scene {
            linux: Fake {
                processes: [(PID, process)].into(),
                ..Fake::default()
            },
            looks: [(PID, looks.into())].into(),
            config: Config {
                interval: INTERVAL,
                ..Config::new("migrate".parse().unwrap())
            },
            whom: Whom::Processes(vec![PID]),
            log: Shared::default(),
        }
    }

    fn host(self) -> Host<Fake> {
        let layout = Layout::new(&[(0, vec![0, 1]), (1, vec![2, 3])], false);
        let choice = Choice {
            source: Box::new(Told(self.looks)),
            others: vec![("better".to_string(), "it is not here".to_string())],
        };
        let log = Log::new(Some(Box::new(self.log)));
        Host::new(self.linux, layout, choice, self.config, self.whom, log).unwrap()
    }

    /// Runs to the end; the machine as it is then is left out, for it is the host's.
    fn report(self) -> LiveHomes {
        let log = self.log.clone();
        let mut host = self.host();
        host.run(|| false).unwrap();
        let report = host.report().unwrap();
        // A fresh policy always makes the same requests.
        let replayed = replay(&log.0.lock().unwrap()[..]).unwrap();
        assert_eq!(replayed.before, replayed.now);
        all_are_accounted_for(&report);
        report
    }
}

/// Every request was carried out, or there is a reason.
fn all_are_accounted_for(report: &LiveHomes) {
    let failed: u64 = report.moves.failed.iter().map(|failed| failed.pages).sum();
    assert_eq!(report.moves.asked, report.moves.moved + failed);
}

fn failed(report: &LiveHomes, part: &str) -> u64 {
    let of = report.moves.failed.iter().filter(|failed| failed.why.contains(part));
    of.map(|failed| failed.pages).sum()
}

#[test]
fn pages_follow_who_uses_them_and_come_back_with_it() {
    let mut scene = Scene::new(Process::on(0, 100, &[2]), vec![vec![touched(0..100, 10)]; 6]);
    scene.config.settings = vec!["migrate.moves=1".to_string()];
    let mut host = scene.host();
    for _ in 0..2 {
        assert!(host.interval(&mut || false).unwrap());
    }
    assert_eq!(host.linux.processes[&PID].on_node(1), 100);
    host.linux.processes.get_mut(&PID).unwrap().tasks[0].cpu = 1;
    // The interval in which it changed its node looks shared; in the next one it does not.
    for _ in 0..3 {
        assert!(host.interval(&mut || false).unwrap());
    }
    assert_eq!(host.linux.processes[&PID].on_node(0), 100);
    let report = host.report().unwrap();
    assert_eq!((report.moves.moved, report.processes[0].pages_moved), (200, 200));
    assert_eq!(report.intervals[0].local_percent(), Some(0.0));
    assert_eq!(report.intervals[1].local_percent(), Some(100.0));
    assert_eq!(report.intervals[4].local_percent(), Some(100.0));
    assert_eq!(
        report.settings,
        ["migrate.sample=26", "migrate.reset=1000000", "migrate.moves=1"]
    );
    assert_eq!(report.other_sources[0].name, "better");
}

#[test]
fn what_is_seldom_touched_or_shared_stays() {
    let looks = vec![vec![touched(0..50, 4), touched(50..100, 5)]; 3];
    let report = Scene::new(Process::on(0, 100, &[3]), looks.clone()).report();
    assert_eq!(report.moves.moved, 50);
    let report = Scene::new(Process::on(0, 100, &[0, 3]), looks.clone()).report();
    assert_eq!((report.moves.asked, report.samples.shared), (0, 3 * 2 * 50 * 9));
    let mut scene = Scene::new(Process::on(0, 100, &[0, 3]), looks);
    scene.config.policy = "migrate-replicate".parse().unwrap();
    let report = scene.report();
    assert_eq!(report.moves.moved, 0);
    assert!(report.moves.copies_not_made >= 50, "{:?}", report.moves);
}

#[test]
fn what_the_kernel_or_the_program_forbids_is_counted_by_reason() {
    let looks = vec![vec![touched(0..100, 10)]; 1];
    let mut process = Process::on(0, 100, &[2]);
    process.allowed = vec![0];
    let report = Scene::new(process, looks.clone()).report();
    assert_eq!((report.moves.asked, failed(&report, "cpuset")), (100, 100));
    let mut process = Process::on(0, 100, &[2]);
    process.fails = Some(1);
    let report = Scene::new(process, looks.clone()).report();
    assert_eq!((report.moves.moved, failed(&report, "EPERM")), (0, 100));
    let mut scene = Scene::new(Process::on(0, 100, &[2]), looks);
    scene.linux.free = [(0, 1000), (1, 0)].into();
    let report = scene.report();
    // A node without memory is not even asked for.
    assert_eq!(report.moves.asked, 0);
}

#[test]
fn a_process_that_ends_in_the_middle_is_left_and_others_go_on() {
    let mut scene = Scene::new(Process::on(0, 8000, &[2]), vec![vec![touched(0..8000, 10)]; 3]);
    scene.linux.ends = Some((PID, 1));
    scene.linux.processes.insert(10, Process::on(0, 10, &[3]));
    scene.looks.insert(10, vec![vec![touched(0..10, 10)]; 4].into());
    scene.linux.processes.insert(11, Process::on(0, 10, &[3]));
    scene.whom = Whom::Processes(vec![PID, 10, 11, 12]);
    let report = scene.report();
    assert_eq!((report.moves.moved, failed(&report, "ESRCH")), (2048 + 10, 5952));
    let ended: Vec<_> = report
        .processes
        .iter()
        .map(|process| (process.process, process.ended.as_deref()))
        .collect();
    assert_eq!(
        ended,
        [
            (PID, Some("it has ended")),
            (10, Some("it has ended")),
            (11, Some("it is not mine"))
        ]
    );
}

#[test]
fn moves_that_there_was_no_time_for_come_first_the_next_time() {
    let mut scene = Scene::new(
        Process::on(0, 8000, &[2]),
        vec![vec![touched(0..8000, 10)], vec![], vec![]],
    );
    scene.linux.call_takes = INTERVAL;
    let mut host = scene.host();
    host.interval(&mut || false).unwrap();
    assert_eq!(host.linux.processes[&PID].on_node(1), 2048);
    host.interval(&mut || false).unwrap();
    assert_eq!(host.linux.processes[&PID].on_node(1), 4096);
    let report = host.report().unwrap();
    assert_eq!((report.moves.moved, failed(&report, "ESRCH")), (4096, 0));
    assert_eq!(failed(&report, "no time"), 3904);
    all_are_accounted_for(&report);
}

#[test]
fn it_stops_when_it_is_told_to_or_its_time_is_up() {
    let endless = || Scene::new(Process::on(0, 4, &[2]), vec![vec![touched(0..4, 1)]; 1000]);
    let mut host = endless().host();
    let mut asked = 0;
    host.run(|| {
        asked += 1;
        asked > 100
    })
    .unwrap();
    assert!(host.report().unwrap().intervals.len() < 100);
    let mut scene = endless();
    scene.config.duration = Some(INTERVAL * 5);
    assert_eq!(scene.report().intervals.len(), 5);
}

#[test]
fn a_group_is_waited_for_and_new_processes_join() {
    let mut scene = Scene::new(Process::on(0, 4, &[2]), vec![vec![touched(0..4, 10)]; 9]);
    scene.looks.insert(10, vec![vec![touched(0..4, 10)]; 9].into());
    scene.whom = Whom::Group("/sys/fs/cgroup/x".into());
    let first = scene.linux.processes.remove(&PID).unwrap();
    let mut host = scene.host();
    assert!(host.interval(&mut || false).unwrap());
    host.linux.processes.insert(PID, first);
    assert!(host.interval(&mut || false).unwrap());
    host.linux.processes.insert(10, Process::on(0, 4, &[2]));
    for _ in 0..2 {
        assert!(host.interval(&mut || false).unwrap());
    }
    let report = host.report().unwrap();
    assert_eq!(report.processes.len(), 2);
    assert_eq!(report.moves.moved, 8);
    assert!(report.processes.iter().all(|process| process.ended.is_none()));
}

#[test]
fn a_machine_of_one_node_is_refused() {
    let scene = Scene::new(Process::on(0, 1, &[0]), vec![]);
    let choice = Choice {
        source: Box::new(Told::default()),
        others: Vec::new(),
    };
    let layout = Layout::new(&[(0, vec![0])], false);
    let host = Host::new(scene.linux, layout, choice, scene.config, scene.whom, Log::new(None));
    assert!(matches!(host.err(), Some(HomesError::OneNode)));
}
