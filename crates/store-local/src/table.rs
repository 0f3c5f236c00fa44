//! Whole tables: a snapshot of parts, chunks and columns, and the readers of it.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchOptions, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow_schema::SchemaRef;
use model::{FieldType, TimeRange, Timestamp, Value};
use store::table::UTC;
use store::{
    BatchReader, Column, FieldColumn, Order, ReadOrder, SeriesSet, StoreError, TableColumns, TableRead,
    TableSnapshot, TableStatus, TagColumn, TagMatcher,
};

use crate::catalog::Table;
use crate::chunk::Chunk;
use crate::core::{Core, State};
use crate::part::Part;
use crate::read::{AskedKey, Merge, Snapshot, asked_key};

/// A table at one moment.
pub(crate) struct LocalTable {
    core: Arc<Core>,
    table: u32,
    columns: TableColumns,
    keys: Arc<Vec<Option<AskedKey>>>,
    /// Series with larger numbers came later.
    series_end: u32,
    chunks: Vec<Arc<Chunk>>,
    parts: Vec<Arc<Part>>,
}

impl fmt::Debug for LocalTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} parts and {} chunks", self.columns.table, self.parts.len(), self.chunks.len())
    }
}

/// The columns of a table as its definitions say.
fn columns_of(table: &Table) -> TableColumns {
    let tags = table.tags.iter().map(|tag| TagColumn { tag: tag.name.clone(), column: tag.physical.clone() });
    let of_key = |key: &crate::catalog::Key| {
        let column = |field_type| {
            let column = key.column(field_type)?.clone();
            Some(FieldColumn { key: key.name.clone(), field_type, column })
        };
        FieldType::ALL.into_iter().filter_map(column).collect::<Vec<_>>()
    };
    let fields = table.keys.iter().flat_map(of_key);
    TableColumns { table: table.name.clone(), tags: tags.collect(), fields: fields.collect() }
}

/// The status of every table, sorted by name.
pub(crate) fn statuses(state: &State) -> Vec<TableStatus> {
    let mut series = vec![0; state.tables.len()];
    state.series.iter().for_each(|of| series[of.table as usize] += 1);
    let status = |(number, table): (usize, &Table)| {
        let memory = &state.tables[number];
        let parts = state.version.parts(number as u32);
        let chunks = || memory.flushing.iter().chain(&memory.frozen).map(AsRef::as_ref).chain([&memory.open]);
        let in_parts = parts.iter().map(|part| part.info.ts);
        let in_chunks = chunks().filter_map(Chunk::ts_range);
        TableStatus {
            table: table.name.to_string(),
            series: series[number],
            rows: parts.iter().map(|part| part.info.rows).sum::<u64>()
                + chunks().map(|chunk| chunk.len() as u64).sum::<u64>(),
            points: None,
            bytes: parts.iter().map(|part| part.info.bytes).sum(),
            raw_bytes: None,
            time_range: cover(in_parts.chain(in_chunks)),
            ttl: None,
        }
    };
    let mut statuses: Vec<TableStatus> = state.catalog.tables.iter().enumerate().map(status).collect();
    statuses.sort_by(|a, b| a.table.cmp(&b.table));
    statuses
}

/// The range around several pairs of smallest and largest time.
fn cover(ranges: impl Iterator<Item = (i64, i64)>) -> Option<TimeRange> {
    let (first, last) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(TimeRange::new(Timestamp::from_micros(first), Timestamp::from_micros(last.saturating_add(1))))
}

/// Takes a snapshot of a table.
pub(crate) fn snapshot(core: &Arc<Core>, name: &str) -> Option<LocalTable> {
    let mut state = core.state.lock();
    let table = state.catalog.table(name)?;
    state.freeze(table);
    let definitions = &state.catalog.tables[table as usize];
    let keys = definitions.keys.iter().enumerate().map(|(id, key)| Some(asked_key(id as u32, key)));
    let memory = &state.tables[table as usize];
    Some(LocalTable {
        core: core.clone(),
        table,
        columns: columns_of(definitions),
        keys: Arc::new(keys.collect()),
        series_end: state.catalog.series.len() as u32,
        chunks: memory.flushing.iter().chain(&memory.frozen).cloned().collect(),
        parts: state.version.parts(table).to_vec(),
    })
}

impl TableSnapshot for LocalTable {
    fn columns(&self) -> &TableColumns {
        &self.columns
    }

    fn rows_max(&self) -> u64 {
        let in_parts = self.parts.iter().map(|part| part.info.rows);
        in_parts.chain(self.chunks.iter().map(|chunk| chunk.len() as u64)).sum()
    }

    fn time_range(&self) -> Option<TimeRange> {
        let in_parts = self.parts.iter().map(|part| part.info.ts);
        cover(in_parts.chain(self.chunks.iter().filter_map(|chunk| chunk.ts_range())))
    }

    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        let numbers: Vec<Option<usize>> = matchers
            .iter()
            .map(|matcher| self.columns.tags.iter().position(|column| *column.tag == *matcher.tag))
            .collect();
        let mut selected = SeriesSet::new();
        for id in self.series() {
            let tags = self.tags(id);
            let value = |number: &Option<usize>| number.and_then(|number| tags[number].as_deref());
            let pairs = matchers.iter().zip(&numbers);
            if pairs.into_iter().all(|(matcher, number)| matcher.predicate.accepts(value(number))) {
                selected.insert(id);
            }
        }
        Ok(selected)
    }

    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        let (schema, _) = self.columns.project(&read.columns)?;
        let wanted = |id: &u32| read.series.as_ref().is_none_or(|series| series.contains(*id));
        let series = self.series().into_iter().filter(wanted).collect();
        Ok(vec![Box::new(Rows {
            table: self.clone(),
            schema,
            read: read.clone(),
            given: 0,
            series,
            rows: VecDeque::new(),
        })])
    }
}

impl LocalTable {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
            table: self.table,
            columns: self.columns.clone(),
            keys: self.keys.clone(),
            series_end: self.series_end,
            chunks: self.chunks.clone(),
            parts: self.parts.clone(),
        }
    }

    fn series(&self) -> Vec<u32> {
        let state = self.core.state.lock();
        (0..self.series_end).filter(|id| state.catalog.series.table(*id) == Some(self.table)).collect()
    }

    /// By tag number.
    fn tags(&self, series: u32) -> Vec<Option<String>> {
        let mut values = vec![None; self.columns.tags.len()];
        let encoded = self.core.state.lock().catalog.series.encoded_tags(series).to_vec();
        for tag in crate::catalog::tags(&encoded) {
            let (number, value) = tag.expect("BUG: a known series has tags");
            values[number as usize] = Some(value.to_owned());
        }
        values
    }
}

struct Row {
    series: u32,
    ts: i64,
    values: Vec<Option<Value>>,
}

/// Reads row by row, one series after the other.
struct Rows {
    table: LocalTable,
    schema: SchemaRef,
    read: TableRead,
    given: usize,
    series: VecDeque<u32>,
    rows: VecDeque<Row>,
}

impl BatchReader for Rows {
    fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        while self.rows.is_empty() && !self.series.is_empty() {
            match self.read.order {
                ReadOrder::Time(order) => self.load_all(order)?,
                ReadOrder::Any | ReadOrder::SeriesThenTime => self.load_series()?,
            }
        }
        let left = self.read.limit.unwrap_or(usize::MAX) - self.given;
        let count = self.rows.len().min(self.read.batch_rows.max(1)).min(left);
        if count == 0 {
            return Ok(None);
        }
        self.given += count;
        let rows: Vec<Row> = self.rows.drain(..count).collect();
        let (_, columns) = self.table.columns.project(&self.read.columns)?;
        let arrays = columns.iter().map(|column| self.array(*column, &rows)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options);
        Ok(Some(batch.expect("BUG: columns fit the schema")))
    }
}

impl Rows {
    fn load_series(&mut self) -> Result<(), StoreError> {
        let Some(series) = self.series.pop_front() else { return Ok(()) };
        let parts = self.table.parts.iter();
        let snapshot = Snapshot {
            series,
            chunks: self.table.chunks.clone(),
            parts: parts
                .filter(|part| part.info.series.0 <= series && series <= part.info.series.1)
                .cloned()
                .collect(),
        };
        let rows = &mut self.rows;
        if self.read.range.is_empty() {
            return Ok(());
        }
        let core = &self.table.core;
        Merge::new(core, snapshot, &self.table.keys, self.read.range, Order::Ascending).run(
            usize::MAX,
            &mut |row| {
                let values = row.values.iter().map(|value| value.map(|value| value.to_owned())).collect();
                rows.push_back(Row { series, ts: row.ts.micros(), values });
                ControlFlow::Continue(())
            },
        )
    }

    fn load_all(&mut self, order: Order) -> Result<(), StoreError> {
        while !self.series.is_empty() {
            self.load_series()?;
        }
        let rows = self.rows.make_contiguous();
        match order {
            Order::Ascending => rows.sort_by_key(|row| (row.ts, row.series)),
            Order::Descending => rows.sort_by_key(|row| (std::cmp::Reverse(row.ts), row.series)),
        }
        Ok(())
    }

    fn array(&self, column: Column<'_>, rows: &[Row]) -> ArrayRef {
        let field = match column {
            Column::Tag(tag) => {
                let number = self.table.columns.tags.iter().position(|of| of == tag).unwrap_or(0);
                let values = rows.iter().map(|row| self.table.tags(row.series)[number].clone());
                return Arc::new(values.collect::<StringViewArray>());
            }
            Column::Ts => {
                let times = rows.iter().map(|row| row.ts);
                return Arc::new(TimestampMicrosecondArray::from_iter_values(times).with_timezone(UTC));
            }
            Column::Field(field) => field,
        };
        let key = self.table.keys.iter().position(|key| {
            key.as_ref().is_some_and(|key| key.columns.iter().any(|(_, name)| *name == field.column))
        });
        let key = key.unwrap_or(0);
        let values = rows.iter().map(|row| row.values[key].as_ref());
        macro_rules! array {
            ($array:ty, $variant:ident) => {
                Arc::new(
                    values
                        .map(|value| match value {
                            Some(Value::$variant(value)) => Some(value.clone()),
                            _ => None,
                        })
                        .collect::<$array>(),
                )
            };
        }
        match field.field_type {
            FieldType::Bool => array!(BooleanArray, Bool),
            FieldType::I64 => array!(Int64Array, I64),
            FieldType::F64 => array!(Float64Array, F64),
            FieldType::String => array!(StringViewArray, String),
            FieldType::Json => array!(StringViewArray, Json),
        }
    }
}
