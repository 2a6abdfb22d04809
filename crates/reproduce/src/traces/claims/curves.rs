//! Claims about curves, which are properties of a workload's stream.

use super::{Claim, Judged, Kind, listed};
use crate::paper::Item;
use crate::reproduce::Reproduction;
use crate::traces::{Curve, Traces, rows};

impl Reproduction<'_> {
    /// The outcome of a claim about curves in a recording; none if one of them is missing.
    pub(super) fn of_curves(
        &mut self,
        item: &Item,
        traces: &Traces,
        claim: &Claim,
        curve: Curve,
        recording: usize,
    ) -> Option<Judged> {
        let judged = |held, text| Judged {
            of: String::new(),
            held,
            text,
        };
        match &claim.kind {
            Kind::Falls { column, rows: names } => {
                let values = names
                    .iter()
                    .map(|name| self.curve_at(item, traces, recording, name, column));
                let values = values.collect::<Option<Vec<f64>>>()?;
                Some(judged(
                    values.windows(2).all(|pair| pair[0] > pair[1]),
                    format!("at {column}: {}", listed(names, &values)),
                ))
            }
            Kind::Apart { column, most, least } => {
                let apart = traces.workloads.iter().map(|name| {
                    let rows = rows(curve, name);
                    let [by, other] = [0, 1].map(|row| self.curve_at(item, traces, recording, &rows[row], column));
                    Some((name.clone(), by? - other?))
                });
                let mut apart = apart.collect::<Option<Vec<(String, f64)>>>()?;
                apart.sort_by(|a, b| b.1.total_cmp(&a.1));
                let (names, gaps): (Vec<String>, Vec<f64>) = apart.into_iter().unzip();
                Some(judged(
                    names.first() == Some(most) && names.last() == Some(least),
                    format!(
                        "apart at {column} percent of the pages, in points: {}",
                        listed(&names, &gaps)
                    ),
                ))
            }
            _ => None,
        }
    }

    /// A curve's value in a row, by the row's name.
    fn curve_at(&mut self, item: &Item, traces: &Traces, recording: usize, row: &str, column: &str) -> Option<f64> {
        let curve = traces.curve?;
        let name = traces
            .workloads
            .iter()
            .find(|name| rows(curve, name).contains(&row.to_string()))?;
        if !self.options.only.is_empty() && !self.options.only.contains(name) {
            return None;
        }
        let at = rows(curve, name).iter().position(|other| other == row)?;
        item.columns.contains(&column.to_string()).then_some(())?;
        self.replayed(name, recording, traces).ok()?.at(curve, at, column).ok()
    }
}
