//! Tables of results, for whoever takes Arrow: polars, pandas, DuckDB, pyarrow.

use std::iter;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, Float64Array, LargeStringArray, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyCapsule};
use report::{Cells, Exact, Has, Role, Value};

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
        self.0.len()
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
            self.0.len(),
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

/// What a column is in Arrow. It goes by what the column holds, and not by the rows that it has, unless they hold something else, too.
enum Kind {
    Whole,
    Real,
    Text,
}

impl Kind {
    fn of(role: Role, has: Has) -> Kind {
        match role {
            Role::Label | Role::Text => Kind::Text,
            _ if has.text => Kind::Text,
            Role::Count | Role::Time | Role::Bytes | Role::Address if !has.real => Kind::Whole,
            _ => Kind::Real,
        }
    }
}

/// The table as Arrow: whole numbers, numbers or text by column; nothing and the unknown are null.
fn batch(table: &report::Table) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let columns = table.columns().iter().zip(table.cells());
    let arrays: Vec<ArrayRef> = columns.map(|(column, cells)| array(column.role(), cells)).collect();
    let field = |(name, array): (String, &ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(
        names(table).into_iter().zip(&arrays).map(field).collect::<Vec<_>>(),
    ));
    RecordBatch::try_new_with_options(
        schema,
        arrays,
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(table.len())),
    )
}

/// Columns of one kind are copied as they lie in memory.
fn array(role: Role, cells: &Cells) -> ArrayRef {
    let all = 0..cells.len();
    let known = || (0..cells.len()).map(|at| !cells.is_missing(at)).collect::<Vec<bool>>();
    let nulls = cells.has().missing.then(|| NullBuffer::from(known()));
    match Kind::of(role, cells.has()) {
        Kind::Whole => match cells.whole_numbers() {
            Some(numbers) => Arc::new(UInt64Array::new(numbers.to_vec().into(), nulls)),
            None => Arc::new(UInt64Array::new_null(cells.len())),
        },
        Kind::Real => {
            let real = |at| {
                cells.number(at).map(|exact| match exact {
                    Exact::Whole(number) => number as f64,
                    Exact::Real(number) => number,
                })
            };
            Arc::new(all.map(real).collect::<Float64Array>())
        }
        Kind::Text => match cells.only_texts() {
            Some((texts, ends)) if texts.len() <= i32::MAX as usize => {
                let offsets = iter::once(0).chain(ends.iter().map(|end| *end as i32));
                let offsets = OffsetBuffer::new(offsets.collect());
                Arc::new(StringArray::new(offsets, texts.as_bytes().to_vec().into(), nulls))
            }
            Some(_) => Arc::new(all.map(|at| text(cells, at)).collect::<LargeStringArray>()),
            None => Arc::new(all.map(|at| text(cells, at)).collect::<StringArray>()),
        },
    }
}

/// A cell of a column of text.
fn text(cells: &Cells, at: usize) -> Option<String> {
    match (cells.number(at), cells.cell(at).value()) {
        (Some(Exact::Whole(number)), _) => Some(number.to_string()),
        (Some(Exact::Real(number)), _) => Some(number.to_string()),
        (None, Value::Text(text)) => Some(text.clone()),
        (None, _) => None,
    }
}
