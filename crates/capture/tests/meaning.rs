//! What gives references their meaning: names, phases, windows, and who waited for whom.
#![forbid(unsafe_code)]

use crate::workshop;

use trace::{Allocation, Event, Op};
use workshop::{compile, events, record, stream, threads, touches};

#[test]
fn heap_data_is_named_by_where_it_was_allocated() {
    heap_data_is_named(&[]);
}

#[test]
fn heap_data_of_static_programs_is_named_too() {
    heap_data_is_named(&["-static"]);
}

fn heap_data_is_named(flags: &[&str]) {
    let (_, trace) = compile("names", flags).record(&[]);
    let all = events(&trace);
    let allocated = |size| {
        all.iter().find_map(|(_, e)| match e {
            Event::Alloc {
                addr,
                bytes,
                stack,
                kind: Allocation::Heap,
            } if *bytes == size => Some((*addr, *stack)),
            _ => None,
        })
    };
    let (addr, stack) = allocated(800).unwrap();
    let stack = &trace.stacks()[stack as usize];
    let place = |pc: u64| {
        trace
            .locations()
            .iter()
            .find(|l| l.process == stack.process && l.pc == pc)
            .unwrap()
    };
    let inner = place(stack.frames[0].pc);
    assert!(inner.file.as_deref().unwrap().ends_with("names.c"));
    // gcc may have put `make` into `main`: the innermost function is what was written.
    assert_eq!((inner.function.as_str(), inner.line), ("make", Some(15)));
    assert!(all.contains(&(0, Event::Free { addr })));
    // realloc frees the old block and allocates the new one.
    let (small, _) = allocated(10).unwrap();
    let (large, _) = allocated(100_000).unwrap();
    let from = all
        .iter()
        .position(|(_, e)| matches!(e, Event::Alloc { bytes: 10, addr, .. } if *addr == small))
        .unwrap();
    let freed = all[from..]
        .iter()
        .filter(|(_, e)| [small, large].iter().any(|a| *e == Event::Free { addr: *a }));
    assert_eq!(freed.count(), 2);
}

#[test]
fn fields_name_the_sides_of_a_false_sharing() {
    let (_, trace) = compile("names", &[]).record(&[]);
    let symbol = trace.symbols().iter().find(|s| s.name == "counters").unwrap();
    assert!(symbol.file.as_deref().unwrap().ends_with("names.c"));
    assert_eq!(symbol.line, Some(13));
    let field = |offset| {
        symbol
            .fields
            .iter()
            .find(|(at, ..)| *at == offset)
            .map(|(_, size, name)| (*size, name.as_str()))
    };
    assert_eq!(field(0), Some((8, ".hits")));
    assert_eq!(field(20), Some((4, ".point[1].y")));
    let by = |thread| {
        let mut offsets: Vec<_> = touches(&trace, thread, "counters")
            .into_iter()
            .map(|(_, at, _)| at)
            .collect();
        offsets.dedup();
        offsets
    };
    assert_eq!(by(0), [0]);
    assert_eq!(by(1), [20]);
}

#[test]
fn the_program_can_mark_phases_work_and_arrays() {
    let (_, trace) = compile("names", &[]).record(&[]);
    let array = &trace.arrays()[0];
    assert_eq!((array.name.as_str(), array.bytes), ("the heap", 800));
    let (refs, happened) = stream(&trace, 0);
    let place = |wanted: &Event| happened.iter().find(|e| e.event == *wanted).unwrap().at as usize;
    let begin = place(&Event::WorkBegin {
        hints: vec![array.addr, 7],
    });
    let end = place(&Event::WorkEnd);
    assert!(place(&Event::Phase { name: "fill".into() }) <= begin);
    let inside: Vec<_> = refs
        .iter()
        .enumerate()
        .filter(|(_, r)| r.addr.wrapping_sub(array.addr) < 800)
        .map(|(i, _)| i)
        .collect();
    // The second filling was not to be recorded; the allocator writes there when the block is free.
    let free = place(&Event::Free { addr: array.addr });
    let inside: Vec<_> = inside.into_iter().filter(|i| *i < free).collect();
    assert_eq!(inside.len(), 100);
    assert!(inside.iter().all(|i| begin <= *i && *i < end));
}

#[test]
fn waiting_for_a_signal_comes_after_it() {
    waiting_is_recorded(&[]);
}

#[test]
fn waiting_in_static_programs_is_recorded_too() {
    waiting_is_recorded(&["-static"]);
}

fn waiting_is_recorded(flags: &[&str]) {
    let (_, trace) = compile("signals", flags).record(&[]);
    let all = events(&trace);
    let posts: Vec<_> = all
        .iter()
        .enumerate()
        .filter_map(|(i, (t, e))| {
            if let Event::Post { ticket } = e {
                Some((*ticket, i, *t))
            } else {
                None
            }
        })
        .collect();
    let mut waits = 0;
    for (i, (thread, event)) in all.iter().enumerate() {
        if let Event::Wait { ticket } = event {
            let (_, before, by) = posts.iter().find(|(t, ..)| t == ticket).unwrap();
            assert!(*before < i && by != thread);
            waits += 1;
        }
    }
    assert!(waits >= 2, "the condition and the semaphore: {all:?}");
}

#[test]
fn a_window_takes_exactly_what_was_asked_for() {
    let bench = compile("ends", &[]);
    let (_, whole) = bench.record(&["code"]);
    let mut options = bench.options(&["code"]);
    options.skip = 1000;
    options.window = Some(2500);
    let (outcome, trace) = record(&options);
    assert_eq!(trace.references(), 2500);
    assert_eq!(outcome.references_seen, whole.references());
    let (refs, happened) = stream(&trace, 0);
    assert_eq!(
        happened
            .iter()
            .filter(|e| e.event == Event::Window { index: 0 })
            .count(),
        1
    );
    let all = stream(&whole, 0).0;
    let same = |a: &trace::Ref, b: &trace::Ref| (a.op, a.size) == (b.op, b.size);
    assert!(refs.iter().zip(&all[1000..]).all(|(a, b)| same(a, b)));
    // Without a window all that follows is taken.
    options.window = None;
    options.output = bench.options(&[]).output;
    let (_, rest) = record(&options);
    assert_eq!(rest.references(), whole.references() - 1000);
}

#[test]
fn windows_are_spread_over_the_run() {
    let bench = compile("known", &[]);
    let mut options = bench.options(&[]);
    options.window = Some(700);
    options.windows = 5;
    options.warm_bytes = 0;
    let (outcome, trace) = record(&options);
    assert_eq!(trace.references(), 5 * 700);
    assert_eq!(outcome.failure, None);
    // Each begins for all threads that live, after what came before.
    let mut first: Vec<u32> = Vec::new();
    for (_, event) in events(&trace) {
        if let Event::Window { index } = event
            && !first.contains(&index)
        {
            first.push(index);
        }
    }
    assert_eq!(first, [0, 1, 2, 3, 4]);
    let made: u64 = threads(&trace).map(|t| stream(&trace, t).0.len() as u64).sum();
    assert_eq!(made, 3500);
    // What is not a reference is recorded for all of the run.
    assert!(events(&trace).iter().any(|(_, e)| matches!(e, Event::Barrier { .. })));
    assert!(outcome.references_seen > 20 * 700);
}

/// Before what is counted come lines that were touched before, by no instruction of the program, and an eighth of the window.
#[test]
fn windows_begin_with_what_warms_caches() {
    let bench = compile("known", &[]);
    let mut options = bench.options(&[]);
    options.window = Some(800);
    options.windows = 5;
    let (outcome, trace) = record(&options);
    let chosen = trace.header().chosen.clone().unwrap();
    assert!(chosen.warmed);
    assert_eq!(chosen.of_references, Some(outcome.references_seen));
    let (mut own, mut counted, mut born, mut warming) = (0, 0, 0, 0);
    for thread in threads(&trace) {
        let (refs, happened) = stream(&trace, thread);
        let mut events = happened.iter().peekable();
        let (mut counts, mut begun) = (false, false);
        for (at, r) in refs.iter().enumerate() {
            while let Some(timed) = events.next_if(|timed| timed.at as usize <= at) {
                match timed.event {
                    Event::Window { .. } => (counts, begun) = (false, true),
                    Event::Counted { .. } => counts = true,
                    _ => {}
                }
            }
            // A thread that is made within a window has no event of its begin.
            assert!(begun || thread > 0);
            let programs = trace.sites()[r.site as usize].pc != 0;
            // Lines only come before anything else.
            assert!(programs || (!counts && r.insns == 0 && r.addr % 64 == 0));
            own += u64::from(programs);
            counted += u64::from(counts);
            born += u64::from(!begun && !counts);
            warming += u64::from(!programs);
        }
    }
    assert_eq!(own, 5 * 800);
    // The first window may be the start of the run, before which nothing was touched.
    let right = [5 * 700, 4 * 700 + 800];
    assert!(
        right.iter().any(|right| (counted..=counted + born).contains(right)),
        "{counted} + {born}"
    );
    assert!(warming > 100, "{warming}");
}

#[test]
fn a_short_run_gives_the_windows_that_it_has() {
    let bench = compile("ends", &[]);
    let mut options = bench.options(&["code"]);
    options.window = Some(1 << 40);
    options.windows = 3;
    let (outcome, trace) = record(&options);
    assert_eq!(trace.references(), outcome.references_seen);
    assert!(
        outcome.notes.iter().any(|n| n.contains("1 of 3 windows")),
        "{:?}",
        outcome.notes
    );
}

/// C++ and OpenMP, by what the system's compilers make of them.
#[test]
fn operator_new_and_teams_are_seen() {
    let bench = compile("teams", &["-x", "c++", "-fopenmp"]);
    let (outcome, trace) = bench.record(&[]);
    assert_eq!(outcome.exit, capture::Exit::Code(0));
    let all = events(&trace);
    let allocated: Vec<_> = all
        .iter()
        .filter_map(|(_, e)| match e {
            Event::Alloc {
                addr,
                bytes: 4321,
                stack,
                kind: Allocation::Heap,
            } => Some((*addr, *stack)),
            _ => None,
        })
        .collect();
    // `new` calls `malloc`: one of them is recorded, with the stack of who wrote `new`.
    assert_eq!(allocated.len(), 1);
    let stack = &trace.stacks()[allocated[0].1 as usize];
    let inner = trace
        .locations()
        .iter()
        .find(|l| l.process == stack.process && l.pc == stack.frames[0].pc)
        .unwrap();
    assert_eq!(inner.function, "make()");
    let frees = all
        .iter()
        .filter(|(_, e)| *e == Event::Free { addr: allocated[0].0 })
        .count();
    assert_eq!(frees, 1);
    // Three threads meet at the barrier that was written.
    let barriers = all
        .iter()
        .filter(|(_, e)| matches!(e, Event::Barrier { threads: 3, .. }))
        .count();
    assert_eq!(barriers, 3);
    // The team's threads begin after the master's post, and it goes on after theirs.
    let waits = |thread| {
        all.iter()
            .filter(|(t, e)| *t == thread && matches!(e, Event::Wait { .. }))
            .count()
    };
    assert!((1..3).all(|thread| waits(thread) >= 1) && waits(0) >= 2);
}

#[test]
fn modifications_are_one_reference() {
    let (_, trace) = compile("mixed", &[]).record(&[]);
    let total = touches(&trace, 0, "total");
    // 50 times an addition and an exchange, both locked.
    assert!(
        total.iter().filter(|(op, ..)| *op == Op::Modify).count() >= 100,
        "{total:?}"
    );
}

#[test]
fn summaries_are_recorded_whole_or_not_at_all() {
    let (outcome, trace) = compile("summary", &[]).record(&[]);
    // How many of its six the program saw recorded.
    assert_eq!(outcome.exit, capture::Exit::Code(3));
    let happened: Vec<Event> = events(&trace).into_iter().map(|(_, event)| event).collect();
    let texts: Vec<&str> = happened
        .iter()
        .filter_map(|event| match event {
            Event::Summary { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let long: String = (0..1 << 20).map(|i| char::from(b'a' + (i % 26) as u8)).collect();
    assert_eq!(texts[0], "{\"place\":\"main\",\"summaries\":[]}");
    assert!(texts[1] == &long[..100_000] && texts[2] == long && texts.len() == 3);
    let after = Event::Phase { name: "after".into() };
    let summary = |event: &Event| matches!(event, Event::Summary { .. });
    assert!(happened.iter().rposition(summary) < happened.iter().position(|event| *event == after));
}

#[test]
fn the_program_can_describe_its_cache_slots() {
    let (_, trace) = compile("slots", &[]).record(&[]);
    let all = events(&trace);
    let of_slots: Vec<_> = all
        .iter()
        .filter(|(_, event)| {
            matches!(
                event,
                Event::Slot { .. }
                    | Event::SlotFree { .. }
                    | Event::DataRange { .. }
                    | Event::DataThread { .. }
                    | Event::Allocate { .. }
                    | Event::DataFree { .. }
            )
        })
        .cloned()
        .collect();
    let symbol = |name: &str| trace.symbols().iter().find(|s| s.name == name).unwrap().addr;
    let (strong, weak) = (symbol("strong"), symbol("weak"));
    let (slot, set) = (3, 1);
    let range = |set, addr, bytes| Event::DataRange { set, addr, bytes };
    let expected = [
        (
            0,
            Event::Slot {
                slot,
                bytes: 65536,
                private: true,
            },
        ),
        (0, range(set, strong, 8192)),
        (0, Event::DataThread { set, thread: 0 }),
        // The second thread spoke of itself, and of the first by its number; a thread that there is not is left out.
        (1, Event::DataThread { set, thread: 1 }),
        (1, Event::DataThread { set, thread: 0 }),
        (0, Event::Allocate { set, slot: Some(slot) }),
        (0, range(2, weak, 4096)),
        (0, Event::Allocate { set: 2, slot: None }),
        (0, Event::DataFree { set }),
        (0, Event::SlotFree { slot }),
    ];
    assert_eq!(of_slots, expected);
    // The program ended with what DOMICILE_RECORDING said: the loop ran only where it was 1.
    assert_eq!(touches(&trace, 0, "weak").len(), 64);
}
