//! Predictions compared with the clock, as text.

use anstyle::Style;
use results::{Truth, TruthExperiment, TruthPair};

use crate::table::{Cell, Column, Role, Table, Tone, paragraph};

/// Ratios this near have at least the right magnitude.
const SIZE: f64 = 2.0;
/// The same for the time of a run.
const TIME: f64 = 1.5;
/// How many experiments are named.
const EXPERIMENTS: usize = 3;

/// With fewer rounds not even all of them hold the median in 95% of cases.
const ROUNDS_OF_INTERVAL: u32 = 6;

/// The table, its sums, the misses, and where the range is used.
pub fn truth(truth: &Truth, kept: bool, width: usize) -> String {
    let about = &truth.about;
    let title = format!(
        "Time before a change / time after it: {}, {} cpus, {} rounds",
        about.processor, about.cpus, about.rounds
    );
    let predicted = truth.pairs.iter().any(|pair| pair.predicted.is_some());
    let mut text = table(&truth.pairs, title, predicted).section(width);
    let said = |text: &str| paragraph("", text, width, Style::new());
    if predicted {
        text += &said(&sums(&truth.pairs));
    }
    if let Some(again) = again(&truth.pairs) {
        text += &said(&again);
    }
    if let Some(range) = &truth.range {
        let to = match kept {
            true => "; `domicile advise` prints its gains with this range until the machine boots again",
            false => "; it is not kept: that takes all ten pairs on `host`, six rounds, and five pairs that changed",
        };
        text += &said(&format!(
            "A predicted ratio p was measured as p^{} to p^{} ({} pairs){to}.",
            range.least, range.most, range.pairs
        ));
    }
    if about.rounds < ROUNDS_OF_INTERVAL {
        // All of so many rounds are on one side of the median by chance.
        let outside = 0.5f64.powi(about.rounds.saturating_sub(1) as i32);
        text += &said(&format!(
            "{} too few for an interval of 95%: this one holds the median in {:.0}% of cases. Measure {ROUNDS_OF_INTERVAL} rounds or more.",
            if about.rounds == 1 {
                "One round is".to_string()
            } else {
                format!("{} rounds are", about.rounds)
            },
            100.0 * (1.0 - outside)
        ));
    }
    // A table notes that it was measured beside other work.
    if about.load > 0.5 {
        text += &said(&format!(
            "{:.1} other processes were running as it began: run it again where nothing else does.",
            about.load
        ));
    }
    if let Some(shared) = shared_cores(&truth.pairs) {
        text += &said(&shared);
    }
    let missed: Vec<&TruthPair> = truth.pairs.iter().filter(|pair| is_missed(pair)).collect();
    if !missed.is_empty() {
        text += "\nWhat missed, by side:\n";
    }
    for pair in missed {
        let experiment = closed_by(pair).map(|said| format!(". {said}")).unwrap_or_default();
        let said = format!("{}: {}{experiment}", pair.name, sides(pair));
        text += &paragraph("  ", &said, width, Style::new());
    }
    text
}

fn table(pairs: &[TruthPair], title: String, predicted: bool) -> Table {
    let again = pairs.iter().any(|pair| !pair.again.is_empty());
    let mut columns = vec![
        Column::new(Role::Label, "pair"),
        Column::new(Role::Text, "change"),
        Column::new(Role::Number, "measured"),
        Column::new(Role::Text, "95%"),
    ];
    if again {
        columns.push(Column::new(Role::Text, "again"));
    }
    if predicted {
        columns.extend([
            Column::new(Role::Number, "predicted"),
            Column::new(Role::Text, "sign"),
            Column::new(Role::Number, "off by"),
        ]);
    }
    let mut table = Table::new(title, columns);
    for pair in pairs {
        let measured = &pair.measured;
        let mut cells = vec![
            pair.name.as_str().into(),
            pair.kind.as_str().into(),
            ratio(measured.ratio),
            format!("{} to {}", number(measured.least), number(measured.most)).into(),
        ];
        if again {
            cells.push(of_again(pair).into());
        }
        if let Some(prediction) = &pair.predicted {
            cells.push(ratio(prediction.ratio));
            cells.push(match pair.sign_right {
                None => Cell::faint("none measured"),
                Some(true) => "right".into(),
                Some(false) => Cell::from("WRONG").toned(Tone::Bad),
            });
            cells.push(ratio(pair.off.unwrap_or(1.0)));
        } else if predicted {
            cells.extend([Cell::unknown(), Cell::unknown(), Cell::unknown()]);
        }
        table.row(cells);
    }
    table
}

fn ratio(value: f64) -> Cell {
    Cell::decimals(value, if value < 100.0 { 2 } else { 0 }, "x")
}

/// A ratio, or milliseconds.
pub fn number(value: f64) -> String {
    let digits = if value < 100.0 { 2 } else { 0 };
    format!("{value:.digits$}")
}

/// How many pairs are predicted right: in a sentence or two.
pub fn sums(pairs: &[TruthPair]) -> String {
    let predicted: Vec<&TruthPair> = pairs.iter().filter(|pair| pair.predicted.is_some()).collect();
    let signs: Vec<bool> = predicted.iter().filter_map(|pair| pair.sign_right).collect();
    let right = signs.iter().filter(|right| **right).count();
    let within = |times| predicted.iter().filter(|pair| pair.is_within(times)).count();
    let runs: Vec<f64> = predicted
        .iter()
        .flat_map(|pair| times(pair))
        .map(|(_, measured, predicted)| predicted / measured)
        .collect();
    let near = runs.iter().filter(|off| off.max(1.0 / **off) <= TIME).count();
    // A clock on a shared machine varies.
    let of_interval = |pair: &&&TruthPair| {
        let (least, most) = (
            pair.measured.least / TruthPair::NEAR,
            pair.measured.most * TruthPair::NEAR,
        );
        pair.predicted
            .is_some_and(|predicted| (least..=most).contains(&predicted.ratio))
    };
    format!(
        "The sign is right in {right} of {} pairs that have one; the ratio is within 20% in {} of {}, within 2 times in {}, and \
         within 20% of the measured interval in {}. The run time itself is within {TIME} times in {near} of {} runs.",
        signs.len(),
        within(TruthPair::NEAR),
        predicted.len(),
        within(SIZE),
        predicted.iter().filter(of_interval).count(),
        runs.len()
    )
}

/// The ratios of a pair's other measurements.
pub fn of_again(pair: &TruthPair) -> String {
    let ratios: Vec<String> = pair.again.iter().map(|ratio| number(*ratio)).collect();
    ratios.join(", ")
}

/// The repeatability of the clock: if it is poor, even a perfect prediction would miss. None if no pair was measured
/// again.
pub fn again(pairs: &[TruthPair]) -> Option<String> {
    let off: Vec<f64> = pairs.iter().flat_map(TruthPair::off_again).collect();
    let within = |times: f64| off.iter().filter(|off| **off <= times).count();
    (!off.is_empty()).then(|| {
        format!(
            "The clock beside itself: the ratio is within 20% of this measurement in {} of {} repeats, within 2 times in {}.",
            within(TruthPair::NEAR),
            off.len(),
            within(SIZE)
        )
    })
}

/// The rounds beside other work on the same core. None if there were none.
pub fn shared_cores(pairs: &[TruthPair]) -> Option<String> {
    let left_out: u32 = pairs.iter().map(|pair| pair.measured.left_out).sum();
    let all: usize = pairs.iter().map(|pair| pair.measured.rounds.len()).sum();
    let mut said = Vec::new();
    if left_out > 0 {
        said.push(format!(
            "Other work, perhaps of another guest, had a part of the core in {left_out} of {all} rounds, which are left out."
        ));
    }
    let shared = pairs.iter().filter(|pair| pair.measured.shared > 0);
    let names: Vec<&str> = shared.map(|pair| pair.name.as_str()).collect();
    if !names.is_empty() {
        said.push(format!(
            "The core was shared in most rounds of {}: all of these count, and both sides are slower than alone.",
            names.join(", ")
        ));
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// True if the sign is wrong, or if the ratio is not within 20%.
pub fn is_missed(pair: &TruthPair) -> bool {
    pair.predicted.is_some() && (pair.sign_right == Some(false) || !pair.is_within(TruthPair::NEAR))
}

/// Milliseconds of each side, measured and predicted.
fn times(pair: &TruthPair) -> Vec<(&'static str, f64, f64)> {
    let measured = &pair.measured;
    let sides = pair.predicted.iter().flat_map(|predicted| {
        [
            ("before", measured.before_ns / 1e6, predicted.before_ns / 1e6),
            ("after", measured.after_ns / 1e6, predicted.after_ns / 1e6),
        ]
    });
    sides.filter(|(_, measured, _)| *measured > 0.0).collect()
}

/// So that a reader sees which side the prediction misses.
pub fn sides(pair: &TruthPair) -> String {
    let side = |(side, measured, predicted): (&str, f64, f64)| {
        let times = number(predicted / measured);
        format!(
            "{side} {} ms, predicted {} ({times} times)",
            number(measured),
            number(predicted)
        )
    };
    let sides: Vec<String> = times(pair).into_iter().map(side).collect();
    sides.join("; ")
}

/// The changes of one figure of the machine that would bring the ratio within 20%. None if none was tried.
pub fn closed_by(pair: &TruthPair) -> Option<String> {
    let experiments = pair.experiments.as_ref()?;
    let said = |one: &TruthExperiment| format!("{} ({})", one.changed, number(one.ratio));
    let shown: Vec<String> = experiments.iter().take(EXPERIMENTS).map(said).collect();
    Some(match shown.as_slice() {
        [] => "No change of one figure of the machine closes it.".to_string(),
        shown => format!("Within 20% with {}.", shown.join(", or ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_counted_by_how_far_they_are_off() {
        let of = |again: &[f64]| TruthPair {
            measured: results::TruthMeasured {
                ratio: 1.0,
                ..results::TruthMeasured::default()
            },
            again: again.to_vec(),
            ..TruthPair::default()
        };
        assert_eq!(again(&[of(&[]), of(&[])]), None);
        let said = again(&[of(&[1.1, 0.7]), of(&[3.0]), of(&[])]).unwrap();
        assert!(said.contains("in 1 of 3 repeats, within 2 times in 2."), "{said}");
    }

    #[test]
    fn rounds_on_shared_cores_are_told() {
        let of = |name: &str, left_out: u32, shared: u32| TruthPair {
            name: name.to_string(),
            measured: results::TruthMeasured {
                left_out,
                shared,
                rounds: vec![results::TruthRound::default(); 7],
                ..results::TruthMeasured::default()
            },
            ..TruthPair::default()
        };
        assert_eq!(shared_cores(&[of("quiet", 0, 0)]), None);
        let said = shared_cores(&[of("one", 2, 0), of("other", 0, 4)]).unwrap();
        assert!(said.contains("in 2 of 14 rounds, which are left out"), "{said}");
        assert!(said.contains("most rounds of other:"), "{said}");
    }

    #[test]
    fn few_rounds_are_said_to_give_no_interval() {
        let of = |rounds: u32| {
            let about = results::TruthAbout {
                rounds,
                ..results::TruthAbout::default()
            };
            truth(
                &Truth {
                    about,
                    ..Truth::default()
                },
                false,
                200,
            )
        };
        assert!(
            of(1).contains("One round is too few") && of(1).contains("in 0% of cases"),
            "{}",
            of(1)
        );
        assert!(
            of(3).contains("3 rounds are too few") && of(3).contains("in 75% of cases"),
            "{}",
            of(3)
        );
        assert!(!of(6).contains("too few"), "{}", of(6));
    }
}
