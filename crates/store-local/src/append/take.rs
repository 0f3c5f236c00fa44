//! The second pass over a batch: takes the rows into memtable, log buffer and latest values. Nothing here can fail.

use std::ops::Range;

use model::{Batch, RowRef};
use store::Sequence;

use crate::append_scratch::RowRun;
use crate::chunk::Numbers;
use crate::core::{MemoryUse, Pending, State, TableMemory};
use crate::entry::{Entry, RUN_ROWS_MIN, put_run};
use crate::latest::LatestPool;
use crate::row::{KeyId, put_field};
use crate::series_state::SeriesState;

/// Takes the rows that [`resolve`](super::resolve::resolve) has looked up. `sequence` is the sequence of the row before the
/// first one.
pub(super) fn take(state: &mut State, batch: &Batch, mut sequence: Sequence, chunk_rows: usize) {
    let State { scratch, series, tables, pending, latest, memory, next_chunk, .. } = state;
    let mut taker = Taker { series, tables, latest, memory, next_chunk, chunk_rows };
    for run in scratch.runs() {
        match run.clone() {
            RowRun::Numbers { key, rows, tables } => {
                let numbers = scratch.numbers(key, rows.clone());
                taker.log_numbers(numbers, pending);
                let mut start = rows.start;
                for (table, end) in scratch.tables(tables) {
                    let of_table = numbers.slice(start - rows.start, end - rows.start);
                    taker.numbers(*table, of_table, sequence);
                    sequence += of_table.len() as u64;
                    start = *end;
                }
            }
            RowRun::Rows { rows, keys } => {
                taker.rows(batch, rows.clone(), scratch.keys(keys), sequence, pending);
                sequence += rows.len() as u64;
            }
        }
    }
    pending.rows += batch.len() as u32;
}

/// The fields of the state that take rows.
struct Taker<'a> {
    series: &'a mut [SeriesState],
    tables: &'a mut [TableMemory],
    latest: &'a mut LatestPool,
    memory: &'a mut MemoryUse,
    next_chunk: &'a mut u64,
    chunk_rows: usize,
}

impl Taker<'_> {
    fn log_numbers(&self, rows: Numbers<'_>, pending: &mut Pending) {
        if rows.len() >= RUN_ROWS_MIN {
            return put_run(&mut pending.buffer, rows);
        }
        let mut body = Vec::with_capacity(16);
        for index in 0..rows.len() {
            body.clear();
            put_field(&mut body, rows.key, model::ValueRef::F64(rows.values[index]));
            let (series, ts) = (rows.series[index], rows.ts[index]);
            Entry::Row { series, ts, body: &body }.put(&mut pending.buffer);
        }
    }

    /// Takes rows of one f64 of one table. `sequence` is the sequence of the row before the first one.
    fn numbers(&mut self, table: u32, mut rows: Numbers<'_>, mut sequence: Sequence) {
        let Self { series, latest, memory, next_chunk, chunk_rows, .. } = self;
        let table = &mut self.tables[table as usize];
        while rows.len() > 0 {
            let chunk = table.open_chunk(*chunk_rows, next_chunk, memory);
            let before = chunk.bytes();
            let number = chunk.number;
            let mut note = |rows: &Numbers<'_>, index: usize, row: u32| {
                let id = rows.series[index];
                let of_series = &mut series[id as usize];
                of_series.update_number(id, rows.key, rows.ts[index], rows.values[index], latest);
                of_series.link(number, row)
            };
            let count = match chunk.takes_numbers(rows.key) {
                true => {
                    let fitting = rows.slice(0, rows.len().min(chunk.room(*chunk_rows)));
                    chunk.push_numbers(fitting, sequence + 1, |index, row| note(&fitting, index, row));
                    fitting.len()
                }
                false => {
                    chunk.push_number_as_bytes(rows, sequence + 1, |row| note(&rows, 0, row));
                    1
                }
            };
            memory.active = memory.active + chunk.bytes() - before;
            rows = rows.slice(count, rows.len());
            sequence += count as u64;
        }
    }

    /// Takes rows with any fields. `sequence` is the sequence of the row before the first one.
    fn rows(
        &mut self,
        batch: &Batch,
        rows: Range<usize>,
        mut keys: &[KeyId],
        mut sequence: Sequence,
        pending: &mut Pending,
    ) {
        for row in rows {
            let row = batch.row(row);
            let (own, rest) = keys.split_at(row.numbered_fields().len());
            keys = rest;
            sequence += 1;
            self.row(&row, own, sequence, pending);
        }
    }

    #[inline]
    fn row(&mut self, row: &RowRef<'_>, keys: &[KeyId], sequence: Sequence, pending: &mut Pending) {
        let (id, ts) = (row.series().0 as u32, row.ts().micros());
        let of_series = &mut self.series[id as usize];
        let table = &mut self.tables[of_series.table as usize];
        let chunk = table.open_chunk(self.chunk_rows, self.next_chunk, self.memory);
        let before = chunk.bytes();
        let body = chunk.body_buffer();
        let fields = keys.iter().zip(row.numbered_fields().map(|(_, value)| value));
        match fields.len() {
            0 => {}
            1 => fields.for_each(|(key, value)| {
                put_field(body, *key, value);
                of_series.update_single(id, *key, ts, value, self.latest);
            }),
            _ => match of_series.move_to_pool(id, self.latest) {
                Some(pooled) => self.latest.change(pooled, |latest| {
                    let mut hint = 0;
                    for (key, value) in fields {
                        put_field(body, *key, value);
                        hint = latest.update(hint, *key, ts, value);
                    }
                }),
                None => fields.for_each(|(key, value)| put_field(body, *key, value)),
            },
        }
        let previous = of_series.link(chunk.number, chunk.len() as u32);
        let body = chunk.push(id, ts, sequence, previous);
        Entry::Row { series: id, ts, body }.put(&mut pending.buffer);
        self.memory.active = self.memory.active + chunk.bytes() - before;
    }
}
