use super::*;
use crate::comparison::{ComparedRow, Verdict};
use crate::detail::{LineStructure, SourceLine, Structure};
use crate::windows::{Estimate, Windows};

fn outcome(wall: u64) -> Outcome {
    let mut outcome = Outcome {
        policy: "random".to_string(),
        machine: "pair".to_string(),
        references: 1000,
        ..Outcome::default()
    };
    outcome.time_ns.wall = wall;
    outcome.time_ns.total = wall;
    outcome.time_ns.busy = wall / 2;
    outcome.time_ns.cache_stall = wall - wall / 2;
    outcome
}

fn recordings(outcomes: Vec<Outcome>) -> Recordings {
    let counted = |outcome| Counted {
        outcome,
        ..Counted::default()
    };
    Recordings {
        name: "it".to_string(),
        kind: SideKind::Trace,
        recordings: outcomes.into_iter().map(counted).collect(),
    }
}

fn line(function: &str, line: u32, structure: &str, stall_ns: u64) -> SourceLine {
    SourceLine {
        function: function.to_string(),
        file: Some("/src/a.c".to_string()),
        line: Some(line),
        stall_ns,
        caches: Vec::new(),
        structures: vec![LineStructure {
            name: structure.to_string(),
            stall_ns,
        }],
    }
}

fn with_lines(lines: Vec<SourceLine>) -> Recordings {
    let mut outcome = outcome(10_000);
    outcome.source_lines = Some(lines);
    recordings(vec![outcome])
}

fn with_structures(structures: &[(&str, u64)]) -> Recordings {
    let mut outcome = outcome(10_000);
    let structures = structures.iter().map(|(name, stall_ns)| Structure {
        name: name.to_string(),
        stall_ns: *stall_ns,
        ..Structure::default()
    });
    outcome.structures = Some(structures.collect());
    recordings(vec![outcome])
}

fn told(rows: &[ComparedRow]) -> Vec<(&str, u64, u64, Verdict)> {
    let row = |row: &'_ ComparedRow| (row.time_ns.before, row.time_ns.after, row.time_ns.verdict);
    rows.iter()
        .map(|of| {
            let (before, after, verdict) = row(of);
            (&*of.name, before, after, verdict)
        })
        .collect()
}

#[test]
fn the_same_twice_is_the_same_in_everything() {
    let side = with_lines(vec![line("f", 3, "a", 500)]);
    let comparison = compare(&side, &side).unwrap();
    assert_eq!(comparison.time.verdict, Verdict::Same);
    let rows = comparison.parts.iter().chain(comparison.source_lines.iter().flatten());
    assert!(rows.clone().count() >= 3 && rows.clone().all(|row| row.time_ns.verdict == Verdict::Same));
    assert!(comparison.notes[0].contains("under 1%"), "{:?}", comparison.notes);
}

#[test]
fn what_recordings_differ_by_is_no_difference() {
    let before = recordings(vec![outcome(1000), outcome(1060)]);
    let after = recordings(vec![outcome(980), outcome(990)]);
    let comparison = compare(&before, &after).unwrap();
    assert_eq!((comparison.time.before, comparison.time.noise), (1030, 60));
    assert_eq!(comparison.time.verdict, Verdict::Same);
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    let after = recordings(vec![outcome(900), outcome(900)]);
    assert_eq!(compare(&before, &after).unwrap().time.verdict, Verdict::Better);
}

#[test]
fn lines_that_stay_are_compared_one_by_one() {
    let before = with_lines(vec![
        line("f", 3, "a", 500),
        line("f", 4, "b", 300),
        line("g", 9, "a", 100),
    ]);
    let after = with_lines(vec![
        line("f", 3, "a", 100),
        line("f", 4, "b", 302),
        line("h", 12, "a", 90),
    ]);
    let comparison = compare(&before, &after).unwrap();
    assert_eq!(
        told(comparison.source_lines.as_deref().unwrap()),
        [
            ("a.c:3", 500, 100, Verdict::Better),
            ("a.c:9", 100, 0, Verdict::Better),
            ("a.c:12", 0, 90, Verdict::Worse),
            ("a.c:4", 300, 302, Verdict::Same),
        ]
    );
}

#[test]
fn lines_that_moved_are_summed_by_function_and_structure() {
    let before = with_lines(vec![line("f", 3, "a", 500), line("f", 4, "b", 300)]);
    let after = with_lines(vec![
        line("f", 5, "a", 200),
        line("f", 6, "b", 300),
        line("f", 9, "a", 50),
    ]);
    let comparison = compare(&before, &after).unwrap();
    let rows = comparison.source_lines.as_deref().unwrap();
    assert_eq!(
        told(rows),
        [("a.c", 500, 250, Verdict::Better), ("a.c", 300, 300, Verdict::Same)]
    );
    assert!(rows.iter().all(|row| row.moved));
    assert_eq!(rows[0].structure.as_deref(), Some("a"));
    assert!(comparison.notes.iter().any(|note| note.contains("are summed")));
}

#[test]
fn a_function_whose_file_was_renamed_is_the_same() {
    let mut elsewhere = line("f", 13, "a", 100);
    elsewhere.file = Some("/src/b.c".to_string());
    let comparison = compare(&with_lines(vec![line("f", 3, "a", 500)]), &with_lines(vec![elsewhere])).unwrap();
    assert_eq!(
        told(comparison.source_lines.as_deref().unwrap()),
        [("b.c", 500, 100, Verdict::Better)]
    );
}

#[test]
fn structures_are_matched_by_name_and_then_without_their_lines() {
    let before = with_structures(&[
        ("table", 400),
        ("heap: make (a.c:12)", 300),
        ("heap: old (a.c:3)", 50),
        ("stack of thread 1458", 30),
        ("stack of thread 1459", 10),
    ]);
    let after = with_structures(&[("table", 800), ("heap: make (a.c:14)", 100), ("stack of thread 77", 40)]);
    let comparison = compare(&before, &after).unwrap();
    assert_eq!(
        told(comparison.structures.as_deref().unwrap()),
        [
            ("table", 400, 800, Verdict::Worse),
            ("heap: make (a.c)", 300, 100, Verdict::Better),
            ("heap: old (a.c:3)", 50, 0, Verdict::Better),
            ("stacks of threads", 40, 40, Verdict::Same),
        ]
    );
    assert_eq!(
        compare(&before, &recordings(vec![outcome(1)])).unwrap().structures,
        None
    );
}

#[test]
fn what_is_not_of_one_machine_and_policy_is_refused() {
    let one = recordings(vec![outcome(1000)]);
    let with = |change: fn(&mut Outcome)| {
        let mut other = outcome(1000);
        change(&mut other);
        compare(&one, &recordings(vec![other]))
    };
    let machine = with(|other| other.machine = "vax".to_string());
    assert!(matches!(machine, Err(Incomparable::Machines { .. })));
    let policy = with(|other| other.policy = "bin-hopping".to_string());
    assert!(matches!(policy, Err(Incomparable::Policies { .. })));
    let replayed = with(|other| other.replayed_misses = Some(3));
    assert_eq!(replayed, Err(Incomparable::Replayed));
    let mut waiting = recordings(vec![outcome(1000)]);
    waiting.recordings[0].one_by_one = true;
    assert_eq!(compare(&one, &waiting), Err(Incomparable::Models));
    assert!(compare(&waiting, &waiting).is_ok());
    assert!(matches!(
        compare(&one, &recordings(Vec::new())),
        Err(Incomparable::Nothing(_))
    ));
    let cpus = |cpus| {
        let mut side = one.clone();
        side.recordings[0].machine = Some(MachineFacts {
            name: "pair".to_string(),
            cpus,
            ..MachineFacts::default()
        });
        side
    };
    let said = compare(&cpus(1), &cpus(2)).unwrap_err().to_string();
    assert!(said.contains("1 and 2 cpus"), "{said}");
}

#[test]
fn a_result_of_several_policies_wants_one_named() {
    let document = |policies: &[&str]| {
        let outcome = |policy: &&str| Outcome {
            policy: policy.to_string(),
            ..outcome(10)
        };
        Document::Outcomes(policies.iter().map(outcome).collect())
    };
    let of = |policies: &[&str], wanted| Counted::of(document(policies), wanted, "before");
    assert_eq!(of(&["random"], None).unwrap().outcome.policy, "random");
    assert_eq!(of(&["random", "cdpc"], Some("cdpc")).unwrap().outcome.policy, "cdpc");
    let said = of(&["random", "cdpc"], None).unwrap_err().to_string();
    assert!(said.contains("random, cdpc") && said.contains("--policy"), "{said}");
    let said = of(&["random"], Some("cdpc")).unwrap_err().to_string();
    assert!(said.contains("no policy `cdpc`"), "{said}");
}

#[test]
fn causes_are_of_the_recordings_where_they_were_looked_for() {
    let cause = |structure: &str, stall_ns| Cause {
        structure: structure.to_string(),
        kind: crate::causes::CauseKind::WalksAcross,
        stall_ns,
        ..Cause::default()
    };
    let with = |causes: Vec<Cause>| {
        let mut side = recordings(vec![outcome(10_000), outcome(10_000)]);
        side.recordings[0].causes = Some(causes);
        side
    };
    let before = with(vec![cause("heap: make (a.c:12)", 900), cause("table", 500)]);
    let after = with(vec![cause("heap: make (a.c:13)", 300), cause("table", 504)]);
    let comparison = compare(&before, &after).unwrap();
    let rows = comparison.causes.as_deref().unwrap();
    assert_eq!(
        told(rows),
        [
            ("walks-across", 900, 300, Verdict::Better),
            ("walks-across", 500, 504, Verdict::Same)
        ]
    );
    assert_eq!(rows[0].structure.as_deref(), Some("heap: make (a.c)"));
    let none = recordings(vec![outcome(10_000)]);
    assert_eq!(compare(&before, &none).unwrap().causes, None);
}

#[test]
fn results_that_share_no_data_are_pointed_out() {
    let noted = |after: &[(&str, u64)]| {
        let comparison = compare(&with_structures(&[("a", 500), ("b", 300)]), &with_structures(after)).unwrap();
        comparison
            .notes
            .iter()
            .any(|note| note.contains("two different programs"))
    };
    assert!(noted(&[("c", 500), ("d", 300)]));
    assert!(!noted(&[("c", 500), ("b", 300)]));
}

fn of_windows(wall: u64, half: f64) -> Counted {
    let mut outcome = outcome(wall);
    let mut windows = Windows::new(Vec::new(), Some(100_000));
    windows.ns_per_reference = Estimate {
        mean: 1.0,
        low: Some(1.0 - half),
        high: Some(1.0 + half),
    };
    outcome.windows = Some(windows);
    Counted {
        outcome,
        ..Counted::default()
    }
}

/// Windows at other places of the same run differ by as much as their intervals leave open.
#[test]
fn windows_differ_by_chance() {
    let side = |counted: &[Counted]| Recordings {
        recordings: counted.to_vec(),
        ..recordings(Vec::new())
    };
    // Each is known to 10%, and so their difference to 14%.
    let after = |wall| compare(&side(&[of_windows(1000, 0.1)]), &side(&[of_windows(wall, 0.1)])).unwrap();
    assert_eq!(
        [1130, 1300, 700].map(|wall| after(wall).time.verdict),
        [Verdict::Same, Verdict::Worse, Verdict::Better]
    );
    assert!(after(1130).notes[0].contains("differences under 14.1% are not told from chance"));
    // However often they are recorded at the same places.
    let twice = |wall| side(&[of_windows(wall, 0.1), of_windows(wall, 0.1)]);
    assert_eq!(compare(&twice(1000), &twice(1130)).unwrap().time.verdict, Verdict::Same);
    // Windows that all take as long say so.
    let sure = compare(&side(&[of_windows(1000, 0.0)]), &side(&[of_windows(1130, 0.0)])).unwrap();
    assert_eq!(sure.time.verdict, Verdict::Worse);
    assert!(sure.notes[0].starts_with("one recording each"), "{:?}", sure.notes);
}

#[test]
fn runs_of_which_one_is_a_part_are_not_compared() {
    let whole = recordings(vec![outcome(1000)]);
    let windows = Recordings {
        recordings: vec![of_windows(100, 0.1)],
        ..whole.clone()
    };
    assert_eq!(compare(&whole, &windows), Err(Incomparable::Windows));
    let mut broken = whole.clone();
    broken.recordings[0].broke = Some("the program was killed by signal 11 (SIGSEGV)".to_string());
    let refusal = compare(&broken, &whole).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "one is not a whole run (the program was killed by signal 11 (SIGSEGV)), and the other is: record it again"
    );
    // Two that were both ended alike are.
    assert!(compare(&broken, &broken).is_ok());
}
