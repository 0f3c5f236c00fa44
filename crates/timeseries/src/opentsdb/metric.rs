//! Metrics: which field of which table.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch};
use model::FieldType;
use store::TableColumns;

use super::{Number, QueryError};
use crate::{Source, Table};

/// The field of a metric without a field of its own.
const VALUE: &str = "value";

/// What a query calls a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// A table, whose values are the field `value`; or a table, a dot and a field.
    Name(String),
    /// A field of a table, as HiTSDB names it.
    Field { table: String, field: String },
}

/// A metric that exists.
pub(super) struct Opened<'a> {
    pub(super) table: Box<dyn Table + 'a>,
    /// The number of the field in [`TableColumns::fields`].
    pub(super) field: usize,
}

impl Opened<'_> {
    /// The fields to read: the numbers and, if some are fractions, the integers as they came.
    pub(super) fn fields(&self) -> Vec<usize> {
        let columns = self.table.columns();
        let before = columns.tags.len() + 1;
        let exact = columns.exact_integers(before + self.field).map(|column| column - before);
        std::iter::once(self.field).chain(exact).collect()
    }
}

/// The columns of [`Opened::fields`] in a batch whose tags and times have so many columns.
pub(super) struct NumberColumns<'a> {
    numbers: &'a ArrayRef,
    integers: Option<&'a PrimitiveArray<Int64Type>>,
}

impl<'a> NumberColumns<'a> {
    pub(super) fn of(batch: &'a RecordBatch, behind: usize) -> Self {
        let numbers = batch.column(behind);
        let exact = batch.columns().get(behind + 1).unwrap_or(numbers);
        Self { numbers, integers: exact.as_primitive_opt::<Int64Type>() }
    }

    /// Whether the rows have no number.
    pub(super) fn are_absent(&self, rows: Range<usize>) -> bool {
        self.numbers.slice(rows.start, rows.len()).null_count() == rows.len()
    }

    /// The number of a row.
    pub(super) fn number(&self, row: usize) -> Option<Number> {
        if let Some(integers) = self.integers.filter(|integers| integers.is_valid(row)) {
            return Some(Number::Integer(integers.value(row)));
        }
        let floats = self.numbers.as_primitive_opt::<Float64Type>().filter(|floats| floats.is_valid(row))?;
        Some(Number::Float(floats.value(row)))
    }
}

impl Metric {
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Field { table, .. } => table,
        }
    }

    pub(super) fn open<'a>(&self, source: &'a dyn Source) -> Result<Opened<'a>, QueryError> {
        let (name, own_field) = match self {
            Self::Name(name) => (name, VALUE),
            Self::Field { table, field } => (table, field.as_str()),
        };
        let whole = source.open(name)?;
        if let Some(table) = &whole
            && let Some(field) = number(table.columns(), own_field)
        {
            return whole.map(|table| Opened { table, field }).ok_or_else(|| self.unknown());
        }
        if let Self::Name(name) = self {
            for (dot, _) in name.rmatch_indices('.') {
                if let Some(table) = source.open(&name[..dot])?
                    && let Some(field) = number(table.columns(), &name[dot + 1..])
                {
                    return Ok(Opened { table, field });
                }
            }
        }
        Err(whole.map_or_else(|| self.unknown(), |table| self.no_field(own_field, table.columns())))
    }

    fn unknown(&self) -> QueryError {
        QueryError::NoSuchMetric(self.name().to_owned())
    }

    fn no_field(&self, field: &str, columns: &TableColumns) -> QueryError {
        let fields: Vec<&str> = numbers(columns).take(10).collect();
        QueryError::Invalid(format!(
            "Metric '{}' has no numbers in the field '{field}'. Its fields with numbers: {}",
            self.name(),
            fields.join(", ")
        ))
    }
}

/// The names of the metrics of a table.
pub(super) fn names_of<'a>(table: &'a str, columns: &'a TableColumns) -> impl Iterator<Item = String> + 'a {
    numbers(columns).map(move |field| match field {
        VALUE => table.to_owned(),
        field => format!("{table}.{field}"),
    })
}

fn numbers(columns: &TableColumns) -> impl Iterator<Item = &str> {
    columns.fields.iter().filter(|field| is_number(field.field_type)).map(|field| &*field.key)
}

fn number(columns: &TableColumns, key: &str) -> Option<usize> {
    columns.fields.iter().position(|field| &*field.key == key && is_number(field.field_type))
}

pub(super) fn is_number(field_type: FieldType) -> bool {
    matches!(field_type, FieldType::I64 | FieldType::F64)
}
