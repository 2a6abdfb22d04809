//! Policy `order` against an obvious implementation of README.md's "Work in another order": the lines of a text
//! trace are put into the new order by hand, and both traces are simulated.
#![forbid(unsafe_code)]

use std::io::Cursor;

use machine::Machine;
use proptest::prelude::*;
use results::Outcome;
use sim::{Config, PolicySpec, SimError, simulate};
use trace::import::{self, Format};
use trace::{Header, Options, Trace, Writer};

/// A line of a text trace of one thread.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Ref(char, u64, u16),
    Begin(Vec<u64>),
    End,
    Barrier,
}

fn text(lines: &[Line]) -> String {
    let line = |line: &Line| match line {
        Line::Ref(op, addr, size) => format!("0 {op} {addr:x} {size}\n"),
        Line::Begin(hints) => {
            let hints: String = hints.iter().map(|hint| format!(" {hint:x}")).collect();
            format!("0 begin{hints}\n")
        }
        Line::End => "0 end\n".to_string(),
        Line::Barrier => "b 1\n".to_string(),
    };
    lines.iter().map(line).collect()
}

fn import(text: &str) -> Trace {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = Writer::create_with(file.path(), &Header::default(), Options::default()).unwrap();
    import::read(Format::Text, Cursor::new(text.as_bytes().to_vec()), "text", &mut writer).unwrap();
    writer.finish().unwrap();
    Trace::open(file.path()).unwrap()
}

/// A machine with small caches, so that little programs miss.
fn machine(cpus: u32) -> Machine {
    let text = format!(
        r#"
name = "small"
clock_mhz = 100
page_bytes = 512
cpus = {cpus}

[[cache]]
name = "L1"
level = 1
kind = "data"
bytes = 256
ways = 1
line_bytes = 16
cpus_per_instance = 1
index = "virtual"
hit_ns = 0.0

[[cache]]
name = "L2"
level = 2
kind = "unified"
bytes = 2048
ways = 2
line_bytes = 32
cpus_per_instance = 1
index = "physical"
hit_ns = 20.0

[tlb]
entries = 4
ways = 4
refill_ns = 50.0

[memory]
local_ns = 100.0
"#
    );
    machine::from_toml(&text, "small").unwrap()
}

fn run(trace: &Trace, policies: &[&str], sets: &[String], machine: Machine) -> Result<Vec<Outcome>, SimError> {
    let spec = |name: &&str| PolicySpec {
        name: name.parse().unwrap(),
        sets: sets.to_vec(),
        plan: None,
    };
    let config = Config::new(machine, policies.iter().map(spec).collect());
    let runs = simulate(trace, &config, &|_| {})?;
    Ok(runs.into_iter().map(|run| run.outcome).collect())
}

/// An outcome without the name of its policy and its report of the order.
fn counts(outcome: &Outcome) -> String {
    let mut outcome = outcome.clone();
    outcome.policy.clear();
    outcome.order = None;
    serde_json::to_string(&outcome).unwrap()
}

/// The README's rules, line by line.
fn reordered(lines: &[Line], block: u64, hints: usize, gap: usize, fold: bool) -> Vec<Line> {
    // Items: the lines from a beginning to the line after its end.
    let mut items: Vec<(usize, usize, Vec<u64>)> = Vec::new();
    let mut open: Option<(usize, Vec<u64>)> = None;
    for (number, line) in lines.iter().enumerate() {
        match line {
            Line::Begin(hints) => {
                if let Some((begin, hints)) = open.take() {
                    items.push((begin, number, hints));
                }
                open = Some((number, hints.clone()));
            }
            Line::End => {
                if let Some((begin, hints)) = open.take() {
                    items.push((begin, number + 1, hints));
                }
            }
            Line::Barrier => open = None,
            Line::Ref(..) => {}
        }
    }
    // Runs: items with no barrier and few references between them.
    let mut runs: Vec<Vec<(usize, usize, Vec<u64>)>> = Vec::new();
    for item in items {
        let apart = |last: &(usize, usize, Vec<u64>)| {
            let between = &lines[last.1..item.0];
            let refs = between.iter().filter(|line| matches!(line, Line::Ref(..))).count();
            refs > gap || between.contains(&Line::Barrier)
        };
        match runs.last_mut() {
            Some(run) if !apart(run.last().unwrap()) => run.push(item),
            _ => runs.push(vec![item]),
        }
    }
    let mut result = Vec::new();
    let mut done = 0;
    for run in runs {
        result.extend_from_slice(&lines[done..run[0].0]);
        done = run.last().unwrap().1;
        let mut bins: Vec<(Vec<u64>, Vec<Line>)> = Vec::new();
        for (at, (begin, _, own)) in run.iter().enumerate() {
            let end = run.get(at + 1).map_or(done, |next| next.0);
            let mut key: Vec<u64> = (0..hints).map(|k| own.get(k).unwrap_or(&0) / block).collect();
            if fold {
                key.sort();
            }
            let bin = match bins.iter().position(|(known, _)| *known == key) {
                Some(bin) => bin,
                None => {
                    bins.push((key, Vec::new()));
                    bins.len() - 1
                }
            };
            bins[bin].1.extend_from_slice(&lines[*begin..end]);
        }
        result.extend(bins.into_iter().flat_map(|(_, lines)| lines));
    }
    result.extend_from_slice(&lines[done..]);
    result
}

fn refs(most: usize) -> impl Strategy<Value = Vec<Line>> {
    let one = (prop::sample::select(vec!['r', 'r', 'w', 'm']), 0u64..8192, 1u16..20)
        .prop_map(|(op, addr, size)| Line::Ref(op, addr, size));
    prop::collection::vec(one, 0..most)
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let item = |most| {
        (prop::collection::vec(0u64..4096, 0..4), refs(most))
            .prop_map(|(hints, refs)| [vec![Line::Begin(hints)], refs, vec![Line::End]].concat())
    };
    let piece = prop_oneof![
        10 => item(12),
        3 => refs(8),
        1 => refs(40),
        1 => Just(vec![Line::Barrier]),
        1 => (item(5), refs(3)).prop_map(|(mut item, refs)| {
            // A barrier within an item.
            item.insert(1, Line::Barrier);
            [item, refs].concat()
        }),
        1 => Just(vec![Line::End]),
        1 => refs(4).prop_map(|refs| [vec![Line::Begin(vec![9])], refs].concat()),
    ];
    prop::collection::vec(piece, 1..50).prop_map(|pieces| pieces.concat())
}

fn is_marked(lines: &[Line]) -> bool {
    lines.iter().any(|line| matches!(line, Line::Begin(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: harness::cases(120), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_put_in_order_is_work_written_in_that_order(
        lines in lines(), block in 1u64..2048, hints in 1usize..4, gap in 1usize..12, fold in any::<bool>(),
    ) {
        prop_assume!(is_marked(&lines));
        let sets = [
            format!("order.block={block}"),
            format!("order.hints={hints}"),
            format!("order.gap={gap}"),
            format!("order.fold={}", u8::from(fold)),
        ];
        let trace = import(&text(&lines));
        let got = run(&trace, &["order", "order+random"], &sets, machine(1)).unwrap();
        let by_hand = import(&text(&reordered(&lines, block, hints, gap, fold)));
        let expected = run(&by_hand, &["page-coloring", "random"], &[], machine(1)).unwrap();
        prop_assert_eq!(counts(&got[0]), counts(&expected[0]));
        prop_assert_eq!(counts(&got[1]), counts(&expected[1]));
    }

    #[test]
    fn work_of_one_bin_is_as_it_was(lines in lines(), cpus in 1u32..3) {
        prop_assume!(is_marked(&lines));
        let sets = [format!("order.block={}", u64::MAX)];
        let trace = import(&text(&lines));
        let policies = ["order", "page-coloring", "first-touch+bin-hopping+order", "first-touch+bin-hopping"];
        let got = run(&trace, &policies, &sets, machine(cpus)).unwrap();
        let names: Vec<_> = got.iter().map(|outcome| outcome.policy.as_str()).collect();
        prop_assert_eq!(names, policies);
        prop_assert_eq!(counts(&got[0]), counts(&got[1]));
        prop_assert_eq!(counts(&got[2]), counts(&got[3]));
        let work = got[0].order.as_ref().unwrap();
        prop_assert_eq!((work.moved, work.bins), (0, work.runs));
        prop_assert!(got[1].order.is_none());
    }

    /// Several workers do the work of one; only the assignment and the times differ.
    #[test]
    fn workers_do_all_the_work(lines in lines(), workers in 2u32..5) {
        prop_assume!(is_marked(&lines));
        let trace = import(&text(&lines));
        let sets = |workers| ["order.block=512".to_string(), format!("order.workers={workers}")];
        let one = run(&trace, &["order"], &sets(1), machine(4)).unwrap().remove(0);
        let many = run(&trace, &["order"], &sets(workers), machine(4)).unwrap().remove(0);
        prop_assert_eq!(one.references, many.references);
        prop_assert_eq!(one.time_ns.busy, many.time_ns.busy);
        prop_assert_eq!(one.memory.pages, many.memory.pages);
        prop_assert_eq!(one.caches[0].accesses, many.caches[0].accesses);
        prop_assert_eq!(many.order.unwrap().workers, workers);
    }
}

/// Items use two vectors each; a cache that holds 8 of the 32 thrashes unless they come block by block.
#[test]
fn capacity_misses_go_away() {
    let vector = |number: u64| number * 256;
    let mut lines = Vec::new();
    for i in 0..16 {
        for j in 16..32 {
            let (a, b) = (vector(i), vector(j));
            lines.push(Line::Begin(vec![a, b]));
            for at in (0..256).step_by(32) {
                lines.extend([Line::Ref('r', a + at, 8), Line::Ref('r', b + at, 8)]);
            }
            lines.push(Line::End);
        }
    }
    let trace = import(&text(&lines));
    let outcomes = run(
        &trace,
        &["page-coloring", "order"],
        &["order.block=1024".to_string()],
        machine(1),
    )
    .unwrap();
    let misses = |outcome: &Outcome| (outcome.caches[1].misses, outcome.caches[1].capacity.unwrap());
    let ((before, capacity), (after, left)) = (misses(&outcomes[0]), misses(&outcomes[1]));
    assert!(
        after * 2 < before && left * 2 < capacity,
        "{before} {capacity} {after} {left}"
    );
    assert!(outcomes[1].time_ns.total < outcomes[0].time_ns.total);
    let work = outcomes[1].order.as_ref().unwrap();
    assert_eq!((work.items, work.bins, work.runs, work.fixed), (256, 16, 1, 0));
    assert_eq!((work.limit.as_str(), work.tour.as_str()), ("set", "first-fork"));
}

#[test]
fn a_trace_without_marks_says_what_to_do() {
    let trace = import("0 r 10 4\n");
    let error = run(&trace, &["page-coloring", "order"], &[], machine(1)).unwrap_err();
    assert!(matches!(error, SimError::NoWork));
    let said = error.to_string();
    assert!(
        said.contains("DOMICILE_WORK_BEGIN(count, hints)") && said.contains("domicile/trace.h"),
        "{said}"
    );
}

/// Detail is asked for one policy, whatever the others do with the work.
#[test]
fn detail_stays_with_its_policy() {
    let lines: Vec<_> = (0..40u64)
        .flat_map(|item| {
            [
                Line::Begin(vec![item % 4 * 512]),
                Line::Ref('w', item % 4 * 512, 4),
                Line::End,
            ]
        })
        .collect();
    let trace = import(&text(&lines));
    let policies = ["order", "page-coloring", "random", "random+order"]
        .map(|name| PolicySpec::new(name.parse().unwrap()))
        .to_vec();
    let mut config = Config::new(machine(1), policies);
    config.detail.structures = true;
    config.detail_for = Some(2);
    let outcomes = simulate(&trace, &config, &|_| {}).unwrap();
    let detailed: Vec<_> = outcomes.iter().map(|run| run.outcome.structures.is_some()).collect();
    assert_eq!(detailed, [false, false, true, false]);
    config.detail_for = None;
    config.threads = Some(1);
    let all = simulate(&trace, &config, &|_| {}).unwrap();
    assert!(all.iter().all(|run| run.outcome.structures.is_some()));
    for (few, all) in outcomes.iter().zip(all) {
        assert_eq!(few.outcome.time_ns, all.outcome.time_ns);
    }
}
