//! Reads of one series. The snapshot of its chunks and parts is taken under the lock; the read runs without it.
//!
//! A read goes through the files of table/ with one series and an order by time. Only the open chunk is special, because it
//! can find the rows of a series.

mod latest;
mod values;

use std::ops::ControlFlow;
use std::sync::Arc;

use model::limits::{PART_PAGE_ROWS, READ_COPY_ROWS_MAX};
use model::{FieldType, SeriesId, TimeRange};
use parking_lot::Mutex;
use store::{Order, ReadOrder, Scan, ScannedBlock, StoreError, ValueColumn};

use crate::catalog::{Slot, Table};
use crate::chunk::{Chunk, Extent};
use crate::core::{Core, State};
use crate::part::Part;
use crate::row::KeyId;
use crate::series_state::NO_TABLE;
use crate::table::plan::{Output, ReadPlan, sources};
use crate::table::reader::TaskReader;
use crate::tombstone::Hidden;
use values::Columns;

/// The smallest number of rows of the first batch of a scan. Each further batch has more rows.
const FIRST_BATCH_ROWS: usize = 256;

/// The chunks and parts that may have rows of one series, oldest first.
struct Snapshot {
    table: u32,
    series: u32,
    chunks: Vec<Arc<Chunk>>,
    parts: Vec<Arc<Part>>,
    /// Those of the table.
    tombstones: Hidden,
}

/// Reads the rows of one series by time, as columns.
struct SeriesReader {
    reader: TaskReader,
    types: Vec<FieldType>,
    batch_rows: usize,
    batch_rows_max: usize,
}

impl SeriesReader {
    /// `rows` is the number of rows that the caller probably wants.
    fn new(
        core: &Arc<Core>,
        snapshot: &Snapshot,
        slots: &[Slot],
        range: TimeRange,
        order: Order,
        rows: usize,
    ) -> Self {
        let outputs = std::iter::once(Output::Ts).chain((0..slots.len()).map(Output::Field));
        let plan = ReadPlan {
            core: core.clone(),
            table: snapshot.table,
            outputs: outputs.collect(),
            slots: slots.to_vec(),
            range,
            series: None,
            order: ReadOrder::Time(order),
            tag_runs: false,
        };
        let sources = sources(snapshot.table, &snapshot.parts, &snapshot.chunks, &snapshot.tombstones);
        let tasks = plan.tasks(sources, 1, || vec![snapshot.series]);
        let types = slots.iter().map(|slot| slot.field_type).collect();
        let reader = TaskReader::new(Arc::new(plan), Arc::new(Mutex::new(tasks)));
        let batch_rows_max = core.options.series_batch_rows.clamp(1, PART_PAGE_ROWS);
        let batch_rows = rows.max(FIRST_BATCH_ROWS).min(batch_rows_max);
        Self { reader, types, batch_rows, batch_rows_max }
    }

    /// The next rows, with a column for each slot; `None` after the last row.
    fn next(&mut self) -> Result<Option<Columns>, StoreError> {
        let rows = self.batch_rows;
        self.batch_rows = (4 * rows).min(self.batch_rows_max);
        let read = self.reader.next(rows)?;
        Ok(read.map(|(arrays, _)| Columns::new(&arrays, &self.types)))
    }
}

impl Core {
    pub(crate) fn scan_blocks(
        self: &Arc<Self>,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (keys, slots, snapshot) = {
            let mut state = self.state.lock();
            let table = table_of(&state, scan.series)?;
            let definitions = &state.catalog.tables[table as usize];
            let keys: Vec<Option<KeyId>> = scan.keys.iter().map(|key| definitions.key(key)).collect();
            if scan.limit == 0 || scan.range.is_empty() || keys.iter().all(Option::is_none) {
                return Ok(());
            }
            let slots = slots(definitions, keys.iter().flatten().copied().collect());
            (keys, slots, snapshot(&mut state, scan.series.0 as u32, Some(scan.range)))
        };
        let mut reader = SeriesReader::new(self, &snapshot, &slots, scan.range, scan.order, scan.limit);
        while let Some(rows) = reader.next()? {
            let columns: Vec<Vec<ValueColumn>> =
                keys.iter().map(|key| rows.of_key(&slots, *key).cloned().collect()).collect();
            if visit(ScannedBlock { times: rows.times(), columns: &columns }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn table_of(state: &State, series: SeriesId) -> Result<u32, StoreError> {
    let id = usize::try_from(series.0).map_err(|_| StoreError::UnknownSeries(series))?;
    let table = state.series.get(id).map(|series| series.table).filter(|table| *table != NO_TABLE);
    table.ok_or(StoreError::UnknownSeries(series))
}

/// The slots of some keys.
fn slots(table: &Table, mut keys: Vec<KeyId>) -> Vec<Slot> {
    keys.sort_unstable();
    keys.dedup();
    let of_key = |key: KeyId| {
        let slot = move |field_type| {
            let physical = table.keys[key as usize].column(field_type)?.clone();
            Some(Slot { key, field_type, physical })
        };
        FieldType::ALL.into_iter().filter_map(slot)
    };
    keys.into_iter().flat_map(of_key).collect()
}

/// Takes a snapshot of the chunks and parts that may have rows of a series in a range; of all times without a range. A table
/// has many chunks and parts, and most of them have only other series or times. This skips them before any work on them.
fn snapshot(state: &mut State, series: u32, range: Option<TimeRange>) -> Snapshot {
    let is_wanted = |(first, last): (i64, i64)| {
        range.is_none_or(|range| first < range.end.micros() && range.start.micros() <= last)
    };
    let may_have =
        |extent: Extent| extent.series.0 <= series && series <= extent.series.1 && is_wanted(extent.ts);
    let of_series = &state.series[series as usize];
    let table = of_series.table;
    let open = &state.tables[table as usize].open;
    let mut copy = None;
    if let Some(head_row) = of_series.head(open.number)
        && open.extent().is_some_and(may_have)
    {
        let mut rows: Vec<u32> = open.chain(head_row).take(READ_COPY_ROWS_MAX + 1).collect();
        if rows.len() > READ_COPY_ROWS_MAX {
            state.freeze(table);
        } else {
            rows.reverse();
            copy = Some(Arc::new(open.copy_of(&rows)));
        }
    }
    let memory = &state.tables[table as usize];
    let chunks = memory.flushing.iter().chain(&memory.frozen);
    let parts = state.version.parts(table);
    Snapshot {
        table,
        series,
        chunks: chunks.filter(|chunk| chunk.extent().is_some_and(may_have)).cloned().chain(copy).collect(),
        parts: parts.filter(|part| may_have(part.info.extent())).cloned().collect(),
        tombstones: state.tombstones.of(table).clone(),
    }
}
