//! Places by the cpusets of control groups.

use std::path::{Path, PathBuf};

use super::super::super::fake::Group;
use super::*;

const ALL: &str = "/groups";

fn folder(group: u32) -> PathBuf {
    Path::new(ALL).join(group.to_string())
}

/// Two large and two small ones, each in the group of this number; what is chosen for each group.
fn grouped(groups: [u32; 4], chosen: &str) -> (Fake, Room) {
    let (fake, mut room) = (four(), Room::new());
    room.whom = Whom::Group(ALL.into());
    fake.change(|world| {
        for (process, group) in world.processes.values_mut().zip(groups) {
            process.group = Some(folder(group));
        }
        for group in groups {
            world.groups.insert(folder(group), Group::of(&[0, 1]));
            world.choose(&folder(group), chosen);
        }
    });
    (fake, room)
}

/// The cpus that are chosen for each group.
fn chosen(fake: &Fake) -> Vec<String> {
    fake.change(|world| world.groups.values().map(|group| group.cpuset.cpus.clone()).collect())
}

/// Threads whose cpus were asked for by affinity.
fn asked(fake: &Fake) -> usize {
    fake.change(|world| {
        let threads = world.processes.values().flat_map(|process| process.threads.values());
        threads.filter(|thread| thread.was_asked()).count()
    })
}

fn note(report: &LiveRegions, part: &str) -> bool {
    let count = report.notes.iter().filter(|note| note.contains(part)).count();
    assert!(count < 2, "{:?}", report.notes);
    count == 1
}

#[test]
fn groups_of_one_process_get_cpus_and_their_own_choice_again_at_the_end_and_after_a_kill() {
    for before in ["0-1", "0-3"] {
        for killed in [false, true] {
            let (fake, room) = grouped([1, 2, 3, 4], before);
            let masks = fake.masks();
            let mut host = room.run(&fake, 5);
            let given = chosen(&fake);
            assert!(
                given.iter().all(|cpus| ["0", "1"].contains(&cpus.as_str())),
                "{given:?}"
            );
            assert!(given[0] != given[1] && given[2] != given[3]);
            assert!(fake.masks().values().all(|mask| mask.len() == 1));
            assert_eq!(asked(&fake), 0);
            assert!(room.has_undo());
            // Correct places stay, and the processes may still have the other cache.
            let changes = fake.change(|world| world.changes);
            go(&mut host, 20);
            assert_eq!(fake.change(|world| world.changes), changes);
            let report = match killed {
                false => host.end().unwrap(),
                true => {
                    drop(host);
                    assert_eq!(chosen(&fake), given);
                    let report = room.host(&fake).end().unwrap();
                    assert_eq!(report.recovered_threads, 4);
                    report
                }
            };
            assert!(
                killed || note(&report, "placed as a whole, by cpuset.cpus: 4"),
                "{report:?}"
            );
            assert_eq!((chosen(&fake), fake.masks()), (vec![before.to_string(); 4], masks));
            assert!(!room.has_undo());
        }
    }
}

#[test]
fn an_owner_who_chooses_for_a_group_has_the_last_word() {
    for (looks, killed) in [(0, false), (0, true), (10, false)] {
        let (fake, room) = grouped([1, 2, 3, 4], "0-1");
        let mut host = room.run(&fake, 5);
        let own = chosen(&fake)[0].clone();
        let other = if own == "0" { "1" } else { "0" };
        fake.change(|world| world.choose(&folder(1), other));
        go(&mut host, looks);
        assert_eq!(chosen(&fake)[0], other);
        match killed {
            true => drop(host),
            false => assert!(note(&host.end().unwrap(), "its owner has chosen") == (looks > 0)),
        }
        room.host(&fake).end().unwrap();
        assert_eq!(chosen(&fake), [other, "0-1", "0-1", "0-1"]);
        let mask = fake.masks()[&11].clone();
        assert_eq!(sys::cpus::list(&mask), other);
        assert!(!room.has_undo());
    }
}

#[test]
fn without_a_cpuset_that_can_be_written_affinity_is_used_and_said_once() {
    for (obstacle, part) in [
        (0, "does not hand the controller on"),
        (1, "may not be written"),
        (2, "its cpus are its own partition"),
        (3, "in no group below it of version 2"),
        (4, "its cpuset.cpus is empty"),
    ] {
        let (fake, room) = grouped([1, 2, 3, 4], "0-1");
        fake.change(|world| match obstacle {
            0 => world.groups.clear(),
            1 => world.groups.values_mut().for_each(|group| group.open = false),
            2 => (world.groups.values_mut())
                .for_each(|group| group.cpuset.obstacle = Some("its cpus are its own partition")),
            3 => world.processes.values_mut().for_each(|process| process.group = None),
            _ => (1..=4).for_each(|group| world.choose(&folder(group), "")),
        });
        let before = fake.masks();
        let host = room.run(&fake, 5);
        assert_eq!(asked(&fake), 4);
        assert!(fake.masks().values().all(|mask| mask.len() == 1));
        let report = host.end().unwrap();
        assert!(
            note(&report, part) && !note(&report, "as a whole"),
            "{:?}",
            report.notes
        );
        assert_eq!(fake.masks(), before);
    }
}

#[test]
fn processes_of_a_group_that_do_not_belong_together_are_placed_by_affinity() {
    // Both large ones in one group.
    let (fake, room) = grouped([1, 1, 2, 2], "0-1");
    let host = room.run(&fake, 8);
    assert!(fake.masks()[&11] != fake.masks()[&12]);
    assert_eq!((asked(&fake), chosen(&fake)), (4, vec!["0-1".to_string(); 2]));
    host.end().unwrap();
    // Each large one with the small one that gets the same place.
    let (fake, room) = grouped([1, 2, 1, 2], "0-1");
    let before = fake.masks();
    let mut host = room.run(&fake, 5);
    assert_eq!(asked(&fake), 0, "{:?}", fake.masks());
    assert!(chosen(&fake).iter().all(|cpus| !cpus.is_empty()));
    // Another one joins: it has the cpus of before at once, and the others keep theirs.
    let placed = fake.masks();
    fake.change(|world| {
        let child = world.processes[&11].starts(11, 21, 50);
        world.processes.insert(21, child);
    });
    go(&mut host, 1);
    assert_eq!(
        (fake.masks()[&21].as_slice(), fake.masks()[&11].clone()),
        (&[0, 1][..], placed[&11].clone())
    );
    assert_eq!(chosen(&fake)[0], "0-1");
    go(&mut host, 1);
    fake.change(|world| world.processes.remove(&21));
    let report = host.end().unwrap();
    assert!(note(&report, "had not all the same place"), "{:?}", report.notes);
    assert_eq!((fake.masks(), chosen(&fake)), (before, vec!["0-1".to_string(); 2]));
}

#[test]
fn who_is_put_into_another_group_is_as_it_is_there_and_the_group_has_its_choice_again() {
    let (fake, room) = grouped([1, 2, 3, 4], "0-1");
    let mut host = room.run(&fake, 5);
    fake.change(|world| {
        world.groups.insert(folder(9), Group::of(&[0, 1]));
        let process = world.processes.get_mut(&11).unwrap();
        process.group = Some(folder(9));
        process.moves_to(&[0, 1]);
    });
    go(&mut host, 1);
    assert_eq!(
        (chosen(&fake)[0].as_str(), fake.masks()[&11].as_slice()),
        ("0-1", &[0, 1][..])
    );
    go(&mut host, 4);
    host.end().unwrap();
    assert_eq!(chosen(&fake), ["0-1", "0-1", "0-1", "0-1", ""]);
    assert_eq!(fake.masks()[&11], [0, 1]);
}

#[test]
fn pins_within_a_group_survive_also_where_the_kernel_forgets_them() {
    for forgets in [false, true] {
        let (fake, room) = grouped([1, 2, 3, 4], "0-1");
        // Domains of two cpus, so that there is something to pin to within one.
        fake.change(|world| {
            for number in 1..=4 {
                let group = world.groups.get_mut(&folder(number)).unwrap();
                (group.cpuset.above, group.forgets) = (vec![0, 1, 2, 3], forgets);
                world.choose(&folder(number), "0-3");
            }
        });
        let mut host = room.host_of(&fake, Fake::domains_of(&[&[0, 1], &[2, 3]]));
        go(&mut host, 5);
        assert_eq!(asked(&fake), 0);
        let pin = vec![fake.masks()[&11][1]];
        fake.clone().allow(11, &pin).unwrap();
        go(&mut host, 3);
        assert_eq!((chosen(&fake)[0].as_str(), &fake.masks()[&11]), ("0-3", &pin));
        host.end().unwrap();
        assert_eq!(fake.masks()[&11], pin);
    }
}

#[test]
fn a_group_that_cannot_have_its_choice_again_is_named_and_tried_again() {
    let (fake, room) = grouped([1, 2, 3, 4], "0-1");
    let host = room.run(&fake, 5);
    fake.change(|world| world.groups.get_mut(&folder(2)).unwrap().open = false);
    let report = host.end().unwrap();
    assert!(
        note(&report, "/groups/2/cpuset.cpus: may not be written"),
        "{:?}",
        report.notes
    );
    assert!(room.has_undo() && chosen(&fake)[1].len() == 1);
    fake.change(|world| world.groups.get_mut(&folder(2)).unwrap().open = true);
    room.host(&fake).end().unwrap();
    assert!(!room.has_undo());
    assert_eq!(chosen(&fake), ["0-1"; 4]);
}

#[test]
fn a_group_that_was_made_anew_is_another_one() {
    let (fake, room) = grouped([1, 2, 3, 4], "0-1");
    let host = room.run(&fake, 5);
    let given = chosen(&fake)[0].clone();
    fake.change(|world| world.groups.get_mut(&folder(1)).unwrap().cpuset.id = 2);
    host.end().unwrap();
    assert_eq!(chosen(&fake), [given.as_str(), "0-1", "0-1", "0-1"]);
}
