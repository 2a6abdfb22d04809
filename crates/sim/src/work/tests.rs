use std::io::Write;
use std::sync::{Arc, Mutex};

use machine::Machine;
use policy::WorkOrder;
use policy::order::Tour;
use proptest::prelude::*;
use trace::{Allocation, Batch, Event, Header, Op, Options, Process, Ref, Site, Stack, Thread, Timed, Trace, Writer};

use super::gather::Room;
use super::*;
use crate::input::{Input, Item, Streams};

const ORDER: WorkOrder = WorkOrder {
    block: 16,
    hints: 0,
    fold: false,
    tour: Tour::FirstFork,
    workers: 1,
    gap: 0,
};

fn machine(cpus: u32) -> Machine {
    let preset = machine::presets()
        .iter()
        .find(|preset| preset.name == "simos-r4400")
        .unwrap();
    let machine = machine::from_toml(preset.text, preset.name).unwrap();
    machine.with_cpus(cpus).unwrap()
}

fn config(cpus: u32) -> Config {
    Config::new(machine(cpus), Vec::new())
}

fn read(addr: u64) -> Item {
    let (op, size) = (Op::Read, 4);
    Item::Ref(Ref {
        addr,
        site: 0,
        insns: 0,
        op,
        size,
    })
}

fn begin(hints: &[u64]) -> Item {
    let hints = hints.to_vec();
    Item::Event(Event::WorkBegin { hints })
}

fn end() -> Item {
    Item::Event(Event::WorkEnd)
}

/// The addresses that a thread reads, in order.
fn addresses(items: &[Item]) -> Vec<u64> {
    let addr = |item: &Item| match item {
        Item::Ref(r) => Some(r.addr),
        Item::Event(_) => None,
    };
    items.iter().filter_map(addr).collect()
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The stacks of the threads of traces.
const STACK: (u64, u64) = (100, 900);

/// The streams as a trace of many short chunks.
fn trace_of(streams: &Streams) -> Trace {
    let out = Shared::default();
    let options = Options {
        buffered_refs: 24,
        ..Options::default()
    };
    let mut writer = Writer::new(out.clone(), &Header::default(), options).unwrap();
    let process = writer.process(Process::default());
    let (op, size) = (Op::Read, 4);
    writer.site(Site { pc: 0, op, size });
    writer.stack(Stack::default());
    for _ in &streams.threads {
        writer.thread(Thread {
            process,
            stack: Some(STACK),
            ..Thread::default()
        });
    }
    for (thread, items) in streams.threads.iter().enumerate() {
        for item in items {
            match item {
                Item::Ref(r) => writer.push(thread as u32, *r).unwrap(),
                Item::Event(event) => writer.event(thread as u32, event.clone()).unwrap(),
            }
        }
    }
    writer.finish().unwrap();
    let bytes = std::mem::take(&mut *out.0.lock().unwrap());
    Trace::from_bytes(bytes).unwrap()
}

/// All that an input gives for each of its threads.
fn all(input: &mut dyn Input) -> Vec<Vec<Item>> {
    let threads = input.threads().len() as u32;
    let mut batch = Batch::default();
    let mut one = |thread| {
        let mut items = Vec::new();
        while input.next(thread, &mut batch).unwrap() {
            let mut events = batch.events.iter().peekable();
            for at in 0..=batch.refs.len() {
                while let Some(Timed { event, .. }) = events.next_if(|timed| timed.at as usize == at) {
                    items.push(Item::Event(event.clone()));
                }
                items.extend(batch.refs.get(at).map(|r| Item::Ref(*r)));
            }
            assert_eq!(events.next(), None, "an event beyond the references");
        }
        items
    };
    (0..threads).map(&mut one).collect()
}

/// Hints are left behind on the way.
fn without_hints(threads: &[Vec<Item>]) -> Vec<Vec<Item>> {
    let one = |item: &Item| match item {
        Item::Event(event) => Item::Event(gather::moved(event)),
        item => item.clone(),
    };
    threads.iter().map(|items| items.iter().map(one).collect()).collect()
}

/// The paper's example, section 2.4: C = A x B, 4 x 4, a cache of four vectors, blocks of half of that.
#[test]
fn the_papers_example_runs_in_its_four_bins() {
    let vector = 8 * 4;
    let (a, b) = (0x1000, 0x2000);
    let mut items = Vec::new();
    for i in 0..4 {
        for j in 0..4 {
            let number = 4 * i + j + 1;
            items.extend([begin(&[a + i * vector, b + j * vector]), read(number), end()]);
        }
    }
    let order = WorkOrder {
        block: 4 * vector / 2,
        ..ORDER
    };
    let (streams, work) = reordered_streams(&Streams::new(vec![items]), &order, &config(1)).unwrap();
    assert_eq!(
        addresses(&streams.threads[0]),
        [1, 2, 5, 6, 3, 4, 7, 8, 9, 10, 13, 14, 11, 12, 15, 16]
    );
    assert_eq!((work.items, work.bins, work.runs, work.hints), (16, 4, 1, 2));
    assert_eq!(work.moved, 8);
}

#[test]
fn the_default_block_fills_the_last_cache() {
    let items = vec![begin(&[0, 0, 0]), end()];
    let order = WorkOrder { block: 0, ..ORDER };
    let (_, work) = reordered_streams(&Streams::new(vec![items]), &order, &config(1)).unwrap();
    // 1 MiB; the TLB of 64 entries reaches 256 KiB or less.
    let reach = tlb_reach(&machine(1));
    let sum = reach.unwrap_or(u64::MAX).min(1 << 20);
    assert_eq!((work.block, work.hints), (sum / 3, 3));
    assert!(work.reason.contains(&sum.to_string()), "{}", work.reason);
    let mut covered = machine(1);
    covered.tlb = None;
    let (_, work) = reordered_streams(
        &Streams::new(vec![vec![begin(&[7]), end()]]),
        &order,
        &Config::new(covered, Vec::new()),
    )
    .unwrap();
    assert_eq!((work.block, work.limit.as_str()), (1 << 20, "cache"));
}

#[test]
fn workers_get_neighbouring_bins_and_wait_for_each_other() {
    // Eight bins of two items each, with as many references in each.
    let mut items = vec![read(1000)];
    for item in 0..16u64 {
        items.extend([begin(&[item % 8 * 16]), read(item), end()]);
    }
    items.push(read(2000));
    let order = WorkOrder { workers: 0, ..ORDER };
    let (streams, work) = reordered_streams(&Streams::new(vec![items]), &order, &config(4)).unwrap();
    assert_eq!((work.workers, work.bins), (4, 8));
    let of = |thread: usize| addresses(&streams.threads[thread]);
    assert_eq!(of(0), [1000, 0, 8, 1, 9, 2000]);
    assert_eq!(of(1), [2, 10, 3, 11]);
    assert_eq!(of(2), [4, 12, 5, 13]);
    assert_eq!(of(3), [6, 14, 7, 15]);
    let event = |ticket, post| match post {
        true => Item::Event(Event::Post { ticket }),
        false => Item::Event(Event::Wait { ticket }),
    };
    assert_eq!(streams.threads[1].first(), Some(&event(0, false)));
    assert_eq!(streams.threads[1].last(), Some(&event(1, true)));
    let main = &streams.threads[0];
    assert_eq!(main[1..4], [event(0, true), event(2, true), event(4, true)]);
    let waits = [event(1, false), event(3, false), event(5, false), read(2000)];
    assert_eq!(main[main.len() - 4..], waits);
}

#[test]
fn workers_that_cannot_be_are_refused() {
    let items = vec![begin(&[1]), end()];
    let order = WorkOrder { workers: 2, ..ORDER };
    let refused = |threads: usize, config: &Config| {
        let streams = Streams::new(vec![items.clone(); threads]);
        reordered_streams(&streams, &order, config).unwrap_err().to_string()
    };
    assert!(refused(1, &config(1)).contains("--cpus 2"));
    assert!(refused(2, &config(2)).contains("the trace has 2 threads"));
    let posted = vec![vec![begin(&[1]), end(), Item::Event(Event::Post { ticket: u64::MAX })]];
    let error = reordered_streams(&Streams::new(posted), &order, &config(2)).unwrap_err();
    assert!(error.to_string().contains("ticket 18446744073709551614"), "{error}");
    let recorded = Config {
        order: Order::Recorded,
        ..config(2)
    };
    assert!(refused(1, &recorded).contains("--order clock"));
}

/// A thread's stream: items, references between them, and events that end runs.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let piece = prop_oneof![
        12 => (prop::collection::vec(0u64..80, 0..4), 0usize..6).prop_map(|(hints, refs)| {
            let refs = (0..refs as u64).map(|at| read(hints.iter().sum::<u64>() * 8 + at));
            [begin(&hints)].into_iter().chain(refs).chain([end()]).collect::<Vec<_>>()
        }),
        3 => (0u64..1 << 20, 0usize..9).prop_map(|(at, refs)| (0..refs as u64).map(|more| read(at + more)).collect()),
        1 => (0u64..1 << 20, 20usize..60).prop_map(|(at, refs)| (0..refs as u64).map(|more| read(at + more)).collect()),
        1 => Just(vec![Item::Event(Event::Phase { name: "next".into() })]),
        1 => Just(vec![begin(&[1]), read(5), Item::Event(Event::Lock { object: 1 }), read(6), end()]),
        1 => Just(vec![begin(&[2]), read(7)]),
        1 => Just(vec![end()]),
        1 => Just(vec![
            begin(&[70]),
            Item::Event(Event::Alloc { addr: 64, bytes: 8, stack: 0, kind: Allocation::Heap }),
            read(64),
            Item::Event(Event::Free { addr: 64 }),
            end()
        ]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: harness::cases(150), failure_persistence: None, ..ProptestConfig::default() })]

    /// Whichever way the segments come, the streams are the same.
    #[test]
    fn traces_come_in_the_order_of_the_streams(
        threads in prop::collection::vec(items(), 1..4),
        gap in 1u64..30,
        tour in prop::sample::select(vec![Tour::FirstFork, Tour::Nearest, Tour::Hilbert]),
        fold in any::<bool>(),
        workers in 1u32..4,
        room in prop::sample::select(vec![1u64, 7, 40, 1 << 20]),
        spilled in any::<bool>(),
    ) {
        let streams = Streams::new(threads);
        let workers = if streams.threads.len() == 1 { workers } else { 1 };
        let order = WorkOrder { gap, tour, fold, workers, ..ORDER };
        let config = config(4);
        let trace = trace_of(&streams);
        let room = Room { refs: room, events: 2 * room };
        let scattered = if spilled { 0 } else { u64::MAX };
        let expected = reordered_streams(&streams, &order, &config);
        let got = Reordered::within(&trace, &order, &config, room, scattered);
        let marked = |item: &Item| matches!(item, Item::Event(Event::WorkBegin { .. }));
        if !streams.threads.iter().flatten().any(marked) {
            prop_assert!(matches!(expected, Err(SimError::NoWork)));
            prop_assert!(matches!(got, Err(SimError::NoWork)));
            return Ok(());
        }
        let ((mut expected, work), got) = (expected.unwrap(), got.map_err(|error| error.to_string()).unwrap());
        prop_assert_eq!(&work, got.outcome());
        // Workers have stacks of their own.
        for (worker, items) in expected.threads.iter_mut().skip(streams.threads.len()).enumerate() {
            for item in items {
                if let Item::Ref(r) = item
                    && (STACK.0..STACK.1).contains(&r.addr)
                {
                    r.addr += (worker as u64 + 1) << 48;
                }
            }
        }
        let spawned = vec![false; streams.threads.len()];
        let mut input = ReorderedInput::new(&got, &spawned);
        prop_assert_eq!(without_hints(&all(&mut input)), without_hints(&expected.threads));
    }

    /// Nothing is lost, nothing is done twice, and threads keep to themselves.
    #[test]
    fn streams_are_permutations(threads in prop::collection::vec(items(), 1..4), gap in 1u64..30) {
        let streams = Streams::new(threads);
        let order = WorkOrder { gap, ..ORDER };
        let Ok((reordered, _)) = reordered_streams(&streams, &order, &config(1)) else { return Ok(()) };
        for (was, is) in streams.threads.iter().zip(&reordered.threads) {
            let sorted = |items: &[Item]| {
                let mut texts: Vec<_> = items.iter().map(|item| format!("{item:?}")).collect();
                texts.sort();
                texts
            };
            prop_assert_eq!(sorted(was), sorted(is));
        }
    }
}

#[test]
fn a_stream_that_nobody_reads_to_its_end_is_given_up() {
    let streams = Streams::new(vec![vec![read(1); 1000], vec![begin(&[1]), end()]]);
    let trace = trace_of(&streams);
    let reordered = Reordered::new(&trace, &ORDER, &config(2)).unwrap();
    let mut input = ReorderedInput::new(&reordered, &[false, false]);
    let mut batch = Batch::default();
    assert!(input.next(0, &mut batch).unwrap());
    drop(input);
}
