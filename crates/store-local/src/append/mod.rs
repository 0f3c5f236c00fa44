//! Appends: takes a batch into log buffer, memtable and latest values, in one pass that checks and one that takes.

mod resolve;
mod take;

use model::Batch;
use store::{Durability, MissingColumn, Sequence, StoreError};

use crate::catalog::check;
use crate::core::{Core, State, Stop};
use crate::entry::ROW_OVERHEAD_BYTES;
use crate::row::FIELD_OVERHEAD_BYTES;
use crate::workers::CommitterState;

pub(crate) use resolve::NewColumns;

impl Core {
    /// Takes a batch. If a column is missing and `new_columns` declines it, the store accepts no row and returns `None`.
    pub(crate) fn append(
        &self,
        batch: &Batch,
        durability: Durability,
        new_columns: NewColumns,
    ) -> Result<Option<Sequence>, StoreError> {
        store::check_batch_size(batch)?;
        let bytes_max =
            batch.len() * ROW_OVERHEAD_BYTES + batch.points() * FIELD_OVERHEAD_BYTES + batch.text_bytes();
        check("bytes of an encoded batch", bytes_max, self.options.log_pending_bytes_max)?;
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.check_writable()?;
        self.check_room(state, bytes_max)?;
        if !resolve::resolve(state, batch, self.options.columns_per_table_max, new_columns)? {
            return Ok(None);
        }

        // From here on nothing can fail.
        let sequence = self.progress().appended;
        let was_empty = state.pending.wanted.is_none();
        take::take(state, batch, sequence, self.options.chunk_rows);
        let sequence = sequence + batch.len() as u64;
        state.rows_appended += batch.len() as u64;
        self.set_appended(sequence);
        if !batch.is_empty() {
            self.request_commit(state, durability, was_empty);
        }
        state.bound_latest(self.options.latest_series_max, self.options.latest_bytes_max);
        self.request_flush_if_large(state);
        Ok(Some(sequence))
    }

    /// The columns that a batch needs and its tables do not have.
    pub(crate) fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        resolve::missing(&self.state.lock(), batch, self.options.columns_per_table_max)
    }

    /// Answers busy when the log buffer or the memtable has no room for `bytes`.
    pub(crate) fn check_room(&self, state: &mut State, bytes: usize) -> Result<(), StoreError> {
        let pending = state.pending.bytes();
        let pending_max = self.options.log_pending_bytes_max;
        if pending + bytes > pending_max {
            let reason = format!("{pending} log bytes wait for the disk, the limit is {pending_max}");
            return Err(StoreError::Busy { reason });
        }
        let memory = state.memory.active + state.memory.flushing;
        let memory_max = self.options.memtable_bytes_max;
        // An empty memtable takes a batch larger than the limit; otherwise the store could never take it.
        if memory > 0 && memory + bytes > memory_max {
            let mut reason = format!("{memory} memtable bytes wait for a flush, the limit is {memory_max}");
            if let Some(why) = state.backpressure(&self.options.compaction) {
                reason = format!("{reason}; {why}");
                state.flusher.refused = true;
            }
            if state.flusher.requested == state.flusher.completed {
                self.request_flush(state);
            }
            return Err(StoreError::Busy { reason });
        }
        Ok(())
    }

    /// Notes the durability class of the new entries, and wakes the committer if it would not look in time by itself.
    pub(crate) fn request_commit(&self, state: &mut State, durability: Durability, was_empty: bool) {
        let pending = &mut state.pending;
        if was_empty {
            pending.since_us = self.options.clock.now_us();
        }
        pending.wanted = pending.wanted.max(Some(durability));
        pending.wants_os |= durability == Durability::Os;
        let wake = match state.committer.state {
            CommitterState::Working => false,
            CommitterState::Idle => true,
            CommitterState::Lazy => {
                durability > Durability::Memory || pending.bytes() >= self.options.commit_eager_bytes
            }
            CommitterState::Paced => pending.bytes() >= self.options.commit_eager_bytes,
            CommitterState::Gathering(enough_rows) => {
                pending.rows >= enough_rows || pending.bytes() >= self.options.commit_eager_bytes
            }
        };
        if wake {
            state.committer.state = CommitterState::Working;
            self.commit_work.notify_one();
        }
    }

    fn request_flush_if_large(&self, state: &mut State) {
        let idle = state.flusher.requested == state.flusher.completed;
        if idle && state.memory.active >= self.options.memtable_flush_bytes {
            self.request_flush(state);
        }
    }

    /// Requests a flush of the memtable. [`Flusher::completed`](crate::workers::Flusher) reaches the returned number when
    /// the flush is complete.
    pub(crate) fn request_flush(&self, state: &mut State) -> u64 {
        state.flusher.requested += 1;
        self.flush_work.notify_all();
        state.flusher.requested
    }

    /// Like [`request_flush`](Self::request_flush), but the flusher does not wait for merges that have fallen behind.
    pub(crate) fn request_urgent_flush(&self, state: &mut State) -> u64 {
        state.flusher.urgent = self.request_flush(state);
        state.flusher.urgent
    }
}

impl State {
    /// Whether the store still takes appends.
    pub(crate) fn is_open(&self) -> bool {
        self.stop == Stop::Running && self.sealed.is_none()
    }
}
