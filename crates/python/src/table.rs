//! Tables of results, for whoever takes Arrow: polars, pandas, DuckDB, pyarrow.

use std::num::NonZero;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
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

    /// Arrow's PyCapsule interface: a stream of batches.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A best effort, says the interface; there is one schema.
        drop(requested_schema);
        let table = &self.0;
        let (schema, batches) = py.detach(|| batches(table)).map_err(failed)?;
        let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
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

/// What a column's cells are. A column with several kinds has the last of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Whole,
    Real,
    Text,
}

impl Kind {
    /// `None`: any kind of column has it, as null.
    fn of(value: &Value) -> Option<Kind> {
        match value {
            Value::Text(_) => Some(Kind::Text),
            Value::Bar(_) | Value::Number(Exact::Real(_), _) => Some(Kind::Real),
            Value::Number(Exact::Whole(_), _) => Some(Kind::Whole),
            Value::Empty | Value::Unknown => None,
        }
    }
}

/// The cells of a column so far.
enum Column {
    Whole(UInt64Builder),
    Real(Float64Builder),
    Text(StringBuilder),
}

impl Column {
    fn new(kind: Kind, rows: usize) -> Column {
        match kind {
            Kind::Whole => Column::Whole(UInt64Builder::with_capacity(rows)),
            Kind::Real => Column::Real(Float64Builder::with_capacity(rows)),
            Kind::Text => Column::Text(StringBuilder::with_capacity(rows, 8 * rows)),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Column::Whole(_) => Kind::Whole,
            Column::Real(_) => Kind::Real,
            Column::Text(_) => Kind::Text,
        }
    }

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

type Row = Vec<report::Cell>;

/// Some rows as columns, each of the kind that the one before it had, or of a later one. Rows lie apart in memory: they are gone through
/// once, and a column of which a cell turns out to be of a later kind is made once more.
fn columns(rows: &[Row], kinds: &[Kind]) -> Vec<Column> {
    let mut columns: Vec<Column> = kinds.iter().map(|&kind| Column::new(kind, rows.len())).collect();
    for (at, row) in rows.iter().enumerate() {
        for (number, cell) in row.iter().enumerate().take(columns.len()) {
            let column = &mut columns[number];
            if let Some(kind) = Kind::of(cell.value()).filter(|kind| *kind > column.kind()) {
                *column = again(&rows[..at], number, kind, rows.len());
            }
            column.push(cell.value());
        }
    }
    columns
}

/// A column of the rows so far, as a column of that kind.
fn again(rows: &[Row], number: usize, kind: Kind, capacity: usize) -> Column {
    let mut column = Column::new(kind, capacity);
    for row in rows {
        column.push(row[number].value());
    }
    column
}

/// The table as Arrow: whole numbers, numbers or text by column; nothing and the unknown are null. Each thread makes a batch of it.
fn batches(table: &report::Table) -> Result<(SchemaRef, Vec<RecordBatch>), ArrowError> {
    /// Fewer rows are no work for another thread.
    const LEAST: usize = 1 << 14;
    let (names, rows) = (names(table), table.rows());
    // The first row says most of the kinds.
    let first = rows.first().map(Vec::as_slice).unwrap_or_default();
    let guess = |at: usize| first.get(at).and_then(|cell| Kind::of(cell.value()));
    let guessed: Vec<Kind> = (0..names.len()).map(|at| guess(at).unwrap_or(Kind::Whole)).collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let parts: Vec<&[Row]> = rows.chunks(rows.len().div_ceil(threads).max(LEAST)).collect();
    let mut made: Vec<Vec<Column>> = std::thread::scope(|scope| {
        let guessed = &guessed;
        let begun: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(|| columns(part, guessed)))
            .collect();
        begun
            .into_iter()
            .map(|thread| thread.join().unwrap_or_default())
            .collect()
    });
    let kind = |at: usize| {
        made.iter()
            .filter_map(|columns| columns.get(at))
            .map(Column::kind)
            .max()
    };
    let kinds: Vec<Kind> = (0..names.len()).map(|at| kind(at).unwrap_or(guessed[at])).collect();
    let field = |(name, kind): (String, &Kind)| {
        let of = match kind {
            Kind::Whole => DataType::UInt64,
            Kind::Real => DataType::Float64,
            Kind::Text => DataType::Utf8,
        };
        Field::new(name, of, true)
    };
    let schema = Arc::new(Schema::new(
        names.into_iter().zip(&kinds).map(field).collect::<Vec<_>>(),
    ));
    let mut batches = Vec::new();
    for (part, columns) in parts.iter().zip(&mut made) {
        let mut arrays = Vec::new();
        for (number, column) in columns.drain(..).enumerate() {
            let column = match column.kind() == kinds[number] {
                true => column,
                false => again(part, number, kinds[number], part.len()),
            };
            arrays.push(column.finish());
        }
        let count = RecordBatchOptions::new().with_row_count(Some(part.len()));
        batches.push(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &count)?);
    }
    Ok((schema, batches))
}
