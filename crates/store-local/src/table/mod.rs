//! Reads of whole tables. A snapshot is the parts and chunks that have the rows of a table at one moment.
//!
//! A read goes through these steps: plan.rs divides the sources into groups that share no row, and the groups into tasks.
//! The readers (reader.rs) take tasks from a shared list. A merge (merge.rs) chooses rows of the blocks (block.rs) of its
//! sources. gather.rs makes arrays of them. A source that shares no row with another one is neither sorted nor copied; the
//! batch has the arrays of the decoder.

pub(crate) mod block;
mod gather;
mod last_row;
mod merge;
mod order;
pub(crate) mod plan;
pub(crate) mod reader;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use model::limits::{READ_COPY_BYTES_MAX, READ_COPY_ROWS_MAX};
use model::{FieldType, TableName, TimeRange, Timestamp};
use parking_lot::Mutex;
use store::{
    BatchReader, Column, Order, ReadOrder, SeriesSet, SeriesVisitor, StoreError, TableColumns, TableRead,
    TableSnapshot, TableStatus, TagMatcher,
};

use crate::catalog::{self, Condition, Slot, Table, TableView, select};
use crate::chunk::Chunk;
use crate::core::Core;
use crate::part::{Part, PartInfo, PartLayout};
use crate::row::KeyId;
use crate::tombstone::Hidden;
use last_row::LastRowRead;
use plan::{Output, ReadPlan, Source, sources};
use reader::{LocalReader, TaskReader};

/// A table at one moment.
pub(crate) struct LocalTable {
    core: Arc<Core>,
    table: u32,
    view: Arc<TableView>,
    /// The series from this number on are newer than the snapshot.
    series_end: u32,
    /// Oldest first.
    parts: Vec<Arc<Part>>,
    /// Oldest first.
    chunks: Vec<Arc<Chunk>>,
    tombstones: Hidden,
    /// The series that were dropped before the snapshot.
    dropped: Arc<SeriesSet>,
}

impl fmt::Debug for LocalTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, chunks) = (self.parts.len(), self.chunks.len());
        write!(f, "{} of {parts} parts and {chunks} chunks", self.view.columns.table)
    }
}

/// The status of every table, sorted by name.
pub(crate) fn statuses(core: &Core) -> Vec<TableStatus> {
    let state = core.state.lock();
    let series = state.catalog.series.read();
    let status = |(number, table): (usize, &Table)| {
        let (memory, number) = (&state.tables[number], number as u32);
        let parts = || state.version.parts(number).map(AsRef::as_ref);
        let chunks = || memory.flushing.iter().chain(&memory.frozen).map(AsRef::as_ref).chain([&memory.open]);
        let sum = |what: fn(&PartInfo) -> u64| {
            parts().map(|part: &Part| part.info.share_of(number, what(&part.info))).sum::<u64>()
        };
        TableStatus {
            table: table.name.clone(),
            series: series.count(number),
            rows: sum(|part| part.rows) + chunks().map(|chunk| chunk.len() as u64).sum::<u64>(),
            points: Some(sum(|part| part.points)),
            bytes: sum(|part| part.bytes),
            raw_bytes: Some(sum(|part| part.raw_bytes)),
            time_range: time_range(parts(), chunks()),
            ttl: core.effective_ttl(table.ttl_us),
        }
    };
    let live = state.catalog.tables.iter().enumerate().filter(|(_, table)| !table.dropped);
    let mut statuses: Vec<TableStatus> = live.map(status).collect();
    statuses.sort_by(|a, b| a.table.cmp(&b.table));
    statuses
}

fn rows_max<'a>(parts: impl Iterator<Item = &'a Part>, chunks: impl Iterator<Item = &'a Chunk>) -> u64 {
    parts.map(|part| part.info.rows).chain(chunks.map(|chunk| chunk.len() as u64)).sum()
}

fn time_range<'a>(
    parts: impl Iterator<Item = &'a Part>,
    chunks: impl Iterator<Item = &'a Chunk>,
) -> Option<TimeRange> {
    let in_chunks = chunks.filter_map(Chunk::extent).map(|extent| extent.ts);
    let all = parts.map(|part| part.info.ts).chain(in_chunks);
    let (first, last) = all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(TimeRange::new(Timestamp::from_micros(first), Timestamp::from_micros(last.saturating_add(1))))
}

/// An estimate of the number of rows in a range, for rows that are spread evenly from the first to the last time. At least
/// one if a row may be in the range.
fn share_within(rows: u64, (first, last): (i64, i64), range: TimeRange) -> u64 {
    let start = first.max(range.start.micros());
    let end = last.saturating_add(1).min(range.end.micros());
    if end <= start {
        return 0;
    }
    let share = end.abs_diff(start) as f64 / last.saturating_add(1).abs_diff(first) as f64;
    ((rows as f64 * share) as u64).clamp(rows.min(1), rows)
}

/// Takes a snapshot of a table.
pub(crate) fn snapshot(core: &Arc<Core>, name: &TableName) -> Option<LocalTable> {
    let mut state = core.state.lock();
    let table = state.catalog.table(name)?;
    let open = &state.tables[table as usize].open;
    let mut copy = None;
    if open.len() > READ_COPY_ROWS_MAX || open.body_bytes() > READ_COPY_BYTES_MAX {
        state.freeze(table);
    } else if !open.is_empty() {
        copy = Some(Arc::new(open.copy()));
    }
    let memory = &state.tables[table as usize];
    Some(LocalTable {
        core: core.clone(),
        table,
        tombstones: state.tombstones.of(table).clone(),
        dropped: core.series.read().dropped().clone(),
        view: state.catalog.tables[table as usize].view(),
        series_end: core.series.read().len() as u32,
        parts: state.version.parts(table).cloned().collect(),
        chunks: memory.flushing.iter().chain(&memory.frozen).cloned().chain(copy).collect(),
    })
}

impl TableSnapshot for LocalTable {
    fn columns(&self) -> &TableColumns {
        &self.view.columns
    }

    fn rows_max(&self) -> u64 {
        rows_max(self.parts.iter().map(AsRef::as_ref), self.chunks.iter().map(AsRef::as_ref))
    }

    fn rows_within(&self, range: TimeRange) -> u64 {
        let in_parts = self.parts.iter().map(|part| (part.info.rows, part.info.ts));
        let in_chunks = self.chunks.iter().filter_map(|chunk| Some((chunk.len() as u64, chunk.extent()?.ts)));
        in_parts.chain(in_chunks).map(|(rows, ts)| share_within(rows, ts, range)).sum()
    }

    fn row_bytes(&self) -> u64 {
        let of_part = |part: &Arc<Part>| part.info.share_of(self.table, part.info.raw_bytes);
        let bytes = self.parts.iter().map(of_part).chain(self.chunks.iter().map(|it| it.body_bytes() as u64));
        let rows = self.parts.iter().map(|part| part.info.rows_of(self.table));
        let rows = rows.chain(self.chunks.iter().map(|chunk| chunk.len() as u64));
        bytes.sum::<u64>() / rows.sum::<u64>().max(1)
    }

    fn time_range(&self) -> Option<TimeRange> {
        time_range(self.parts.iter().map(AsRef::as_ref), self.chunks.iter().map(AsRef::as_ref))
    }

    fn select(&self, matchers: &[TagMatcher]) -> Result<SeriesSet, StoreError> {
        let tags = &self.view.columns.tags;
        let condition = |matcher| Condition::new(tags, matcher);
        let conditions: Vec<Condition<'_>> = matchers.iter().map(condition).collect();
        Ok(select(&self.core.series, self.table, self.series_end, &self.dropped, &conditions))
    }

    fn each_series(
        &self,
        series: Option<&SeriesSet>,
        visit: &mut SeriesVisitor<'_>,
    ) -> Result<(), StoreError> {
        // Where the visitor stops does not matter.
        let _ = catalog::each_series(&self.core.series, &self.own(series), &self.view.columns.tags, visit);
        Ok(())
    }

    fn tag_values(
        &self,
        tag: &str,
        series: Option<&SeriesSet>,
        visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let tags = &self.view.columns.tags;
        if let Some(tag) = tags.iter().position(|column| *column.tag == *tag) {
            let series = self.own(series);
            let _ = catalog::tag_values(&self.core.series, self.table, tag as u32, &series, visit);
        }
        Ok(())
    }

    fn read(&self, read: &TableRead) -> Result<Vec<Box<dyn BatchReader>>, StoreError> {
        let (schema, columns) = self.view.columns.project(read)?;
        let plan = self.plan(&columns, read);
        if let ReadOrder::LastRow(order) = read.order {
            return Ok(self.last_rows(plan, order, schema, read));
        }
        let plan = Arc::new(plan);
        let series = || match &plan.series {
            Some(series) => series.iter().collect(),
            None => self.series().iter().collect(),
        };
        let tasks = plan.tasks(self.sources(), read.readers_max, series);
        let count = tasks.len().min(read.readers_max.max(1));
        let tasks = Arc::new(Mutex::new(tasks));
        let reader = |_| {
            let reader = LocalReader {
                reader: TaskReader::new(plan.clone(), tasks.clone()),
                schema: schema.clone(),
                batch_rows: read.batch_rows.max(1),
                left: read.limit.unwrap_or(usize::MAX),
            };
            Box::new(reader) as Box<dyn BatchReader>
        };
        Ok((0..count).map(reader).collect())
    }
}

impl LocalTable {
    /// The plan of a read; `columns` are the columns that it requests. The cost is linear in the columns.
    fn plan(&self, columns: &[Column<'_>], read: &TableRead) -> ReadPlan {
        let view = &self.view;
        // The key of the column with this index. Fields follow the time.
        let key = |index: &usize| view.keys[index - view.columns.ts_index() - 1];
        // Where several sources have the same row, a read of a column needs the other columns of its key.
        let fields =
            columns.iter().zip(&read.columns).filter(|(column, _)| matches!(column, Column::Field(_)));
        let mut keys: Vec<KeyId> = fields.map(|(_, index)| key(index)).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_asked = |slot: &&Slot| keys.binary_search(&slot.key).is_ok();
        let slots: Vec<Slot> = view.stored.iter().filter(is_asked).cloned().collect();
        let slot = |key: KeyId, field_type: FieldType| {
            let slot = slots.binary_search_by_key(&(key, field_type), |slot| (slot.key, slot.field_type));
            slot.expect("BUG: each asked column has a slot")
        };
        let output = |(column, index): (&Column<'_>, &usize)| match column {
            Column::Ts => Output::Ts,
            Column::Tag(tag) => {
                let number = view.columns.tags.iter().position(|of| of.tag == tag.tag);
                Output::Tag(number.expect("BUG: a tag of this table"))
            }
            Column::Field(field) => {
                let key = key(index);
                match field.with_integers {
                    false => Output::Field(slot(key, field.field_type)),
                    true => Output::Numbers {
                        integers: slot(key, FieldType::I64),
                        floats: slot(key, FieldType::F64),
                    },
                }
            }
        };
        ReadPlan {
            core: self.core.clone(),
            table: self.table,
            outputs: columns.iter().zip(&read.columns).map(output).collect(),
            slots,
            range: read.range,
            series: self.wanted(read).map(Arc::new),
            order: read.order,
            tag_runs: read.tag_runs,
        }
    }

    /// The readers of the last row of each series.
    fn last_rows(
        &self,
        plan: ReadPlan,
        order: Order,
        schema: SchemaRef,
        read: &TableRead,
    ) -> Vec<Box<dyn BatchReader>> {
        let Some(whole) = self.time_range() else { return Vec::new() };
        let range = TimeRange::new(plan.range.start.max(whole.start), plan.range.end.min(whole.end));
        let all = self.series();
        let series = plan.series.clone().unwrap_or_else(|| Arc::new(all.clone()));
        let sources = self.sources();
        let batch_rows = read.batch_rows.max(1);
        let last_rows = LastRowRead { plan: ReadPlan { range, ..plan }, sources, order, schema, batch_rows };
        last_rows.readers(&series, all.len(), read.readers_max)
    }

    /// The series to read; `None` means all series of the sources. Parts that tables share have series of other tables, so
    /// then the set is explicit.
    fn wanted(&self, read: &TableRead) -> Option<SeriesSet> {
        let is_shared =
            |part: &Arc<Part>| part.info.layout == PartLayout::Narrow && part.info.members().count() > 1;
        let shared = self.parts.iter().any(is_shared);
        match &read.series {
            Some(series) if shared => Some(series & self.series()),
            None if shared => Some(self.series()),
            given => given.clone(),
        }
    }

    fn sources(&self) -> Vec<Source> {
        sources(self.table, &self.parts, &self.chunks, &self.tombstones)
    }

    /// The series of a set that are series of this snapshot; all of them when there is no set.
    fn own(&self, series: Option<&SeriesSet>) -> SeriesSet {
        let own = self.series();
        match series {
            Some(series) => own & series,
            None => own,
        }
    }

    /// All series of the table.
    fn series(&self) -> SeriesSet {
        select(&self.core.series, self.table, self.series_end, &self.dropped, &[])
    }
}
