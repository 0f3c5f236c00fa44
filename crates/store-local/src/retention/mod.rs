//! Retention: one edit of the manifest drops the parts whose rows are all older than their table keeps them.
//!
//! Retention reads no part: it drops a part when the end of its partition has passed. So rows that share a part of
//! several days wait for the last of these days. If a day has passed and memory still has rows of it, retention requests
//! a flush, and the next run drops the part. It does not drop rows from memory, because they would come back from the log.
//! The time that counts is not simply the time of the wall clock; see retention_time.rs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{TableName, Timestamp};
use store::table::oldest_kept;
use store::{Durability, StoreError};

use crate::catalog::Table;
use crate::change::Change;
use crate::chunk::Chunk;
use crate::core::{Core, State, TableMemory};
use crate::entry::Entry;
use crate::part::Part;
use crate::part::rows::PARTITION_US;
use crate::retention_time::{RetentionTime, ahead};
use crate::series_state::Origin;

/// Series whose latest values are checked under one lock of the state.
const LATEST_STEP: usize = 4096;

impl Core {
    pub(crate) fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        // In the file 0 means forever.
        let ttl_us = ttl.map_or(0, |ttl| u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX).max(1));
        let table = {
            let mut guard = self.state.lock();
            guard.check_writable()?;
            match guard.catalog.table(table) {
                Some(table) => table,
                None => self.create_table(&mut guard, table)?,
            }
        };
        let entry = Entry::Ttl { table, ttl_us };
        let mut change = Change::default();
        entry.put(&mut change.definitions);
        let changed = self.change(&change, |state| {
            state.catalog.apply(entry).expect("BUG: the table is known");
        });
        changed.map(drop).map_err(|error| self.sealed_by(error))
    }

    /// Seals the store unless the failure is transient.
    pub(crate) fn sealed_by(&self, error: StoreError) -> StoreError {
        if !error.is_transient() {
            self.seal(error.clone());
        }
        error
    }

    /// Defines a table. The definition goes into the log too, because rows of the table may become durable before the
    /// manifest has the definition.
    fn create_table(&self, state: &mut State, name: &TableName) -> Result<u32, StoreError> {
        self.check_room(state, 3 * name.canonical().len() + 40)?;
        let pending = &mut state.pending;
        let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
        let table = state.catalog.create_table(name, self.options.tables_max, log)?;
        state.follow_catalog(Origin::New);
        let was_empty = state.pending.wanted.is_none();
        self.request_commit(state, Durability::Memory, was_empty);
        Ok(table)
    }

    pub(crate) fn ttl(&self, table: &TableName) -> Option<Duration> {
        let state = self.state.lock();
        let said = state.catalog.table(table).and_then(|table| state.catalog.tables[table as usize].ttl_us);
        self.effective_ttl(said)
    }

    /// The time to live that results from the setting of a table.
    pub(crate) fn effective_ttl(&self, ttl_us: Option<u64>) -> Option<Duration> {
        match ttl_us {
            None => self.options.ttl_default,
            Some(0) => None,
            Some(ttl_us) => Some(Duration::from_micros(ttl_us)),
        }
    }

    /// Drops all parts whose partition has passed, and returns the number of their rows.
    pub(crate) fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut time = self.retention.lock();
        let Some(by) = self.drop_time(&mut time, now)? else { return Ok(0) };
        let note = time.to_note();
        let mut definitions = Vec::new();
        if let Some(ts) = note {
            Entry::Retention { ts }.put(&mut definitions);
        }
        let rows = self.drop_older(by, definitions)?;
        if let Some(ts) = note {
            time.set_noted(ts);
        }
        Ok(rows)
    }

    /// The time by which retention drops rows; `None` when no table has a time to live or there are no rows.
    fn drop_time(&self, time: &mut RetentionTime, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let by = {
            let state = self.state.lock();
            // Not `check_writable`: retention works on a full disk too, because it frees space.
            state.check_open()?;
            if state.catalog.tables.iter().all(|table| self.effective_ttl(table.ttl_us).is_none()) {
                return Ok(None);
            }
            time.advance(now, self.options.clock.now_us(), || newest(&state))
        };
        if let Some(ahead) = by.and_then(|by| ahead(now, by))
            && let Some(observer) = &self.options.observer
        {
            observer.clock_ahead(ahead);
        }
        Ok(by)
    }

    /// Drops the parts that have passed at a time, and writes definitions in the same edit.
    fn drop_older(&self, now: Timestamp, definitions: Vec<u8>) -> Result<u64, StoreError> {
        loop {
            let (version, oldest) = {
                let mut state = self.state.lock();
                let oldest = |ttl_us| self.effective_ttl(ttl_us).map(|ttl| oldest_kept(now, ttl).micros());
                // A dropped table keeps nothing.
                let of = |table: &Table| if table.dropped { Some(i64::MAX) } else { oldest(table.ttl_us) };
                let tables = state.catalog.tables.iter().map(of);
                let tables: Vec<Option<i64>> = tables.collect();
                if state.flusher.requested == state.flusher.completed && have_passed(&state.tables, &tables) {
                    self.request_flush(&mut state);
                }
                (state.version.clone(), tables)
            };
            // A narrow part goes when all its tables have no use for it.
            let has_passed = |part: &&Arc<Part>| {
                let oldest = |table: u32| oldest[table as usize];
                part.info.members().all(|table| oldest(table).is_some_and(|at| part.info.partition.1 <= at))
            };
            let dropped: Vec<Arc<Part>> = version.families().flatten().filter(has_passed).cloned().collect();
            drop(version);
            if dropped.is_empty() && definitions.is_empty() {
                return Ok(0);
            }
            let rows = dropped.iter().map(|part| part.info.rows).sum();
            let tables = dropped.iter().flat_map(|part| part.info.members());
            let tables: BTreeSet<u32> = tables.collect();
            let tables: Vec<(u32, i64)> =
                tables.into_iter().filter_map(|table| Some((table, oldest[table as usize]?))).collect();
            let change = Change { dropped, definitions: definitions.clone(), ..Change::default() };
            let changed = self.change(&change, |state| state.expiries += 1);
            let is_note = change.dropped.is_empty();
            drop(change); // the compactor waits until no thread holds the parts
            if changed.map_err(|error| self.sealed_by(error))? {
                if !is_note {
                    self.forget_latest(&tables);
                }
                return Ok(rows);
            }
            // A merge was faster: drop its output instead.
        }
    }

    /// Drops the cached latest values of a series if one of them may be gone. The next read loads them again.
    fn forget_latest(&self, tables: &[(u32, i64)]) {
        let mut next = 0;
        loop {
            let mut guard = self.state.lock();
            let State { series, latest, .. } = &mut *guard;
            let Some(rest) = series.get_mut(next..).filter(|rest| !rest.is_empty()) else { return };
            for of in rest.iter_mut().take(LATEST_STEP) {
                if let Ok(index) = tables.binary_search_by_key(&of.table, |(table, _)| *table) {
                    of.forget_within((i64::MIN, tables[index].1), latest);
                }
            }
            next += LATEST_STEP;
        }
    }
}

/// The time of the newest row in parts and memory.
fn newest(state: &State) -> Option<i64> {
    let parts = state.version.families().flatten().map(|part| part.info.ts.1);
    let chunks = state.tables.iter().flat_map(|table| {
        let chunks = table.flushing.iter().chain(&table.frozen).map(AsRef::as_ref).chain([&table.open]);
        chunks.filter_map(Chunk::extent).map(|extent| extent.ts.1)
    });
    parts.chain(chunks).max()
}

/// Whether a table has rows in memory of a day that has passed, given the oldest time that each table keeps.
fn have_passed(tables: &[TableMemory], oldest: &[Option<i64>]) -> bool {
    let day_end = |ts: i64| ts.div_euclid(PARTITION_US).saturating_add(1).saturating_mul(PARTITION_US);
    tables.iter().zip(oldest).any(|(memory, oldest)| {
        let Some(oldest) = oldest else { return false };
        let mut chunks = memory.frozen.iter().map(AsRef::as_ref).chain([&memory.open]);
        chunks.any(|chunk| chunk.extent().is_some_and(|extent| day_end(extent.ts.0) <= *oldest))
    })
}
