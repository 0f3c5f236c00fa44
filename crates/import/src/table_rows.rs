//! Collects rows of a table into an Arrow batch.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use store::table::{COLUMN_KIND, COLUMN_NAME, TS_COLUMN};
use wire::line::{Line, LineValue};

use super::time::ts_type;

/// Rows of one table. A field has a column for each of its types. A column gets nulls for the rows without a value when its
/// next value comes.
#[derive(Default)]
pub(super) struct TableRows {
    rows: usize,
    ts: TimestampMicrosecondBuilder,
    tags: BTreeMap<String, StringBuilder>,
    bools: BTreeMap<String, BooleanBuilder>,
    integers: BTreeMap<String, Int64Builder>,
    unsigned: BTreeMap<String, UInt64Builder>,
    floats: BTreeMap<String, Float64Builder>,
    texts: BTreeMap<String, StringBuilder>,
}

/// The column of a name, filled with nulls up to the row.
macro_rules! column {
    ($columns:expr, $name:expr, $row:expr) => {{
        let name: &str = &$name;
        if !$columns.contains_key(name) {
            $columns.insert(name.to_owned(), Default::default());
        }
        let column = $columns.get_mut(name).expect("BUG: it was just inserted");
        while arrow_array::builder::ArrayBuilder::len(column) < $row {
            column.append_null();
        }
        column
    }};
}

/// Rows for which a new column allocates memory.
pub(super) const COLUMN_ROWS_MIN: usize = 1_024;

impl TableRows {
    /// Cells of all columns, with nulls: in the end each column has one per row.
    pub(super) fn cells(&self) -> usize {
        let numbers = self.bools.len() + self.integers.len() + self.unsigned.len() + self.floats.len();
        let columns = usize::from(self.rows > 0) + numbers + self.tags.len() + self.texts.len();
        columns * self.rows.max(COLUMN_ROWS_MIN)
    }

    /// Adds the tags and fields of a line with a time.
    pub(super) fn push(&mut self, line: Line<'_>, micros: Option<i64>) {
        self.ts.append_option(micros);
        for (key, value) in &line.tags {
            column!(self.tags, key, self.rows).append_value(value);
        }
        for (key, value) in &line.fields {
            match value {
                LineValue::Bool(value) => column!(self.bools, key, self.rows).append_value(*value),
                LineValue::I64(value) => column!(self.integers, key, self.rows).append_value(*value),
                LineValue::U64(value) => column!(self.unsigned, key, self.rows).append_value(*value),
                LineValue::F64(value) => column!(self.floats, key, self.rows).append_value(*value),
                LineValue::Text(value) => column!(self.texts, key, self.rows).append_value(value),
            }
        }
        self.rows += 1;
    }

    /// The rows as a batch. Its schema names the kind of each column.
    pub(super) fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut fields = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        let mut add = |kind: &str, name: &str, data_type: DataType, column: ArrayRef| {
            let pairs =
                [(COLUMN_KIND.to_owned(), kind.to_owned()), (COLUMN_NAME.to_owned(), name.to_owned())];
            // A field may have two columns, so the column has a unique name and names its field in the metadata.
            let unique = format!("{kind} {data_type} {name}");
            fields.push(Field::new(unique, data_type, true).with_metadata(pairs.into_iter().collect()));
            columns.push(column);
        };
        add("ts", TS_COLUMN, ts_type(), Arc::new(self.ts.finish().with_data_type(ts_type())));
        macro_rules! add_all {
            ($kind:literal, $columns:expr, $data_type:expr) => {
                for name in $columns.keys().cloned().collect::<Vec<_>>() {
                    let column = column!($columns, name, self.rows);
                    add($kind, &name, $data_type, Arc::new(column.finish()));
                }
            };
        }
        add_all!("tag", self.tags, DataType::Utf8);
        add_all!("", self.bools, DataType::Boolean);
        add_all!("", self.integers, DataType::Int64);
        add_all!("", self.unsigned, DataType::UInt64);
        add_all!("", self.floats, DataType::Float64);
        add_all!("", self.texts, DataType::Utf8);
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}
