//! A paper's conclusions, compared with the results here.
//!
//! A conclusion is judged on every repetition of a number: it held if all of them agree with it, on both sides, and did
//! not hold if none does. If they disagree, it is undecided. A single repetition is marked as such.

use serde::Deserialize;

use crate::line::{Line, Ours};
use crate::several::{Several, short};

/// That a number, or how it compares with another of the item, lies between two bounds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub says: String,
    pub row: String,
    /// `*`: the largest of the row, in each repetition.
    pub column: String,
    /// The bounds apply to the difference to this one, in the same repetition.
    pub minus: Option<Other>,
    /// The bounds apply to the ratio to this one, in the same repetition.
    pub over: Option<Other>,
    pub least: f64,
    pub most: f64,
    /// If it does not hold: the reason, as an experiment or a number of the item shows.
    pub otherwise: Option<String>,
}

/// A number of the item that the claim's is compared with; an omitted row or column is the claim's own.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    pub row: Option<String>,
    pub column: Option<String>,
}

/// In place of a column.
pub const LARGEST: &str = "*";

/// The outcome of a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Held,
    Failed,
    /// It holds in some repetitions of this many.
    Undecided {
        held: usize,
        of: usize,
    },
}

/// A conclusion of the paper, and its outcome here.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    pub verdict: Verdict,
    /// From one repetition only: the spread is unknown.
    pub once: bool,
    pub text: String,
}

impl Verdict {
    /// From repetitions, `held` of which agree.
    pub fn of(held: usize, of: usize) -> Verdict {
        match held {
            0 => Verdict::Failed,
            all if all == of => Verdict::Held,
            held => Verdict::Undecided { held, of },
        }
    }
}

impl Conclusion {
    /// From one run of everything.
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

/// Returns true if a note of a section is a conclusion.
pub fn is_conclusion(note: &str) -> bool {
    ["held", "did not hold", "undecided", "not judged"]
        .iter()
        .any(|word| note.starts_with(word))
}

/// Claims whose rows and columns are among the lines, in words. A missing number may be a result (nothing gains); where
/// it is not, the claim is not judged.
pub fn notes(claims: &[Claim], lines: &[Line], missing_is_result: bool) -> Vec<String> {
    // Another view of an item (live, one of several programs) has none of its claims' numbers.
    let found = claims.iter().any(|claim| claim.of(lines).is_some());
    let judged = claims.iter().filter_map(|claim| {
        let Some(several) = claim.of(lines) else {
            return found.then(|| format!("not judged: {}: there is no {}", claim.says, claim.subject()));
        };
        let missing = several.0.iter().find_map(|ours| ours.as_ref().err());
        Some(match missing {
            Some(why) if !missing_is_result => format!("not judged: {}: {why}", claim.says),
            _ => claim.conclusion(&several).note(),
        })
    });
    judged.collect()
}

/// The numbers of a row in a column, or the largest of the row in each repetition. `None`: the lines have none such.
fn numbers(lines: &[Line], row: &str, column: &str) -> Option<Several> {
    let mut of_row = lines.iter().filter(|line| line.row == row);
    if column != LARGEST {
        return of_row
            .find(|line| line.column == column)
            .map(|line| line.several().clone());
    }
    let larger = |one: Ours, other: &Ours| match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.max(*other)),
        (Ok(one), Err(_)) => Ok(one),
        (Err(_), Ok(other)) => Ok(*other),
        (Err(why), Err(_)) => Err(why),
    };
    of_row.fold(None, |largest: Option<Several>, line| {
        Some(match largest {
            None => line.several().clone(),
            Some(largest) => largest.with(line.several(), larger),
        })
    })
}

impl Claim {
    /// The numbers that it is judged on. `None`: the lines lack its row or column.
    fn of(&self, lines: &[Line]) -> Option<Several> {
        let own = numbers(lines, &self.row, &self.column)?;
        let with = |other: &Other, compared: fn(f64, f64) -> f64| {
            let row = other.row.as_deref().unwrap_or(&self.row);
            let column = other.column.as_deref().unwrap_or(&self.column);
            let other = numbers(lines, row, column)?;
            Some(
                own.with(&other, |own, other| Ok(compared(own?, other.clone()?)))
                    .finite(),
            )
        };
        match (&self.minus, &self.over) {
            (Some(other), _) => with(other, |own, other| own - other),
            (None, Some(other)) => with(other, |own, other| own / other),
            (None, None) => Some(own),
        }
    }

    /// The number, as a reader finds it in the table.
    fn subject(&self) -> String {
        let column = |column: &str| match column {
            LARGEST => "the largest".to_string(),
            column => column.to_string(),
        };
        let other = |other: &Other| match (&other.row, &other.column) {
            (Some(row), Some(of)) => format!("{row}; {}", column(of)),
            (Some(row), None) => row.clone(),
            (None, of) => column(of.as_deref().unwrap_or(&self.column)),
        };
        let compared = match (&self.minus, &self.over) {
            (Some(beside), _) => format!(" minus {}", other(beside)),
            (None, Some(beside)) => format!(" over {}", other(beside)),
            (None, None) => String::new(),
        };
        format!("{}; {}{compared}", self.row, column(&self.column))
    }

    /// The requirements of every file: bounds in order, one comparison at most.
    pub fn check(&self) -> Result<(), String> {
        if self.least.is_nan() || self.most.is_nan() || self.least > self.most {
            return Err(format!("`{}` has bounds of {} to {}", self.says, self.least, self.most));
        }
        if self.minus.is_some() && self.over.is_some() {
            return Err(format!("`{}` has both `minus` and `over`", self.says));
        }
        Ok(())
    }

    /// The columns that it names.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        let others = [&self.minus, &self.over].into_iter().flatten();
        std::iter::once(self.column.as_str()).chain(others.filter_map(|other| other.column.as_deref()))
    }

    /// Its outcome.
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
            text: format!("{} ({}): {ours}, of {bounds}{otherwise}", self.says, self.subject()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Place;

    #[test]
    fn a_claim_is_held_in_every_repetition_or_not_at_all() {
        let claim = Claim {
            says: "it gains up to 45 percent".to_string(),
            row: "clovertown".to_string(),
            column: "gain".to_string(),
            minus: None,
            over: None,
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
        // The other side counts equally.
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
    fn lines(of: &[(&str, &[f64])]) -> Vec<Line> {
        let line = |&(column, values): &(&str, &[f64])| {
            let place = Place {
                paper: "ding11",
                item: "figure10",
                row: "saved",
                column,
                unit: "percent",
            };
            Line::of_several(place, None, &Several(values.iter().map(|value| Ok(*value)).collect()))
        };
        of.iter().map(line).collect()
    }

    #[test]
    fn a_comparison_is_made_in_each_repetition() {
        let claim =
            |text: &str| -> Claim { toml::from_str(&format!("says = \"x\"\nrow = \"saved\"\n{text}")).unwrap() };
        let lines = lines(&[("1", &[5.0, 9.0]), ("4", &[4.0, 10.0]), ("8", &[3.0, 6.0])]);
        let note = |text: &str| notes(&[claim(text)], &lines, false).remove(0);
        // The medians alone would agree.
        assert_eq!(
            note("column = \"1\"\nminus = { column = \"4\" }\nleast = 0.0\nmost = 1e9"),
            "undecided, held in 1 of 2: x (saved; 1 minus 4): -1.00 to 1.00, of at least 0.00"
        );
        assert_eq!(
            note("column = \"8\"\nover = { column = \"4\" }\nleast = -1e9\nmost = 1.0"),
            "held: x (saved; 8 over 4): 0.60 to 0.75, of at most 1.00"
        );
        assert_eq!(
            note("column = \"*\"\nleast = 5.0\nmost = 10.0"),
            "held: x (saved; the largest): 5.00 to 10.0, of 5.00 to 10.0"
        );
        let largest = note("column = \"1\"\nminus = { column = \"*\" }\nleast = 0.0\nmost = 0.0");
        assert!(
            largest.starts_with("undecided, held in 1 of 2: x (saved; 1 minus the largest)"),
            "{largest}"
        );
        let other = claim("column = \"2\"\nleast = 0.0\nmost = 1.0");
        assert_eq!(notes(std::slice::from_ref(&other), &lines, false), [""; 0]);
        let both = [claim("column = \"1\"\nleast = 0.0\nmost = 9.0"), other];
        assert_eq!(notes(&both, &lines, false)[1], "not judged: x: there is no saved; 2");
    }

    #[test]
    fn bounds_are_in_order() {
        let claim = |text: &str| -> Claim {
            toml::from_str(&format!("says = \"x\"\nrow = \"a\"\ncolumn = \"b\"\n{text}")).unwrap()
        };
        assert!(claim("least = 1.0\nmost = 1.0").check().is_ok());
        assert!(claim("least = 2.0\nmost = 1.0").check().is_err());
        assert!(claim("least = nan\nmost = 1.0").check().is_err());
        assert!(claim("least = 1.0\nmost = 2.0\nminus = {}\nover = {}").check().is_err());
    }
}
