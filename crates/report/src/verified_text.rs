//! A changed program, predicted and measured, for terminals.

use results::{Verified, time};

use crate::screen::WIDEST;
use crate::table::{FAINT, PLAIN, heading, paragraph};

/// The kernel's part is named if it changes the saving by this much.
const SEEN: f64 = 0.01;

/// The predictions for a change compared with the measurements, in at most `width` columns.
pub fn verified(verified: &Verified, width: usize) -> String {
    let width = width.min(WIDEST);
    let mut text = heading(&format!("Verified: {}", verified.command));
    text += &paragraph("", &beside(verified), width, PLAIN);
    text += &paragraph("", &agreement(verified), width, PLAIN);
    for note in &verified.notes {
        text += &paragraph("note: ", note, width, FAINT);
    }
    text
}

/// Both figures: `predicted: 26.8% less time (both recorded and simulated: 43.1 ms -> 31.5 ms); measured: 24.0% less
/// (range 22.1% to 25.0%, 9 rounds)`, and, if the kernel works a considerable part of the time, the figure that
/// includes it.
pub fn beside(verified: &Verified) -> String {
    let (predicted, measured, clock) = (&verified.predicted, verified.held_against(), &verified.measured);
    let times = |before, after| format!("{} -> {}", time(before), time(after));
    let with_kernel = match (measured.saved - clock.saved).abs() >= SEEN {
        true => format!(
            "; with the time in the kernel {} ({})",
            less(clock.saved),
            times(clock.before_ns, clock.after_ns)
        ),
        false => String::new(),
    };
    format!(
        "predicted: {} time (both recorded and simulated: {}); measured: {} ({}, range {}, {} rounds){with_kernel}",
        less(predicted.saved),
        times(predicted.before_ns, predicted.after_ns),
        less(measured.saved),
        times(measured.before_ns, measured.after_ns),
        range(verified.saved_low, verified.saved_high),
        verified.rounds.len(),
    )
}

/// A sentence that says whether they agree.
pub fn agreement(verified: &Verified) -> String {
    let (predicted, measured) = (verified.predicted.ratio(), verified.held_against().ratio());
    let ratios =
        format!("the time before is {predicted:.2} times that after as predicted, {measured:.2} times as measured");
    let within = (verified.saved_low..=verified.saved_high).contains(&verified.predicted.saved);
    if verified.unsure {
        return "The measurement is too uncertain to tell: measure with more work, or on a quieter machine."
            .to_string();
    }
    match (verified.agrees, within) {
        (true, true) => "They agree: the prediction is within the range of the rounds.".to_string(),
        (true, false) => format!("They agree within 20%: {ratios}."),
        (false, _) => format!("They do not agree: {ratios}."),
    }
}

/// Both ends as the figure beside them is said, so that nobody has to guess a sign: `22.1% to 25.0%` of what is saved, or
/// of what it takes longer; `4.2% more to 36.8% less` where the range has both.
fn range(low: f64, high: f64) -> String {
    match (low < 0.0, high < 0.0) {
        (true, true) => format!("{:.1}% to {:.1}%", -high * 100.0, -low * 100.0),
        (false, false) => format!("{:.1}% to {:.1}%", low * 100.0, high * 100.0),
        _ => format!("{} to {}", less(low), less(high)),
    }
}

fn less(saved: f64) -> String {
    match saved < 0.0 {
        true => format!("{:.1}% more", -saved * 100.0),
        false => format!("{:.1}% less", saved * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_reads_as_the_figure_before_it() {
        assert_eq!(range(0.221, 0.25), "22.1% to 25.0%");
        assert_eq!(range(-0.2, -0.1), "10.0% to 20.0%");
        assert_eq!(range(-0.042, 0.368), "4.2% more to 36.8% less");
    }
}
