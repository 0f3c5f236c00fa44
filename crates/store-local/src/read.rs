//! Reads of one series: a snapshot of what holds its rows, taken under the lock, and the reads outside of it.

mod latest;
mod memory;
mod merge;

use std::ops::ControlFlow;
use std::sync::Arc;

use model::limits::READ_COPY_ROWS_MAX;
use model::{FieldType, SeriesId, ValueRef};
use store::{Scan, ScannedRow, StoreError};

use crate::catalog::Key;
use crate::chunk::Chunk;
use crate::core::{Core, State};
use crate::part::Part;
use crate::part::read::{KeyColumns, NARROW_COLUMN};
use crate::row::KeyId;
use merge::Merge;

/// Rows of one series in order, at most one per ts.
pub(crate) trait Source {
    /// The ts of the row at hand; `None` after the last.
    fn ts(&self) -> Option<i64>;
    /// The value of the row at hand for the asked key with this index.
    fn value(&self, key: usize) -> Option<ValueRef<'_>>;
    /// Goes to the next row.
    fn advance(&mut self) -> Result<(), StoreError>;
}

/// What a read of one series looks at.
struct Snapshot {
    series: u32,
    /// Oldest first.
    chunks: Vec<Arc<Chunk>>,
    /// Parts that may have rows of the series, oldest first.
    parts: Vec<Arc<Part>>,
}

/// A key that was asked for.
struct AskedKey {
    id: KeyId,
    columns: KeyColumns,
}

impl Core {
    pub(crate) fn scan(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedRow<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let (keys, snapshot) = {
            let mut state = self.state.lock();
            let table = table_of(&state, scan.series)?;
            let definitions = &state.catalog.tables[table as usize];
            let ask =
                |key: &String| definitions.key(key).map(|id| asked_key(id, &definitions.keys[id as usize]));
            let keys: Vec<Option<AskedKey>> = scan.keys.iter().map(ask).collect();
            if scan.limit == 0 || scan.range.is_empty() || keys.iter().all(Option::is_none) {
                return Ok(());
            }
            (keys, snapshot(&mut state, scan.series.0 as u32))
        };
        Merge::new(self, snapshot, &keys, scan.range, scan.order).run(scan.limit, visit)
    }
}

fn table_of(state: &State, series: SeriesId) -> Result<u32, StoreError> {
    let id = usize::try_from(series.0).map_err(|_| StoreError::UnknownSeries(series))?;
    state.series.get(id).map(|series| series.table).ok_or(StoreError::UnknownSeries(series))
}

fn asked_key(id: KeyId, key: &Key) -> AskedKey {
    let columns = FieldType::ALL.into_iter();
    let mut columns: KeyColumns = columns.filter_map(|of| Some((of, key.column(of)?.clone()))).collect();
    if id == 0 && key.column(FieldType::F64).is_some() {
        // As long as it was the table's only column it went to narrow parts.
        columns.push((FieldType::F64, NARROW_COLUMN.into()));
    }
    AskedKey { id, columns }
}

fn snapshot(state: &mut State, series: u32) -> Snapshot {
    let place = &state.series[series as usize];
    let table = place.table;
    let open = &state.tables[table as usize].open;
    let mut copy = None;
    if let Some(head_row) = place.head(open.number) {
        let mut rows: Vec<u32> = open.chain(head_row).take(READ_COPY_ROWS_MAX + 1).collect();
        if rows.len() > READ_COPY_ROWS_MAX {
            state.freeze(table);
        } else {
            rows.reverse();
            copy = Some(Arc::new(open.copy_of(&rows)));
        }
    }
    let memory = &state.tables[table as usize];
    let parts = state.version.parts(table);
    Snapshot {
        series,
        chunks: memory.flushing.iter().chain(&memory.frozen).cloned().chain(copy).collect(),
        parts: parts
            .filter(|part| part.info.series.0 <= series && series <= part.info.series.1)
            .cloned()
            .collect(),
    }
}
