//! The host on a made-up machine of two private caches.

use std::io::Write;
use std::sync::{Arc, Mutex};

use results::LiveRegions;

mod grouped;

use super::super::fake::{Fake, Process, Thread};
use super::super::replay::{ReplayError, replay};
use super::*;

const MIB: u64 = 1 << 20;

/// Two large working sets and two small ones.
fn four() -> Fake {
    let sizes = [(11, MIB), (12, MIB), (13, MIB / 64), (14, MIB / 64)];
    Fake::with(sizes.map(|(number, bytes)| (number, Process::busy(number, bytes))))
}

/// The log, for the test to read.
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

struct Room {
    folder: tempfile::TempDir,
    config: Config,
    whom: Whom,
    log: Shared,
}

impl Room {
    fn new() -> Room {
        Room {
            folder: tempfile::tempdir().unwrap(),
            config: Config {
                interval: Duration::from_secs(1),
                duration: None,
                preferred: None,
                acts: true,
                progress: None,
            },
            whom: Whom::User(0),
            log: Shared::default(),
        }
    }

    fn host(&self, fake: &Fake) -> Host<Fake> {
        self.host_of(fake, Fake::domains())
    }

    fn host_of(&self, fake: &Fake, domains: Vec<CacheDomain>) -> Host<Fake> {
        let undo = Undo::open(self.folder.path()).unwrap();
        let whom = self.whom.clone();
        let log: Box<dyn Write + Send> = Box::new(self.log.clone());
        let config = self.config.clone();
        Host::new(fake.clone(), domains, fake.choice(), config, whom, undo, Some(log)).unwrap()
    }

    fn run(&self, fake: &Fake, intervals: usize) -> Host<Fake> {
        let mut host = self.host(fake);
        go(&mut host, intervals);
        host
    }

    fn has_undo(&self) -> bool {
        self.folder.path().join("regions-undo.json").exists()
    }

    fn text(&self) -> Vec<u8> {
        self.log.0.lock().unwrap().clone()
    }
}

fn go(host: &mut Host<Fake>, intervals: usize) {
    for _ in 0..intervals {
        host.interval(&mut || false).unwrap();
    }
}

fn domains(report: &LiveRegions) -> Vec<Option<Vec<u32>>> {
    report.processes.iter().map(|process| process.domains.clone()).collect()
}

#[test]
fn large_ones_are_paired_with_small_ones_and_all_is_as_before_at_the_end() {
    let (fake, room) = (four(), Room::new());
    let before = fake.masks();
    let mut host = room.run(&fake, 2);
    assert_eq!(fake.masks(), before, "nothing is decided by one or two readings");
    go(&mut host, 3);
    let masks = fake.masks();
    assert!(masks.values().all(|mask| mask.len() == 1), "{masks:?}");
    assert!(masks[&11] != masks[&12] && masks[&13] != masks[&14]);
    assert!(room.has_undo());
    let changes = fake.change(|world| world.changes);
    go(&mut host, 20);
    assert_eq!(fake.change(|world| world.changes), changes, "what is right stays");
    let report = host.end().unwrap();
    assert_eq!(fake.masks(), before);
    assert!(!room.has_undo());
    assert_eq!(
        (report.restored_threads, report.actions_count, report.acted),
        (4, 4, true)
    );
    assert!(report.fullest_after_bytes < report.fullest_before_bytes);
    assert!(
        !report.verified && report.notes[0].contains("the gain was not verified"),
        "{:?}",
        report.notes
    );
}

#[test]
fn one_odd_reading_decides_nothing() {
    let (fake, room) = (four(), Room::new());
    let mut host = room.run(&fake, 4);
    let masks = fake.masks();
    go(&mut host, 10);
    fake.change(|world| world.processes.get_mut(&13).unwrap().bytes = 64 * MIB);
    go(&mut host, 1);
    fake.change(|world| world.processes.get_mut(&13).unwrap().bytes = MIB / 64);
    go(&mut host, 10);
    assert_eq!(fake.masks(), masks);
    // A change that lasts decides.
    fake.change(|world| {
        world.processes.get_mut(&11).unwrap().bytes = MIB / 64;
        world.processes.get_mut(&13).unwrap().bytes = MIB;
        world.processes.get_mut(&12).unwrap().bytes = MIB;
    });
    go(&mut host, 10);
    let masks = fake.masks();
    assert!(masks[&12] != masks[&13], "{masks:?}");
    host.end().unwrap();
}

#[test]
fn a_dry_run_changes_nothing_and_ends_when_it_has_something_to_say() {
    let (fake, mut room) = (four(), Room::new());
    room.config.acts = false;
    let before = fake.masks();
    let mut host = room.host(&fake);
    host.run(|| false).unwrap();
    let report = host.end().unwrap();
    assert_eq!((report.acted, report.actions.len(), report.intervals), (false, 4, 3));
    assert!(domains(&report).iter().all(Option::is_some));
    assert_eq!((fake.masks(), fake.change(|world| world.changes)), (before, 0));
    assert!(!room.has_undo());
}

#[test]
fn after_a_kill_the_next_start_restores_those_that_are_still_the_same() {
    let (fake, room) = (four(), Room::new());
    let before = fake.masks();
    let host = room.run(&fake, 4);
    // As after a kill, no code of it runs; the lock goes with the process.
    drop(host);
    assert!(room.has_undo() && fake.masks() != before);
    fake.change(|world| {
        // Another process with the number of one that has ended.
        let other = world.processes.get_mut(&12).unwrap();
        other.threads.get_mut(&12).unwrap().began = 99;
        // A thread and a process that began later, and inherited.
        let process = world.processes.get_mut(&11).unwrap();
        let later = process.threads[&11].starts(50);
        process.threads.insert(111, later);
        let child = process.starts(11, 21, 50);
        world.processes.insert(21, child);
        // Its owner has pinned this thread since.
        world.processes.get_mut(&14).unwrap().threads.get_mut(&14).unwrap().mask = vec![0, 1, 5];
    });
    let left = fake.masks();
    let host = room.host(&fake);
    let masks = fake.masks();
    for thread in [11, 111, 13, 21] {
        assert_eq!(masks[&thread], [0, 1], "{thread}");
    }
    assert_eq!((&masks[&12], &masks[&14]), (&left[&12], &left[&14]));
    assert!(!room.has_undo());
    assert_eq!(host.end().unwrap().recovered_threads, 4);
}

#[test]
fn two_at_a_time_are_refused() {
    let room = Room::new();
    let undo = Undo::open(room.folder.path()).unwrap();
    assert!(matches!(Undo::open(room.folder.path()), Err(RegionsError::Busy(_))));
    drop(undo);
    Undo::open(room.folder.path()).unwrap();
}

#[test]
fn who_is_pinned_idle_or_refused_is_left_alone_and_says_so() {
    let (fake, room) = (four(), Room::new());
    fake.change(|world| {
        world.processes.get_mut(&11).unwrap().threads.get_mut(&11).unwrap().mask = vec![1];
        world.processes.get_mut(&12).unwrap().refuses = Some(1);
        let mut idle = Process::busy(15, MIB);
        idle.busy = 0;
        world.processes.insert(15, idle);
    });
    let before = fake.masks();
    let host = room.run(&fake, 12);
    let masks = fake.masks();
    for thread in [11, 12, 15] {
        assert_eq!(masks[&thread], before[&thread], "{thread}");
    }
    let report = host.end().unwrap();
    let why = |number: u32| {
        let mut all = report.processes.iter();
        all.find(|process| process.process == number)
            .unwrap()
            .why
            .clone()
            .unwrap_or_default()
    };
    assert_eq!(why(11), "its owner has pinned it to cpus 1");
    assert!(why(12).starts_with("it cannot be placed: "), "{}", why(12));
    assert_eq!(why(15), "it is idle");
    assert_eq!(fake.masks(), before);
}

#[test]
fn an_owner_who_pins_later_has_the_last_word() {
    let (fake, room) = (four(), Room::new());
    let mut host = room.run(&fake, 5);
    let other = |mask: &Vec<u32>| vec![1 - mask[0]];
    let chosen = other(&fake.masks()[&11]);
    fake.change(|world| {
        let process = world.processes.get_mut(&11).unwrap();
        process.threads.insert(111, Thread::on(&[0, 1]));
        process.cpuset = vec![0, 1, 2];
        process.threads.get_mut(&11).unwrap().mask = vec![2];
    });
    go(&mut host, 8);
    assert_eq!(fake.masks()[&11], [2], "{chosen:?}");
    host.end().unwrap();
    assert_eq!(fake.masks()[&11], [2]);
}

#[test]
fn a_change_after_which_less_is_done_is_undone_and_not_repeated() {
    let (fake, mut room) = (four(), Room::new());
    room.config.progress = Some("progress".into());
    fake.change(|world| (world.units, world.pace) = (Some(0.0), 100.0));
    let before = fake.masks();
    let mut host = room.host(&fake);
    while fake.masks() == before {
        go(&mut host, 1);
    }
    fake.change(|world| world.pace = 90.0);
    go(&mut host, 10);
    assert_eq!(fake.masks(), before);
    go(&mut host, 30);
    assert_eq!(fake.masks(), before);
    let report = host.end().unwrap();
    assert_eq!(
        (report.trials.len(), report.trials[0].undone, report.verified),
        (1, true, false)
    );
    // A change that gains stays.
    let fake = four();
    fake.change(|world| (world.units, world.pace) = (Some(0.0), 100.0));
    let mut host = room.host(&fake);
    while fake.masks() == before {
        go(&mut host, 1);
    }
    fake.change(|world| world.pace = 120.0);
    go(&mut host, 30);
    assert!(fake.masks() != before);
    let report = host.end().unwrap();
    assert_eq!(
        (report.trials.len(), report.trials[0].undone, report.verified),
        (1, false, true)
    );
    assert_eq!(fake.masks(), before);
    same_again(&room.text());
}

#[test]
fn where_no_progress_is_told_instructions_judge() {
    let (fake, room) = (four(), Room::new());
    let pace = |pace| fake.change(|world| world.processes.values_mut().for_each(|process| process.pace = pace));
    pace(1000);
    let before = fake.masks();
    let mut host = room.host(&fake);
    while fake.masks() == before {
        go(&mut host, 1);
    }
    pace(900);
    go(&mut host, 40);
    assert_eq!(fake.masks(), before, "it was undone and not tried again");
    let report = host.end().unwrap();
    assert_eq!(
        (report.trials.len(), report.trials[0].undone, report.verified),
        (1, true, false)
    );
    assert_eq!(report.measure, Some(results::PairingMeasure::Instructions));
    assert!((report.trials[0].after_ns / report.trials[0].before_ns - 1.0 / 0.9).abs() < 0.01);
    same_again(&room.text());
    // A dry run changes nothing, and so counts nothing.
    let mut room = Room::new();
    room.config.acts = false;
    let report = room.run(&fake, 6).end().unwrap();
    assert_eq!(report.measure, None);
    assert!(!String::from_utf8(room.text()).unwrap().contains("counted"));
}

fn same_again(log: &[u8]) {
    // Two runs are in it, each with its beginning.
    let second = log
        .split(|&byte| byte == b'\n')
        .enumerate()
        .filter(|(_, line)| line.starts_with(b"{\"is\":\"begins\""));
    let starts: Vec<usize> = second.map(|(at, _)| at).collect();
    let lines: Vec<&[u8]> = log.split(|&byte| byte == b'\n').collect();
    for (at, &start) in starts.iter().enumerate() {
        let end = starts.get(at + 1).copied().unwrap_or(lines.len());
        let text = lines[start..end].join(&b'\n');
        let replayed = replay(&text[..]).unwrap();
        assert!(!replayed.before.is_empty());
        assert_eq!(replayed.before, replayed.now);
    }
}

#[test]
fn a_log_gives_the_same_actions_again() {
    let (fake, room) = (four(), Room::new());
    let mut host = room.run(&fake, 8);
    fake.change(|world| {
        world.processes.remove(&13);
        world.processes.get_mut(&12).unwrap().bytes = 3 * MIB;
        world.processes.insert(16, Process::busy(16, 2 * MIB));
        world.processes.insert(17, Process::busy(17, MIB / 2));
    });
    go(&mut host, 20);
    host.end().unwrap();
    let log = room.text();
    same_again(&log);
    // A log that says otherwise is found out.
    let text = String::from_utf8(log).unwrap();
    let changed = text.replace("\"bytes\":1048576", "\"bytes\":1024");
    let replayed = replay(changed.as_bytes()).unwrap();
    assert!(replayed.before != replayed.now);
    assert!(matches!(replay(&b""[..]), Err(ReplayError::Beginning)));
    let other = text.replace("\"version\":1", "\"version\":9");
    assert!(matches!(replay(other.as_bytes()), Err(ReplayError::Version(9))));
    let strange = text.replace("\"cpus\":[1,1]", "\"cpus\":[1]");
    assert!(matches!(
        replay(strange.as_bytes()),
        Err(ReplayError::Domains(_) | ReplayError::Unread(..))
    ));
}

#[test]
fn a_preferred_program_has_a_cache_of_its_own() {
    let (fake, mut room) = (four(), Room::new());
    room.config.preferred = Some("server".to_string());
    fake.change(|world| world.processes.get_mut(&12).unwrap().name = "server".to_string());
    let host = room.run(&fake, 5);
    let masks = fake.masks();
    assert!(
        [11, 13, 14]
            .iter()
            .all(|other| masks[other] != masks[&12] && masks[other].len() == 1),
        "{masks:?}"
    );
    host.end().unwrap();
}

#[test]
fn a_process_that_is_not_watched_is_not_placed_with_its_parent() {
    let (fake, mut room) = (four(), Room::new());
    room.whom = Whom::Processes(vec![11, 12, 13, 14]);
    let mut host = room.run(&fake, 5);
    fake.change(|world| {
        let child = world.processes[&11].starts(11, 21, 15);
        world.processes.insert(21, child);
    });
    assert_eq!(fake.masks()[&21].len(), 1);
    go(&mut host, 1);
    assert_eq!((fake.masks()[&11].len(), &fake.masks()[&21]), (1, &vec![0, 1]));
    host.end().unwrap();
}

#[test]
fn a_cpuset_that_changes_is_no_choice_of_an_owner() {
    let (fake, mut room) = (four(), Room::new());
    room.config.preferred = Some("server".to_string());
    fake.change(|world| {
        for process in world.processes.values_mut() {
            process
                .threads
                .values_mut()
                .for_each(|thread| thread.mask = vec![0, 1, 2, 3]);
            process.cpuset = vec![0, 1, 2, 3];
        }
        world.processes.get_mut(&11).unwrap().name = "server".to_string();
    });
    let mut host = room.host_of(&fake, Fake::domains_of(&[&[0, 1], &[2, 3]]));
    go(&mut host, 5);
    let masks = fake.masks();
    assert_eq!([&masks[&11], &masks[&12]], [&[0, 1], &[2, 3]]);
    fake.change(|world| world.processes.get_mut(&11).unwrap().moves_to(&[1, 2, 3]));
    go(&mut host, 10);
    assert_eq!(fake.masks()[&11], [1]);
    let report = host.end().unwrap();
    assert!(
        report.processes.iter().all(|process| process.domains.is_some()),
        "{:?}",
        report.processes
    );
    assert_eq!(fake.masks()[&11], [1, 2, 3]);
}

#[test]
fn threads_that_stay_confined_are_named_in_the_report() {
    let (fake, room) = (four(), Room::new());
    let host = room.run(&fake, 5);
    fake.change(|world| world.processes.get_mut(&11).unwrap().refuses = Some(1));
    let report = host.end().unwrap();
    assert_eq!(report.restored_threads, 3);
    let note = report
        .notes
        .iter()
        .find(|note| note.contains("thread 11 of process 11: "));
    let file = room.folder.path().join("regions-undo.json");
    assert!(
        note.unwrap().contains(&file.display().to_string()),
        "{:?}",
        report.notes
    );
    fake.change(|world| world.processes.get_mut(&11).unwrap().refuses = None);
    assert_eq!(room.host(&fake).end().unwrap().recovered_threads, 1);
    assert_eq!(fake.masks()[&11], [0, 1]);
    assert!(!room.has_undo());
}

#[test]
fn a_working_set_that_cannot_be_read_for_once_is_read_again() {
    let fail: [fn(&mut Process, bool); 2] = [
        |process, fails| process.no_begin = fails,
        |process, fails| process.no_look = fails,
    ];
    for fail in fail {
        let (fake, room) = (four(), Room::new());
        let set = |fails| fake.change(|world| fail(world.processes.get_mut(&11).unwrap(), fails));
        let mut host = room.run(&fake, 5);
        let masks = fake.masks();
        let changes = fake.change(|world| world.changes);
        set(true);
        go(&mut host, 2);
        assert_eq!((fake.masks(), fake.change(|world| world.changes)), (masks, changes));
        // The process is left alone as long as it cannot be read.
        go(&mut host, 10);
        assert_eq!(fake.masks()[&11], [0, 1]);
        set(false);
        go(&mut host, 10);
        assert_eq!(fake.masks()[&11].len(), 1);
        let report = host.end().unwrap();
        assert!(
            report.processes.iter().all(|process| process.why.is_none()),
            "{:?}",
            report.processes
        );
        let mut notes = report.notes.iter();
        let note = notes.find(|note| note.contains("could not be read: 12;")).unwrap();
        assert!(note.contains("process 11 (memlat): no room to"), "{note}");
        same_again(&room.text());
    }
}

#[test]
fn a_working_set_that_was_never_read_decides_nothing() {
    let (fake, room) = (four(), Room::new());
    fake.change(|world| world.processes.get_mut(&11).unwrap().no_look = true);
    let report = room.run(&fake, 8).end().unwrap();
    let process = report.processes.iter().find(|process| process.process == 11).unwrap();
    assert_eq!(
        (&process.domains, process.why.as_deref()),
        (&None, Some("its working set cannot be read: no room to look"))
    );
}

#[test]
fn a_program_that_takes_the_place_of_another_counts_by_its_own_name() {
    let (fake, mut room) = (four(), Room::new());
    room.config.preferred = Some("server".to_string());
    let mut host = room.run(&fake, 5);
    fake.change(|world| world.processes.get_mut(&12).unwrap().name = "server".to_string());
    go(&mut host, 10);
    let masks = fake.masks();
    assert!([11, 13, 14].iter().all(|other| masks[other] != masks[&12]), "{masks:?}");
    let report = host.end().unwrap();
    let named = report.processes.iter().find(|process| process.process == 12);
    assert_eq!(named.unwrap().name, "server");
    same_again(&room.text());
    // A process chosen by name is released by name.
    let fake = four();
    room.whom = Whom::Name("memlat".to_string());
    let mut host = room.run(&fake, 5);
    assert_eq!(fake.masks()[&12].len(), 1);
    fake.change(|world| world.processes.get_mut(&12).unwrap().name = "other".to_string());
    go(&mut host, 1);
    assert_eq!(fake.masks()[&12], [0, 1]);
    host.end().unwrap();
}
