//! Tables of results, for whoever takes Arrow: polars, pandas, DuckDB, pyarrow.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{Field, Schema};
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

/// The cells of a column so far.
enum Column {
    Whole(UInt64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
}

impl Column {
    fn push(&mut self, value: &Value) {
        match (self, value) {
            (Column::Whole(cells), Value::Number(Exact::Whole(number), _)) => cells.append_value(*number),
            (Column::Whole(cells), _) => cells.append_null(),
            (Column::Real(cells), Value::Number(Exact::Real(number), _) | Value::Bar(number)) => {
                cells.append_value(*number)
            }
            (Column::Real(cells), Value::Number(Exact::Whole(number), _)) => cells.append_value(*number as f64),
            (Column::Real(cells), _) => cells.append_null(),
            (Column::Text(cells), Value::Text(text)) => cells.append_value(text),
            (Column::Text(cells), Value::Number(Exact::Whole(number), _)) => cells.append_value(number.to_string()),
            (Column::Text(cells), Value::Number(Exact::Real(number), _) | Value::Bar(number)) => {
                cells.append_value(number.to_string());
            }
            (Column::Text(cells), Value::Empty | Value::Unknown) => cells.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Column::Whole(mut cells) => Arc::new(cells.finish()),
            Column::Real(mut cells) => Arc::new(cells.finish()),
            Column::Text(mut cells) => Arc::new(cells.finish()),
        }
    }
}

/// The table as Arrow: whole numbers, numbers or text by column; nothing and the unknown are null.
///
/// Its rows lie apart in memory, so that they are gone through twice, and not once for each column.
fn batch(table: &report::Table) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let (names, rows) = (names(table), table.rows());
    let (mut text, mut real) = (vec![false; names.len()], vec![false; names.len()]);
    for row in rows {
        for (at, cell) in row.iter().enumerate().take(names.len()) {
            match cell.value() {
                Value::Text(_) => text[at] = true,
                Value::Bar(_) | Value::Number(Exact::Real(_), _) => real[at] = true,
                _ => {}
            }
        }
    }
    let mut columns: Vec<Column> = text
        .iter()
        .zip(&real)
        .map(|kind| match kind {
            (true, _) => Column::Text(StringBuilder::with_capacity(rows.len(), 8 * rows.len())),
            (false, true) => Column::Real(Float64Builder::with_capacity(rows.len())),
            (false, false) => Column::Whole(UInt64Builder::with_capacity(rows.len())),
        })
        .collect();
    for row in rows {
        for (column, cell) in columns.iter_mut().zip(row) {
            column.push(cell.value());
        }
    }
    let arrays: Vec<ArrayRef> = columns.into_iter().map(Column::finish).collect();
    let field = |(name, array): (String, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(
        names.into_iter().zip(&arrays).map(field).collect::<Vec<_>>(),
    ));
    RecordBatch::try_new_with_options(
        schema,
        arrays,
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(rows.len())),
    )
}
