//! The way of a batch into log buffer, memtable and latest values: one pass to check, one to take.

use std::collections::HashSet;

use model::{Batch, FieldType, name};
use store::{Durability, Sequence, StoreError};

use crate::catalog::check;
use crate::chunk::NO_ROW;
use crate::core::{Core, Doing, State, Stop, freeze};
use crate::entry::{Entry, ROW_OVERHEAD_BYTES};
use crate::row::{FIELD_OVERHEAD_BYTES, put_field};

/// Marks a field in the scratch list whose column has to be defined first.
const UNDEFINED: u32 = u32::MAX;

impl Core {
    pub(crate) fn append(&self, batch: &Batch, durability: Durability) -> Result<Sequence, StoreError> {
        store::check_batch_size(batch)?;
        let bytes_max =
            batch.len() * ROW_OVERHEAD_BYTES + batch.points() * FIELD_OVERHEAD_BYTES + batch.text_bytes();
        check("bytes of an encoded batch", bytes_max, self.options.log_pending_bytes_max)?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.check_writable()?;
        self.check_room(state, bytes_max)?;
        resolve(state, batch, self.options.columns_per_table_max)?;

        // From here on nothing can fail.
        define_columns(state, batch);
        let sequence = self.progress().appended;
        let was_empty = state.pending.wanted.is_none();
        take(state, batch, sequence, self.options.chunk_rows);
        let sequence = sequence + batch.len() as u64;
        state.rows_appended += batch.len() as u64;
        self.set_appended(sequence);
        if !batch.is_empty() {
            self.request_commit(state, durability, was_empty);
        }
        state.bound_latest(self.options.latest_series_max, self.options.latest_bytes_max);
        self.request_flush_if_large(state);
        Ok(sequence)
    }

    pub(crate) fn check_room(&self, state: &mut State, bytes: usize) -> Result<(), StoreError> {
        let pending = state.pending.bytes();
        let pending_max = self.options.log_pending_bytes_max;
        if pending + bytes > pending_max {
            let reason = format!("{pending} log bytes wait for the disk, the limit is {pending_max}");
            return Err(StoreError::Busy { reason });
        }
        let memory = state.memory.active + state.memory.flushing;
        let memory_max = self.options.memtable_bytes_max;
        // A batch larger than the limit enters an empty memtable; otherwise it could never be taken.
        if memory > 0 && memory + bytes > memory_max {
            let reason = format!("{memory} memtable bytes wait for a flush, the limit is {memory_max}");
            if state.flusher.asked == state.flusher.done {
                self.ask_flush(state);
            }
            return Err(StoreError::Busy { reason });
        }
        Ok(())
    }

    /// Notes what the new entries wait for, and wakes the committer if it would not look by itself in time.
    pub(crate) fn request_commit(&self, state: &mut State, durability: Durability, was_empty: bool) {
        let pending = &mut state.pending;
        if was_empty {
            pending.since_us = self.options.clock.now_us();
        }
        pending.wanted = pending.wanted.max(Some(durability));
        pending.wants_os |= durability == Durability::Os;
        let wake = match state.committer.doing {
            Doing::Working => false,
            Doing::Idle => true,
            Doing::Lazy => {
                durability > Durability::Memory || pending.bytes() >= self.options.commit_eager_bytes
            }
            Doing::Paced => pending.bytes() >= self.options.commit_eager_bytes,
        };
        if wake {
            state.committer.doing = Doing::Working;
            self.commit_work.notify_one();
        }
    }

    fn request_flush_if_large(&self, state: &mut State) {
        let idle = state.flusher.asked == state.flusher.done;
        if idle && state.memory.active >= self.options.memtable_flush_bytes {
            self.ask_flush(state);
        }
    }

    /// Has the memtable flushed; returns what [`Flusher::done`](crate::core::Flusher) will have reached then.
    pub(crate) fn ask_flush(&self, state: &mut State) -> u64 {
        state.flusher.asked += 1;
        self.flush_work.notify_all();
        state.flusher.asked
    }
}

/// Finds the key number of every field, and refuses the batch if anything about it is wrong.
fn resolve(state: &mut State, batch: &Batch, columns_max: usize) -> Result<(), StoreError> {
    state.scratch.clear();
    let mut missing: HashSet<(u32, &str, FieldType)> = HashSet::new();
    for row in batch.rows() {
        let series =
            state.series.get(row.series().0 as usize).ok_or(StoreError::UnknownSeries(row.series()))?;
        let table = &state.catalog.tables[series.table as usize];
        for field in row.fields() {
            let field_type = field.value.field_type();
            let key = table.column_key(field.key, field_type).unwrap_or(UNDEFINED);
            if key == UNDEFINED && missing.insert((series.table, field.key, field_type)) {
                name::check_key(field.key)?;
            }
            state.scratch.push(key);
        }
    }
    let tables: HashSet<u32> = missing.iter().map(|(table, ..)| *table).collect();
    for table in tables {
        let new = missing.iter().filter(|(of, ..)| *of == table).count();
        check("columns of a table", state.catalog.tables[table as usize].columns() + new - 1, columns_max)?;
    }
    Ok(())
}

/// Defines, in the order of their appearance, the columns that [`resolve`] missed.
fn define_columns(state: &mut State, batch: &Batch) {
    if !state.scratch.contains(&UNDEFINED) {
        return;
    }
    let State { scratch, catalog, series, pending, .. } = state;
    let mut keys = scratch.iter_mut();
    for row in batch.rows() {
        let table = series[row.series().0 as usize].table;
        for (field, key) in row.fields().zip(&mut keys) {
            if *key == UNDEFINED {
                let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
                *key = catalog.column(table, field.key, field.value.field_type(), log);
            }
        }
    }
}

/// Encodes every row into memtable and log buffer and updates the latest values.
fn take(state: &mut State, batch: &Batch, mut sequence: Sequence, chunk_rows: usize) {
    let State { scratch, series, tables, pending, latest: latest_use, memory, next_chunk, .. } = state;
    let mut keys = scratch.iter();
    for row in batch.rows() {
        sequence += 1;
        let (id, ts) = (row.series().0 as u32, row.ts().micros());
        let series = &mut series[id as usize];
        let table = &mut tables[series.table as usize];
        if table.open.is_full(chunk_rows) {
            freeze(table, next_chunk, memory);
        }
        let chunk = &mut table.open;
        let chunk_bytes = chunk.bytes();
        let latest = series.latest_to_update(latest_use);
        let latest_bytes = latest.as_ref().map_or(0, |latest| latest.bytes());
        let body = chunk.body_buffer();
        let fields = row.fields().zip(&mut keys);
        match latest {
            Some(latest) => {
                let mut hint = 0;
                for (field, key) in fields {
                    put_field(body, *key, field.value);
                    hint = latest.update(hint, *key, ts, field.value);
                }
                latest.touched = true;
                latest_use.bytes = latest_use.bytes + latest.bytes() - latest_bytes;
            }
            None => fields.for_each(|(field, key)| put_field(body, *key, field.value)),
        }
        let previous = if series.head_chunk == chunk.number { series.head_row } else { NO_ROW };
        series.head_row = chunk.len() as u32;
        series.head_chunk = chunk.number;
        let body = chunk.push(id, ts, sequence, previous);
        Entry::Row { series: id, ts, body }.put(&mut pending.buffer);
        memory.active = memory.active + chunk.bytes() - chunk_bytes;
    }
    pending.rows += batch.len() as u32;
}

impl State {
    /// Whether appends may still come.
    pub(crate) fn is_open(&self) -> bool {
        self.stop == Stop::Running && self.sealed.is_none()
    }
}
