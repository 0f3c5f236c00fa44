//! Reads of one series: a snapshot of what holds its rows, and the merge of these sources into one row per ts.
//!
//! Sources are ranked: every row of a newer source has a later sequence than every row of an older one (parts hold
//! disjoint ranges of sequences, see manifest.rs), so at one ts the newest source that has a key decides it.

mod memory;

use std::ops::ControlFlow;
use std::sync::Arc;

use model::{SeriesId, TimeRange, Timestamp, ValueRef};
use store::{LatestValue, Order, Scan, ScannedRow, StoreError};

use crate::chunk::Chunk;
use crate::core::{Core, State};
use crate::latest::{Latest, Newest};
use crate::row::KeyId;
use memory::MemorySource;

/// Rows of a series in the open chunk up to which they are copied out; above it the chunk is frozen and shared.
const COPY_ROWS_MAX: usize = 4_096;

/// Rows of one series in order, at most one per ts.
pub(crate) trait Source {
    /// The ts of the row at hand; `None` after the last.
    fn ts(&self) -> Option<i64>;
    /// The value of the row at hand for the asked key with this index.
    fn value(&self, key: usize) -> Option<ValueRef<'_>>;
    /// Goes to the next row.
    fn advance(&mut self) -> Result<(), StoreError>;
}

/// What a read of one series looks at, taken under the lock.
struct Snapshot {
    /// Oldest first.
    chunks: Vec<Arc<Chunk>>,
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
            let keys: Vec<_> = scan.keys.iter().map(|key| definitions.key(key)).collect();
            if scan.limit == 0 || scan.range.is_empty() || keys.iter().all(Option::is_none) {
                return Ok(());
            }
            (keys, snapshot(&mut state, scan.series.0 as u32))
        };
        let mut sources = open_sources(&snapshot, scan.series.0 as u32, &keys, scan.range, scan.order);
        merge(&mut sources, scan, visit)
    }

    pub(crate) fn latest(
        &self,
        series: SeriesId,
        keys: Option<&[String]>,
    ) -> Result<Vec<LatestValue>, StoreError> {
        loop {
            {
                let mut state = self.state.lock();
                let table = table_of(&state, series)?;
                if let Some(found) = cached(&mut state, table, series, keys) {
                    return Ok(found);
                }
            }
            self.load_latest(series)?;
        }
    }

    /// Makes the cache of a series complete. From the moment of the snapshot on appends keep it up to date.
    fn load_latest(&self, series: SeriesId) -> Result<(), StoreError> {
        let id = series.0 as u32;
        let snapshot = {
            let mut state = self.state.lock();
            if state.series[id as usize].latest.is_none() {
                let latest = Box::new(Latest::new(false));
                state.latest.series += 1;
                state.latest.bytes += latest.bytes();
                state.series[id as usize].latest = Some(latest);
            }
            snapshot(&mut state, id)
        };
        let mut newest = Latest::new(false);
        for chunk in &snapshot.chunks {
            for row in chunk.rows_of(id) {
                let mut hint = 0;
                for (key, value) in chunk.fields(row) {
                    hint = newest.update(hint, key, chunk.ts(row), value);
                }
            }
        }
        let mut state = self.state.lock();
        let state = &mut *state;
        // Dropped meanwhile: the caller tries again.
        if let Some(latest) = &mut state.series[id as usize].latest {
            let before = latest.bytes();
            latest.merge_older(newest.entries().to_vec());
            latest.touched = true;
            state.latest.bytes = state.latest.bytes + latest.bytes() - before;
        }
        Ok(())
    }
}

fn table_of(state: &State, series: SeriesId) -> Result<u32, StoreError> {
    let id = usize::try_from(series.0).map_err(|_| StoreError::UnknownSeries(series))?;
    state.series.get(id).map(|series| series.table).ok_or(StoreError::UnknownSeries(series))
}

/// The answer from memory, if the cache is complete.
fn cached(
    state: &mut State,
    table: u32,
    series: SeriesId,
    keys: Option<&[String]>,
) -> Option<Vec<LatestValue>> {
    let definitions = &state.catalog.tables[table as usize];
    let latest = state.series[series.0 as usize].latest.as_mut().filter(|latest| latest.complete)?;
    latest.touched = true;
    let name = |newest: &Newest| definitions.keys[newest.key as usize].name.clone();
    let value = |newest: &Newest| LatestValue {
        key: name(newest).to_string(),
        ts: newest.ts(),
        value: newest.value.clone(),
    };
    let mut found: Vec<LatestValue> = match keys {
        None => latest.entries().iter().map(value).collect(),
        Some(keys) => {
            let mut asked: Vec<KeyId> = keys.iter().filter_map(|key| definitions.key(key)).collect();
            asked.sort_unstable();
            asked.dedup();
            let find = |key: &KeyId| {
                let entries = latest.entries();
                entries
                    .binary_search_by_key(key, |newest| newest.key)
                    .ok()
                    .map(|index| value(&entries[index]))
            };
            asked.iter().filter_map(find).collect()
        }
    };
    found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Some(found)
}

fn snapshot(state: &mut State, series: u32) -> Snapshot {
    let place = &state.series[series as usize];
    let (table, head_row, head_chunk) = (place.table, place.head_row, place.head_chunk);
    let open = &state.tables[table as usize].open;
    let mut copy = None;
    if head_chunk == open.number && !open.is_empty() {
        let mut rows: Vec<u32> = open.chain(head_row).take(COPY_ROWS_MAX + 1).collect();
        if rows.len() > COPY_ROWS_MAX {
            state.freeze(table);
        } else {
            rows.reverse();
            copy = Some(Arc::new(open.copy_of(&rows)));
        }
    }
    let memory = &state.tables[table as usize];
    Snapshot { chunks: memory.flushing.iter().chain(&memory.frozen).cloned().chain(copy).collect() }
}

/// Sources with rows in the range, newest first.
fn open_sources(
    snapshot: &Snapshot,
    series: u32,
    keys: &[Option<KeyId>],
    range: TimeRange,
    order: Order,
) -> Vec<Box<dyn Source>> {
    let memory = MemorySource::new(&snapshot.chunks, series, keys, range, order);
    vec![Box::new(memory) as Box<dyn Source>]
}

/// Visits the rows of all sources, each ts once.
fn merge(
    sources: &mut [Box<dyn Source>],
    scan: &Scan,
    visit: &mut dyn FnMut(ScannedRow<'_>) -> ControlFlow<()>,
) -> Result<(), StoreError> {
    let mut visited = 0;
    loop {
        let times = sources.iter().filter_map(|source| source.ts());
        let next = match scan.order {
            Order::Ascending => times.min(),
            Order::Descending => times.max(),
        };
        let Some(ts) = next else {
            return Ok(());
        };
        let at = |source: &&Box<dyn Source>| source.ts() == Some(ts);
        let values: Vec<_> = (0..scan.keys.len())
            .map(|key| sources.iter().filter(at).find_map(|source| source.value(key)))
            .collect();
        if values.iter().any(Option::is_some) {
            visited += 1;
            let flow = visit(ScannedRow { ts: Timestamp::from_micros(ts), values: &values });
            if flow.is_break() || visited == scan.limit {
                return Ok(());
            }
        }
        drop(values);
        for source in sources.iter_mut().filter(|source| source.ts() == Some(ts)) {
            source.advance()?;
        }
    }
}
