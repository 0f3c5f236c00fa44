//! The first pass over a batch: finds the tables and the key numbers, and the rows that have one number each.

use std::collections::{HashMap, HashSet};

use model::{Batch, FieldType, Namespace, SeriesId, TableName, name};
use store::{Definitions, MissingColumn, RefusedRow, RefusedRows, StoreError};

use crate::catalog::Catalog;
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
    check_columns(&state.catalog, batch, &missing(state, batch, columns_max)?)?;
    define_missing(state, batch);
    let complete = try_resolve(state, batch)?;
    assert!(complete, "BUG: a column was not defined");
    Ok(true)
}

/// The columns that a batch needs and its tables do not have, once for each series that needs one, in the order of the fields
/// that need them. Refuses rows of unknown series, and names that cannot be keys.
pub(super) fn missing<'a>(
    state: &State,
    batch: &'a Batch,
    columns_max: usize,
) -> Result<Vec<MissingColumn<'a>>, StoreError> {
    let mut seen: HashSet<(SeriesId, &str, FieldType)> = HashSet::new();
    let (mut missing, mut refused) = (Vec::new(), Vec::new());
    'rows: for (index, row) in batch.rows().enumerate() {
        let series = state.series.get(row.series().0 as usize).filter(|series| series.table != NO_TABLE);
        let Some(series) = series else {
            refused.push(RefusedRow::whole(index, StoreError::UnknownSeries(row.series())));
            continue;
        };
        let table = &state.catalog.tables[series.table as usize];
        for field in row.fields() {
            let (key, field_type) = (field.key, field.value.field_type());
            if table.column_key(key, field_type).is_some() {
                continue;
            }
            if let Err(reason) = name::check_key(key) {
                refused.push(RefusedRow::whole(index, reason));
                continue 'rows;
            }
            if !seen.insert((row.series(), key, field_type)) {
                continue;
            }
            missing.push(MissingColumn {
                series: row.series(),
                row: index,
                table: table.name.clone(),
                key,
                field_type,
                table_columns: table.columns(),
                table_columns_max: columns_max,
            });
        }
    }
    RefusedRows::check(refused)?;
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
    if !found.contains(&NO_TABLE) {
        return Ok(());
    }
    let unknown = |row| RefusedRow::whole(row, StoreError::UnknownSeries(batch.row(row).series()));
    let rows = found.iter().enumerate().filter(|(_, table)| **table == NO_TABLE);
    RefusedRows::check(rows.map(|(row, _)| unknown(row)).collect())
}

/// Refuses the fields that would give a table or its namespace too many columns: those whose columns are needed last.
fn check_columns(catalog: &Catalog, batch: &Batch, missing: &[MissingColumn<'_>]) -> Result<(), StoreError> {
    let mut added: HashMap<&TableName, HashSet<(&str, FieldType)>> = HashMap::new();
    let mut of_namespaces: HashMap<Namespace, u64> = HashMap::new();
    let mut refused: HashMap<(SeriesId, &str, FieldType), StoreError> = HashMap::new();
    for column in missing {
        let (of_table, key, field_type) =
            (added.entry(&column.table).or_default(), column.key, column.field_type);
        if of_table.contains(&(key, field_type)) {
            continue;
        }
        let of_namespace = of_namespaces.entry(column.table.namespace()).or_default();
        let new = Definitions { columns: *of_namespace + 1, ..Definitions::default() };
        let room = check_table(column, of_table.len()).and_then(|()| catalog.check_new(&column.table, new));
        match room {
            Ok(()) => {
                of_table.insert((key, field_type));
                *of_namespace += 1;
            }
            Err(reason) => {
                refused.insert((column.series, key, field_type), reason);
            }
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::new();
    for (row, of_batch) in batch.rows().enumerate() {
        let (mut fields, mut first) = (Vec::new(), None);
        for (number, field) in of_batch.fields().enumerate() {
            if let Some(reason) = refused.get(&(of_batch.series(), field.key, field.value.field_type())) {
                fields.push(number);
                first.get_or_insert(reason);
            }
        }
        let Some(mut reason) = first.cloned() else { continue };
        if let StoreError::TooManyColumns { actual, limit, .. } = &mut reason {
            *actual = *limit + fields.len() as u64;
        }
        rows.push(RefusedRow { row, fields, reason });
    }
    RefusedRows::check(rows)
}

/// Refuses one more column of a table that gets `added` others with it.
fn check_table(column: &MissingColumn<'_>, added: usize) -> Result<(), StoreError> {
    let (present, limit) = (column.table_columns + added, column.table_columns_max);
    if present < limit {
        return Ok(());
    }
    let (what, table) = ("columns of a table", column.table.clone());
    Err(StoreError::TooManyColumns { table, what, actual: present as u64 + 1, limit: limit as u64 })
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
