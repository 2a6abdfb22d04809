//! Frames handed over: their colors, their contents, where they are.

use std::collections::HashSet;

use policy::slots::{ColorSet, Kind};

use crate::slow::daemon::house::*;
use live::Pages;

fn want(pages: usize) -> Vec<u16> {
    (0..pages).map(|page| (page * 5 % COLORS) as u16).collect()
}

#[test]
fn pages_get_the_colors_that_were_asked_for_and_zeros() {
    if !privileged() {
        return;
    }
    // An eighth of a user's quota may go elsewhere without proof before it stays charged: here that is more than
    // can go.
    let daemon = Daemon::new(Wish {
        quota: 4096 * MIB,
        ..Wish::default()
    });
    let mut client = daemon.client_with(3000);
    let (area, into) = area(3000);
    let want = want(3000);
    let mut most = 0;
    // On a busy machine others come in between, but not always.
    for _ in 0..30 {
        let got = client.fill_own(into, &want).unwrap();
        let frames = frames_of(std::process::id(), into);
        let mut right = 0;
        for page in 0..3000 {
            let frame = frames[page].expect("every page has a frame");
            // The daemon's answers about colors are true; it answers nothing about frames that it
            // never had.
            assert!(
                got[page].is_none_or(|color| color == (frame % COLORS as u64) as u16),
                "page {page}"
            );
            right += usize::from(got[page] == Some(want[page]));
            assert!((0..512).all(|word| area.word(page, word) == 0));
            area.set_word(page, 100, 1);
        }
        let distinct: HashSet<_> = frames.iter().collect();
        assert_eq!(distinct.len(), 3000);
        let status = client.status().unwrap();
        assert_eq!(status.held, right as u64, "{status:?}");
        client.give_back_own(into).unwrap();
        assert_eq!(frames_of(std::process::id(), into), vec![None; 3000]);
        assert_eq!(client.status().unwrap().held, 0);
        most = most.max(right);
        if most > 2000 && client.status().unwrap().returned > 0 {
            return;
        }
        daemon.client_of_full();
    }
    panic!("{most} of 3000 at most had the color that was asked for, or none was seen to come back");
}

#[test]
fn no_frame_is_lost_and_none_is_in_two_places() {
    if !privileged() {
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let at = folder.path().join("metrics");
    let daemon = Daemon::new(Wish {
        metrics: Some(at.to_str().unwrap().into()),
        ..Wish::default()
    });
    let mut client = daemon.client_with(6 * 700);
    let (areas, pages): (Vec<_>, Vec<_>) = (0..6).map(|_| area(700)).unzip();
    for round in 0..12usize {
        let into = pages[round % 6];
        if round >= 6 {
            client.give_back_own(into).unwrap();
        }
        client.fill_own(into, &want(700)).unwrap();

        let page = metrics(&at);
        let flow = |way: &str| metric(&page, &format!("domicile_frames_total{{way=\"{way}\"}}"));
        let stock: u64 = (0..COLORS)
            .map(|color| metric(&page, &format!("domicile_frames{{color=\"{color}\"}}")))
            .sum();
        assert_eq!(
            flow("collected") + flow("taken_back"),
            stock + flow("released") + flow("let_go") + flow("given_up") + flow("lost")
        );
    }
    // Held still, so that the two can be compared. (Both kinds of pages are looked at twice: a change in between is
    // a frame collected or moved at that very moment.)
    let ours = || -> HashSet<u64> {
        let frames = pages.iter().flat_map(|pages| frames_of(std::process::id(), *pages));
        frames.flatten().collect()
    };
    let theirs = || anonymous_frames(daemon.process());
    let mut both = HashSet::new();
    for _ in 0..5 {
        let mine = ours();
        let stock = theirs();
        let distinct: HashSet<u64> = stock.iter().copied().collect();
        let twice = stock.len() - distinct.len();
        both = mine
            .intersection(&ours())
            .copied()
            .filter(|frame| distinct.contains(frame))
            .collect();
        assert!(mine.len() >= 6 * 700 - 8, "{} frames", mine.len());
        if both.is_empty() && twice == 0 {
            break;
        }
    }
    assert!(both.is_empty(), "in the stock and in a client: {both:?}");
    drop(areas);
}

/// The frames of all anonymous memory of a process.
fn anonymous_frames(process: u32) -> Vec<u64> {
    let mappings = sys::mappings::all(Some(process)).unwrap();
    let anonymous = mappings.iter().filter(|mapping| mapping.private_anonymous());
    anonymous
        .flat_map(|mapping| {
            frames_of(
                process,
                Pages {
                    start: mapping.span.start,
                    count: mapping.span.bytes / live::PAGE_BYTES,
                },
            )
        })
        .flatten()
        .collect()
}

#[test]
fn an_unprivileged_client_learns_colors_and_no_frames() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let mut taker = command("taker", &stranger().before());
    taker.env("TEST_SOCKET", &daemon.socket).env("TEST_PAGES", "600");
    let mut taker = Running::new(taker);
    let said = taker.line().unwrap();
    let mut words = said.split(' ');
    let start: usize = words.next().unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(words.next(), Some("false"), "it saw frames by itself");
    let reported: Vec<Option<u16>> = words
        .next()
        .unwrap()
        .split(',')
        .map(|color| color.parse().ok())
        .collect();
    let frames = frames_of(taker.process(), Pages { start, count: 600 });
    for (reported, frame) in reported.iter().zip(&frames) {
        assert_eq!(*reported, frame.map(|frame| (frame % COLORS as u64) as u16));
    }
}

#[test]
fn the_ledger_keeps_programs_apart() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut first = daemon.client_of_full();
    let mut second = daemon.client();
    let (all, each) = first.available(&[]).unwrap();
    assert_eq!((all, each), (2 * 16 * 65536, 16 * 65536));
    let slot = first.slot(6 * 65536, Kind::Private).unwrap();
    let mine = first.allocate(Some(slot), MIB, &[0, 1]).unwrap();
    assert_eq!((mine.colors.len(), mine.slot), (6, slot));
    assert_eq!(mine.caches, [0, 1]);
    // Another program's slots and data sets are nobody's business.
    assert!(second.allocate(Some(slot), MIB, &[0]).is_err());
    assert!(second.free(mine.set).is_err() && second.close(slot).is_err());
    let slot_2 = second.slot(10 * 65536, Kind::Private).unwrap();
    let theirs = second.allocate(Some(slot_2), MIB, &[0]).unwrap();
    assert!(!theirs.colors.meets(&mine.colors));
    // Over-commitment reports the free part.
    let slot_3 = second.slot(65536, Kind::Private).unwrap();
    let said = second.allocate(Some(slot_3), MIB, &[0]).unwrap_err().to_string();
    assert!(said.contains("free"), "{said}");
    // A program's frames are free when it ends.
    drop(first);
    eventually("colors come back", || second.available(&[1]).unwrap().1 == 16 * 65536);
    // A claim gets exactly what it names, or nothing.
    let mut third = daemon.client();
    let claimed = third.claim(Kind::Private, &[0], &mine.colors).unwrap();
    assert_eq!(claimed.colors, mine.colors);
    assert!(third.claim(Kind::Private, &[0], &theirs.colors).is_err());
    let unknown: ColorSet = [16].into_iter().collect();
    assert!(third.claim(Kind::Private, &[0], &unknown).is_err());
    third.free(claimed.set).unwrap();
    third.close(claimed.slot).unwrap();
}

/// The TCP address that a process listens at.
fn listens_at(process: u32) -> std::net::SocketAddrV4 {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let open: Vec<String> = open
        .filter_map(|entry| Some(std::fs::read_link(entry.unwrap().path()).ok()?.display().to_string()))
        .collect();
    let sockets = std::fs::read_to_string(format!("/proc/{process}/net/tcp")).unwrap();
    let port = sockets.lines().find_map(|line| {
        // Number, here, there, state (0A listens), ..., the tenth is the inode.
        let words: Vec<&str> = line.split_whitespace().collect();
        let listens = words[3] == "0A" && open.contains(&format!("socket:[{}]", words[9]));
        listens.then(|| u16::from_str_radix(words[1].rsplit(':').next().unwrap(), 16).unwrap())
    });
    std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port.expect("it listens"))
}

#[test]
fn metrics_are_to_be_had_on_this_machine() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        metrics: Some("127.0.0.1:0".into()),
        ..Wish::default()
    });
    // The kernel has chosen a port that is free.
    let free = listens_at(daemon.process());
    let mut client = daemon.client();
    client.status().unwrap();
    use std::io::{Read, Write};
    // One that asks and does not read, and one that never finishes asking, stop nobody.
    let mut mute = std::net::TcpStream::connect(free).unwrap();
    mute.write_all(b"GET /me").unwrap();
    let mut deaf = std::net::TcpStream::connect(free).unwrap();
    deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut stream = std::net::TcpStream::connect(free).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert_eq!(
        metric(&page, "domicile_requests_total{kind=\"status\",outcome=\"ok\"}"),
        1
    );
    assert_eq!(metric(&page, "domicile_connections"), 1);
}
