//! A table as a Parquet file: rows of any kind, and columns that are read from them.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use results::TOOL;

/// Columns of one length. Each has a value in every row, unless its function's name begins with `maybe`.
pub struct Columns<'a, Row> {
    rows: &'a [Row],
    columns: Vec<(Type, Cells)>,
    about: Vec<KeyValue>,
}

/// The contents of a column; `None` for a row without a value.
enum Cells {
    Text(Vec<Option<ByteArray>>),
    Number(Vec<Option<i64>>),
}

impl<'a, Row> Columns<'a, Row> {
    pub fn of(rows: &'a [Row]) -> Columns<'a, Row> {
        Columns {
            rows,
            columns: Vec::new(),
            about: Vec::new(),
        }
    }

    /// Adds metadata of the whole file (Parquet's key-value metadata).
    pub fn about(mut self, key: &str, value: &str) -> Columns<'a, Row> {
        self.about.push(KeyValue::new(key.to_string(), value.to_string()));
        self
    }

    pub fn text(self, name: &str, value: impl Fn(&'a Row) -> String) -> Columns<'a, Row> {
        let cells = self.rows.iter().map(|row| Some(value(row).into_bytes().into()));
        let cells = Cells::Text(cells.collect());
        self.column(name, Repetition::REQUIRED, ConvertedType::UTF8, cells)
    }

    pub fn maybe_text(self, name: &str, value: impl Fn(&'a Row) -> Option<String>) -> Columns<'a, Row> {
        let cells = self
            .rows
            .iter()
            .map(|row| value(row).map(|text| text.into_bytes().into()));
        let cells = Cells::Text(cells.collect());
        self.column(name, Repetition::OPTIONAL, ConvertedType::UTF8, cells)
    }

    pub fn number(self, name: &str, value: impl Fn(&'a Row) -> i64) -> Columns<'a, Row> {
        let cells = Cells::Number(self.rows.iter().map(|row| Some(value(row))).collect());
        self.column(name, Repetition::REQUIRED, ConvertedType::INT_64, cells)
    }

    pub fn maybe_number(self, name: &str, value: impl Fn(&'a Row) -> Option<i64>) -> Columns<'a, Row> {
        let cells = Cells::Number(self.rows.iter().map(value).collect());
        self.column(name, Repetition::OPTIONAL, ConvertedType::INT_64, cells)
    }

    /// Addresses are unsigned: those of a kernel are in the upper half.
    pub fn address(self, name: &str, value: impl Fn(&'a Row) -> u64) -> Columns<'a, Row> {
        let cells = self.rows.iter().map(|row| Some(value(row).cast_signed()));
        let cells = Cells::Number(cells.collect());
        self.column(name, Repetition::REQUIRED, ConvertedType::UINT_64, cells)
    }

    fn column(mut self, name: &str, repetition: Repetition, kind: ConvertedType, cells: Cells) -> Columns<'a, Row> {
        let physical = match cells {
            Cells::Text(_) => Physical::BYTE_ARRAY,
            Cells::Number(_) => Physical::INT64,
        };
        let column = Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_converted_type(kind)
            .build()
            .expect("its kind is one of its type");
        self.columns.push((column, cells));
        self
    }

    /// The file.
    pub fn file(self) -> Vec<u8> {
        let (types, cells): (Vec<Type>, Vec<Cells>) = self.columns.into_iter().unzip();
        written(types, &cells, self.about).expect("memory takes what fits its schema")
    }
}

fn written(types: Vec<Type>, cells: &[Cells], about: Vec<KeyValue>) -> Result<Vec<u8>, ParquetError> {
    let schema = Type::group_type_builder("rows")
        .with_fields(types.into_iter().map(Arc::new).collect())
        .build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(TOOL.to_string())
        .set_key_value_metadata(Some(about))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for cells in cells {
        match cells {
            Cells::Text(cells) => write::<ByteArrayType>(&mut group, cells)?,
            Cells::Number(cells) => write::<Int64Type>(&mut group, cells)?,
        }
    }
    group.close()?;
    file.into_inner()
}

fn write<Kind: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    cells: &[Option<Kind::T>],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has it");
    let present: Vec<Kind::T> = cells.iter().flatten().cloned().collect();
    // The rows with a value; ignored for columns where all rows have one.
    let defined: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
    column.typed::<Kind>().write_batch(&present, Some(&defined), None)?;
    column.close()
}
