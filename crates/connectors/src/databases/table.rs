//! Tables of rows of sensors.

use virtual_sensors::{DataType, SensorField};

use super::limits::NAME_BYTES_MAX;

/// A table with the columns `pk`, `timed` and the fields of a sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// The identity of a row.
    pub(crate) key: RowKey,
    /// The columns of the fields.
    pub(crate) columns: Vec<Column>,
}

/// The identity of a row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// The time in milliseconds, in `timed`. The database counts `pk`.
    Timed,
    /// The time in microseconds, in `pk`: several rows may have one time in milliseconds.
    Pk,
}

impl RowKey {
    /// The name of the column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Timed => "timed",
            Self::Pk => "pk",
        }
    }
}

/// A column of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The name, in lower case.
    pub(crate) name: String,
    pub(crate) kind: ColumnKind,
}

/// The type of a column. It holds each value that a sensor can make of its type: no value is refused or cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// 64 bits.
    Integer,
    /// A number of 64 bits with a fraction.
    Real,
    /// Text of any length.
    Text,
    Bytes,
}

impl Table {
    /// The table of the output of a sensor.
    ///
    /// # Errors
    /// A name is too long for a database.
    pub(crate) fn new(
        name: &str,
        has_unique_timestamps: bool,
        fields: &[SensorField],
    ) -> Result<Self, String> {
        let key = if has_unique_timestamps { RowKey::Timed } else { RowKey::Pk };
        let columns: Vec<_> = fields.iter().map(Column::of).collect();
        let mut names = std::iter::once(name).chain(columns.iter().map(|column| column.name.as_str()));
        if let Some(long) = names.find(|name| name.len() > NAME_BYTES_MAX || name.contains('\0')) {
            return Err(format!(
                "{long:?} cannot be a name in a database; it has at most {NAME_BYTES_MAX} bytes (NAME_BYTES_MAX)"
            ));
        }
        Ok(Self { name: name.to_owned(), key, columns })
    }
}

impl Column {
    fn of(field: &SensorField) -> Self {
        let kind = match field.data_type {
            DataType::TinyInt | DataType::SmallInt | DataType::Integer | DataType::BigInt => {
                ColumnKind::Integer
            }
            DataType::Double | DataType::Float => ColumnKind::Real,
            DataType::Varchar(_) | DataType::Char(_) => ColumnKind::Text,
            DataType::Binary(_) => ColumnKind::Bytes,
        };
        Self { name: field.name.clone(), kind }
    }
}
