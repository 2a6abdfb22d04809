//! Placements side by side: the time under each compared with that of the baseline.

use results::{Advice, Verdict};

use super::pictures::{Drawing, Pair, Picture, View};
use super::sections::Sections;

const TITLE: &str = "Where placements gain";
/// A smaller part of the time does not count as a difference.
const SAME: f64 = 0.005;

/// No section if no simulated placement gains. The tables of policies and of remedies for remote data have the numbers.
pub fn section(sections: &mut Sections, advice: &Advice) {
    let Some(base) = advice.base() else { return };
    let before = base.time_ns.wall;
    let pair = |name: String, after: u64| {
        let change = (after as f64 - before as f64) / before.max(1) as f64;
        Pair {
            name,
            before,
            after,
            verdict: match change {
                _ if change.abs() < SAME => Verdict::Same,
                _ if change < 0.0 => Verdict::Better,
                _ => Verdict::Worse,
            },
        }
    };
    let others = advice.policies.iter().filter(|outcome| outcome.policy != base.policy);
    let mut rows: Vec<Pair> = others
        .map(|outcome| pair(outcome.name(), outcome.time_ns.wall))
        .collect();
    let remedies = advice.homes.iter().flat_map(|homes| &homes.remedies);
    rows.extend(remedies.map(|remedy| pair(remedy.name.clone(), remedy.wall_ns)));
    rows.sort_by(|a, b| (a.after, &a.name).cmp(&(b.after, &b.name)));
    rows.dedup_by(|a, b| a.name == b.name);
    if !rows.iter().any(|row| row.verdict == Verdict::Better) {
        return;
    }
    let picture = Picture::new(
        TITLE,
        vec![View {
            name: TITLE.to_string(),
            drawing: Drawing::Pairs { rows },
        }],
    );
    let caption = format!(
        "The fastest placement first. The upper bar of each is the time under {}, the lower one the time under it: green where it is less, red \
         where it is more, grey where they differ by less than 0.5%.",
        base.policy
    );
    sections.picture(TITLE, &caption, picture, &[]);
}
