//! Clients that lie, babble, or say nothing.

use live::PAGE_BYTES;
use live::daemon::wire::{
    Answer, LOOK_PAGES, MESSAGE_BYTES, Refusal, Request, Run, TAKE_PAGES, UNKNOWN, VERSION, Want,
};

use crate::slow::daemon::house::*;

/// A small generator: which numbers does not matter, but that they are the same each time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn refusal(answer: Option<Answer>) -> Refusal {
    match answer {
        Some(Answer::Refused { why, text }) => {
            assert!(!text.is_empty());
            why
        }
        other => panic!("{other:?} where a refusal was due"),
    }
}

fn take(start: u64, wants: &[(u32, u16)]) -> Request {
    Request::Take {
        cpu: 0,
        start,
        wants: in_order(wants.iter().copied()),
    }
}

#[test]
fn babble_closes_its_own_connection_only() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut good = daemon.client();
    let mut numbers = Numbers(0x5eed);
    for round in 0..1500 {
        let raw = if round % 2 == 0 {
            Raw::new(&daemon)
        } else {
            Raw::greeted(&daemon)
        };
        let length = 1 + numbers.next() as usize % if round % 10 == 0 { 3 * MESSAGE_BYTES } else { 64 };
        let mut message: Vec<u8> = (0..length).map(|_| numbers.next() as u8).collect();
        message[0] %= 18;
        match raw.say(&message) {
            // It was a message by chance, and not the first.
            Some(Answer::Refused { why, .. }) if why != Refusal::Protocol => {}
            Some(Answer::Refused { .. }) => assert!(raw.hear().is_none(), "it was not hung up on"),
            None => {}
            Some(answer) => assert!(Request::decode(&message).is_ok(), "{answer:?} to {message:?}"),
        }
        if round % 100 == 0 {
            good.status().unwrap();
        }
    }
    assert_eq!(good.connections(), 1);
    drop(daemon);
}

#[test]
fn what_comes_out_of_turn_is_refused() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let raw = Raw::new(&daemon);
    assert_eq!(refusal(raw.ask(&Request::Status)), Refusal::Protocol);
    assert!(raw.hear().is_none());
    let raw = Raw::new(&daemon);
    let other = Request::Hello { version: VERSION + 1 };
    assert_eq!(refusal(raw.ask(&other)), Refusal::Protocol);
    let raw = Raw::greeted(&daemon);
    assert_eq!(
        refusal(raw.ask(&Request::Hello { version: VERSION })),
        Refusal::Protocol
    );
    let raw = Raw::greeted(&daemon);
    assert_eq!(refusal(raw.ask(&Request::Left { cpu: 0 })), Refusal::Invalid);
    // No such color, no such cpu: the connection stays.
    assert_eq!(refusal(raw.ask(&take(0x1000, &[(0, COLORS as u16)]))), Refusal::Invalid);
    let cpu = |cpu| Request::Take {
        cpu,
        start: 0x1000,
        wants: vec![Want { page: 0, color: 0 }],
    };
    assert_eq!(refusal(raw.ask(&cpu(100_000))), Refusal::Invalid);
    assert_eq!(refusal(raw.ask(&cpu(u32::MAX))), Refusal::Invalid);
    assert!(matches!(raw.ask(&Request::Status), Some(Answer::Status(_))));
}

#[test]
fn nobody_learns_what_was_not_handed_over() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    let (mine, into) = area(64);
    (0..64).for_each(|page| mine.set_word(page, 0, 1));
    let look = Request::Look {
        run: Run {
            start: into.start as u64,
            count: 64,
        },
    };
    assert_eq!(raw.ask(&look), Some(Answer::Colors { of: vec![UNKNOWN; 64] }));
    // Asking for frames for a page that has one shows that one's color, once, and counts as a miss.
    let asked = raw.ask(&take(into.start as u64, &[(3, 0), (9, 1)]));
    assert_eq!(asked, Some(Answer::Released { met: vec![true; 2] }));
    let Some(Answer::Colors { of }) = raw.ask(&look) else {
        panic!()
    };
    let known: Vec<usize> = (0..64).filter(|&page| of[page] != UNKNOWN).collect();
    assert_eq!(known, [3, 9]);
    // It shows no longer once the page is freed, or filled again: the frame may be anybody's then.
    let colors = daemon.client().colors().clone();
    let frames = frames_of(std::process::id(), into);
    let other = |page: usize| ((colors.of(frames[page].unwrap()) + 1) % COLORS as u32) as u16;
    let start = into.start as u64;
    let asked = raw.ask(&take(start, &[(20, other(20)), (21, other(21))]));
    assert_eq!(asked, Some(Answer::Released { met: vec![true; 2] }));
    let run = |page: usize| Run {
        start: start + (page * PAGE_BYTES) as u64,
        count: 1,
    };
    let shows = |run| match raw.ask(&Request::Look { run }) {
        Some(Answer::Colors { of }) => of[0] != UNKNOWN,
        answer => panic!("{answer:?}"),
    };
    assert!(
        shows(run(20)) && shows(run(21)) && shows(run(20)),
        "once seen, it may be asked for again"
    );
    assert_eq!(
        raw.ask(&Request::Leave { run: run(20) }),
        Some(Answer::Count { pages: 0 })
    );
    assert!(!shows(run(20)) && shows(run(21)));
    // Another page of the same client may get the frame: here it is moved there.
    let mut mine = mine;
    let (_other, there) = area(1);
    // SAFETY: the page is in an area of this test, and nobody uses it.
    unsafe { sys::memory::remap(&mut mine, 21, sys::memory::Span::new(there.start, there.bytes())) }.unwrap();
    let moved = Run {
        start: there.start as u64,
        count: 1,
    };
    assert!(shows(moved));
    raw.ask(&take(run(21).start, &[(0, 0)]));
    assert!(!shows(moved));
    // Pages where nothing is, or where the kernel is.
    for start in [0, 1 << 46, (1 << 57) - PAGE_BYTES as u64] {
        let run = Run { start, count: 1 };
        assert_eq!(
            raw.ask(&Request::Look { run }),
            Some(Answer::Colors { of: vec![UNKNOWN] })
        );
        assert_eq!(raw.ask(&Request::Leave { run }), Some(Answer::Count { pages: 0 }));
        assert_eq!(raw.ask(&Request::Adopt { run }), Some(Answer::Count { pages: 0 }));
    }
}

#[test]
fn lies_about_freed_frames_gain_nothing() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut watcher = daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    let (mine, into) = area(256);
    let wants: Vec<(u32, u16)> = (0..256).map(|page| (page, (page % 16) as u16)).collect();
    let asked = raw.ask(&take(into.start as u64, &wants));
    assert_eq!(asked, Some(Answer::Released { met: vec![true; 256] }));
    sys::memory::populate(mine.span()).unwrap();
    let run = Run {
        start: into.start as u64,
        count: 256,
    };
    raw.ask(&Request::Look { run });
    let held = watcher.status().unwrap().held;
    // It says that it freed them, and did not.
    for _ in 0..3 {
        let Some(Answer::Count { pages }) = raw.ask(&Request::Leave { run }) else {
            panic!()
        };
        assert_eq!(u64::from(pages), held);
        assert_eq!(raw.ask(&Request::Left { cpu: 0 }), Some(Answer::Count { pages: 0 }));
    }
    assert_eq!(watcher.status().unwrap().held, held);
    // Frames taken and never faulted in count until they are looked at, and are missed then.
    let (_other, elsewhere) = area(16);
    raw.ask(&take(elsewhere.start as u64, &wants[..16]));
    assert_eq!(watcher.status().unwrap().held, held + 16);
    let run = Run {
        start: elsewhere.start as u64,
        count: 16,
    };
    assert_eq!(
        raw.ask(&Request::Look { run }),
        Some(Answer::Colors { of: vec![UNKNOWN; 16] })
    );
    assert_eq!(watcher.status().unwrap().held, held);
}

#[test]
fn frames_that_went_elsewhere_are_not_believed_for_ever() {
    if !privileged() {
        return;
    }
    // 1024 frames, of which an eighth is trusted.
    let daemon = Daemon::new(Wish {
        quota: 4 * MIB,
        ..Wish::default()
    });
    let mut watcher = daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    let (_nothing, into) = area(512);
    let wants: Vec<(u32, u16)> = (0..512).map(|page| (page, (page % 16) as u16)).collect();
    raw.ask(&take(into.start as u64, &wants));
    let run = Run {
        start: into.start as u64,
        count: 512,
    };
    // It faults in other pages than it said, for all that the daemon can see.
    raw.ask(&Request::Look { run });
    let held = watcher.status().unwrap().held;
    assert!((300..=512 - 128).contains(&held), "{held}");
}

#[test]
fn one_frame_at_many_pages_is_given_back_once() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut watcher = daemon.client_of_full();
    let raw = Raw::greeted(&daemon);
    let wants: Vec<(u32, u16)> = (0..100).map(|page| (page, (page % 16) as u16)).collect();
    raw.ask(&take(0x1000_0000, &wants));
    // Pages that were only read show the kernel's one page of zeros.
    let (mine, into) = area(64);
    assert_eq!((0..64).map(|page| mine.word(page, 0)).sum::<u64>(), 0);
    let run = |count| Run {
        start: into.start as u64,
        count,
    };
    assert_eq!(
        raw.ask(&Request::Adopt { run: run(64) }),
        Some(Answer::Count { pages: 1 })
    );
    assert_eq!(watcher.status().unwrap().held, 101);
    assert_eq!(
        raw.ask(&Request::Leave { run: run(64) }),
        Some(Answer::Count { pages: 64 })
    );
    // SAFETY: the area is the test\'s own.
    unsafe { sys::memory::discard(mine.span()) }.unwrap();
    assert_eq!(raw.ask(&Request::Left { cpu: 0 }), Some(Answer::Count { pages: 1 }));
    assert_eq!(watcher.status().unwrap().held, 100);
}

#[test]
fn a_client_that_takes_all_and_never_looks_leaves_the_rest_in_peace() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish {
        quota: 1 << 40,
        ..Wish::default()
    });
    let mut good = daemon.client_of_full();
    // A full stock may lack some frames of a color: the kernel gives them as they come.
    let full = good.stock().unwrap()[3];
    let raw = Raw::greeted(&daemon);
    let wants: Vec<(u32, u16)> = (0..TAKE_PAGES as u32).map(|page| (page, 3)).collect();
    let mut met = 0;
    for round in 0..50 {
        let start = 0x1000_0000 + round * (TAKE_PAGES * PAGE_BYTES) as u64;
        match raw.ask(&take(start, &wants)) {
            Some(Answer::Released { met: these }) => met += these.iter().filter(|met| **met).count(),
            other => panic!("{other:?}"),
        }
    }
    // Its frames have a limit, and it is charged for all of them.
    assert!(met as u64 >= full, "{met} of {full}");
    assert_eq!(good.status().unwrap().held, met as u64);
    let (_area, into) = area(64);
    assert_eq!(good.fill_own(into, &[4; 64]).unwrap().len(), 64);
    drop(raw);
    // Enough other frames of that color are collected, and the daemon notices that the process does not have them.
    eventually("there are frames again", || good.stock().unwrap()[3] >= full / 4 * 3);
    eventually("they count no more", || good.status().unwrap().held < met as u64);
}

#[test]
fn who_does_not_listen_is_hung_up_on_and_holds_up_nobody() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let mut good = daemon.client_of_full();
    let deaf = Raw::greeted(&daemon);
    let message = Request::Look {
        run: Run {
            start: 0x1000,
            count: LOOK_PAGES as u32,
        },
    };
    let message = message.encode();
    // Its answers are 16 KiB each, and nobody takes them. Sending ends when the daemon closes.
    let talker = std::thread::spawn(move || while deaf.0.send(&message).is_ok() {});
    let (_area, into) = area(256);
    for _ in 0..20 {
        let got = good.fill_own(into, &[5; 256]).unwrap();
        assert_eq!(got.len(), 256);
        good.give_back_own(into).unwrap();
    }
    talker.join().unwrap();
    assert_eq!(good.connections(), 1);
}

#[test]
fn who_does_not_greet_is_hung_up_on() {
    if !privileged() {
        return;
    }
    let daemon = Daemon::new(Wish::default());
    let silent = Raw::new(&daemon);
    assert_eq!(silent.hear(), None);
}
