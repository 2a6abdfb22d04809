//! A slot that gains something on small pages, on machines whose system puts data on huge ones.

use std::path::Path;

use advise::Settings;
use machine::Machine;
use results::SlotAdvice;
use trace::{Header, Op, Process, Ref, Site, Symbol, Thread, Trace, Writer};

const PAGE: u64 = 4096;
const LINE: u64 = 256;
/// One huge page, half of the cache.
const VECTOR: u64 = 0x4000_0000;
const VECTOR_BYTES: u64 = 2 << 20;
/// As much of it as the cache holds goes by in each round.
const STREAM: u64 = 0x8000_0000;
const STREAMED: u64 = 4 << 20;
const ROUNDS: u64 = 5;

/// A cache of 256 colors; a miss takes 100 ns, a walk `refill_ns`, for which the TLB has far fewer entries than the vector has pages.
fn machine(refill_ns: u32, huge_pages: &str) -> Machine {
    let text = format!(
        "name = \"small\"\nclock_mhz = 1000\npage_bytes = 4096\ncpus = 1\n\
         [[cache]]\nname = \"L1\"\nlevel = 1\nkind = \"unified\"\nbytes = 4194304\nways = 4\nline_bytes = 256\nhit_ns = 0.0\n\
         [tlb]\nentries = 16\nrefill_ns = {refill_ns}\n\
         [memory]\nlocal_ns = 100.0\nhuge_pages = \"{huge_pages}\"\n"
    );
    machine::from_toml(&text, "small.toml").unwrap()
}

/// Both are read in an order in which each line is on another page than the one before it: each walks.
fn write(path: &Path) {
    let mut writer = Writer::create(path, &Header::default()).unwrap();
    let process = writer.process(Process::default());
    let thread = writer.thread(Thread {
        process,
        ..Thread::default()
    });
    let symbol = |name: &str, addr, bytes| Symbol {
        process,
        name: name.to_string(),
        addr,
        bytes,
        ..Symbol::default()
    };
    writer.symbols([
        symbol("vector", VECTOR, VECTOR_BYTES),
        symbol("stream", STREAM, ROUNDS * STREAMED),
    ]);
    let (op, size) = (Op::Read, 8);
    let site = writer.site(Site { pc: 0x1000, op, size });
    let mut read = |addr| {
        let insns = 1;
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
    };
    let mut across = |start: u64, bytes: u64| {
        for line in 0..PAGE / LINE {
            (0..bytes / PAGE).for_each(|page| read(start + page * PAGE + line * LINE));
        }
    };
    for round in 0..ROUNDS {
        across(VECTOR, VECTOR_BYTES);
        across(STREAM + round * STREAMED, STREAMED);
    }
    writer.finish().unwrap();
}

fn with_trace<R>(work: impl FnOnce(&Trace) -> R) -> R {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vector.trace");
    write(&path);
    work(&Trace::open(&path).unwrap())
}

fn partition(trace: &Trace, refill_ns: u32, huge_pages: &str) -> SlotAdvice {
    let machine = machine(refill_ns, huge_pages);
    advise::partition(trace, &machine, &Settings::default())
        .unwrap()
        .unwrap()
}

#[test]
fn a_slot_that_gains_on_small_pages_is_refused_where_walks_cost_more() {
    with_trace(|trace| {
        let small = partition(trace, 150, "never");
        assert!(advise::slots_gain(&small), "{}", small.verdict);
        assert_eq!(small.huge_pages, None);
        // The program does not ask, so its variables are on small pages.
        assert_eq!(partition(trace, 150, "madvise"), small);

        let refused = partition(trace, 150, "always");
        let lost = refused.huge_pages.expect("data is on huge pages");
        assert!(!advise::slots_gain(&refused) && lost.refused, "{}", refused.verdict);
        assert!(lost.gain_ns > 0 && lost.loss_ns > lost.gain_ns, "{lost:?}");
        // The gain is that on small pages; what is left of it is the difference on huge ones.
        assert_eq!(lost.gain_ns as u64, small.against_ns - small.wall_ns);
        assert_eq!(
            lost.gain_ns - lost.loss_ns,
            lost.against_ns as i64 - lost.wall_ns as i64
        );
        // What huge pages save: all walks of the vector without a slot, none with one.
        let walks = ROUNDS * VECTOR_BYTES / LINE * 150;
        assert!(lost.loss_ns as f64 > 0.9 * walks as f64, "{lost:?}, {walks}");
        let said = &refused.verdict;
        assert!(
            said.contains("is refused: where data is on huge pages, fewer misses save "),
            "{said}"
        );
        assert!(said.contains(" by walks of the TLB and page faults"), "{said}");

        // Cheaper walks: less is lost than gained, and both are said.
        let kept = partition(trace, 10, "always");
        let lost = kept.huge_pages.expect("data is on huge pages");
        assert!(advise::slots_gain(&kept) && !lost.refused, "{}", kept.verdict);
        assert!(lost.loss_ns > 0 && lost.bytes >= VECTOR_BYTES, "{lost:?}");
        assert!(kept.verdict.contains("walks of the TLB"), "{}", kept.verdict);
    });
}

#[test]
fn an_advice_says_what_is_refused_and_proposes_nothing_of_it() {
    with_trace(|trace| {
        let advice = |huge_pages| advise::advise(trace, &machine(150, huge_pages), &Settings::default()).unwrap();
        let proposes = |advice: &results::Advice| advice.todo.iter().any(|todo| todo.kind == "cache-slots");
        let small = advice("never");
        assert!(proposes(&small), "{:?}", small.todo);
        let refused = advice("always");
        assert!(!proposes(&refused), "{:?}", refused.todo);
        for text in [&refused.verdict, &refused.otherwise] {
            assert!(text.contains("is refused: where data is on huge pages"), "{text}");
        }
    });
}
