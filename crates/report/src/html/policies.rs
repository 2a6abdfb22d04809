//! Placements side by side: the time under each beside that of the baseline.

use results::{Advice, Outcome, Verdict};

use super::pictures::{Drawing, Pair, Picture, View};
use super::sections::Sections;

const TITLE: &str = "Where placements gain";
/// A smaller part of the time is no difference.
const SAME: f64 = 0.005;

/// Nothing where no placement was simulated beside the baseline. The table of policies has the numbers.
pub fn section(sections: &mut Sections, advice: &Advice) {
    let Some(base) = advice.base() else { return };
    let before = base.time_ns.wall;
    let pair = |outcome: &Outcome| {
        let after = outcome.time_ns.wall;
        let change = (after as f64 - before as f64) / before.max(1) as f64;
        Pair {
            name: outcome.name(),
            before,
            after,
            verdict: match change {
                _ if change.abs() < SAME => Verdict::Same,
                _ if change < 0.0 => Verdict::Better,
                _ => Verdict::Worse,
            },
        }
    };
    let mut others: Vec<&Outcome> = advice
        .policies
        .iter()
        .filter(|outcome| outcome.policy != base.policy)
        .collect();
    if others.is_empty() {
        return;
    }
    others.sort_by_key(|outcome| outcome.time_ns.wall);
    let picture = Picture::new(
        TITLE,
        vec![View {
            name: TITLE.to_string(),
            drawing: Drawing::Pairs {
                rows: others.into_iter().map(pair).collect(),
            },
        }],
    );
    let caption = format!(
        "The fastest placement first. The upper bar of each is the time under {}, the lower one the time under it: green where it is less, red \
         where it is more, grey where they differ by less than 0.5%.",
        base.policy
    );
    sections.picture(TITLE, &caption, picture, &[]);
}
