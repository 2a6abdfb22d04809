//! Sweeps, in pieces that other machines can work on.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use sweep::{Rows, Spec};

use crate::failed;
use crate::waiting::wait_for;

/// A sweep and the file of its rows: what is left to do, and what was done elsewhere.
#[pyclass(module = "domicile")]
pub struct Sweep {
    spec: Spec,
    rows: Rows,
}

#[pymethods]
impl Sweep {
    /// `text`: the specification (TOML), whose traces are looked for from `folder`. `output`: the rows, which may be there in part.
    #[new]
    fn new(text: &str, folder: PathBuf, output: PathBuf) -> PyResult<Sweep> {
        let spec = Spec::parse(text, &folder).map_err(failed)?;
        let mut rows = Rows::open(&output, &spec).map_err(failed)?;
        rows.save().map_err(failed)?;
        Ok(Sweep { spec, rows })
    }

    /// The numbers of the points that are left, in batches of at most so many that share a trace and a machine.
    fn batches(&self, most: usize) -> PyResult<Vec<Vec<u64>>> {
        sweep::batches(&self.spec, &self.rows, most).map_err(failed)
    }

    /// Keeps rows that `sweep_points` made, here or elsewhere, and writes the file now and then.
    fn add(&mut self, rows: Vec<String>) -> PyResult<()> {
        for row in rows {
            self.rows.push(serde_json::from_str(&row).map_err(failed)?);
        }
        self.rows.save_now_and_then().map_err(failed)
    }

    /// Keeps points that could not be simulated where they were sent, as rows with that error.
    fn add_failed(&mut self, numbers: Vec<u64>, error: &str) -> PyResult<()> {
        let failed_rows = sweep::failed(&self.spec, &numbers, error).map_err(failed)?;
        failed_rows.into_iter().for_each(|row| self.rows.push(row));
        Ok(())
    }

    /// By trace, what it does not have of its run.
    #[getter]
    fn incomplete(&self) -> BTreeMap<String, String> {
        let of = |row: &sweep::Row| Some((row.trace.clone(), row.incomplete.clone()?));
        self.rows.rows().iter().filter_map(of).collect()
    }

    /// Writes the file.
    fn save(&mut self) -> PyResult<()> {
        self.rows.save().map_err(failed)
    }
}

/// Simulates these points of a specification; each row is a text for `Sweep.add`. `local`: where traces lie that are called otherwise.
#[pyfunction]
#[pyo3(signature = (text, folder, numbers, *, threads = None, local = HashMap::new()))]
pub fn sweep_points(
    py: Python<'_>,
    text: &str,
    folder: PathBuf,
    numbers: Vec<u64>,
    threads: Option<usize>,
    local: HashMap<PathBuf, PathBuf>,
) -> PyResult<Vec<String>> {
    let spec = Spec::parse(text, &folder).map_err(failed)?;
    let rows = wait_for(py, |_| sweep::simulate(&spec, &numbers, threads, &local))?;
    let rows = rows.map_err(failed)?;
    rows.iter()
        .map(|row| serde_json::to_string(row).map_err(failed))
        .collect()
}

/// The traces of these points, as the specification calls them.
#[pyfunction]
pub fn sweep_traces(text: &str, folder: PathBuf, numbers: Vec<u64>) -> PyResult<Vec<String>> {
    let spec = Spec::parse(text, Path::new(&folder)).map_err(failed)?;
    let traces = sweep::traces(&spec, &numbers).map_err(failed)?;
    // Texts: Python's paths make one slash of two.
    Ok(traces.iter().map(|trace| trace.display().to_string()).collect())
}
