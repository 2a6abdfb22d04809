//! Places by the cpusets of real control groups.

use std::collections::BTreeMap;

use live::regions::Whom;

use super::{Daemon, Machine, all_masks, host, large, until, wait};
use crate::child::{Program, pin};
use crate::group::Group;

/// The choice of each group before.
const CHOSEN: [&str; 2] = ["0-7", "0-5"];

/// Two large programs, each in a control group below one.
struct Scene {
    state: tempfile::TempDir,
    programs: Vec<Program>,
    groups: [Group; 2],
    above: Group,
    machine: Machine,
}

impl Scene {
    fn new(has_cpusets: bool) -> Option<Scene> {
        let machine = Machine::new()?;
        let above = Group::new()?;
        if has_cpusets {
            above.write("cgroup.subtree_control", "+cpuset");
        }
        let groups = ["one", "two"].map(|name| above.below(name));
        let programs = large(2);
        for ((group, chosen), program) in groups.iter().zip(CHOSEN).zip(&programs) {
            group.write("cgroup.procs", &program.id().to_string());
            if has_cpusets {
                group.write("cpuset.cpus", chosen);
            }
        }
        Some(Scene {
            state: tempfile::tempdir().unwrap(),
            programs,
            groups,
            above,
            machine,
        })
    }

    fn whom(&self) -> Whom {
        Whom::Group(self.above.folder().to_path_buf())
    }

    fn masks(&self) -> BTreeMap<u32, Vec<u32>> {
        all_masks(&self.programs)
    }

    fn chosen(&self) -> [String; 2] {
        self.groups
            .each_ref()
            .map(|group| group.read("cpuset.cpus").trim_end().to_string())
    }

    /// The cpus of two different caches, as both groups have them and both programs.
    fn placed(&self) -> Option<[String; 2]> {
        let caches = self.machine.apart(&self.programs)?;
        let lists: Vec<String> = caches.iter().map(|&cache| self.machine.domains[cache].list()).collect();
        let chosen = self.chosen();
        (lists == chosen).then_some(chosen)
    }

    fn undo(&self) -> bool {
        self.state.path().join("regions-undo.json").exists()
    }
}

#[test]
fn groups_are_placed_as_a_whole_and_have_their_own_choice_again_at_the_end() {
    let Some(scene) = Scene::new(true) else { return };
    let before = scene.masks();
    let Some(mut host) = host(scene.state.path(), scene.whom(), None) else {
        return;
    };
    until(&mut host, || scene.placed().is_some());
    // They do not count as pinned, and may still have other caches: the place stays.
    let placed = scene.placed();
    for _ in 0..8 {
        assert!(host.interval(&mut || false).unwrap());
        assert_eq!(scene.placed(), placed);
    }
    let report = host.end().unwrap();
    assert_eq!((scene.chosen(), scene.masks()), (CHOSEN.map(String::from), before));
    let whole = |note: &String| note.contains("placed as a whole, by cpuset.cpus: 2");
    assert!(report.notes.iter().any(whole), "{:?}", report.notes);
    assert!(!scene.undo());
}

#[test]
fn groups_have_their_own_choice_again_when_it_is_asked_to_end() {
    let Some(scene) = Scene::new(true) else { return };
    let before = scene.masks();
    let daemon = Daemon::start(scene.state.path(), &scene.whom(), true);
    wait(|| scene.placed().is_some());
    assert!(scene.undo());
    let said = daemon.terminate();
    assert_eq!(
        (scene.chosen(), scene.masks()),
        (CHOSEN.map(String::from), before),
        "{said}"
    );
    assert!(!scene.undo());
}

#[test]
fn groups_have_their_own_choice_again_at_the_next_start_after_a_kill_unless_their_owners_have_chosen() {
    for owner in [None, Some("4-7")] {
        let Some(scene) = Scene::new(true) else { return };
        let before = scene.masks();
        let daemon = Daemon::start(scene.state.path(), &scene.whom(), true);
        wait(|| scene.placed().is_some());
        daemon.kill();
        assert!(scene.placed().is_some() && scene.undo());
        if let Some(own) = owner {
            scene.groups[0].write("cpuset.cpus", own);
        }
        let said = Daemon::start(scene.state.path(), &scene.whom(), false).end();
        assert!(!scene.undo());
        match owner {
            None => assert_eq!(
                (scene.chosen(), scene.masks()),
                (CHOSEN.map(String::from), before),
                "{said}"
            ),
            Some(own) => assert_eq!(scene.chosen(), [own, CHOSEN[1]]),
        }
    }
}

#[test]
fn an_owner_who_pins_a_thread_within_a_group_has_the_last_word() {
    let Some(scene) = Scene::new(true) else { return };
    let mut expected = scene.masks();
    let Some(mut host) = host(scene.state.path(), scene.whom(), None) else {
        return;
    };
    until(&mut host, || scene.placed().is_some());
    let pinned = scene.programs[0].id();
    let cpu = scene.masks()[&pinned][1];
    pin(pinned, cpu);
    expected.insert(pinned, vec![cpu]);
    until(&mut host, || scene.chosen()[0] == CHOSEN[0]);
    host.end().unwrap();
    assert_eq!((scene.chosen(), scene.masks()), (CHOSEN.map(String::from), expected));
}

#[test]
fn a_group_whose_cpuset_is_empty_keeps_that_and_affinity_is_used() {
    let Some(scene) = Scene::new(true) else { return };
    let before = scene.masks();
    // A group that never had a list, as most have none.
    let fresh = scene.above.below("fresh");
    fresh.write("cgroup.procs", &scene.programs[0].id().to_string());
    let Some(mut host) = host(scene.state.path(), scene.whom(), None) else {
        return;
    };
    until(&mut host, || scene.machine.apart(&scene.programs).is_some());
    assert_eq!(fresh.read("cpuset.cpus").trim_end(), "");
    let report = host.end().unwrap();
    let said = |note: &String| note.contains("its cpuset.cpus is empty");
    assert!(report.notes.iter().any(said), "{:?}", report.notes);
    assert_eq!((scene.chosen(), scene.masks()), (CHOSEN.map(String::from), before));
    // The reason for that: where this works, the list could be given back.
    fresh.write("cpuset.cpus", "0-1");
    if let Err(error) = fresh.try_write("cpuset.cpus", "\n") {
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    scene.groups[0].write("cgroup.procs", &scene.programs[0].id().to_string());
}

#[test]
fn groups_without_cpusets_are_placed_by_affinity_and_the_result_says_so() {
    let Some(scene) = Scene::new(false) else { return };
    let before = scene.masks();
    let Some(mut host) = host(scene.state.path(), scene.whom(), None) else {
        return;
    };
    until(&mut host, || scene.machine.apart(&scene.programs).is_some());
    let report = host.end().unwrap();
    let said = |note: &String| note.contains("does not hand the controller on");
    assert!(report.notes.iter().any(said), "{:?}", report.notes);
    assert_eq!(scene.masks(), before);
}
