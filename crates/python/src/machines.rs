//! Machines that programs are simulated on.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::failed;

/// A machine that programs are simulated on: a preset by its name (`machines()` lists them), a machine file, or `host`, the machine that
/// this runs on as far as it is known.
#[pyclass(frozen, module = "domicile")]
#[derive(Clone)]
pub struct Machine(pub machine::Machine);

#[pymethods]
impl Machine {
    /// `cpus`: another number of cpus than it has.
    #[new]
    #[pyo3(signature = (name, *, cpus = None))]
    fn new(name: &str, #[pyo3(from_py_with = crate::cpus)] cpus: Option<u32>) -> PyResult<Machine> {
        with_cpus(measured::load(name).map_err(failed)?, cpus)
    }

    /// A machine by the text of a machine file.
    #[classmethod]
    #[pyo3(signature = (text, *, cpus = None))]
    fn from_toml(
        _class: &Bound<'_, PyType>,
        text: &str,
        #[pyo3(from_py_with = crate::cpus)] cpus: Option<u32>,
    ) -> PyResult<Machine> {
        with_cpus(machine::from_toml(text, "machine").map_err(failed)?, cpus)
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn cpus(&self) -> u32 {
        self.0.cpus
    }

    #[getter]
    fn nodes(&self) -> u32 {
        self.0.memory.nodes
    }

    #[getter]
    fn page_bytes(&self) -> u64 {
        self.0.page_bytes
    }

    /// Its machine file.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Machine>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_toml().hash(&mut hasher);
        hasher.finish()
    }

    /// For pickle and copy.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let made_by = py.get_type::<Machine>().getattr("from_toml")?;
        Ok((made_by, (self.0.to_toml(),)))
    }

    fn _json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(failed)
    }

    fn __repr__(&self) -> String {
        let machine = &self.0;
        let caches: Vec<String> = machine
            .caches
            .iter()
            .map(|cache| format!("{} {}", cache.name, results::bytes(cache.bytes)))
            .collect();
        let nodes = match machine.memory.nodes {
            1 => String::new(),
            nodes => format!(", {nodes} nodes"),
        };
        format!(
            "<Machine {}: {} cpus{nodes}, {}>",
            machine.name,
            machine.cpus,
            caches.join(", ")
        )
    }
}

fn with_cpus(machine: machine::Machine, cpus: Option<u32>) -> PyResult<Machine> {
    match cpus {
        None => Ok(Machine(machine)),
        Some(cpus) => machine.with_cpus(cpus).map(Machine).map_err(failed),
    }
}

/// The names of all presets.
#[pyfunction]
pub fn machines() -> Vec<&'static str> {
    machine::presets().iter().map(|preset| preset.name).collect()
}

/// What a call takes for a machine: a `Machine`, or a name or file.
#[derive(FromPyObject)]
pub enum AnyMachine<'py> {
    Machine(PyRef<'py, Machine>),
    Name(String),
}

impl AnyMachine<'_> {
    pub fn load(self) -> PyResult<machine::Machine> {
        match self {
            AnyMachine::Machine(machine) => Ok(machine.0.clone()),
            AnyMachine::Name(name) => measured::load(&name).map_err(failed),
        }
    }
}
