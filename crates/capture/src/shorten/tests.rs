use trace::{Header, Op, Process, Site, Thread, limits};

use super::*;

/// Two threads that take turns: thread k's reference number n is of address 2 n + k; each 1000 a lock, the second thread
/// spawned by the first.
fn written(path: &Path, turns: u64, windows: bool) -> Trace {
    let mut writer = Writer::create(path, &Header::default()).unwrap();
    let process = writer.process(Process::default());
    let of = Thread {
        process,
        ..Thread::default()
    };
    let threads = [writer.thread(of.clone()), writer.thread(of)];
    let (op, size) = (Op::Read, 4);
    let site = writer.site(Site { pc: 16, op, size });
    writer.event(0, Event::Spawn { child: 1 }).unwrap();
    for turn in 0..turns {
        if windows && turn % 100 == 0 {
            let index = turn as u32 / 100;
            for thread in threads {
                writer.event(thread, Event::Window { index }).unwrap();
            }
        }
        if windows && turn % 100 == 20 {
            let index = turn as u32 / 100;
            for thread in threads {
                writer.event(thread, Event::Counted { index }).unwrap();
            }
        }
        for thread in threads {
            writer.event(thread, Event::Lock { object: turn }).unwrap();
            for n in 1000 * turn..1000 * (turn + 1) {
                let addr = 2 * n + u64::from(thread);
                let insns = 3;
                writer
                    .push(
                        thread,
                        Ref {
                            addr,
                            site,
                            insns,
                            op,
                            size,
                        },
                    )
                    .unwrap();
            }
        }
    }
    for thread in threads {
        writer.event(thread, Event::Exit).unwrap();
    }
    writer.finish().unwrap();
    Trace::open(path).unwrap()
}

/// The places in the whole trace of the references of a window: which window, whether it is counted, and the reference.
fn copied(trace: &Trace) -> Vec<(u32, bool, u64)> {
    let mut at = None;
    let mut found = Vec::new();
    for item in trace.cat() {
        match item.unwrap() {
            trace::Item::Ref { reference, thread } => {
                assert_eq!(reference.addr % 2, u64::from(thread));
                // 1000 of one thread, then as many of the other.
                let n = reference.addr / 2;
                let place = n / 1000 * 2000 + u64::from(thread) * 1000 + n % 1000;
                let (index, counted) = at.expect("all are in windows");
                found.push((index, counted, place));
            }
            trace::Item::Event {
                event: Event::Window { index },
                ..
            } => at = Some((index, false)),
            trace::Item::Event {
                event: Event::Counted { index },
                ..
            } => at = Some((index, true)),
            trace::Item::Event { .. } => {}
        }
    }
    found
}

#[test]
fn windows_are_laid_over_all_of_a_trace_and_its_events_stay() {
    let folder = tempfile::tempdir().unwrap();
    let turns = 3 * limits::CHUNK_REFS as u64 / 1000;
    let all = written(&folder.path().join("all"), turns, false);
    let path = folder.path().join("short");
    assert!(shorten(&all, &path, 80_000).unwrap());
    let short = Trace::open(&path).unwrap();
    assert_eq!(short.references(), 80_000);
    // Each of four windows stands twice in each of two threads.
    assert_eq!(short.events(), all.events() + 4 * 2 * 2);
    assert_eq!(short.sites(), all.sites());
    let found = copied(&short);
    for index in 0..4 {
        let window: Vec<_> = found.iter().filter(|(of, ..)| *of == index).collect();
        assert_eq!(window.len(), 20_000);
        let first = window[0].2;
        let part = all.references() / 4;
        assert!((u64::from(index) * part..u64::from(index + 1) * part).contains(&first));
        for (number, (_, counted, place)) in window.iter().enumerate() {
            assert_eq!((*place, *counted), (first + number as u64, number >= 10_000));
        }
    }
    let chosen = short.header().chosen.clone().unwrap();
    assert_eq!(
        (chosen.windows, chosen.warmed, chosen.of_references),
        (4, true, Some(all.references()))
    );
}

#[test]
fn of_windows_that_are_there_some_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let all = written(&folder.path().join("all"), 1000, true);
    let path = folder.path().join("short");
    // Ten of 200,000, of which a fifth warms.
    assert!(shorten(&all, &path, 1_000_000).unwrap());
    let found = copied(&Trace::open(&path).unwrap());
    assert_eq!(found.len(), 1_000_000);
    let firsts: Vec<_> = found.chunks(200_000).map(|window| window[0]).collect();
    let expected: Vec<_> = (0..5).map(|k| (k, false, u64::from(2 * k + 1) * 200_000)).collect();
    assert_eq!(firsts, expected);
    assert_eq!(found.iter().filter(|(_, counted, _)| *counted).count(), 800_000);
    // Less than four windows: shorter ones.
    assert!(shorten(&all, &path, 400_000).unwrap());
    let found = copied(&Trace::open(&path).unwrap());
    assert_eq!((found.len(), found.last().unwrap().0), (400_000, 3));
    assert_eq!(found.iter().filter(|(_, counted, _)| *counted).count(), 240_000);
    // With less to warm them: the references right before those that are counted.
    assert!(shorten(&all, &path, 80_000).unwrap());
    let found = copied(&Trace::open(&path).unwrap());
    assert_eq!(found.len(), 80_000);
    assert_eq!((found[0], found[9_999]), ((0, false, 230_000), (0, false, 239_999)));
    assert_eq!((found[10_000], found[19_999]), ((0, true, 240_000), (0, true, 249_999)));
}

#[test]
fn what_is_short_stays() {
    let folder = tempfile::tempdir().unwrap();
    let all = written(&folder.path().join("all"), 10, false);
    let path = folder.path().join("short");
    assert!(!shorten(&all, &path, 20_000).unwrap());
    assert!(!path.exists());
}
