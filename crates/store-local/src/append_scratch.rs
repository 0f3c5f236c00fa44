//! What the first pass over a batch finds out for the second one. The store keeps the memory from batch to batch.

use std::ops::Range;

use model::{Batch, FieldType, RowRef};

use crate::catalog::Table;
use crate::chunk::Numbers;
use crate::row::KeyId;
use crate::series_state::NO_TABLE;

/// The result of the first pass over a batch.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    runs: Vec<RowRun>,
    /// The table of each row.
    pub(crate) row_tables: Vec<u32>,
    /// Rows of one f64, as columns.
    series: Vec<u32>,
    ts: Vec<i64>,
    values: Vec<f64>,
    /// The tables of the rows in the columns, run by run: the table, and the row after its last one.
    tables: Vec<(u32, usize)>,
    /// Key numbers of the fields of all other rows.
    pub(crate) keys: Vec<KeyId>,
    /// By key number in the batch, the last result of a lookup.
    memo: Vec<FoundField>,
}

/// Successive rows that the second pass takes in the same way.
#[derive(Debug, Clone)]
pub(crate) enum RowRun {
    /// Rows of one f64 of the same key number: their ranges in the columns and in `tables`.
    Numbers { key: KeyId, rows: Range<usize>, tables: Range<usize> },
    /// Other rows: their range in the batch, and the range of their keys.
    Rows { rows: Range<usize>, keys: Range<usize> },
}

#[derive(Debug, Clone, Copy)]
struct FoundField {
    table: u32,
    field_type: FieldType,
    key: KeyId,
}

impl Scratch {
    pub(crate) fn runs(&self) -> &[RowRun] {
        &self.runs
    }

    pub(crate) fn numbers(&self, key: KeyId, rows: Range<usize>) -> Numbers<'_> {
        let Range { start, end } = rows;
        Numbers {
            key,
            series: &self.series[start..end],
            ts: &self.ts[start..end],
            values: &self.values[start..end],
        }
    }

    /// The tables of some rows in the columns: the table, and the row after its last one.
    pub(crate) fn tables(&self, tables: Range<usize>) -> &[(u32, usize)] {
        &self.tables[tables]
    }

    pub(crate) fn keys(&self, keys: Range<usize>) -> &[KeyId] {
        &self.keys[keys]
    }

    pub(crate) fn begin(&mut self, batch: &Batch) {
        self.runs.clear();
        self.series.clear();
        self.ts.clear();
        self.values.clear();
        self.tables.clear();
        self.keys.clear();
        self.memo.clear();
        self.memo.resize(batch.keys(), FoundField { table: NO_TABLE, field_type: FieldType::Bool, key: 0 });
    }

    /// The key number of a field in a table.
    #[inline]
    pub(crate) fn key(
        &mut self,
        batch: &Batch,
        number: u32,
        field_type: FieldType,
        table: u32,
        definitions: &[Table],
    ) -> Option<KeyId> {
        let memo = &mut self.memo[number as usize];
        if memo.table != table || memo.field_type != field_type {
            let key = definitions[table as usize].column_key(batch.key(number), field_type)?;
            *memo = FoundField { table, field_type, key };
        }
        Some(memo.key)
    }

    #[inline]
    pub(crate) fn push_number(&mut self, row: &RowRef<'_>, table: u32, key: KeyId, value: f64) {
        let at = self.series.len();
        self.series.push(row.series().0 as u32);
        self.ts.push(row.ts().micros());
        self.values.push(value);
        match self.runs.last_mut() {
            Some(RowRun::Numbers { key: of, rows, tables }) if *of == key => {
                rows.end = at + 1;
                match self.tables.last_mut() {
                    Some((last, end)) if *last == table => *end = at + 1,
                    _ => {
                        self.tables.push((table, at + 1));
                        tables.end += 1;
                    }
                }
            }
            _ => {
                let first = self.tables.len();
                self.tables.push((table, at + 1));
                self.runs.push(RowRun::Numbers { key, rows: at..at + 1, tables: first..first + 1 });
            }
        }
    }

    #[inline]
    pub(crate) fn push_row(&mut self, index: usize, first_key: usize) {
        let keys_end = self.keys.len();
        match self.runs.last_mut() {
            Some(RowRun::Rows { rows, keys }) => (rows.end, keys.end) = (index + 1, keys_end),
            _ => self.runs.push(RowRun::Rows { rows: index..index + 1, keys: first_key..keys_end }),
        }
    }
}
