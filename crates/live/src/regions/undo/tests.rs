//! Threads on a made-up machine of four cpus that are given some of them, and get back their earlier
//! ones.

use super::*;
use crate::regions::fake::{Fake, Process, Thread};

const ALL: [u32; 4] = [0, 1, 2, 3];
const EPERM: i32 = 1;

/// A process of one thread of the same number.
fn process(number: u32) -> Process {
    Process {
        threads: BTreeMap::from([(number, Thread::on(&ALL))]),
        cpuset: ALL.to_vec(),
        ..Process::busy(number, 0)
    }
}

struct Scene {
    linux: Fake,
    undo: Undo,
    folder: tempfile::TempDir,
}

impl Scene {
    /// Processes 11 and 12.
    fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        Scene {
            linux: Fake::with([11, 12].map(|number| (number, process(number)))),
            undo: Undo::open(folder.path()).unwrap(),
            folder,
        }
    }

    fn give(&mut self, process: u32, cpus: &[u32]) {
        self.undo.give(&mut self.linux, process, cpus).unwrap().unwrap();
    }

    fn restore(&mut self, process: u32) -> u64 {
        self.undo.restore(&mut self.linux, process).unwrap()
    }

    fn restore_all(&mut self) -> u64 {
        self.undo.restore_all(&mut self.linux).unwrap()
    }

    fn change(&self, process: u32, change: impl FnOnce(&mut Process)) {
        self.linux
            .change(|world| change(world.processes.get_mut(&process).unwrap()));
    }

    /// Another owner gives a thread cpus.
    fn pin(&mut self, thread: u32, cpus: &[u32]) {
        self.linux.allow(thread, cpus).unwrap();
    }

    fn mask(&self, thread: u32) -> Vec<u32> {
        self.linux.masks()[&thread].clone()
    }

    /// A process starts another one after so many seconds.
    fn starts(&self, parent: u32, child: u32, seconds: u64) {
        self.linux.change(|world| {
            let child_of = world.processes[&parent].starts(parent, child, 10 + seconds);
            world.processes.insert(child, child_of);
        });
    }

    fn pass(&mut self, seconds: u64) {
        self.linux.sleep(std::time::Duration::from_secs(seconds));
    }

    /// A daemon that was killed is started again.
    fn kill(&mut self) {
        let other = tempfile::tempdir().unwrap();
        self.undo = Undo::open(other.path()).unwrap();
        self.undo = Undo::open(self.folder.path()).unwrap();
    }

    fn file(&self) -> bool {
        self.undo.file().exists()
    }
}

#[test]
fn a_cpuset_that_changes_meanwhile_is_used_to_the_full_afterwards() {
    let cases: [(&[u32], &[u32]); 4] = [
        // Less than before, in part or altogether; more than before; and a whole change of cpus.
        (&[1, 2, 3], &[1]),
        (&[2, 3], &[2, 3]),
        (&[0, 1, 2, 3, 4], &[0, 1]),
        (&[5, 6], &[5, 6]),
    ];
    for (cpuset, meanwhile) in cases {
        for killed in [false, true] {
            for forgets in [false, true] {
                let mut scene = Scene::new();
                scene.give(11, &[0, 1]);
                let change = if forgets {
                    Process::moves_and_forgets
                } else {
                    Process::moves_to
                };
                scene.change(11, |process| change(process, cpuset));
                let meanwhile = if forgets { cpuset } else { meanwhile };
                assert_eq!(scene.mask(11), meanwhile);
                if killed {
                    scene.kill();
                    scene.undo.recover(&mut scene.linux.clone()).unwrap();
                } else {
                    scene.restore_all();
                }
                assert_eq!(scene.mask(11), cpuset, "{killed} {forgets}");
                // A cpuset that comes back as it was is used to the full, too.
                scene.change(11, |process| process.moves_to(&ALL));
                assert_eq!(scene.mask(11), ALL, "{cpuset:?} {killed} {forgets}");
                assert!(!scene.file());
            }
        }
    }
}

#[test]
fn an_owner_who_chooses_after_a_change_of_the_cpuset_has_the_last_word() {
    let mut scene = Scene::new();
    scene.give(11, &[0, 1]);
    scene.change(11, |process| process.moves_to(&[1, 2, 3]));
    scene.pin(11, &[3]);
    assert_eq!(scene.restore(11), 0);
    assert_eq!(scene.mask(11), [3]);
}

#[test]
fn a_process_that_a_placed_one_has_started_is_free_again() {
    let mut scene = Scene::new();
    scene.give(11, &[0, 1]);
    scene.starts(11, 21, 1);
    scene.starts(21, 31, 2);
    scene.undo.free(&mut scene.linux).unwrap();
    assert_eq!(
        [scene.mask(11), scene.mask(21), scene.mask(31)],
        [vec![0, 1], ALL.to_vec(), ALL.to_vec()]
    );
    // Also one that was not seen before the undo, or before its parent moves.
    scene.starts(11, 22, 3);
    scene.give(11, &[2, 3]);
    assert_eq!([scene.mask(11), scene.mask(22)], [vec![2, 3], ALL.to_vec()]);
    scene.starts(11, 23, 4);
    assert_eq!(scene.restore(11), 2);
    assert_eq!([scene.mask(11), scene.mask(23)], [ALL, ALL]);
}

#[test]
fn a_process_that_a_placed_one_has_started_is_free_again_after_a_kill() {
    let mut scene = Scene::new();
    scene.give(11, &[0, 1]);
    scene.starts(11, 21, 1);
    scene.starts(21, 31, 2);
    scene.kill();
    scene.undo.recover(&mut scene.linux).unwrap();
    assert_eq!([scene.mask(11), scene.mask(21), scene.mask(31)], [ALL, ALL, ALL]);
}

#[test]
fn an_owner_s_pin_to_the_same_cpus_stays() {
    let mut scene = Scene::new();
    // A child that was there before, and one that was started meanwhile; a thread; another process.
    scene.starts(11, 21, 0);
    scene.pass(5);
    scene.give(11, &[0, 1]);
    scene.give(12, &[2, 3]);
    scene.starts(11, 22, 6);
    scene.pin(21, &[0, 1]);
    scene.pin(22, &[2, 3]);
    scene.pin(12, &[0, 1]);
    scene.undo.free(&mut scene.linux).unwrap();
    scene.restore_all();
    let pinned = [scene.mask(21), scene.mask(22), scene.mask(12)];
    assert_eq!(pinned, [[0, 1], [2, 3], [0, 1]]);
    assert_eq!(scene.mask(11), ALL);
}

#[test]
fn a_thread_that_cannot_have_its_cpus_again_is_kept_and_tried_again() {
    let mut scene = Scene::new();
    scene.give(11, &[0, 1]);
    scene.give(12, &[0, 1]);
    scene.starts(12, 22, 1);
    for process in [11, 22] {
        scene.change(process, |process| process.refuses = Some(EPERM));
    }
    assert_eq!((scene.restore(11), scene.restore(12)), (0, 1));
    let stuck = |scene: &Scene| scene.undo.stuck().map(|stuck| stuck.thread).collect::<Vec<u32>>();
    assert_eq!(stuck(&scene), [11, 22]);
    assert!(scene.undo.stuck().all(|stuck| stuck.why.contains("not permitted")));
    // The end tries again, and so does the next start, which reads them from the file.
    assert_eq!(scene.restore_all(), 0);
    assert!(scene.file());
    scene.change(11, |process| process.refuses = None);
    scene.kill();
    assert_eq!(scene.undo.recover(&mut scene.linux.clone()).unwrap(), 1);
    assert_eq!((scene.mask(11), stuck(&scene)), (ALL.to_vec(), vec![22]));
    assert!(scene.file());
    scene.change(22, |process| process.refuses = None);
    assert_eq!(scene.restore_all(), 1);
    assert_eq!((scene.mask(22), stuck(&scene)), (ALL.to_vec(), vec![]));
    assert!(!scene.file());
    // A thread that has ended needs no undo.
    scene.give(11, &[0, 1]);
    scene.change(11, |process| process.refuses = Some(EPERM));
    scene.restore(11);
    scene.linux.change(|world| world.processes.remove(&11));
    scene.restore_all();
    assert!(!scene.file() && stuck(&scene).is_empty());
}

#[test]
fn a_file_that_was_cut_off_says_so_and_stays_as_it_is() {
    let mut scene = Scene::new();
    scene.give(11, &[0, 1]);
    let whole = fs::read(scene.undo.file()).unwrap();
    let strange = String::from_utf8(whole.clone()).unwrap().replace("\"0-1\"", "\"0-x\"");
    for text in [&whole[..whole.len() / 2], &[], strange.as_bytes()] {
        fs::write(scene.undo.file(), text).unwrap();
        scene.kill();
        let error = scene.undo.recover(&mut scene.linux.clone()).unwrap_err();
        let (said, path) = (error.to_string(), scene.undo.file());
        let path = path.display();
        assert!(matches!(error, RegionsError::Damaged { .. }), "{said}");
        assert!(
            said.contains(&format!("mv '{path}' '{path}.old'")) && said.contains("taskset"),
            "{said}"
        );
        assert_eq!(
            (fs::read(scene.undo.file()).unwrap().as_slice(), scene.mask(11)),
            (text, vec![0, 1])
        );
    }
    // The file cannot be read at all.
    fs::remove_file(scene.undo.file()).unwrap();
    fs::create_dir(scene.undo.file()).unwrap();
    let error = scene.undo.recover(&mut scene.linux.clone()).unwrap_err();
    assert!(matches!(error, RegionsError::Unread { .. }), "{error}");
    // The kept record is still of use.
    fs::remove_dir(scene.undo.file()).unwrap();
    fs::write(scene.undo.file(), whole).unwrap();
    assert_eq!(scene.undo.recover(&mut scene.linux.clone()).unwrap(), 1);
    assert_eq!(scene.mask(11), ALL);
}
