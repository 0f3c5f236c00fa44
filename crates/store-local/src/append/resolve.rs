//! The first pass over a batch: finds the tables and the key numbers, and the rows that have one number each.

use std::collections::{HashMap, HashSet};

use model::{Batch, FieldType, TableName, name};
use store::{MissingColumn, StoreError};

use crate::catalog::check;
use crate::core::State;
use crate::entry::Entry;
use crate::series_state::{NO_TABLE, SeriesState};

/// How a store treats a batch that needs columns which its tables do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewColumns {
    /// The store defines them.
    Define,
    /// The store declines the batch.
    Decline,
}

/// Looks up all series and keys of a batch and defines the missing columns. `false` when a column is missing and
/// `new_columns` declines it. After `false` or an error nothing has changed.
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
        let series = state.series.get(row.series().0 as usize).filter(|series| series.table != NO_TABLE);
        let series = series.ok_or(StoreError::UnknownSeries(row.series()))?;
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

/// Looks up all series and keys. `false` when the column of a field is not defined.
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

/// Looks up the table of each row. Each step misses the cache, so this is a loop of its own: in a short loop the processor
/// waits for many misses at once, and later accesses find the lines in the cache.
fn find_tables(found: &mut Vec<u32>, series: &[SeriesState], batch: &Batch) -> Result<(), StoreError> {
    found.clear();
    found.extend(batch.rows().map(|row| series.get(row.series().0 as usize).map_or(NO_TABLE, |of| of.table)));
    match found.iter().position(|table| *table == NO_TABLE) {
        None => Ok(()),
        Some(row) => Err(StoreError::UnknownSeries(batch.row(row).series())),
    }
}

/// Refuses a batch that would give a table too many columns.
fn check_missing(missing: &[MissingColumn<'_>]) -> Result<(), StoreError> {
    let mut columns: HashMap<&TableName, usize> = HashMap::new();
    for column in missing {
        *columns.entry(&column.table).or_insert(column.table_columns) += 1;
    }
    missing.iter().try_for_each(|column| {
        check("columns of a table", columns[&column.table] - 1, column.table_columns_max)
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
