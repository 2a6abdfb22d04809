//! The ratio of a policy's thresholds, which are in misses, to a source's counts.

use std::time::Duration;

use policy::Name;

use super::sources::Scale;

/// The parameters that follow from a source's counts: a page is hot when half of the looks of a reset interval found it
/// in use, and the paper's other thresholds are in proportion.
pub fn settings(name: &Name, scale: Scale, interval: Duration) -> Vec<String> {
    /// The paper's trigger threshold (section 6.1).
    const TRIGGER: u32 = 128;
    /// Counts that a page can have in a reset interval, at least.
    const COUNTS: u32 = 8;
    let (sample, intervals) = match scale {
        Scale::Events(one_in) => (one_in.max(1), 1),
        Scale::Looks(counts) => {
            let intervals = COUNTS.div_ceil(counts.max(1));
            let hot = (intervals * counts).div_ceil(2).max(1);
            ((TRIGGER + hot / 2) / hot, intervals)
        }
    };
    let reset = (interval * intervals).as_micros().max(1);
    vec![format!("{name}.sample={sample}"), format!("{name}.reset={reset}")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_in_proportion_to_what_a_look_can_count() {
        let name = "migrate".parse().unwrap();
        let of = |scale| settings(&name, scale, Duration::from_secs(1));
        // Five of ten counts a look make a page hot: 128 divided by 26.
        assert_eq!(of(Scale::Looks(10)), ["migrate.sample=26", "migrate.reset=1000000"]);
        // With one count a look, four of eight looks do.
        assert_eq!(of(Scale::Looks(1)), ["migrate.sample=32", "migrate.reset=8000000"]);
        assert_eq!(of(Scale::Events(10)), ["migrate.sample=10", "migrate.reset=1000000"]);
    }
}
