//! Columns of a row group in the making: sparse, so that memory follows the values and not rows times columns.

use bytes::Bytes;
use model::{FieldType, ValueRef};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{Type, TypePtr};

/// Values of one column with the rows that have one.
pub(crate) struct ColumnBuilder {
    rows: Vec<u32>,
    values: Values,
}

enum Values {
    Bool(Vec<bool>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    /// Text one after the other, and where each ends.
    Text(Vec<u8>, Vec<usize>),
}

impl ColumnBuilder {
    pub(crate) fn new(field_type: FieldType) -> Self {
        let values = match field_type {
            FieldType::Bool => Values::Bool(Vec::new()),
            FieldType::I64 => Values::I64(Vec::new()),
            FieldType::F64 => Values::F64(Vec::new()),
            FieldType::String | FieldType::Json => Values::Text(Vec::new(), Vec::new()),
        };
        Self { rows: Vec::new(), values }
    }

    /// Sets the value of a row that is the last so far or a new last one.
    #[inline]
    pub(crate) fn set(&mut self, row: u32, value: ValueRef<'_>) {
        self.unset(row);
        self.rows.push(row);
        match (&mut self.values, value) {
            (Values::Bool(values), ValueRef::Bool(value)) => values.push(value),
            (Values::I64(values), ValueRef::I64(value)) => values.push(value),
            (Values::F64(values), ValueRef::F64(value)) => values.push(value),
            (Values::Text(text, ends), ValueRef::String(value) | ValueRef::Json(value)) => {
                text.extend_from_slice(value.as_bytes());
                ends.push(text.len());
            }
            _ => unreachable!("BUG: a column is chosen by the value's type"),
        }
    }

    /// Takes back the value of the last row, if it has one.
    #[inline]
    pub(crate) fn unset(&mut self, row: u32) {
        if self.rows.last() != Some(&row) {
            return;
        }
        self.rows.pop();
        match &mut self.values {
            Values::Bool(values) => drop(values.pop()),
            Values::I64(values) => drop(values.pop()),
            Values::F64(values) => drop(values.pop()),
            Values::Text(text, ends) => {
                ends.pop();
                text.truncate(ends.last().copied().unwrap_or(0));
            }
        }
    }

    /// Writes the column of a row group with `rows` rows and empties the builder.
    pub(crate) fn write(&mut self, rows: usize, writer: &mut SerializedColumnWriter<'_>) -> Result<()> {
        let mut levels = vec![0; rows];
        self.rows.iter().for_each(|row| levels[*row as usize] = 1);
        self.rows.clear();
        match &mut self.values {
            Values::Bool(values) => {
                writer.typed::<BoolType>().write_batch(values, Some(&levels), None)?;
                values.clear();
            }
            Values::I64(values) => {
                writer.typed::<Int64Type>().write_batch(values, Some(&levels), None)?;
                values.clear();
            }
            Values::F64(values) => {
                writer.typed::<DoubleType>().write_batch(values, Some(&levels), None)?;
                values.clear();
            }
            Values::Text(text, ends) => {
                let text = Bytes::from(std::mem::take(text));
                let mut start = 0;
                let values: Vec<ByteArray> = ends
                    .iter()
                    .map(|end| ByteArray::from(text.slice(std::mem::replace(&mut start, *end)..*end)))
                    .collect();
                writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
                ends.clear();
            }
        }
        Ok(())
    }
}

/// The Parquet column of a field.
pub(crate) fn field_column(name: &str, field_type: FieldType) -> Result<TypePtr> {
    let (physical, logical) = match field_type {
        FieldType::Bool => (PhysicalType::BOOLEAN, None),
        FieldType::I64 => (PhysicalType::INT64, None),
        FieldType::F64 => (PhysicalType::DOUBLE, None),
        FieldType::String => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        FieldType::Json => (PhysicalType::BYTE_ARRAY, Some(LogicalType::Json)),
    };
    column(name, physical, logical, Repetition::OPTIONAL)
}

/// The column of a row's time.
pub(crate) fn ts_column(name: &str) -> Result<TypePtr> {
    let utc_micros = LogicalType::timestamp(true, TimeUnit::MICROS);
    column(name, PhysicalType::INT64, Some(utc_micros), Repetition::REQUIRED)
}

/// An internal number column.
pub(crate) fn number_column(name: &str) -> Result<TypePtr> {
    column(name, PhysicalType::INT64, Some(LogicalType::integer(64, false)), Repetition::REQUIRED)
}

fn column(
    name: &str,
    physical: PhysicalType,
    logical: Option<LogicalType>,
    repetition: Repetition,
) -> Result<TypePtr> {
    let builder = Type::primitive_type_builder(name, physical);
    Ok(builder.with_logical_type(logical).with_repetition(repetition).build()?.into())
}
