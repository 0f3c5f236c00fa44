//! First pass over a batch: what its series and keys are to this store, and which rows are one number each.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use model::{Batch, FieldType, RowRef, name};
use store::{MissingColumn, StoreError};

use super::NewColumns;
use crate::catalog::{Table, check};
use crate::chunk::Numbers;
use crate::core::State;
use crate::entry::Entry;
use crate::row::KeyId;
use crate::series_state::SeriesState;

/// A table number that no table has.
const NO_TABLE: u32 = u32::MAX;

/// What is known about a batch after the first pass.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    runs: Vec<Run>,
    /// The table of each row.
    row_tables: Vec<u32>,
    /// Rows of one f64, as columns.
    series: Vec<u32>,
    ts: Vec<i64>,
    values: Vec<f64>,
    /// Where the rows of the columns change from one table to another: the table, and the row after its last one.
    tables: Vec<(u32, usize)>,
    /// Key numbers of the fields of all other rows.
    keys: Vec<KeyId>,
    /// By key number in the batch, what was found for it last.
    memo: Vec<Found>,
}

/// Successive rows that are taken in the same way.
#[derive(Debug, Clone)]
pub(super) enum Run {
    /// Rows of one f64 of the same key number; where they stand in the columns, and in `tables`.
    Numbers { key: KeyId, rows: Range<usize>, tables: Range<usize> },
    /// Other rows: which of the batch, and where their keys stand.
    Rows { rows: Range<usize>, keys: Range<usize> },
}

#[derive(Debug, Clone, Copy)]
struct Found {
    table: u32,
    field_type: FieldType,
    key: KeyId,
}

impl Scratch {
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub(super) fn numbers(&self, key: KeyId, rows: Range<usize>) -> Numbers<'_> {
        let Range { start, end } = rows;
        Numbers {
            key,
            series: &self.series[start..end],
            ts: &self.ts[start..end],
            values: &self.values[start..end],
        }
    }

    /// Tables of rows in the columns: the table, and the row after its last one.
    pub(super) fn tables(&self, tables: Range<usize>) -> &[(u32, usize)] {
        &self.tables[tables]
    }

    pub(super) fn keys(&self, keys: Range<usize>) -> &[KeyId] {
        &self.keys[keys]
    }

    fn begin(&mut self, batch: &Batch) {
        self.runs.clear();
        self.series.clear();
        self.ts.clear();
        self.values.clear();
        self.tables.clear();
        self.keys.clear();
        self.memo.clear();
        self.memo.resize(batch.keys(), Found { table: NO_TABLE, field_type: FieldType::Bool, key: 0 });
    }

    /// The key number of a field in a table.
    #[inline]
    fn key(
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
            *memo = Found { table, field_type, key };
        }
        Some(memo.key)
    }

    #[inline]
    fn push_number(&mut self, row: &RowRef<'_>, table: u32, key: KeyId, value: f64) {
        let at = self.series.len();
        self.series.push(row.series().0 as u32);
        self.ts.push(row.ts().micros());
        self.values.push(value);
        match self.runs.last_mut() {
            Some(Run::Numbers { key: of, rows, tables }) if *of == key => {
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
                self.runs.push(Run::Numbers { key, rows: at..at + 1, tables: first..first + 1 });
            }
        }
    }

    #[inline]
    fn push_row(&mut self, index: usize, first_key: usize) {
        let keys_end = self.keys.len();
        match self.runs.last_mut() {
            Some(Run::Rows { rows, keys }) => (rows.end, keys.end) = (index + 1, keys_end),
            _ => self.runs.push(Run::Rows { rows: index..index + 1, keys: first_key..keys_end }),
        }
    }
}

/// Looks up all series and keys of a batch and defines the columns that are missing. After an error, and with `false`
/// because a column is missing that is not to be defined, nothing was changed.
pub(super) fn resolve(
    state: &mut State,
    batch: &Batch,
    columns_max: usize,
    new_columns: NewColumns,
) -> Result<bool, StoreError> {
    if try_resolve(state, batch)? {
        return Ok(true);
    }
    if new_columns == NewColumns::Decline {
        return Ok(false);
    }
    check_missing(&missing(state, batch, columns_max)?)?;
    define_missing(state, batch);
    let complete = try_resolve(state, batch)?;
    assert!(complete, "BUG: a column was not defined");
    Ok(true)
}

/// The columns that a batch needs and its tables do not have, each once, in the order of the fields that need them.
/// Refuses names that cannot be keys.
pub(super) fn missing<'a>(
    state: &State,
    batch: &'a Batch,
    columns_max: usize,
) -> Result<Vec<MissingColumn<'a>>, StoreError> {
    let mut seen: HashSet<(u32, &str, FieldType)> = HashSet::new();
    let mut missing = Vec::new();
    for row in batch.rows() {
        let series =
            state.series.get(row.series().0 as usize).ok_or(StoreError::UnknownSeries(row.series()))?;
        let table = &state.catalog.tables[series.table as usize];
        for field in row.fields() {
            let (key, field_type) = (field.key, field.value.field_type());
            if table.column_key(key, field_type).is_some() || !seen.insert((series.table, key, field_type)) {
                continue;
            }
            name::check_key(key)?;
            missing.push(MissingColumn {
                series: row.series(),
                table: table.name.clone(),
                key,
                field_type,
                table_columns: table.columns(),
                table_columns_max: columns_max,
            });
        }
    }
    Ok(missing)
}

/// `false` if there is a field whose column is not defined.
fn try_resolve(state: &mut State, batch: &Batch) -> Result<bool, StoreError> {
    let State { scratch, catalog, series, .. } = state;
    scratch.begin(batch);
    find_tables(&mut scratch.row_tables, series, batch)?;
    for (index, row) in batch.rows().enumerate() {
        let table = scratch.row_tables[index];
        if let Some((number, value)) = row.only_f64() {
            match scratch.key(batch, number, FieldType::F64, table, &catalog.tables) {
                Some(key) => scratch.push_number(&row, table, key, value),
                None => return Ok(false),
            }
            continue;
        }
        let first_key = scratch.keys.len();
        for (number, value) in row.numbered_fields() {
            match scratch.key(batch, number, value.field_type(), table, &catalog.tables) {
                Some(key) => scratch.keys.push(key),
                None => return Ok(false),
            }
        }
        scratch.push_row(index, first_key);
    }
    Ok(true)
}

/// Looks up the table of each row. A loop of its own, because each step of it misses the cache: in a short loop the
/// processor waits for many of them at once, and the lines stay near for all that follows.
fn find_tables(found: &mut Vec<u32>, series: &[SeriesState], batch: &Batch) -> Result<(), StoreError> {
    found.clear();
    found.extend(batch.rows().map(|row| series.get(row.series().0 as usize).map_or(NO_TABLE, |of| of.table)));
    match found.iter().position(|table| *table == NO_TABLE) {
        None => Ok(()),
        Some(row) => Err(StoreError::UnknownSeries(batch.row(row).series())),
    }
}

/// Refuses tables that would become too wide.
fn check_missing(missing: &[MissingColumn<'_>]) -> Result<(), StoreError> {
    let mut columns: HashMap<&str, usize> = HashMap::new();
    for column in missing {
        *columns.entry(&column.table).or_insert(column.table_columns) += 1;
    }
    missing.iter().try_for_each(|column| {
        check("columns of a table", columns[&*column.table] - 1, column.table_columns_max)
    })
}

/// Defines the columns that are missing, in the order of their appearance.
fn define_missing(state: &mut State, batch: &Batch) {
    let State { catalog, scratch, pending, .. } = state;
    for (row, table) in batch.rows().zip(scratch.row_tables.iter().copied()) {
        for field in row.fields() {
            let log = &mut |entry: Entry<'_>| entry.put(&mut pending.buffer);
            catalog.column(table, field.key, field.value.field_type(), log);
        }
    }
}
