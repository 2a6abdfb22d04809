//! Tables of results, for whoever takes Arrow: polars, pandas, DuckDB, pyarrow.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule};
use report::{Exact, Value};

use crate::failed;
use crate::text::{COLUMNS, plain};

/// A table of a result. It has the exact values; `str()` rounds them for people.
///
/// Anything that reads the Arrow PyCapsule interface takes it as it is, as in `polars.DataFrame(table)`.
#[pyclass(frozen, module = "domicile")]
pub struct Table(pub report::Table);

#[pymethods]
impl Table {
    #[getter]
    fn title(&self) -> &str {
        self.0.title()
    }

    /// The names of its columns, each with its unit.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(&self.0)
    }

    /// Its sentences.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.0.notes().to_vec()
    }

    fn __len__(&self) -> usize {
        self.0.rows().len()
    }

    fn __str__(&self) -> String {
        plain(&self.0.text(COLUMNS))
    }

    fn _repr_html_(&self) -> String {
        self.0.html()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Table {}: {} rows of {}>",
            self.0.title(),
            self.0.rows().len(),
            names(&self.0).join(", ")
        )
    }

    /// Arrow's PyCapsule interface: a stream of one batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A best effort, says the interface; there is one schema.
        drop(requested_schema);
        let batch = batch(&self.0).map_err(failed)?;
        let schema = batch.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(batch)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Each column's name, with its unit, and a number where two are the same.
fn names(table: &report::Table) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, column) in table.columns().iter().enumerate() {
        let unit = if column.unit().is_empty() {
            String::new()
        } else {
            format!("_{}", column.unit())
        };
        let name = match column.name() {
            "" => format!("column {}", at + 1),
            name => format!("{name}{unit}"),
        };
        let same = names.iter().filter(|other| **other == name).count();
        names.push(if same == 0 {
            name
        } else {
            format!("{name} {}", same + 1)
        });
    }
    names
}

/// The table as Arrow: whole numbers, numbers or text by column; nothing and the unknown are null.
fn batch(table: &report::Table) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (at, name) in names(table).into_iter().enumerate() {
        let values = || table.rows().iter().map(move |row| row[at].value());
        let text = values().any(|value| matches!(value, Value::Text(_)));
        let real = values().any(|value| matches!(value, Value::Bar(_) | Value::Number(Exact::Real(_), _)));
        let array: ArrayRef = if text {
            let words = values().map(|value| match value {
                Value::Text(text) => Some(text.clone()),
                Value::Number(Exact::Whole(number), _) => Some(number.to_string()),
                Value::Number(Exact::Real(number), _) | Value::Bar(number) => Some(number.to_string()),
                Value::Empty | Value::Unknown => None,
            });
            Arc::new(words.collect::<StringArray>())
        } else if real {
            let numbers = values().map(|value| match value {
                Value::Number(Exact::Real(number), _) | Value::Bar(number) => Some(*number),
                Value::Number(Exact::Whole(number), _) => Some(*number as f64),
                _ => None,
            });
            Arc::new(numbers.collect::<Float64Array>())
        } else {
            let counts = values().map(|value| match value {
                Value::Number(Exact::Whole(number), _) => Some(*number),
                _ => None,
            });
            Arc::new(counts.collect::<UInt64Array>())
        };
        let kind: DataType = array.data_type().clone();
        fields.push(Field::new(name, kind, true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    RecordBatch::try_new_with_options(
        schema,
        arrays,
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(table.rows().len())),
    )
}
