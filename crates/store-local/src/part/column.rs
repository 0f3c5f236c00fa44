//! Builders for the columns of a row group. They are sparse, so that memory depends on the values and not on rows times
//! columns.

use bytes::Bytes;
use model::{FieldType, ValueRef};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{Type, TypePtr};

use super::encode::decimal::{PRECISION, put_integers};
use super::encode::numbers::{Column, Present, write_doubles, write_integers};
use super::group::GroupWriter;

/// The values of one column, and the rows that have a value.
pub(crate) struct ColumnBuilder {
    /// The number of rows, while every row has a value.
    dense: u32,
    /// Otherwise the rows that have a value.
    sparse: Vec<u32>,
    values: Values,
}

enum Values {
    Bool(Vec<bool>),
    I64(Vec<i64>),
    F64(Vec<f64>),
    /// The texts one after the other, and the end of each.
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
        Self { dense: 0, sparse: Vec::new(), values }
    }

    /// Sets the value of the last row, or of a new last row.
    #[inline]
    pub(crate) fn set(&mut self, row: u32, value: ValueRef<'_>) {
        self.unset(row);
        self.mark(row);
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

    #[inline]
    fn mark(&mut self, row: u32) {
        if self.sparse.is_empty() && row == self.dense {
            self.dense += 1;
            return;
        }
        self.spread();
        self.sparse.push(row);
    }

    /// Lists the rows from now on.
    fn spread(&mut self) {
        self.sparse.extend(0..self.dense);
        self.dense = 0;
    }

    /// Removes the value of the last row, if it has one.
    #[inline]
    pub(crate) fn unset(&mut self, row: u32) {
        match self.sparse.last() {
            Some(last) if *last == row => drop(self.sparse.pop()),
            None if self.dense == row + 1 => self.dense = row,
            _ => return,
        }
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

    /// The number of values.
    pub(crate) fn len(&self) -> usize {
        self.dense as usize + self.sparse.len()
    }

    /// Bytes of the values as a plain column: eight for a number, one for a bool, the length of a text.
    pub(crate) fn raw_bytes(&self) -> usize {
        match &self.values {
            Values::Bool(values) => values.len(),
            Values::I64(values) => size_of_val(values.as_slice()),
            Values::F64(values) => size_of_val(values.as_slice()),
            Values::Text(text, _) => text.len(),
        }
    }

    /// The rows that have a value.
    pub(crate) fn rows(&self) -> impl Iterator<Item = u32> {
        (0..self.dense).chain(self.sparse.iter().copied())
    }

    /// The values of a column of doubles; empty for other types.
    pub(crate) fn doubles(&self) -> &[f64] {
        match &self.values {
            Values::F64(values) => values,
            _ => &[],
        }
    }

    /// Empties the builder.
    pub(crate) fn clear(&mut self) {
        self.dense = 0;
        self.sparse.clear();
        match &mut self.values {
            Values::Bool(values) => values.clear(),
            Values::I64(values) => values.clear(),
            Values::F64(values) => values.clear(),
            Values::Text(text, ends) => {
                text.clear();
                ends.clear();
            }
        }
    }

    /// Writes the column of a row group with `rows` rows, and empties the builder. With a scale it writes doubles as
    /// decimals.
    pub(crate) fn write(
        &mut self,
        rows: usize,
        scale: Option<u8>,
        group: &mut GroupWriter<'_, '_>,
    ) -> Result<()> {
        if (self.dense as usize) < rows {
            self.spread();
        }
        let present = if self.dense as usize == rows { Present::All } else { Present::Some(&self.sparse) };
        match &mut self.values {
            Values::Bool(values) => {
                let levels = levels(rows, present);
                group.write(|column| column.typed::<BoolType>().write_batch(values, Some(&levels), None))?;
            }
            Values::I64(values) => {
                group.append(|shape| {
                    let column = Column { values, rows, present };
                    write_integers(&column, shape.descriptor, shape.compressor, shape.page_rows, false)
                })?;
            }
            Values::F64(values) => {
                write_f64(Column { values, rows, present }, scale, group)?;
            }
            Values::Text(text, ends) => {
                let text = Bytes::from(std::mem::take(text));
                let mut start = 0;
                let values: Vec<ByteArray> = ends
                    .iter()
                    .map(|end| ByteArray::from(text.slice(std::mem::replace(&mut start, *end)..*end)))
                    .collect();
                let levels = levels(rows, present);
                group.write(|column| {
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)
                })?;
            }
        }
        self.clear();
        Ok(())
    }
}

/// Writes doubles; with a scale as decimals.
pub(crate) fn write_f64(
    column: Column<'_, f64>,
    scale: Option<u8>,
    group: &mut GroupWriter<'_, '_>,
) -> Result<()> {
    let Some(scale) = scale else {
        return group
            .append(|shape| write_doubles(&column, shape.descriptor, shape.compressor, shape.page_rows));
    };
    let mut integers = Vec::with_capacity(column.values.len());
    if !put_integers(&mut integers, column.values, scale) {
        return Err(ParquetError::General(format!("BUG: a value has more than {scale} decimals")));
    }
    group.append(|shape| {
        let column = Column { values: &integers, rows: column.rows, present: column.present };
        write_integers(&column, shape.descriptor, shape.compressor, shape.page_rows, false)
    })
}

fn levels(rows: usize, present: Present<'_>) -> Vec<i16> {
    match present {
        Present::Required | Present::All => vec![1; rows],
        Present::Some(present) => {
            let mut levels = vec![0; rows];
            present.iter().for_each(|row| levels[*row as usize] = 1);
            levels
        }
    }
}

/// The Parquet column of a field. An f64 with a scale is a decimal.
pub(crate) fn field_column(name: &str, field_type: FieldType, scale: Option<u8>) -> Result<TypePtr> {
    let (physical, logical) = match (field_type, scale) {
        (FieldType::Bool, _) => (PhysicalType::BOOLEAN, None),
        (FieldType::I64, _) => (PhysicalType::INT64, None),
        (FieldType::F64, None) => (PhysicalType::DOUBLE, None),
        (FieldType::F64, Some(scale)) => {
            (PhysicalType::INT64, Some(LogicalType::decimal(scale.into(), PRECISION)))
        }
        (FieldType::String, _) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        (FieldType::Json, _) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::Json)),
    };
    let builder = Type::primitive_type_builder(name, physical);
    let builder = match scale.filter(|_| field_type == FieldType::F64) {
        Some(scale) => builder.with_precision(PRECISION).with_scale(scale.into()),
        None => builder,
    };
    Ok(builder.with_logical_type(logical).with_repetition(Repetition::OPTIONAL).build()?.into())
}

/// The column of the time of a row.
pub(crate) fn ts_column(name: &str) -> Result<TypePtr> {
    required(name, LogicalType::timestamp(true, TimeUnit::MICROS))
}

/// An internal number column.
pub(crate) fn number_column(name: &str) -> Result<TypePtr> {
    required(name, LogicalType::integer(64, false))
}

fn required(name: &str, logical: LogicalType) -> Result<TypePtr> {
    let builder = Type::primitive_type_builder(name, PhysicalType::INT64);
    Ok(builder.with_logical_type(Some(logical)).with_repetition(Repetition::REQUIRED).build()?.into())
}
