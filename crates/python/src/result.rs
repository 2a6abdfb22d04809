//! Results: of simulations, advice and comparisons, fresh or read from files.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyType;
use report::Top;
use results::{Counted, Document, Recordings, SideKind};

use crate::failed;
use crate::table::Table;
use crate::text::{COLUMNS, plain};

/// A result: the outcomes of a simulation, an advice, or a comparison of two.
#[pyclass(frozen, module = "domicile")]
pub struct Result(pub Document);

#[pymethods]
impl Result {
    /// A result that the command line wrote (`--json`, `-o`).
    #[classmethod]
    fn from_json(_class: &Bound<'_, PyType>, text: &str) -> PyResult<Result> {
        Document::parse(text).map(Result).map_err(failed)
    }

    /// What it is of: `advice`, `outcomes` or `comparison`.
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0 {
            Document::Advice(_) => "advice",
            Document::Outcomes(_) => "outcomes",
            Document::Comparison(_) => "comparison",
        }
    }

    /// The same as JSON, as the command line writes it: outcomes are one line each.
    fn to_json(&self) -> PyResult<String> {
        let text = match &self.0 {
            Document::Advice(of) => serde_json::to_string(&results::saved(of.as_ref())),
            Document::Comparison(of) => serde_json::to_string(&results::saved(of.as_ref())),
            Document::Outcomes(of) => {
                let lines: std::result::Result<Vec<String>, _> = of
                    .iter()
                    .map(|outcome| serde_json::to_string(&results::saved(outcome)))
                    .collect();
                lines.map(|lines| lines.join("\n"))
            }
        };
        text.map_err(failed)
    }

    /// All of it as text, in so many columns.
    #[pyo3(signature = (columns = COLUMNS))]
    fn to_text(&self, columns: usize) -> String {
        plain(&report::text(&self.0, columns, Top::Usual))
    }

    /// One page (HTML) that needs nothing else.
    fn to_html(&self) -> String {
        let read = |file: &str| std::fs::read_to_string(PathBuf::from(file)).map_err(|error| error.to_string());
        report::page(&self.0, &read)
    }

    /// Its tables, with the exact values.
    #[getter]
    fn tables(&self) -> Vec<Table> {
        report::tables(&self.0, Top::All).into_iter().map(Table).collect()
    }

    fn __str__(&self) -> String {
        plain(&match &self.0 {
            Document::Advice(of) => report::screen(of, COLUMNS),
            Document::Outcomes(of) => report::outcomes_screen(of, COLUMNS, Top::Usual),
            Document::Comparison(of) => report::comparison(of, COLUMNS, Top::Usual),
        })
    }
}

/// Compares two results: what is better after a change, and what is worse.
///
/// `policy`: which outcome is compared, where a result has several.
#[pyfunction]
#[pyo3(signature = (before, after, *, policy = None))]
pub fn compare(before: &Result, after: &Result, policy: Option<&str>) -> PyResult<Result> {
    let side = |of: &Result, name: &str| {
        let counted = Counted::of(of.0.clone(), policy, name).map_err(failed)?;
        Ok::<_, PyErr>(Recordings {
            name: name.to_string(),
            kind: SideKind::Result,
            recordings: vec![counted],
        })
    };
    let compared = results::compare(&side(before, "before")?, &side(after, "after")?);
    Ok(Result(Document::Comparison(Box::new(compared.map_err(failed)?))))
}
