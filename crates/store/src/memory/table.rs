//! Whole tables of the reference store. A read copies, filters, sorts and cuts the rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, RunArray,
    StringViewArray, TimestampMicrosecondArray,
};
use model::{FieldType, SeriesKey, TableName, TimeRange, Timestamp, Value};

use crate::table::UTC;
use crate::{
    BatchReader, Column, FieldColumn, Order, ReadOrder, SeriesSet, SeriesVisitor, StoreError, TableColumns,
    TableRead, TableSnapshot, TagColumn, TagMatcher,
};

/// How the store adds columns to a table.
impl TableColumns {
    pub(super) fn new(table: &TableName) -> Self {
        Self { table: table.clone(), tags: Vec::new(), fields: Vec::new() }
    }

    fn name(&self, wanted: &str, suffix: &str) -> Arc<str> {
        let joined = self.joined();
        Self::free_name(wanted, suffix, |name| self.has_column(name) || joined.has_column(name))
    }

    pub(super) fn add_tag(&mut self, tag: &str) {
        if !self.tags.iter().any(|known| *known.tag == *tag) {
            self.tags.push(TagColumn { tag: tag.into(), column: self.name(tag, "tag") });
        }
    }

    pub(super) fn has_field(&self, key: &str, field_type: FieldType) -> bool {
        self.fields.iter().any(|field| *field.key == *key && field.field_type == field_type)
    }

    pub(super) fn add_field(&mut self, key: &str, field_type: FieldType) {
        if self.has_field(key, field_type) {
            return;
        }
        let of_key = |field: &FieldColumn| *field.key == *key;
        let (wanted, index) = match self.fields.iter().position(of_key) {
            None => (key.to_owned(), self.fields.len()),
            Some(first) => {
                let before = |field: &&FieldColumn| of_key(field) && field.field_type < field_type;
                let smaller = self.fields[first..].iter().take_while(before).count();
                (format!("{key}:{field_type}"), first + smaller)
            }
        };
        let column = self.name(&wanted, field_type.name());
        self.fields.insert(index, FieldColumn { key: key.into(), field_type, column, with_integers: false });
    }
}

/// A copy of a table.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) columns: TableColumns,
    pub(super) series: BTreeMap<u32, SeriesKey>,
    /// Sorted by series, then by time. Each row has a field.
    pub(super) rows: Vec<Row>,
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) series: u32,
    pub(super) ts: Timestamp,
    pub(super) fields: BTreeMap<String, Value>,
}

impl TableSnapshot for Snapshot {
    fn columns(&self) -> &TableColumns {
        &self.columns
    }

    fn rows_max(&self) -> u64 {
        self.rows.len() as u64
    }

    fn rows_within(&self, range: TimeRange) -> u64 {
        self.rows.iter().filter(|row| range.contains(row.ts)).count() as u64
    }

    fn time_range(&self) -> Option<TimeRange> {
        time_range(self.rows.iter().map(|row| row.ts))
    }

    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        let satisfies =
            |key: &SeriesKey, matcher: &TagMatcher| matcher.predicate.accepts(tag(key, &matcher.tag));
        let all = |key: &SeriesKey| matchers.iter().all(|matcher| satisfies(key, matcher));
        Ok(self.series.iter().filter(|(_, key)| all(key)).map(|(id, _)| *id).collect())
    }

    fn each_series(
        &self,
        series: Option<&SeriesSet>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError> {
        let is_asked = |id: &u32| series.is_none_or(|series| series.contains(*id));
        for (id, key) in self.series.iter().filter(|(id, _)| is_asked(id)) {
            let tags: Vec<(&str, &str)> =
                key.tags().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            if visit(*id, &tags).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        let (schema, columns) = self.columns.project(read)?;
        let asked = |row: &&Row| {
            read.range.contains(row.ts)
                && read.series.as_ref().is_none_or(|series| series.contains(row.series))
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(asked).collect();
        match read.order {
            ReadOrder::Any | ReadOrder::SeriesThenTime => {}
            ReadOrder::Time(Order::Ascending) => rows.sort_by_key(|row| (row.ts, row.series)),
            ReadOrder::Time(Order::Descending) => {
                rows.sort_by_key(|row| (std::cmp::Reverse(row.ts), row.series));
            }
            ReadOrder::LastRow(order) => rows = last_rows(&rows, order, &columns),
        }
        rows.truncate(read.limit.unwrap_or(usize::MAX));
        let batch = |rows: &[&Row]| {
            let arrays = columns.iter().map(|column| self.array(*column, rows, read.tag_runs)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
                .expect("BUG: columns fit the schema")
        };
        let batches: Vec<RecordBatch> = rows.chunks(read.batch_rows.max(1)).map(batch).collect();
        Ok(vec![Box::new(Batches(batches.into_iter()))])
    }
}

impl Snapshot {
    fn array(&self, column: Column<'_>, rows: &[&Row], tag_runs: bool) -> ArrayRef {
        let field = match column {
            Column::Tag(column) => {
                let value = |row: &&Row| tag(&self.series[&row.series], &column.tag);
                if !tag_runs {
                    return Arc::new(rows.iter().map(value).collect::<StringViewArray>());
                }
                let runs: Vec<_> = rows.chunk_by(|a, b| a.series == b.series).collect();
                let values: StringViewArray = runs.iter().map(|run| value(&run[0])).collect();
                let ends = runs.iter().scan(0, |end, run| {
                    *end += run.len() as i32;
                    Some(*end)
                });
                let runs = RunArray::<Int32Type>::try_new(&ends.collect(), &values);
                return Arc::new(runs.expect("BUG: ends ascend"));
            }
            Column::Ts => {
                let values = rows.iter().map(|row| row.ts.micros());
                return Arc::new(TimestampMicrosecondArray::from_iter_values(values).with_timezone(UTC));
            }
            Column::Field(field) => field,
        };
        let values = rows.iter().map(|row| row.fields.get(&*field.key));
        if !field.with_integers {
            return array_of(field.field_type, values);
        }
        let number = |value: Option<&Value>| match value {
            Some(Value::I64(integer)) => Some(*integer as f64),
            Some(Value::F64(float)) => Some(*float),
            _ => None,
        };
        Arc::new(values.map(number).collect::<Float64Array>())
    }
}

/// The rows at one end of each series, up to the nearest value of every field. The store leaves out all rows beyond, so
/// that a test finds a caller that relies on them.
fn last_rows<'a>(rows: &[&'a Row], order: Order, columns: &[Column<'_>]) -> Vec<&'a Row> {
    let has_value = |row: &Row, field: &FieldColumn| {
        let shows = |of: FieldType| of == field.field_type || (field.with_integers && of == FieldType::I64);
        row.fields.get(&*field.key).is_some_and(|value| shows(value.field_type()))
    };
    let fields = || {
        columns.iter().filter_map(|column| match column {
            Column::Field(field) => Some(*field),
            Column::Tag(_) | Column::Ts => None,
        })
    };
    let end = |of_series: &[&'a Row]| {
        let mut from_end: Vec<&Row> = of_series.to_vec();
        if order == Order::Descending {
            from_end.reverse();
        }
        let nearest = |field| from_end.iter().position(|row| has_value(row, field));
        let count = fields().map(|field| nearest(field).map_or(from_end.len(), |row| row + 1)).max();
        from_end.truncate(count.unwrap_or(1));
        from_end.sort_by_key(|row| row.ts);
        from_end
    };
    rows.chunk_by(|a, b| a.series == b.series).flat_map(end).collect()
}

/// The values of one type; null in place of all others.
pub(super) fn array_of<'a>(
    field_type: FieldType,
    values: impl Iterator<Item = Option<&'a Value>>,
) -> ArrayRef {
    macro_rules! array {
        ($array:ty, $($variant:ident)|+) => {
            Arc::new(values.map(|value| match value {
                $(Some(Value::$variant(value)) => Some(value.clone()),)+
                _ => None,
            }).collect::<$array>())
        };
    }
    match field_type {
        FieldType::Bool => array!(BooleanArray, Bool),
        FieldType::I64 => array!(Int64Array, I64),
        FieldType::F64 => array!(Float64Array, F64),
        FieldType::String => array!(StringViewArray, String),
        FieldType::Json => array!(StringViewArray, Json),
    }
}

fn tag<'a>(key: &'a SeriesKey, tag: &str) -> Option<&'a str> {
    key.tags().iter().find(|(name, _)| name == tag).map(|(_, value)| value.as_str())
}

/// The smallest range that contains all times.
pub(super) fn time_range(times: impl Iterator<Item = Timestamp> + Clone) -> Option<TimeRange> {
    let (first, last) = (times.clone().min()?, times.max()?);
    Some(TimeRange::new(first, last.saturating_add_micros(1)))
}

struct Batches(std::vec::IntoIter<RecordBatch>);

impl BatchReader for Batches {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        Ok(self.0.next())
    }
}
