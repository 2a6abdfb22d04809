//! Frames that outlive the process that was handed them.

use std::io::BufRead;
use std::path::Path;

use live::daemon::Client;

use crate::slow::daemon::house::*;

const PAGES: u32 = 512;

#[test]
fn part() {
    if std::env::var("DOMICILE_TEST_PART").as_deref() == Ok("heir") {
        heir(Path::new(&std::env::var("TEST_SOCKET").unwrap()));
    }
}

/// Takes frames, forks when it is asked to, and ends; the child has the frames, and closes the connection.
fn heir(socket: &Path) {
    let (mine, into) = area(PAGES as usize);
    let want: Vec<u16> = (0..PAGES).map(|page| (page as usize % COLORS) as u16).collect();
    // A child of fork gets what others map; an `Area` keeps out of that.
    // SAFETY: this changes what a child has, and no content.
    assert_eq!(0, unsafe {
        libc::madvise(mine.start() as *mut _, mine.bytes(), libc::MADV_KEEPONFORK)
    });
    let looks = std::env::var_os("TEST_LOOKS").is_some();
    let mut client = Client::connect(socket).unwrap();
    let arrived = if looks {
        let got = client.fill_own(into, &want).unwrap();
        got.iter()
            .zip(&want)
            .filter(|(got, want)| **got == Some(**want))
            .count()
    } else {
        // It takes and never looks, so nobody knows which frames arrived.
        let raw = Raw(sys::packet::Peer::connect(socket).unwrap());
        raw.ask(&live::daemon::wire::Request::Hello {
            version: live::daemon::wire::VERSION,
        });
        let _pinned = sys::affinity::pin_here();
        let cpu = sys::affinity::here() as u32;
        // A few at a time, so that others who come in between do not get all.
        for first in (0..PAGES as usize).step_by(32) {
            let part = mine.part(first, 32);
            let start = part.start as u64;
            let wants = in_order((0..32).map(|page| (page, (page as usize % COLORS) as u16)));
            let met = raw.ask(&live::daemon::wire::Request::Take { cpu, start, wants });
            assert!(met.is_some());
            sys::memory::populate(part).unwrap();
        }
        std::mem::forget(raw);
        1
    };
    println!("part: {arrived}");
    let _ = std::io::stdin().lock().lines().next();
    // SAFETY: the child calls the kernel only.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: closes what this process does not use any more, waits for the end of its input, and ends.
        unsafe {
            libc::close_range(3, libc::c_uint::MAX, 0);
            let mut byte = 0u8;
            while libc::read(0, (&raw mut byte).cast(), 1) > 0 {}
            libc::_exit(0);
        }
    }
    // SAFETY: ends this process at once, with its connection.
    unsafe { libc::_exit(0) }
}

#[test]
fn a_child_that_has_its_parents_frames_is_charged_for_them() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        quota: 4 * MIB,
        ..Wish::default()
    });
    let mut watcher = daemon.client_of_full();
    for looks in [true, false] {
        let mut heir = command_of("slow::daemon::inherited::part", "heir", &stranger().before());
        heir.env("TEST_SOCKET", &daemon.socket);
        if looks {
            heir.env("TEST_LOOKS", "yes");
        }
        let mut heir = Running::new(heir);
        let arrived: u64 = heir.line().unwrap().parse().unwrap();
        assert!(arrived > 0, "no frame arrived");
        heir.ask("fork");
        eventually("its connection is closed", || watcher.status().unwrap().clients == 1);
        // However often the frames are looked for, they are found.
        for _ in 0..30 {
            let held = watcher.status().unwrap().held;
            assert!(held >= arrived, "{held} of {arrived}, looks: {looks}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        // They are free when the child is gone.
        drop(heir);
        eventually("they count no more", || watcher.status().unwrap().held == 0);
    }
}
