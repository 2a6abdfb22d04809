//! Software prefetches: recorded where asked for, with exactly their addresses.
#![forbid(unsafe_code)]

use crate::workshop;

use capture::Exit;
use trace::{Op, Trace};
use workshop::{Bench, compile, record, stream};

fn prefetched(trace: &Trace) -> Vec<u64> {
    let (refs, _) = stream(trace, 0);
    let prefetches = refs.iter().filter(|r| r.op == Op::Prefetch);
    prefetches.map(|r| r.addr).collect()
}

/// Records the program, which says where its own prefetches go.
fn record_both(bench: &Bench, prefetches: bool, fetches: bool) -> (Trace, Vec<u64>) {
    let output = bench.folder.path().join("addresses");
    let mut options = bench.options(&[output.to_str().unwrap()]);
    options.prefetches = prefetches;
    options.fetches = fetches;
    let (outcome, trace) = record(&options);
    assert_eq!(outcome.exit, Exit::Code(0));
    let said = std::fs::read_to_string(output).unwrap();
    let said: Vec<u64> = said
        .lines()
        .map(|line| u64::from_str_radix(line, 16).unwrap())
        .collect();
    assert_eq!(said.len(), 496);
    // No program has memory there: the processor drops them, and so does the recorder.
    let possible: Vec<u64> = said.into_iter().filter(|addr| addr >> 47 == 0).collect();
    assert_eq!(possible.len(), 490);
    (trace, possible)
}

const FLAGS: [&str; 2] = ["-mno-red-zone", "-no-pie"];

#[test]
fn every_form_of_address_is_computed_as_the_processor_does() {
    let bench = compile("prefetch", &FLAGS);
    let (trace, said) = record_both(&bench, true, false);
    let seen = prefetched(&trace);
    for (index, (seen, said)) in seen.iter().zip(&said).enumerate() {
        assert_eq!(seen, said, "number {index}");
    }
    // Those of the C library would come as well; it has none on the way of this program.
    assert_eq!(seen.len(), said.len());
    let info = trace::info(&trace).unwrap();
    assert_eq!(info.prefetches, 490);
    assert_eq!(
        info.references,
        info.reads + info.writes + info.modifies + info.fetches + info.prefetches
    );
    // Each is known by its instruction: the loop's is one place in the program.
    let (refs, _) = stream(&trace, 0);
    let last: Vec<_> = refs.iter().filter(|r| r.op == Op::Prefetch).skip(390).collect();
    let pcs: Vec<u64> = last.iter().map(|r| trace.sites()[r.site as usize].pc).collect();
    assert!(pcs.iter().all(|pc| *pc == pcs[0] && *pc != 0), "{pcs:x?}");
    assert!(last.iter().all(|r| r.size == 1));
}

#[test]
fn prefetches_come_among_fetches_in_their_place() {
    let bench = compile("prefetch", &FLAGS);
    let (trace, said) = record_both(&bench, true, true);
    assert!(prefetched(&trace) == said);
    let (refs, _) = stream(&trace, 0);
    for pair in refs.windows(2).filter(|pair| pair[1].op == Op::Prefetch) {
        let pc = trace.sites()[pair[1].site as usize].pc;
        assert_eq!((pair[0].op, pair[0].addr), (Op::Fetch, pc));
    }
}

#[test]
fn they_are_left_out_otherwise_and_nothing_else_changes() {
    let bench = compile("prefetch", &FLAGS);
    let (without, _) = record_both(&bench, false, false);
    let (with, _) = record_both(&bench, true, false);
    assert!(prefetched(&without).is_empty());
    // Of the program itself: the C library reads where random numbers of the kernel's lead it.
    let others = |trace: &Trace| -> Vec<(Op, u64, u16)> {
        let (refs, _) = stream(trace, 0);
        let own = |site: u32| (0x40_0000..0x50_0000).contains(&trace.sites()[site as usize].pc);
        let others = refs.into_iter().filter(|r| r.op != Op::Prefetch && own(r.site));
        others.map(|r| (r.op, r.addr, r.size)).collect()
    };
    assert_eq!(without.instructions(), with.instructions());
    let (without, with) = (others(&without), others(&with));
    assert_eq!(without.iter().zip(&with).position(|(a, b)| a != b), None);
    assert_eq!(without.len(), with.len());
    assert!(with.len() > 4000, "{}", with.len());
}
