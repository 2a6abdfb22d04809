//! What the paper concludes of its figures, held against what came out.

use super::recordings::{Several, short};
use crate::region_items::Claim;

impl Claim {
    /// In words, with the number of this item.
    pub fn conclusion(&self, several: &Several) -> String {
        let within = |value: &f64| (self.least..=self.most).contains(value);
        let held = several
            .0
            .iter()
            .filter(|value| value.as_ref().is_ok_and(within))
            .count();
        let word = match held {
            0 => "did not hold",
            all if all == several.0.len() => "held",
            _ => "undecided, since recordings differ",
        };
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
            Some(why) if held < several.0.len() => format!(". {why}"),
            _ => String::new(),
        };
        format!(
            "{word}: {} ({}; {}): {ours}, of {bounds}{otherwise}",
            self.says, self.row, self.column
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_held_in_every_recording_or_not_at_all() {
        let claim = Claim {
            says: "it gains up to 45 percent".to_string(),
            row: "clovertown".to_string(),
            column: "gain".to_string(),
            least: 22.5,
            most: 90.0,
            otherwise: Some("A miss costs more here".to_string()),
        };
        let said = |values: &[f64]| claim.conclusion(&Several(values.iter().map(|value| Ok(*value)).collect()));
        assert_eq!(
            said(&[40.0, 50.0]),
            "held: it gains up to 45 percent (clovertown; gain): 40.0 to 50.0, of 22.5 to 90.0"
        );
        assert_eq!(
            said(&[91.0, 91.0]),
            "did not hold: it gains up to 45 percent (clovertown; gain): 91.0, of 22.5 to 90.0. A miss costs more here"
        );
        assert!(said(&[22.0, 23.0]).starts_with("undecided, since recordings differ: "));
        // The other side counts as much.
        assert!(said(&[1.0]).starts_with("did not hold"));
        let none = claim.conclusion(&Several(vec![Err("nothing gains".to_string())]));
        assert!(none.contains("nothing gains, of 22.5"), "{none}");
    }
}
