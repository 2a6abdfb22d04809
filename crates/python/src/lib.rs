//! The Python module `domicile._domicile`: machines, traces, simulation, advice and comparison as objects.
//!
//! It is thin: each class wraps one type of the crates below, and each call is one call of theirs. What is better said in Python
//! (recording, notebooks) is in `python/domicile`. Long calls run on a thread of their own without the interpreter's lock, and end soon
//! after Ctrl-C ([`waiting`]).
#![deny(unsafe_code)]

mod machines;
mod policies;
mod recording;
mod result;
mod simulation;
mod sweeps;
mod table;
mod text;
mod traces;
mod waiting;

use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::prelude::*;
use pyo3::wrap_pyfunction;

// Its symbols are in this library, too: `domicile.Replicated` calls them.
use capi as _;

pyo3::create_exception!(
    domicile,
    DomicileError,
    PyException,
    "A call that failed; its text is what the command line says."
);

/// The argument `cpus`.
fn cpus(given: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
    match given.is_none() {
        true => Ok(None),
        false => in_range(given, "cpus", given.extract(), u64::from(u32::MAX)).map(Some),
    }
}

/// The argument `seed`.
fn seed(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    in_range(given, "seed", given.extract(), u64::MAX)
}

/// A whole number that is an argument: one out of its range is an error of the call, another type one of Python.
fn in_range<T>(given: &Bound<'_, PyAny>, name: &str, found: PyResult<T>, most: u64) -> PyResult<T> {
    found.map_err(|error| match error.is_instance_of::<PyOverflowError>(given.py()) {
        true => failed(format_args!(
            "`{name}` is {given}: give a whole number up to {most}, and none below 0"
        )),
        false => error,
    })
}

/// The error of a call, in the words of the command line.
fn failed(error: impl std::fmt::Display) -> PyErr {
    DomicileError::new_err(error.to_string())
}

#[pymodule]
fn _domicile(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DomicileError", module.py().get_type::<DomicileError>())?;
    module.add_class::<machines::Machine>()?;
    module.add_class::<traces::Trace>()?;
    module.add_class::<result::Result>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<sweeps::Sweep>()?;
    module.add_function(wrap_pyfunction!(sweeps::sweep_points, module)?)?;
    module.add_function(wrap_pyfunction!(sweeps::sweep_traces, module)?)?;
    module.add_function(wrap_pyfunction!(recording::is_recorded, module)?)?;
    module.add_function(wrap_pyfunction!(recording::lines_begin, module)?)?;
    module.add_function(wrap_pyfunction!(recording::lines_heard, module)?)?;
    module.add_function(wrap_pyfunction!(recording::lines_end, module)?)?;
    module.add_function(wrap_pyfunction!(recording::lines_of_thread, module)?)?;
    module.add_function(wrap_pyfunction!(recording::recording_begin, module)?)?;
    module.add_function(wrap_pyfunction!(recording::recording_end, module)?)?;
    module.add_function(wrap_pyfunction!(machines::machines, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::advise, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::check_policy, module)?)?;
    module.add_function(wrap_pyfunction!(result::compare, module)?)?;
    Ok(())
}
