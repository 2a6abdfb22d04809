//! What a paper concludes, held against what came out here.
//!
//! A conclusion is judged on every repetition that there is of a number: it is held if all of them agree with it, on both sides,
//! and did not hold if none does. Where they part, it is undecided. One repetition alone is called so.

use std::cmp::Ordering;

use serde::Deserialize;

use crate::line::Line;
use crate::several::{Several, short};

/// That a number lies between two.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub says: String,
    pub row: String,
    /// `*`: the one with the largest number.
    pub column: String,
    pub least: f64,
    pub most: f64,
    /// Where it does not hold: why, as an experiment or a number of the item shows.
    pub otherwise: Option<String>,
}

/// In the place of a column.
pub const LARGEST: &str = "*";

/// What came of a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Held,
    Failed,
    /// It is so in some repetitions, of so many.
    Undecided {
        held: usize,
        of: usize,
    },
}

/// A conclusion of the paper, and what came of it here.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    pub verdict: Verdict,
    /// Of one repetition only: nothing is known of the spread.
    pub once: bool,
    pub text: String,
}

impl Verdict {
    /// Of repetitions, `held` of which agree.
    pub fn of(held: usize, of: usize) -> Verdict {
        match held {
            0 => Verdict::Failed,
            all if all == of => Verdict::Held,
            held => Verdict::Undecided { held, of },
        }
    }
}

impl Conclusion {
    /// Of one run of everything.
    pub fn once(held: bool, text: String) -> Conclusion {
        Conclusion {
            verdict: Verdict::of(usize::from(held), 1),
            once: true,
            text,
        }
    }

    #[cfg(test)]
    pub fn is_held(&self) -> bool {
        self.verdict == Verdict::Held
    }

    /// As a note of a section.
    pub fn note(&self) -> String {
        let word = match self.verdict {
            Verdict::Held => "held".to_string(),
            Verdict::Failed => "did not hold".to_string(),
            Verdict::Undecided { held, of } => format!("undecided, held in {held} of {of}"),
        };
        let once = if self.once { " in the one run" } else { "" };
        format!("{word}{once}: {}", self.text)
    }
}

/// Whether a note of a section is a conclusion.
pub fn is_conclusion(note: &str) -> bool {
    ["held", "did not hold", "undecided", "not judged"]
        .iter()
        .any(|word| note.starts_with(word))
}

/// Claims whose rows and columns are among the lines, in words. That a number is missing may be a result (nothing gains); where
/// it is none, the claim is not judged.
pub fn notes(claims: &[Claim], lines: &[Line], missing_is_result: bool) -> Vec<String> {
    let judged = claims.iter().filter_map(|claim| {
        let of_row = lines.iter().filter(|line| line.row == claim.row);
        let line = match claim.column.as_str() {
            LARGEST => of_row
                .filter(|line| line.value.is_some())
                .max_by(|a, b| a.value.partial_cmp(&b.value).unwrap_or(Ordering::Equal)),
            column => of_row.into_iter().find(|line| line.column == column),
        }?;
        let missing = line.several().0.iter().find_map(|ours| ours.as_ref().err());
        Some(match missing {
            Some(why) if !missing_is_result => format!("not judged: {}: {why}", claim.says),
            _ => claim.conclusion(line.several()).note(),
        })
    });
    judged.collect()
}

impl Claim {
    /// What came of it.
    pub fn conclusion(&self, several: &Several) -> Conclusion {
        let within = |value: &f64| (self.least..=self.most).contains(value);
        let held = several.0.iter().filter(|value| value.as_ref().is_ok_and(within));
        let verdict = Verdict::of(held.count(), several.0.len());
        let ours = match several.range() {
            Some((least, most)) if short(least) == short(most) => short(least),
            Some((least, most)) => format!("{} to {}", short(least), short(most)),
            None => several.median().err().unwrap_or_default(),
        };
        let bounds = match (self.least, self.most) {
            (least, most) if most >= 1e9 => format!("at least {}", short(least)),
            (least, most) if least <= -1e9 => format!("at most {}", short(most)),
            (least, most) => format!("{} to {}", short(least), short(most)),
        };
        let otherwise = match &self.otherwise {
            Some(why) if verdict != Verdict::Held => format!(". {why}"),
            _ => String::new(),
        };
        Conclusion {
            verdict,
            once: several.0.len() == 1,
            text: format!(
                "{} ({}; {}): {ours}, of {bounds}{otherwise}",
                self.says, self.row, self.column
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_held_in_every_repetition_or_not_at_all() {
        let claim = Claim {
            says: "it gains up to 45 percent".to_string(),
            row: "clovertown".to_string(),
            column: "gain".to_string(),
            least: 22.5,
            most: 90.0,
            otherwise: Some("A miss costs more here".to_string()),
        };
        let said = |values: &[f64]| {
            let values = values.iter().map(|value| Ok(*value)).collect();
            claim.conclusion(&Several(values)).note()
        };
        assert_eq!(
            said(&[40.0, 50.0]),
            "held: it gains up to 45 percent (clovertown; gain): 40.0 to 50.0, of 22.5 to 90.0"
        );
        assert_eq!(
            said(&[91.0, 91.0]),
            "did not hold: it gains up to 45 percent (clovertown; gain): 91.0, of 22.5 to 90.0. A miss costs more here"
        );
        assert!(said(&[22.0, 23.0, 24.0]).starts_with("undecided, held in 2 of 3: "));
        // The other side counts as much.
        assert!(said(&[1.0, 1.0]).starts_with("did not hold: "));
        // One repetition has no spread.
        assert!(said(&[30.0]).starts_with("held in the one run: "));
        let none = claim
            .conclusion(&Several(vec![Err("nothing gains".to_string())]))
            .note();
        assert!(none.contains("nothing gains, of 22.5"), "{none}");
        for note in [said(&[40.0, 50.0]), said(&[22.0, 23.0]), said(&[1.0]), none] {
            assert!(is_conclusion(&note), "{note}");
        }
    }
}
