//! Threads that were placed under caches: the outcome, and each way as predicted and as measured.

use results::{MeasuredWay, PlacedRun};

use crate::table::{Cell, Column, Role, Table};

/// The baseline of all others: the first order that is simulated.
const IN_ORDER: &str = "in order";

/// The ways side by side. Changes are relative to `in order`, which was also predicted and measured.
pub fn measured_ways(run: &PlacedRun) -> Table {
    let columns = [
        Column::new(Role::Label, "threads"),
        Column::new(Role::Time, "predicted"),
        Column::new(Role::Change, "").named("predicted change"),
        Column::new(Role::Time, "measured"),
        Column::new(Role::Change, "").named("measured change"),
        Column::new(Role::Time, "shortest"),
        Column::new(Role::Time, "longest"),
    ];
    let rounds = run.measured.iter().map(|way| way.rounds.len()).max().unwrap_or(0);
    let title = format!("{}: threads placed, {rounds} rounds in turns", run.program);
    let mut table = Table::new(title, columns);
    let base = run.measured.iter().find(|way| way.name == IN_ORDER);
    let predicted = base.and_then(|way| way.predicted_ns);
    let measured = base.and_then(MeasuredWay::times).map(|[median, ..]| median);
    let change = |value: Option<u64>, base: Option<u64>| match value.zip(base).filter(|(value, base)| value != base) {
        Some((value, base)) => Cell::change(value as f64, base as f64),
        None => Cell::empty(),
    };
    for way in &run.measured {
        let [median, shortest, longest] = way.times().unwrap_or_default();
        table.row([
            Cell::name(&way.name),
            way.predicted_ns.map_or_else(Cell::empty, Cell::time),
            change(way.predicted_ns, predicted),
            Cell::time(median),
            change(Some(median), measured),
            Cell::time(shortest),
            Cell::time(longest),
        ]);
    }
    table
}

/// The outcome for the threads, in a line.
pub fn placed(run: &PlacedRun) -> String {
    let all = run.placed + run.missing;
    let mut text = format!("{} of {all} threads placed ({})", run.placed, run.way);
    let unbegun = run.missing.saturating_sub(run.ended + run.denied);
    for (threads, what) in [
        (unbegun, "did not begin"),
        (run.ended, "ended at once"),
        (run.denied, "could not have the cpus"),
    ] {
        if threads > 0 {
            text += &format!(", {threads} {what}");
        }
    }
    match run.unknown {
        0 => {}
        1 => text += "; 1 more thread ran anywhere",
        more => text += &format!("; {more} more threads ran anywhere"),
    }
    for why in &run.refused {
        text += &format!("; {why}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_compared_with_the_order_of_the_simulation() {
        let way = |name: &str, predicted_ns, rounds: &[u64]| MeasuredWay {
            name: name.to_string(),
            predicted_ns,
            rounds: rounds.to_vec(),
        };
        let run = PlacedRun {
            program: "./a".to_string(),
            measured: vec![
                way("unplaced", None, &[3_000_000, 9_000_000, 4_000_000]),
                way("grouped", Some(2_000_000), &[2_500_000, 2_400_000, 2_600_000]),
                way(IN_ORDER, Some(4_000_000), &[5_000_000, 5_000_000, 5_000_000]),
            ],
            ..PlacedRun::default()
        };
        let table = measured_ways(&run);
        let words = |at: usize| table.row_at(at).iter().map(Cell::words).collect::<Vec<_>>();
        assert_eq!(
            words(0),
            ["unplaced", "", "", "4.00 ms", "-20.0%", "3.00 ms", "9.00 ms"]
        );
        assert_eq!(
            words(1),
            [
                "grouped", "2.00 ms", "-50.0%", "2.50 ms", "-50.0%", "2.40 ms", "2.60 ms"
            ]
        );
        assert_eq!(words(2), [IN_ORDER, "4.00 ms", "", "5.00 ms", "", "5.00 ms", "5.00 ms"]);
    }

    #[test]
    fn threads_that_are_missing_are_said() {
        let run = PlacedRun {
            way: "grouped".to_string(),
            placed: 3,
            missing: 6,
            ended: 2,
            denied: 1,
            unknown: 2,
            refused: vec!["cpus 9: Invalid argument".to_string()],
            ..PlacedRun::default()
        };
        let text = placed(&run);
        let counted = "3 of 9 threads placed (grouped), 3 did not begin, 2 ended at once, 1 could not have the cpus";
        assert!(text.starts_with(counted), "{text}");
        assert!(
            text.ends_with("; 2 more threads ran anywhere; cpus 9: Invalid argument"),
            "{text}"
        );
    }
}
