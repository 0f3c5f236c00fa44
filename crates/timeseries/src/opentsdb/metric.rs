//! Metrics: which field of which table.

use model::FieldType;
use store::TableColumns;

use super::QueryError;
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
