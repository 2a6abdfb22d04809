//! Traces: which memory a program touched.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use numpy::{Element, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyTuple, PyType};
use sim::SimError;
use trace::{Header, Op, Process, Ref, Site, Thread, TraceError, Writer};

use crate::failed;

/// Which memory a program touched, thread by thread: a file of `domicile record`, or arrays of addresses.
#[pyclass(frozen, module = "domicile")]
pub struct Trace {
    pub trace: trace::Trace,
    path: Option<PathBuf>,
    /// Of a trace that was made here.
    bytes: Option<Vec<u8>>,
    salvaged: bool,
}

impl Trace {
    /// The trace, to be simulated.
    ///
    /// Errors: there is no reference in it.
    pub fn with_references(&self) -> PyResult<&trace::Trace> {
        self.trace
            .check_references()
            .map_err(|error| self.error(error.into()))?;
        Ok(&self.trace)
    }

    /// What went wrong with a simulation of it.
    pub fn error(&self, error: SimError) -> PyErr {
        match error {
            SimError::Trace(error) => of_file(self.path.as_deref(), &error, self.path.is_some() && !self.salvaged),
            other => failed(other),
        }
    }
}

#[pymethods]
impl Trace {
    /// A trace file. `salvage`: what is damaged of it is left out.
    #[new]
    #[pyo3(signature = (path, *, salvage = false))]
    fn new(py: Python<'_>, path: PathBuf, salvage: bool) -> PyResult<Trace> {
        let opened = match salvage {
            true => trace::Trace::salvage(&path),
            false => trace::Trace::open(&path),
        };
        let trace = opened.map_err(|error| of_file(Some(&path), &error, !salvage))?;
        for note in notes(&trace) {
            let text = std::ffi::CString::new(format!("{}: {note}", path.display()))?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(Trace {
            trace,
            path: Some(path),
            bytes: None,
            salvaged: salvage,
        })
    }

    /// A trace file that will be gone soon: the trace holds it open.
    #[classmethod]
    fn _unnamed(class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Trace> {
        let opened = Trace::new(class.py(), path, false)?;
        Ok(Trace { path: None, ..opened })
    }

    /// A trace of references in their order: arrays of whole numbers of any type, or lists. `sizes` are in bytes, 8 where not given; `kinds`: 0 read, 1 write, 2 both by one
    /// instruction; `threads`: any numbers, one thread where not given.
    #[classmethod]
    #[pyo3(signature = (addresses, *, sizes = None, kinds = None, threads = None, name = "arrays"))]
    fn from_arrays(
        class: &Bound<'_, PyType>,
        addresses: &Bound<'_, PyAny>,
        sizes: Option<&Bound<'_, PyAny>>,
        kinds: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
        name: &str,
    ) -> PyResult<Trace> {
        let addresses = numbers::<u64>("addresses", addresses)?;
        let sizes = sizes.map(|given| numbers::<u16>("sizes", given)).transpose()?;
        let kinds = kinds.map(|given| numbers::<u8>("kinds", given)).transpose()?;
        let threads = threads.map(|given| numbers::<u64>("threads", given)).transpose()?;
        let count = addresses.len();
        let lengths = [
            ("sizes", sizes.as_ref().map(|array| array.len())),
            ("kinds", kinds.as_ref().map(|array| array.len())),
            ("threads", threads.as_ref().map(|array| array.len())),
        ];
        for (what, length) in lengths {
            if let Some(length) = length.filter(|length| *length != count) {
                return Err(failed(format_args!(
                    "`{what}` has {length} elements and `addresses` {count}: give one for each reference"
                )));
            }
        }
        let addresses = addresses.as_array();
        let sizes = sizes.as_ref().map(|array| array.as_array());
        let kinds = kinds.as_ref().map(|array| array.as_array());
        let threads = threads.as_ref().map(|array| array.as_array());
        let reference = |at: usize| Made {
            address: addresses[at],
            bytes: sizes.as_ref().map_or(8, |sizes| sizes[at]),
            kind: kinds.as_ref().map_or(0, |kinds| kinds[at]),
            thread: threads.as_ref().map_or(0, |threads| threads[at]),
        };
        let bytes = written(name, (0..count).map(reference))?;
        Trace::_from_bytes(class, bytes)
    }

    /// What `save` writes.
    #[classmethod]
    fn _from_bytes(_class: &Bound<'_, PyType>, bytes: Vec<u8>) -> PyResult<Trace> {
        Ok(Trace {
            trace: trace::Trace::from_bytes(bytes.clone()).map_err(failed)?,
            path: None,
            bytes: Some(bytes),
            salvaged: false,
        })
    }

    /// For pickle: a file goes by its name, arrays as they are.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let class = py.get_type::<Trace>();
        match (&self.path, &self.bytes) {
            (Some(path), _) => {
                let path = std::path::absolute(path).map_err(failed)?;
                Ok((class.into_any(), PyTuple::new(py, [path])?))
            }
            (None, Some(bytes)) => Ok((
                class.getattr("_from_bytes")?,
                PyTuple::new(py, [PyBytes::new(py, bytes)])?,
            )),
            (None, None) => Err(failed(
                "this trace has no file that another process could read: record it with a `path`",
            )),
        }
    }

    /// Writes a trace that was made of arrays to a file.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let Some(bytes) = &self.bytes else {
            return Err(failed("this trace is a file already: copy that"));
        };
        std::fs::write(&path, bytes).map_err(|error| failed(format_args!("{}: {error}", path.display())))
    }

    /// The file; None where it has none that is kept.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// What is missing of the run, in sentences. A trace with any is opened with a `UserWarning`.
    #[getter]
    fn notes(&self) -> Vec<String> {
        notes(&self.trace)
    }

    #[getter]
    fn program(&self) -> &str {
        &self.trace.header().program
    }

    #[getter]
    fn arguments(&self) -> Vec<String> {
        self.trace.header().arguments.clone()
    }

    #[getter]
    fn references(&self) -> u64 {
        self.trace.references()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.trace.threads().len()
    }

    /// Instructions; None where the trace does not count them.
    #[getter]
    fn instructions(&self) -> Option<u64> {
        self.trace.instructions()
    }

    fn __len__(&self) -> PyResult<usize> {
        usize::try_from(self.trace.references()).map_err(failed)
    }

    fn __repr__(&self) -> String {
        let place = self
            .path
            .as_ref()
            .map_or_else(|| "without a file".to_string(), |path| path.display().to_string());
        let threads = match self.trace.threads().len() {
            1 => "1 thread".to_string(),
            threads => format!("{threads} threads"),
        };
        format!(
            "<Trace of {}: {} references, {threads}, {place}>",
            self.trace.header().program,
            results::count(self.trace.references())
        )
    }
}

/// Whole numbers in one dimension. Those of another type are converted.
///
/// Errors: it is something else; one of them is not of `T`.
fn numbers<'py, T: Element>(what: &str, given: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, T>> {
    let py = given.py();
    let numpy = py.import("numpy")?;
    let wanted = T::get_dtype(py);
    let mut array = numpy.call_method1("asarray", (given,))?;
    let mut is_whole = "iu".contains(kind_of(&array)?);
    if !is_whole && given.is_instance_of::<PyList>() {
        // NumPy makes floats of a list with numbers on both sides of 2^63.
        let whole = |number: PyResult<Bound<'py, PyAny>>| number.is_ok_and(|number| number.is_instance_of::<PyInt>());
        is_whole = given.try_iter()?.all(whole);
        if is_whole {
            array = numpy.call_method1("asarray", (given, "object"))?;
        }
    }
    let (dimensions, count): (usize, usize) = (array.getattr("ndim")?.extract()?, array.getattr("size")?.extract()?);
    if dimensions != 1 || count > 0 && !is_whole {
        return Err(failed(format_args!(
            "`{what}` must be one-dimensional and of whole numbers; its shape is {}, its type {}",
            array.getattr("shape")?,
            array.getattr("dtype")?
        )));
    }
    let range = numpy.call_method1("iinfo", (&wanted,))?;
    for (end, least) in [("min", true), ("max", false)].into_iter().filter(|_| count > 0) {
        let (value, bound) = (array.call_method0(end)?, range.getattr(end)?);
        // As Python's own numbers, which have no type.
        let value = match value.hasattr("item")? {
            true => value.call_method0("item")?,
            false => value,
        };
        if (least && value.lt(&bound)?) || (!least && value.gt(&bound)?) {
            return Err(failed(format_args!(
                "`{what}` has {value}, which is no number of type {wanted}"
            )));
        }
    }
    array.call_method1("astype", (wanted,))?.extract()
}

/// The kind of the numbers in an array, by NumPy's letter.
fn kind_of(array: &Bound<'_, PyAny>) -> PyResult<char> {
    array.getattr("dtype")?.getattr("kind")?.extract()
}

/// An error of a trace, with its file, and with what helps where it can still be salvaged.
fn of_file(path: Option<&Path>, error: &TraceError, can_be_salvaged: bool) -> PyErr {
    let hint = match error {
        TraceError::Damaged { .. } if can_be_salvaged => ", or open what is left with `Trace(path, salvage=True)`",
        _ => "",
    };
    match (path, error) {
        // It says so itself.
        (_, TraceError::Open { .. }) | (None, _) => failed(format_args!("{error}{hint}")),
        (Some(path), _) => failed(format_args!("{}: {error}{hint}", path.display())),
    }
}

/// What is missing of the run.
fn notes(trace: &trace::Trace) -> Vec<String> {
    let broke = capture::broke_off(trace.header());
    let broke = broke.map(|broke| format!("not a whole run: {broke}; this is what was recorded until then"));
    trace.lost_in_words().chain(broke).collect()
}

/// One reference that was given.
struct Made {
    address: u64,
    bytes: u16,
    kind: u8,
    thread: u64,
}

/// What a writer wrote, for whoever reads it afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.0.lock() {
            Ok(mut all) => all.write(bytes),
            Err(_) => Err(std::io::Error::other("another writer panicked")),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn written(name: &str, references: impl Iterator<Item = Made>) -> PyResult<Vec<u8>> {
    let shared = Shared::default();
    let header = Header {
        program: name.to_string(),
        origin: "python".to_string(),
        page_bytes: 4096,
        ..Header::default()
    };
    let mut writer = Writer::new(shared.clone(), &header, trace::Options::default()).map_err(failed)?;
    let process = writer.process(Process {
        program: name.to_string(),
        ..Process::default()
    });
    let mut threads = std::collections::HashMap::new();
    let mut sites = std::collections::HashMap::new();
    for (at, made) in references.enumerate() {
        let op = match made.kind {
            0 => Op::Read,
            1 => Op::Write,
            2 => Op::Modify,
            other => {
                return Err(failed(format_args!(
                    "`kinds[{at}]` is {other}, which is none of 0 (read), 1 (write) and 2 (both by one instruction)"
                )));
            }
        };
        if made.bytes == 0 {
            return Err(failed(format_args!(
                "`sizes[{at}]` is 0: a reference touches 1 byte at least"
            )));
        }
        if made.address.checked_add(u64::from(made.bytes) - 1).is_none() {
            return Err(failed(format_args!(
                "`addresses[{at}]` is {:#x}, and {} bytes from there leave the address space",
                made.address, made.bytes
            )));
        }
        let thread = *threads.entry(made.thread).or_insert_with(|| {
            writer.thread(Thread {
                process,
                number: made.thread,
                ..Thread::default()
            })
        });
        let size = made.bytes;
        let site = *sites
            .entry((made.kind, size))
            .or_insert_with(|| writer.site(Site { pc: 0, op, size }));
        let reference = Ref {
            addr: made.address,
            site,
            insns: 0,
            op,
            size,
        };
        writer.push(thread, reference).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    let bytes = shared.0.lock().map(|mut all| std::mem::take(&mut *all));
    bytes.map_err(failed)
}
