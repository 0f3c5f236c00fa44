//! Deletion that a caller asks for: rows, series, keys of a table, and tables.
//!
//! A deletion of rows is an entry of the log with a sequence of its own, and a tombstone in memory (tombstone/mod.rs).
//!
//! A deletion of series is a deletion of all their rows that also ends the series. The drop of a key or of a table is a definition in the log, so recovery meets it in the order in which it happened among new columns and
//! rows. It is durable with the edit of the manifest that follows at once. Files keep the values until a merge rewrites
//! them without the columns of dropped keys (part/schema.rs).

use model::limits::DELETIONS_PER_TABLE_MAX;
use model::{SeriesId, TableName};
use store::deletion::several_tables;
use store::{Deletion, Durability, Sequence, SeriesSet, StoreError};

use crate::catalog::check;
use crate::change::Change;
use crate::core::{Core, State};
use crate::entry::{Entry, series_set};
use crate::series_state::NO_TABLE;
use crate::tombstone::{Tombstone, put_tombstone};

/// Most bytes of the definition.
const ENTRY_BYTES_MAX: usize = 16;
/// Series whose latest values are dropped under one lock of the state.
const LATEST_STEP: usize = 4096;

impl Core {
    /// Drops a key of a table; `false` if there is none of this name.
    pub(crate) fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        {
            let mut guard = self.state.lock();
            guard.check_writable()?;
            let state = &mut *guard;
            let Some(table) = state.catalog.table(table) else { return Ok(false) };
            self.check_room(state, ENTRY_BYTES_MAX)?;
            let pending = &mut state.pending;
            let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
            if !state.catalog.drop_key(table, key, log)? {
                return Ok(false);
            }
            let was_empty = state.pending.wanted.is_none();
            self.request_commit(state, Durability::Memory, was_empty);
        }
        let changed = self.change(&Change::default(), |_| {});
        changed.map(|_| true).map_err(|error| self.sealed_by(error))
    }

    /// Deletes rows or values. A deletion of nothing takes no sequence.
    pub(crate) fn delete_rows(
        &self,
        deletion: &Deletion,
        durability: Durability,
    ) -> Result<Sequence, StoreError> {
        let tombstone = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            state.check_writable()?;
            let appended = self.progress().appended;
            let tombstone = match tombstone(state, deletion, appended + 1)? {
                Some(tombstone) if state.may_have_hidden(&tombstone) => tombstone,
                // A caller may wait for the class, so the sequence is one that it has reached.
                _ => return Ok(self.progress().reached(durability)),
            };
            let mut entry = Vec::new();
            put_tombstone(&mut entry, &tombstone);
            self.take_tombstone(state, &entry, &tombstone, durability)?;
            tombstone
        };
        self.forget_deleted(&tombstone);
        Ok(tombstone.sequence)
    }

    /// Deletes series with all their rows.
    pub(crate) fn delete_series(
        &self,
        series: &SeriesSet,
        durability: Durability,
    ) -> Result<Sequence, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.check_writable()?;
        let progress = self.progress();
        let Some(table) = table_of(state, series)? else { return Ok(progress.reached(durability)) };
        let tombstone = Tombstone::of_series(progress.appended + 1, table, series.clone());
        let encoded = series_set::encode(series);
        let entry = Entry::DroppedSeries { table, series: &encoded };
        let mut bytes = Vec::new();
        entry.put(&mut bytes);
        self.take_tombstone(state, &bytes, &tombstone, durability)?;
        // Not among the unsaved definitions: the manifest gets it with the tombstone (tombstone/mod.rs, rule 3).
        state.catalog.apply(entry).expect("BUG: the table is known");
        state.forget_series(series);
        Ok(tombstone.sequence)
    }

    /// Drops a table. Returns `false` if no table has the name.
    pub(crate) fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        {
            let mut guard = self.state.lock();
            guard.check_writable()?;
            let state = &mut *guard;
            self.check_room(state, ENTRY_BYTES_MAX)?;
            let pending = &mut state.pending;
            let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
            let Some(table) = state.catalog.drop_table(table, log)? else { return Ok(false) };
            let dropped = state.catalog.series.read().all_of(table);
            state.forget_series(&dropped);
            state.expiries += 1;
            let was_empty = state.pending.wanted.is_none();
            self.request_commit(state, Durability::Memory, was_empty);
        }
        // The edit also drops the parts of the table.
        let changed = self.change(&Change::default(), |_| {});
        changed.map(|_| true).map_err(|error| self.sealed_by(error))
    }

    /// Takes a new tombstone, whose entry in the log is this.
    fn take_tombstone(
        &self,
        state: &mut State,
        entry: &[u8],
        tombstone: &Tombstone,
        durability: Durability,
    ) -> Result<(), StoreError> {
        check("bytes of an encoded deletion", entry.len(), self.options.log_pending_bytes_max)?;
        self.check_deletions(state, tombstone.table)?;
        self.check_room(state, entry.len())?;

        // From here on nothing can fail.
        let was_empty = state.pending.wanted.is_none();
        state.pending.buffer.extend_from_slice(entry);
        state.pending.rows += 1;
        self.set_appended(tombstone.sequence);
        state.add_tombstone(tombstone.clone());
        state.expiries += 1;
        self.request_commit(state, durability, was_empty);
        Ok(())
    }

    /// Answers busy when a table has as many tombstones as it may have. Long before, the store flushes and rewrites parts to
    /// get rid of them.
    fn check_deletions(&self, state: &mut State, table: u32) -> Result<(), StoreError> {
        let present = state.tombstones.count(table);
        if state.tombstones.are_pressing(table) {
            if state.flusher.requested == state.flusher.completed && state.tombstones.has_unsaved() {
                self.request_flush(state);
            }
            self.compact_work.notify_all();
        }
        match present < DELETIONS_PER_TABLE_MAX {
            true => Ok(()),
            false => {
                let name = &state.catalog.tables[table as usize].name;
                let reason = format!(
                    "{present} deletions of the table {name} wait until files are rewritten, the limit is {DELETIONS_PER_TABLE_MAX}"
                );
                Err(StoreError::Busy { reason })
            }
        }
    }

    /// Drops the cached latest values that may be deleted. The next read loads them again.
    fn forget_deleted(&self, tombstone: &Tombstone) {
        let mut series = tombstone.series.iter().peekable();
        while series.peek().is_some() {
            let mut guard = self.state.lock();
            let State { series: states, latest, .. } = &mut *guard;
            for id in series.by_ref().take(LATEST_STEP) {
                states[id as usize].forget_within(tombstone.ts, latest);
            }
        }
    }
}

/// The tombstone of a deletion; `None` when it means no series, no time or no known key.
fn tombstone(
    state: &State,
    deletion: &Deletion,
    sequence: Sequence,
) -> Result<Option<Tombstone>, StoreError> {
    let table = table_of(state, &deletion.series)?;
    let Some(table) = table.filter(|_| !deletion.range.is_empty()) else { return Ok(None) };
    let definitions = &state.catalog.tables[table as usize];
    let keys = deletion.keys.as_ref().map(|names| {
        let mut keys: Vec<_> = names.iter().filter_map(|name| definitions.key(name)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    });
    if keys.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    let ts = (deletion.range.start.micros(), deletion.range.end.micros());
    Ok(Some(Tombstone { sequence, table, series: deletion.series.clone(), ts, keys, ends_series: false }))
}

/// The table of some series; `None` without series.
fn table_of(state: &State, series: &SeriesSet) -> Result<Option<u32>, StoreError> {
    let mut table = None;
    for id in series {
        let of = state.series.get(id as usize).map(|series| series.table).filter(|of| *of != NO_TABLE);
        let of = of.ok_or(StoreError::UnknownSeries(SeriesId(id.into())))?;
        if *table.get_or_insert(of) != of {
            return Err(several_tables());
        }
    }
    Ok(table)
}

impl State {
    /// Whether a part or a chunk may have rows that a new tombstone hides.
    fn may_have_hidden(&self, tombstone: &Tombstone) -> bool {
        let mut parts = self.version.parts(tombstone.table);
        parts.any(|part| tombstone.touches(&part.info.extent()))
            || self.tables[tombstone.table as usize].may_have_hidden(tombstone, false)
    }
}
