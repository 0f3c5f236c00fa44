//! Builds small tables in memory from rows that name only the columns with other values than the default.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::common::Result;

/// The type of a column or of a function's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ColumnType {
    Bool,
    Int,
    /// The number of an object. It has 31 bits. The type has 64 bits, so that a comparison with any number needs no cast.
    Oid,
    Float,
    Text,
    Texts,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Texts(Vec<String>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl ColumnType {
    pub(super) fn data_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int32,
            Self::Oid => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Text => DataType::Utf8,
            Self::Texts => DataType::new_list(DataType::Utf8, true),
        }
    }

    /// Returns values of this kind as a column. A value of another kind becomes NULL.
    pub(super) fn array(self, cells: &[&Cell]) -> ArrayRef {
        let ints = || cells.iter().map(|cell| if let Cell::Int(value) = cell { Some(*value) } else { None });
        match self {
            Self::Bool => Arc::new(
                cells
                    .iter()
                    .map(|cell| if let Cell::Bool(value) = cell { Some(*value) } else { None })
                    .collect::<BooleanArray>(),
            ),
            Self::Int => Arc::new(
                ints().map(|value| value.and_then(|value| i32::try_from(value).ok())).collect::<Int32Array>(),
            ),
            Self::Oid => Arc::new(ints().collect::<Int64Array>()),
            Self::Float => {
                Arc::new(ints().map(|value| value.map(|value| value as f64)).collect::<Float64Array>())
            }
            Self::Text => {
                let texts = cells
                    .iter()
                    .map(|cell| if let Cell::Text(text) = cell { Some(text.as_str()) } else { None });
                Arc::new(texts.collect::<StringArray>())
            }
            Self::Texts => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for cell in cells {
                    match cell {
                        Cell::Texts(texts) => lists.append_value(texts.iter().map(Some)),
                        _ => lists.append_null(),
                    }
                }
                Arc::new(lists.finish())
            }
        }
    }

    /// The value of a column that a row does not name.
    fn usual(self) -> Cell {
        match self {
            Self::Bool => Cell::Bool(false),
            Self::Int | Self::Oid | Self::Float => Cell::Int(0),
            Self::Text => Cell::Text(String::new()),
            Self::Texts => Cell::Null,
        }
    }
}

/// A table that is being built.
#[derive(Debug)]
pub(super) struct Listing {
    columns: Vec<(&'static str, ColumnType, Cell)>,
    rows: Vec<Vec<Cell>>,
}

impl Listing {
    /// Creates a table with these columns: `name:kind`, separated by blanks. A column that a row does not name holds zero, false or
    /// the empty text; with a `?` after the kind it is NULL.
    pub(super) fn new(columns: &'static str) -> Self {
        let column = |column: &'static str| {
            let (name, kind) = column.split_once(':').unwrap_or((column, "oid"));
            let (kind, nullable) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
            let kind = match kind {
                "bool" => ColumnType::Bool,
                "int" => ColumnType::Int,
                "float" => ColumnType::Float,
                "text" => ColumnType::Text,
                "texts" => ColumnType::Texts,
                _ => ColumnType::Oid,
            };
            (name, kind, if nullable { Cell::Null } else { kind.usual() })
        };
        Self { columns: columns.split_whitespace().map(column).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn row<const N: usize>(&mut self, cells: [(&str, Cell); N]) {
        let mut row: Vec<Cell> = self.columns.iter().map(|(_, _, usual)| usual.clone()).collect();
        for (name, cell) in cells {
            let index = self.columns.iter().position(|(column, _, _)| *column == name);
            debug_assert!(index.is_some(), "there is no column {name}");
            if let Some(index) = index {
                row[index] = cell;
            }
        }
        self.rows.push(row);
    }

    /// The columns and their types.
    pub(super) fn schema(&self) -> Schema {
        let field = |(name, kind, _): &(&str, ColumnType, Cell)| Field::new(*name, kind.data_type(), true);
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }

    /// Returns the table as DataFusion reads it.
    pub(super) fn table(self) -> Result<Arc<dyn TableProvider>> {
        let schema = Arc::new(self.schema());
        let column = |(index, (_, kind, _)): (usize, &(&str, ColumnType, Cell))| {
            kind.array(&self.rows.iter().map(|row| &row[index]).collect::<Vec<_>>())
        };
        let columns = self.columns.iter().enumerate().map(column).collect();
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(Arc::new(MemTable::try_new(schema, vec![vec![rows]])?))
    }
}
