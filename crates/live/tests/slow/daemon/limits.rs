//! Quotas, numbers of connections, and a machine that is short of memory.

use std::time::Duration;

use live::daemon::wire::{Answer, Refusal};
use live::daemon::{Client, ClientError};

use crate::slow::daemon::house::*;
use crate::slow::daemon::machines::machine;

/// A process of a user that takes so many frames and holds them, and the answer that it got.
fn grabber(daemon: &Daemon, user: &Stranger, pages: usize) -> (Running, String) {
    let mut grabber = command("grabber", &user.before());
    grabber
        .env("TEST_SOCKET", &daemon.socket)
        .env("TEST_PAGES", pages.to_string());
    let mut grabber = Running::new(grabber);
    let said = grabber.line().unwrap();
    (grabber, said)
}

#[test]
fn a_quota_is_a_users_and_not_a_connections() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        quota: 4 * MIB,
        ..Wish::default()
    });
    let mut watcher = daemon.client_of_full();
    let user = stranger();
    // 700 of 1024 pages, and 700 more by another process of the same user.
    let (first, said) = grabber(&daemon, &user, 700);
    assert_eq!(said, "700");
    let (second, said) = grabber(&daemon, &user, 700);
    assert!(
        said.contains(&format!("user {}", user.user)) && said.contains("4 MiB"),
        "{said}"
    );
    assert_eq!(watcher.status().unwrap().held, 700);
    // Another user has a quota of its own.
    let mut client = daemon.client();
    let (_area, into) = area(1000);
    let want: Vec<u16> = (0..1000).map(|page| (page % COLORS) as u16).collect();
    let got = client.fill_own(into, &want).unwrap();
    assert!(got.iter().zip(&want).any(|(got, want)| *got == Some(*want)));
    // The frames that arrived; on a busy machine some go elsewhere.
    let mine = (watcher.status().unwrap().held - 700) as u32;
    let refused = |raw: &Raw, frames: u32| match raw.ask(&grab(frames)) {
        Some(Answer::Refused { why, text }) => {
            let of_quota = why == Refusal::Quota && text.contains("user 0");
            // A client that lost many frames is refused for that first.
            assert!(of_quota || text.contains("faster than they are collected"), "{text}");
        }
        other => panic!("{other:?}"),
    };
    // Connecting again gains nothing, and costs nothing: the process has its frames still.
    drop(client);
    for round in 0..3 {
        let again = Raw::greeted(&daemon);
        // The kernel may move some of the frames meanwhile (compaction), which count no longer then. A count that goes with the
        // connection would lose all of them.
        refused(&again, 1024 - mine / 2);
        let held = watcher.status().unwrap().held;
        assert!(held > 700 + u64::from(mine) / 2, "{held} of 700 and {mine}");
        drop(again);
        // However often it was looked for.
        std::thread::sleep(Duration::from_millis(400 * round));
    }
    // It comes back with the process that had it. (Frames that the kernel gave to another process of the user meanwhile
    // count on for as long as that has them; so no process of the user is about.)
    drop(second);
    let others = watcher.status().unwrap().held - 700;
    drop(first);
    eventually("the quota is free", || watcher.status().unwrap().held <= others);
    // The taken frames must have been collected again, too.
    let got_all = || {
        std::thread::sleep(Duration::from_millis(200));
        let (_again, said) = grabber(&daemon, &user, 1000);
        assert!(
            said == "1000" || said.contains("faster than they are collected"),
            "{said}"
        );
        said == "1000"
    };
    eventually("it has its quota", got_all);
}

#[test]
fn frames_are_not_taken_faster_than_they_can_be_collected() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        quota: 4 * MIB,
        ..Wish::default()
    });
    let mut watcher = daemon.client_of_full();
    let user = stranger();
    // Takes, and forgets without a word, by ending.
    for round in 0..20 {
        let (taker, said) = grabber(&daemon, &user, 512);
        if said != "512" {
            assert!(said.contains("faster than they are collected"), "{said}");
            assert!(round >= 2, "the quota itself is 1024 frames");
            return;
        }
        drop(taker);
        eventually("it is gone", || watcher.status().unwrap().held == 0);
    }
    panic!("it went on for ever");
}

#[test]
fn only_a_dead_socket_is_removed() {
    if !privileged() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let socket = folder.path().join("s");
    let refused = |wanted: &str| {
        let said = start(&socket, &Wish::default(), &[]).err().unwrap();
        assert!(said.contains(wanted), "{said}");
        assert!(std::fs::symlink_metadata(&socket).is_ok(), "it was removed");
        std::fs::remove_file(&socket).unwrap();
    };
    // Of another kind, and in use.
    let _datagrams = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    refused("answers at");
    let _streams = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    refused("answers at");
    // A link, even to a dead socket, is not followed.
    let elsewhere = folder.path().join("elsewhere");
    drop(std::os::unix::net::UnixListener::bind(&elsewhere).unwrap());
    std::os::unix::fs::symlink(&elsewhere, &socket).unwrap();
    refused("no socket");
    // A daemon whose socket was taken away leaves its successor's alone.
    let first = start(&socket, &Wish::default(), &[]).unwrap_or_else(|said| panic!("{said}"));
    std::fs::remove_file(&socket).unwrap();
    let second = start(&socket, &Wish::default(), &[]).unwrap_or_else(|said| panic!("{said}"));
    drop(first);
    assert_eq!(
        Client::connect(&socket).unwrap().status().unwrap().process,
        second.process()
    );
    drop(second);
    assert!(!socket.exists());
    let said = start(&folder.path().join("none/s"), &Wish::default(), &[])
        .err()
        .unwrap();
    assert!(said.contains("none/s is missing; make it"), "{said}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn connections_of_a_user_are_bounded() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        clients: 5,
        ..Wish::default()
    });
    let clients: Vec<Client> = (0..5).map(|_| daemon.client()).collect();
    match Client::connect(&daemon.socket) {
        Err(ClientError::Refused { text, .. }) => assert!(text.contains("user"), "{text}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("one too many"),
    }
    // Another user's are not concerned.
    let (_other, said) = grabber(&daemon, &stranger(), 0);
    assert!(said.contains("range"), "{said}");
    drop(clients);
    eventually("there is room again", || Client::connect(&daemon.socket).is_ok());
}

#[test]
fn memory_is_given_up_when_the_machine_is_short_of_it() {
    if !privileged() {
        return;
    }
    let tree = tempfile::tempdir_in("/tmp").unwrap();
    machine(tree.path(), 3000, "0.00");
    let daemon = Daemon::new(Wish {
        root: Some(tree.path().into()),
        ..Wish::default()
    });
    let mut client = daemon.client_of_full();
    let full = client.status().unwrap();
    let (_area, into) = area(100);
    client.fill_own(into, &[0; 100]).unwrap();
    // Tasks wait: a part of it goes.
    machine(tree.path(), 3000, "40.00");
    eventually("a part is given up", || client.status().unwrap().pressure >= 1);
    machine(tree.path(), 3000, "0.00");
    eventually("it was", || client.status().unwrap().pressure_frames >= 4096);
    let part = client.status().unwrap();
    assert!(part.stock >= full.stock / 2, "{part:?}");
    // Memory runs out: all of it goes. 4 GiB in all: the low mark is at 204 MiB.
    machine(tree.path(), 50, "0.00");
    eventually("all is given up", || client.status().unwrap().stock == 0);
    // Clients keep their frames, and can give them back.
    let before = frames_of(std::process::id(), into);
    assert!(before.iter().all(|frame| frame.is_some()));
    client.give_back_own(into).unwrap();
    let status = client.status().unwrap();
    assert_eq!((status.held, status.stock), (0, 0));
    // The daemon collects nothing meanwhile: the kernel chooses the requested frames, and they are reported
    // as unknown.
    let got = client.fill_own(into, &[0; 100]).unwrap();
    assert_eq!(got, vec![None; 100]);
    assert!(frames_of(std::process::id(), into).iter().all(|frame| frame.is_some()));
}

#[test]
fn without_privilege_it_does_not_start() {
    if !privileged() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let said = start(&folder.path().join("s"), &Wish::default(), &stranger().before())
        .err()
        .unwrap();
    assert!(said.contains("CAP_SYS_ADMIN") && said.contains("root"), "{said}");
    assert!(!folder.path().join("s").exists());
}
