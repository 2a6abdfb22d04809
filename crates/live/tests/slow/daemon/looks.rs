//! Clients whose address space cannot be looked at, and the effect on others.

use std::io::BufRead;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use live::PAGE_BYTES;
use live::daemon::wire::{Answer, LOOK_PAGES, Refusal, Request, Run, VERSION};
use live::daemon::{Client, ClientError};
use sys::packet::{Peer, wait};

use crate::slow::daemon::house::*;

/// Threads that change one large mapping all the time: a reader of the page map waits behind them.
const THREADS: usize = 48;
const MAPPING: usize = 32 << 30;

fn look(start: u64, count: usize) -> Request {
    Request::Look {
        run: Run {
            start,
            count: count as u32,
        },
    }
}

#[test]
fn part() {
    let socket = || std::path::PathBuf::from(std::env::var("TEST_SOCKET").unwrap());
    match std::env::var("DOMICILE_TEST_PART").as_deref() {
        Ok("locker") => locker(&socket()),
        Ok("stopped") => stopped(&socket()),
        _ => {}
    }
}

/// Keeps the lock of its address space busy, and has the daemon look at it, until it is refused.
fn locker(socket: &Path) {
    let raw = Raw(Peer::connect(socket).unwrap());
    raw.ask(&Request::Hello { version: VERSION }).unwrap();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), MAPPING, libc::PROT_READ, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    let start = start as usize;
    // SAFETY: the mapping is ours, and nobody reads or writes it. Its pages are the kernel's page of zeros.
    unsafe {
        libc::madvise(start as *mut _, MAPPING, libc::MADV_NOHUGEPAGE);
        assert_eq!(libc::madvise(start as *mut _, MAPPING, libc::MADV_POPULATE_READ), 0);
    }
    let at_work = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let at_work = Arc::clone(&at_work);
        std::thread::spawn(move || {
            let change = || {
                for access in [libc::PROT_NONE, libc::PROT_READ] {
                    // SAFETY: as above.
                    unsafe { libc::mprotect(start as *mut _, MAPPING, access) };
                }
            };
            at_work.wait();
            loop {
                change();
            }
        });
    }
    at_work.wait();
    println!("part: ready");
    let mut looks = 0;
    loop {
        looks += 1;
        match raw.ask(&look(0x1000_0000, LOOK_PAGES)) {
            Some(Answer::Colors { .. }) => {}
            Some(Answer::Refused {
                why: Refusal::Slow,
                text,
            }) => break println!("part: refused: {text}"),
            other => break println!("part: {other:?}"),
        }
        assert!(looks < 10_000, "it was never slow");
    }
    // The connection stays: requests without a look are answered, and a look is refused at once while the first is
    // stuck, and made otherwise.
    for _ in 0..5 {
        assert!(matches!(raw.ask(&Request::Status), Some(Answer::Status(_))));
        let again = raw.ask(&look(0x1000_0000, 1));
        assert!(
            matches!(
                again,
                Some(Answer::Colors { .. } | Answer::Refused { why: Refusal::Slow, .. })
            ),
            "{again:?}"
        );
    }
    println!("part: done");
    let _ = std::io::stdin().lines().next();
}

#[test]
fn who_locks_its_address_space_stops_nobody_else() {
    if !privileged() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let at = folder.path().join("metrics");
    let daemon = Daemon::new(Wish {
        metrics: Some(at.to_str().unwrap().into()),
        ..Wish::default()
    });
    let mut good = daemon.client_of_full();
    let mut locker = command_of("slow::daemon::looks::part", "locker", &stranger().before());
    locker.env("TEST_SOCKET", &daemon.socket);
    let mut locker = Running::new(locker);
    assert_eq!(locker.line().as_deref(), Some("ready"));
    // As long as it takes until a look is given up, everybody else has answers.
    let (_area, into) = area(64);
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| locker.line().unwrap());
        let mut fills = 0;
        while !said.is_finished() || fills < 3 {
            assert_eq!(good.fill_own(into, &[3; 64]).unwrap().len(), 64);
            good.give_back_own(into).unwrap();
            assert!(Client::connect(&daemon.socket).is_ok(), "nobody else may connect");
            fills += 1;
        }
        said.join().unwrap()
    });
    assert!(said.contains("refused") && said.contains("locked"), "{said}");
    assert_eq!(locker.line().as_deref(), Some("done"));
    assert_eq!(good.connections(), 1);
    assert!(metric(&metrics(&at), "domicile_looks_given_up_total") >= 1);
    // It ends while a look at it may be stuck, and its frames are free.
    locker.kill();
    eventually("it is gone", || good.status().unwrap().clients == 1);
}

/// Asks for looks, and stops.
fn stopped(socket: &Path) {
    let raw = Raw(Peer::connect(socket).unwrap());
    raw.ask(&Request::Hello { version: VERSION }).unwrap();
    for _ in 0..4 {
        raw.0.send(&look(0x1000_0000, LOOK_PAGES).encode()).unwrap();
    }
    println!("part: asked");
    // The test stops this process here, and lets it go on.
    std::io::stdin().lock().lines().next().unwrap().unwrap();
    let answers = (0..4)
        .filter(|_| matches!(raw.hear(), Some(Answer::Colors { .. })))
        .count();
    println!("part: {answers}");
}

#[test]
fn a_client_that_is_stopped_is_answered_when_it_goes_on() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut good = daemon.client_of_full();
    let mut part = command_of("slow::daemon::looks::part", "stopped", &stranger().before());
    part.env("TEST_SOCKET", &daemon.socket);
    let mut part = Running::new(part);
    assert_eq!(part.line().as_deref(), Some("asked"));
    sys::signals::send(part.process(), libc::SIGSTOP).unwrap();
    let (_area, into) = area(64);
    for _ in 0..10 {
        good.fill_own(into, &[3; 64]).unwrap();
        good.give_back_own(into).unwrap();
    }
    sys::signals::send(part.process(), libc::SIGCONT).unwrap();
    part.ask("go on");
    assert_eq!(part.line().as_deref(), Some("4"));
}

#[test]
fn who_hangs_up_in_the_middle_of_a_look_leaves_nothing_behind() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut good = daemon.client_of_full();
    let (_area, into) = area(64);
    for round in 0..300 {
        let raw = Raw::greeted(&daemon);
        // One request, or several at once.
        for _ in 0..1 + round % 3 {
            raw.0.send(&look(into.start as u64, LOOK_PAGES).encode()).unwrap();
        }
        if round % 2 == 0 {
            // Gone before it is greeted, too.
            let hasty = Raw::new(&daemon);
            hasty.0.send(&Request::Hello { version: VERSION }.encode()).unwrap();
        }
    }
    eventually("all are gone", || good.status().unwrap().clients == 1);
    assert_eq!(good.fill_own(into, &[1; 64]).unwrap().len(), 64);
}

#[test]
fn sixty_four_thousand_requests_at_once_are_that_clients_trouble() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut good = daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    let peer = &raw.0;
    std::thread::scope(|scope| {
        let talker = scope.spawn(|| {
            // Half of a message is none; this is a whole one. Nobody takes the answers.
            let message = look(0x1000_0000, 1).encode();
            (0..65_536).take_while(|_| peer.send(&message).is_ok()).count()
        });
        let (_area, into) = area(64);
        while !talker.is_finished() {
            good.fill_own(into, &[3; 64]).unwrap();
            good.give_back_own(into).unwrap();
        }
        // Hung up on, for not taking its answers.
        assert!(talker.join().unwrap() < 65_536);
    });
    assert_eq!(good.connections(), 1);
}

#[test]
fn a_daemon_that_accepts_nobody_keeps_nobody_waiting_for_ever() {
    if !privileged() {
        return;
    }
    sys::ready::Ready::room_for(6000);
    let daemon = Daemon::new(Wish::default());
    sys::signals::send(daemon.process(), libc::SIGSTOP).unwrap();
    // Until no more can wait at its socket.
    let mut crowd = Vec::new();
    let full = loop {
        match Peer::connect_within(&daemon.socket, Duration::from_millis(200)) {
            Ok(peer) => crowd.push(peer),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::TimedOut);
    match Client::connect(&daemon.socket) {
        Err(ClientError::Absent { error, .. }) => assert_eq!(error.kind(), std::io::ErrorKind::TimedOut),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("nobody accepted"),
    }
    sys::signals::send(daemon.process(), libc::SIGCONT).unwrap();
    // It says to each of those beyond the number of connections of a user that they are too many.
    let mut turned_away = 0;
    for peer in crowd.iter().skip(64) {
        turned_away += usize::from(wait(&[peer.as_fd()], 60_000).unwrap()[0]);
    }
    assert_eq!(turned_away, crowd.len() - 64);
    drop(crowd);
    eventually("there is room again", || Client::connect(&daemon.socket).is_ok());
}

#[test]
fn a_client_that_becomes_another_user_stays_who_it_was() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        quota: 4 * MIB,
        ..Wish::default()
    });
    let mut good = daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    // SAFETY: the child has this thread only, and calls the kernel; what it calls of the library takes no lock but the
    // allocator's, which the C library readies for the child.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = || {
            // On the parent's connection, as somebody else: it is the parent whose quota and whose pages are meant.
            // SAFETY: changes who this process is, and no memory.
            assert_eq!(unsafe { libc::setuid(65534) }, 0);
            assert!(matches!(raw.ask(&grab(1000)), Some(Answer::Released { .. })));
            match raw.ask(&grab(100)) {
                Some(Answer::Refused { why, text }) => assert!(why == Refusal::Quota && text.contains("user 0")),
                other => panic!("{other:?}"),
            }
            let (mine, into) = area(4);
            (0..4).for_each(|page| mine.set_word(page, 0, 1));
            let run = Run {
                start: into.start as u64,
                count: 4,
            };
            assert_eq!(raw.ask(&Request::Adopt { run }), Some(Answer::Count { pages: 0 }));
        };
        let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(if worked { 0 } else { 1 }) }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
    assert_eq!(good.status().unwrap().held, 1000);
    let (_area, into) = area(8);
    assert_eq!(into.count * PAGE_BYTES, 32768);
    good.fill_own(into, &[1; 8]).unwrap();
}
