//! A number of the paper beside ours.

use serde::Serialize;

use crate::several::Several;

/// One number: one line of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub paper: &'static str,
    pub item: String,
    pub row: String,
    pub column: String,
    /// None where the paper prints no number (a curve of a figure, a dash).
    pub paper_value: Option<f64>,
    /// None if it is unavailable; `reason` says why.
    pub value: Option<f64>,
    /// The result of each repetition, the least first, if there are several; `value` is their median.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<f64>,
    /// Ours over the paper's; none where either is missing or the paper's is 0.
    pub ratio: Option<f64>,
    pub unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The basis for the claims of an item: a number, or why there is none, of each repetition.
    #[serde(skip)]
    several: Several,
    /// The command that was run for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// Our number, or why there is none.
pub type Ours = Result<f64, String>;

impl Line {
    /// Compares; numbers that are not finite count as missing.
    pub fn new(place: Place, paper_value: Option<f64>, ours: Ours) -> Line {
        let several = Several(vec![ours]).finite();
        let (value, reason) = match several.median() {
            Ok(value) => (Some(value), None),
            Err(reason) => (None, Some(reason)),
        };
        let ratio = match (paper_value, value) {
            (Some(paper), Some(value)) if paper != 0.0 => Some(value / paper),
            _ => None,
        };
        Line {
            paper: place.paper,
            item: place.item.to_string(),
            row: place.row.to_string(),
            column: place.column.to_string(),
            paper_value,
            value,
            each: Vec::new(),
            ratio,
            unit: place.unit.to_string(),
            reason,
            several,
            run: None,
        }
    }

    /// The median of several, compared with the paper's.
    pub fn of_several(place: Place, paper_value: Option<f64>, several: &Several) -> Line {
        let several = several.clone().finite();
        let each = match several.0.len() {
            0 | 1 => Vec::new(),
            _ => several.values(),
        };
        Line {
            each,
            ..Line::new(place, paper_value, several.median())
        }
        .judged_on(several)
    }

    fn judged_on(mut self, several: Several) -> Line {
        self.several = several;
        self
    }

    /// Our numbers, one by one.
    pub(crate) fn several(&self) -> &Several {
        &self.several
    }

    /// The same, with the command that was run for it.
    pub fn of_run(mut self, run: &str) -> Line {
        self.run = Some(run.to_string());
        self
    }
}

/// The place of a number.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub paper: &'static str,
    pub item: &'a str,
    pub row: &'a str,
    pub column: &'a str,
    pub unit: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place {
        paper: "philbin96",
        item: "table3",
        row: "L2 misses",
        column: "Tiled",
        unit: "thousands",
    };

    #[test]
    fn the_ratio_is_ours_over_the_papers() {
        let line = Line::new(PLACE, Some(738.0), Ok(369.0));
        assert_eq!(
            serde_json::to_string(&line).unwrap(),
            r#"{"paper":"philbin96","item":"table3","row":"L2 misses","column":"Tiled","paper_value":738.0,"value":369.0,"ratio":0.5,"unit":"thousands"}"#
        );
        assert_eq!(Line::new(PLACE, Some(0.0), Ok(3.0)).ratio, None);
        assert_eq!(Line::new(PLACE, None, Ok(3.0)).ratio, None);
    }

    #[test]
    fn what_is_missing_has_a_reason() {
        let line = Line::new(PLACE, Some(738.0), Err("no such version".into()));
        let json = serde_json::to_value(&line).unwrap();
        assert!(json["value"].is_null() && json["ratio"].is_null());
        assert_eq!(json["reason"], "no such version");
        let line = Line::new(PLACE, Some(738.0), Ok(f64::NAN));
        assert!(line.value.is_none() && line.reason.is_some());
    }
}
