//! Clients and daemons that are killed at any moment.

use std::time::Duration;

use live::daemon::ClientError;
use policy::slots::Kind;

use crate::slow::daemon::house::*;

#[test]
fn thousands_of_short_lived_clients_leave_nothing_behind() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut watcher = daemon.client_of_full();
    let lives = |seed: usize| {
        for life in 0..800 {
            let mut client = daemon.client();
            match (life + seed) % 4 {
                0 => {}
                1 => drop(client.slot(65536, Kind::Private).unwrap()),
                2 => {
                    client.allocate(None, 4096, &[0]).unwrap();
                }
                _ => {
                    // Even its memory ends with it.
                    let (_area, into) = area(8);
                    let _ = client.fill_own(into, &[(life % COLORS) as u16; 8]);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || lives(seed));
        }
    });
    eventually("all are gone", || watcher.status().unwrap().clients == 1);
    assert_eq!(watcher.available(&[]).unwrap().1, 16 * 65536);
    // This process lives, so the frames that it never reported as freed count, and no others.
    assert!(watcher.status().unwrap().held <= 4 * 200 * 8);
}

#[test]
fn clients_killed_at_any_moment_lose_all_they_had() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut watcher = daemon.client_of_full();
    for round in 0..16u64 {
        let busy = || {
            let mut busy = command("busy", &stranger().before());
            busy.env("TEST_SOCKET", &daemon.socket);
            let mut busy = Running::new(busy);
            assert_eq!(busy.line().as_deref(), Some("ready"));
            busy
        };
        let mut clients = [busy(), busy()];
        std::thread::sleep(Duration::from_micros(round * round * 150));
        clients.iter_mut().for_each(Running::kill);
    }
    eventually("all are gone", || {
        let status = watcher.status().unwrap();
        status.clients == 1 && status.held == 0
    });
    assert_eq!(watcher.available(&[]).unwrap(), (2 * 16 * 65536, 16 * 65536));
}

#[test]
fn a_daemon_killed_at_any_moment_harms_nobody() {
    if !privileged() {
        return;
    }
    let mut daemon = Daemon::new(Wish::default());
    let mut client = daemon.client_of_full();
    let (kept, keeping) = area(512);
    client.fill_own(keeping, &[2; 512]).unwrap();
    let mark = |page: usize, word: usize| (page * 512 + word) as u64 ^ 0xabcd_ef01;
    for page in 0..512 {
        for word in 0..512 {
            kept.set_word(page, word, mark(page, word));
        }
    }
    let slot = client.slot(2 * 65536, Kind::Private).unwrap();
    let granted = client.allocate(Some(slot), MIB, &[0]).unwrap();
    let (_area, into) = area(600);
    for round in 0..8u64 {
        let process = daemon.process();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(300 + round * round * 400));
            sys::signals::send(process, 9).unwrap();
        });
        // The loop runs until the daemon is gone, whatever it was doing.
        while client.fill_own(into, &[round as u16; 600]).is_ok() && client.give_back_own(into).is_ok() {}
        killer.join().unwrap();
        daemon.kill();
        // Pages can be given back without one, too.
        client.give_back_own(into).unwrap();
        assert!(matches!(
            client.status(),
            Err(ClientError::Absent { .. } | ClientError::Lost(_))
        ));
        for page in 0..512 {
            assert!((0..512).all(|word| kept.word(page, word) == mark(page, word)));
        }
        daemon.kill_and_restart();
        let before = client.connections();
        assert_eq!(client.status().unwrap().held, 0);
        assert_eq!(client.connections(), before + 1);
        // The client reports its held frames to the new daemon, and has the colors recorded.
        assert_eq!(client.adopt(keeping).unwrap(), 512);
        assert_eq!(client.adopt(keeping).unwrap(), 0);
        assert_eq!(client.status().unwrap().held, 512);
        let claimed = client.claim(Kind::Private, &[0], &granted.colors).unwrap();
        assert_eq!(claimed.colors, granted.colors);
    }
    let colors = client.look(keeping).unwrap();
    let frames = frames_of(std::process::id(), keeping);
    for (color, frame) in colors.iter().zip(&frames) {
        assert_eq!(*color, frame.map(|frame| (frame % COLORS as u64) as u16));
    }
}

#[test]
fn one_daemon_at_a_socket() {
    if !privileged() {
        return;
    }
    let mut daemon = Daemon::new(Wish::default());
    let said = start(&daemon.socket, &Wish::default(), &[]).err().unwrap();
    assert!(said.contains("already"), "{said}");
    assert!(daemon.client().status().is_ok());
    let file = daemon.folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let said = start(&file, &Wish::default(), &[]).err().unwrap();
    assert!(said.contains("no socket"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    daemon.kill();
    assert!(daemon.socket.exists());
    daemon.kill_and_restart();
    assert!(daemon.client().status().is_ok());
}
