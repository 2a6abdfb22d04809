//! What is written is what is read, whatever it is.

use crate::memory;

use memory::Shared;
use proptest::collection::vec;
use proptest::prelude::*;
use trace::{
    Allocation, Batch, Event, Frame, Header, Item, Op, Options, Process, Ref, Site, Stack, Thread, Timed, Trace, Writer,
};

/// One thing that a program does.
#[derive(Clone, Debug)]
enum Deed {
    Ref {
        site: usize,
        addr: u64,
        insns: u8,
    },
    /// `count` references of one site, `stride` apart.
    Row {
        site: usize,
        addr: u64,
        stride: u64,
        count: u16,
    },
    Event(Event),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Read),
        Just(Op::Write),
        Just(Op::Modify),
        Just(Op::Fetch),
        Just(Op::Prefetch)
    ]
}

fn addr() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0x1000u64..0x9000, Just(0), Just(u64::MAX)]
}

const THREADS: u32 = 3;
const SITES: usize = 12;
const STACKS: u32 = 2;

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        Just(Allocation::Heap),
        Just(Allocation::Map),
        Just(Allocation::File),
        Just(Allocation::Stack)
    ];
    prop_oneof![
        any::<u64>().prop_map(|instructions| Event::Work {
            instructions: instructions >> 8
        }),
        (addr(), any::<u64>(), 0..STACKS, kind).prop_map(|(addr, bytes, stack, kind)| Event::Alloc {
            addr,
            bytes,
            stack,
            kind
        }),
        addr().prop_map(|addr| Event::Free { addr }),
        (addr(), any::<u32>()).prop_map(|(object, threads)| Event::Barrier { object, threads }),
        addr().prop_map(|object| Event::Lock { object }),
        addr().prop_map(|object| Event::Unlock { object }),
        any::<u64>().prop_map(|ticket| Event::Post { ticket }),
        any::<u64>().prop_map(|ticket| Event::Wait { ticket }),
        (0..THREADS).prop_map(|child| Event::Spawn { child }),
        (0..THREADS).prop_map(|child| Event::Join { child }),
        Just(Event::Exit),
        ".{0,20}".prop_map(|name| Event::Phase { name }),
        vec(any::<u64>(), 0..5).prop_map(|hints| Event::WorkBegin { hints }),
        Just(Event::WorkEnd),
        any::<u32>().prop_map(|index| Event::Window { index }),
        (0..STACKS).prop_map(|stack| Event::Called { stack }),
        any::<u32>().prop_map(|index| Event::Counted { index }),
        (any::<u64>(), any::<u64>(), any::<bool>()).prop_map(|(slot, bytes, private)| Event::Slot {
            slot,
            bytes,
            private
        }),
        any::<u64>().prop_map(|slot| Event::SlotFree { slot }),
        (any::<u64>(), addr(), any::<u64>()).prop_map(|(set, addr, bytes)| Event::DataRange { set, addr, bytes }),
        (any::<u64>(), 0..THREADS).prop_map(|(set, thread)| Event::DataThread { set, thread }),
        (any::<u64>(), any::<Option<u64>>()).prop_map(|(set, slot)| Event::Allocate { set, slot }),
        any::<u64>().prop_map(|set| Event::DataFree { set }),
        ".{0,200}".prop_map(|text| Event::Summary { text }),
        (addr(), any::<u32>()).prop_map(|(object, threads)| Event::TeamBegin { object, threads }),
        addr().prop_map(|object| Event::TeamEnd { object }),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0..SITES, addr(), any::<u8>()).prop_map(|(site, addr, insns)| Deed::Ref { site, addr, insns }),
        2 => (0..SITES, addr(), prop_oneof![Just(8u64), Just(0), any::<u64>()], 1u16..3000)
            .prop_map(|(site, addr, stride, count)| Deed::Row { site, addr, stride, count }),
        1 => event().prop_map(Deed::Event),
    ]
}

/// What each thread did: its references, and its events with the number of references before each.
#[derive(Default, Debug, PartialEq)]
struct Content {
    refs: Vec<Ref>,
    events: Vec<(usize, u64, Event)>,
}

fn sites(writer: &mut Writer, kinds: &[(u64, Op, u16)]) -> Vec<(u32, Site)> {
    kinds
        .iter()
        .map(|&(pc, op, size)| Site { pc, op, size })
        .map(|site| (writer.site(site), site))
        .collect()
}

fn read(trace: &Trace, thread: u32, ahead: bool) -> Content {
    let mut stream = trace.thread(thread).unwrap();
    if ahead {
        stream = stream.ahead(3);
    }
    let mut content = Content::default();
    let mut batch = Batch::default();
    while stream.next(&mut batch).unwrap() {
        let before = content.refs.len();
        content.events.extend(
            batch
                .events
                .iter()
                .map(|t| (before + t.at as usize, t.order, t.event.clone())),
        );
        content.refs.extend_from_slice(&batch.refs);
    }
    content
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(harness::cases(96)))]

    #[test]
    fn everything_comes_back(
        kinds in vec((prop_oneof![Just(0u64), any::<u64>()], op(), 1u16..), SITES),
        deeds in vec((0..THREADS, deed()), 0..120),
        background in any::<bool>(),
        buffered_refs in prop_oneof![Just(4 << 20), 1usize..5000],
        counts in any::<bool>(),
    ) {
        let out = Shared::default();
        let header = Header { program: "p".into(), counts_instructions: counts, ..Header::default() };
        let options = Options { background, buffered_refs, ..Options::default() };
        let mut writer = Writer::new(out.clone(), &header, options).unwrap();
        let process = writer.process(Process::default());
        for number in 0..THREADS {
            writer.thread(Thread { process, number: number.into(), ..Thread::default() });
        }
        for pc in 0..STACKS {
            writer.stack(Stack { process, frames: vec![Frame { pc: pc.into() }] });
        }
        let sites = sites(&mut writer, &kinds);
        let mut contents: Vec<Content> = (0..THREADS).map(|_| Content::default()).collect();
        let mut all = Vec::new();
        let mut order = 0;
        let mut instructions = 0u64;
        for (thread, deed) in &deeds {
            let content = &mut contents[*thread as usize];
            let mut add = |refs: &[Ref]| {
                writer.refs(*thread, refs).unwrap();
                content.refs.extend_from_slice(refs);
                all.extend(refs.iter().map(|&reference| Item::Ref { thread: *thread, reference }));
            };
            match deed {
                &Deed::Ref { site, addr, insns } => {
                    let (site, Site { op, size, .. }) = sites[site];
                    add(&[Ref { addr, site, insns, op, size }]);
                    instructions += u64::from(insns);
                }
                &Deed::Row { site, addr, stride, count } => {
                    let (site, Site { op, size, .. }) = sites[site];
                    let at = |i: u16| addr.wrapping_add(stride.wrapping_mul(i.into()));
                    let row: Vec<Ref> = (0..count).map(|i| Ref { addr: at(i), site, insns: 2, op, size }).collect();
                    add(&row);
                    instructions += 2 * u64::from(count);
                }
                Deed::Event(event) => {
                    writer.event(*thread, event.clone()).unwrap();
                    content.events.push((content.refs.len(), order, event.clone()));
                    all.push(Item::Event { thread: *thread, order, event: event.clone() });
                    order += 1;
                    if let Event::Work { instructions: idle } = event {
                        instructions = instructions.saturating_add(*idle);
                    }
                }
            }
        }
        let references: usize = contents.iter().map(|s| s.refs.len()).sum();
        let summary = writer.finish().unwrap();
        prop_assert_eq!(summary.references, references as u64);
        prop_assert_eq!(summary.events, order);

        let bytes = out.take();
        prop_assert_eq!(summary.bytes, bytes.len() as u64);
        let trace = Trace::from_bytes(bytes).unwrap();
        prop_assert!(trace.damage().is_empty());
        prop_assert_eq!(trace.header(), &header);
        prop_assert_eq!(trace.references(), references as u64);
        prop_assert_eq!(trace.instructions(), counts.then_some(instructions));
        for thread in 0..THREADS {
            for ahead in [false, true] {
                prop_assert_eq!(&read(&trace, thread, ahead), &contents[thread as usize]);
            }
        }
        let recorded: Vec<Item> = trace.cat().map(Result::unwrap).collect();
        prop_assert_eq!(recorded, all);
    }
}

#[test]
fn a_trace_longer_than_a_chunk() {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let refs: Vec<Ref> = trace::synthetic::Stream::new(trace::synthetic::Kind::Mixed, 1, &mut writer)
        .take(500_000)
        .collect();
    for part in refs.chunks(777) {
        writer.refs(thread, part).unwrap();
    }
    writer.event(thread, Event::Exit).unwrap();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.chunks, 8);
    let trace = Trace::from_bytes(out.take()).unwrap();
    let content = read(&trace, thread, true);
    assert!(content.refs == refs);
    assert_eq!(content.events, [(500_000, 0, Event::Exit)]);
    let at_end = Timed {
        at: (500_000 % 65536) as u32,
        order: 0,
        event: Event::Exit,
    };
    let mut batch = Batch::default();
    let mut stream = trace.thread(thread).unwrap();
    let mut last = Vec::new();
    while stream.next(&mut batch).unwrap() {
        last = batch.events.clone();
    }
    assert_eq!(last, [at_end]);
}

#[test]
fn tables_come_back() {
    use trace::{Array, Inlined, Location, Module, Symbol};
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
    let process = writer.process(Process {
        pid: 7,
        program: "a".into(),
        ..Process::default()
    });
    let child = writer.process(Process {
        pid: 8,
        parent: Some(process),
        ..Process::default()
    });
    let thread = writer.thread(Thread {
        process: child,
        number: 8,
        ..Thread::default()
    });
    let modules = [Module {
        process,
        path: "/lib/x".into(),
        start: 1,
        bytes: 2,
        bias: 3,
        build_id: "ab".into(),
    }];
    let symbols: Vec<Symbol> = (0..10_000)
        .map(|i| Symbol {
            process,
            name: format!("s{i}"),
            addr: i,
            bytes: 8,
            ..Symbol::default()
        })
        .collect();
    let locations = [Location {
        process,
        pc: 5,
        function: "f".into(),
        file: None,
        line: Some(3),
        inlined_into: vec![Inlined {
            function: "g".into(),
            file: Some("g.c".into()),
            line: None,
        }],
    }];
    let arrays = [Array {
        process: child,
        name: "grid".into(),
        addr: 1 << 40,
        bytes: 4096,
    }];
    writer.modules(modules.clone());
    writer.symbols(symbols.clone());
    let site = writer.site(Site {
        pc: 1,
        op: Op::Read,
        size: 1,
    });
    writer
        .push(
            thread,
            Ref {
                addr: 0,
                site,
                insns: 0,
                op: Op::Read,
                size: 1,
            },
        )
        .unwrap();
    writer.locations(locations.clone());
    writer.arrays(arrays.clone());
    let known = Thread {
        process: child,
        number: 8,
        name: "worker".into(),
        stack: Some((1, 2)),
    };
    writer.update_thread(thread, known.clone());
    let header = Header {
        program: "late".into(),
        ..Header::default()
    };
    writer.header(&header);
    writer.finish().unwrap();

    let trace = Trace::from_bytes(out.take()).unwrap();
    assert_eq!(trace.modules(), modules);
    assert_eq!(trace.symbols(), symbols);
    assert_eq!(trace.locations(), locations);
    assert_eq!(trace.arrays(), arrays);
    assert_eq!(trace.threads(), [known]);
    assert_eq!(trace.processes()[1].parent, Some(process));
    assert_eq!(trace.header(), &header);
}

#[test]
fn misuse_is_refused() {
    let fresh = || {
        let mut writer = Writer::new(Shared::default(), &Header::default(), Options::default()).unwrap();
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        (writer, thread)
    };
    let r = Ref {
        addr: 0,
        site: 0,
        insns: 0,
        op: Op::Read,
        size: 4,
    };
    let says = |error: trace::TraceError, what: &str| assert!(error.to_string().contains(what), "{error}");

    let (mut writer, _) = fresh();
    says(writer.push(9, r).unwrap_err(), "thread 9 has not been added");
    let (mut writer, thread) = fresh();
    writer.push(thread, r).unwrap();
    says(writer.finish().unwrap_err(), "site 0 is not in the table");
    let (mut writer, thread) = fresh();
    writer.site(Site {
        pc: 0,
        op: Op::Write,
        size: 4,
    });
    writer.push(thread, r).unwrap();
    says(writer.finish().unwrap_err(), "its site 0 says Write of 4");
    let (mut writer, thread) = fresh();
    says(
        writer.event(thread, Event::Spawn { child: 5 }).unwrap_err(),
        "a thread that was not added",
    );
    let (mut writer, thread) = fresh();
    let name = "n".repeat(70_000);
    says(writer.event(thread, Event::Phase { name }).unwrap_err(), "64 KiB");
    let (mut writer, thread) = fresh();
    writer.stack(Stack {
        process: 3,
        frames: Vec::new(),
    });
    says(writer.push(thread, r).unwrap_err(), "process 3 has not been added");
}

#[test]
fn a_stream_takes_no_more_memory_for_a_longer_trace() {
    let memory = |chunks: usize| {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &Header::default(), Options::default()).unwrap();
        let process = writer.process(Process::default());
        let thread = writer.thread(Thread {
            process,
            ..Thread::default()
        });
        let kind = trace::synthetic::Kind::Random;
        let refs: Vec<Ref> = trace::synthetic::Stream::new(kind, 3, &mut writer)
            .take(chunks << 16)
            .collect();
        writer.refs(thread, &refs).unwrap();
        writer.finish().unwrap();
        let trace = Trace::from_bytes(out.take()).unwrap();
        let mut stream = trace.thread(thread).unwrap();
        let mut batch = Batch::default();
        let mut most = 0;
        while stream.next(&mut batch).unwrap() {
            assert!(batch.refs.capacity() <= 1 << 17);
            most = most.max(stream.memory());
        }
        most
    };
    let (short, long) = (memory(3), memory(30));
    assert!(long <= 2 * trace::limits::CHUNK_BYTES);
    assert!(long < short + short / 4, "{short} bytes for 3 chunks, {long} for 30");
}

#[test]
fn buffers_of_many_threads_stay_within_their_bound() {
    let out = Shared::default();
    let options = Options {
        buffered_refs: 10_000,
        ..Options::default()
    };
    let mut writer = Writer::new(out.clone(), &Header::default(), options).unwrap();
    let process = writer.process(Process::default());
    let site = writer.site(Site {
        pc: 1,
        op: Op::Read,
        size: 1,
    });
    for number in 0..3000 {
        writer.thread(Thread {
            process,
            number,
            ..Thread::default()
        });
    }
    for i in 0..200_000u64 {
        let r = Ref {
            addr: i,
            site,
            insns: 0,
            op: Op::Read,
            size: 1,
        };
        writer.push((i * 7 % 3000) as u32, r).unwrap();
        let buffered = i + 1 - writer.written_references();
        assert!(buffered <= 10_000, "{buffered} references are buffered");
    }
    writer.finish().unwrap();
    assert_eq!(Trace::from_bytes(out.take()).unwrap().cat().count(), 200_000);
}
