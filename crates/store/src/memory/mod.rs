//! The reference store: maps behind one lock, short enough to be read as the specification.
//!
//! No row survives the process, so every durability class is reached as soon as the store has taken a batch, unless a
//! test delays durability with [`MemoryStore::hold`]. The thread that causes a change calls the watchers.

mod definitions;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::time::Duration;

use model::{Batch, FieldType, SeriesId, SeriesKey, TableName, Timestamp, Value, name};
use parking_lot::Mutex;

use crate::deletion::several_tables;
use crate::table::{DAY_US, oldest_kept};
use crate::{
    DefinitionCounts, DefinitionLimits, Deletion, Durability, LateFailures, LatestValue, Maintenance,
    MissingColumn, Order, Progress, ProgressWatcher, Reader, RefusedRow, RefusedRows, Scan, ScannedBlock,
    Sequence, SeriesSet, StoreError, StoreStatus, TableColumns, TableSnapshot, TableStatus, Ticket,
    ValueColumn, Writer,
};

/// A [`Store`](crate::Store) in memory. A later append overwrites an earlier one, so the store has nothing to merge.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    watchers: Mutex<Vec<Arc<dyn ProgressWatcher>>>,
}

#[derive(Default)]
struct State {
    keys: HashMap<SeriesKey, SeriesId>,
    /// The columns by key and type.
    tables: BTreeMap<TableName, TableColumns>,
    ttls: BTreeMap<TableName, Option<Duration>>,
    series: Vec<Rows>,
    /// The table of each series.
    table_of: Vec<TableName>,
    progress: Progress,
    lost: LateFailures,
    rows_appended: u64,
    dropped: SeriesSet,
    held: bool,
    busy: Option<String>,
    series_busy: Option<String>,
    tables_max: Option<usize>,
    limits: Option<Arc<dyn DefinitionLimits>>,
    sealed: Option<String>,
    closed: bool,
}

type Rows = BTreeMap<Timestamp, BTreeMap<String, Value>>;

/// What is left of a row's dropped or deleted values, so that it stays a row: no key has this name, and no column shows it.
const DROPPED: &str = "";

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows that are appended from now on are readable, but neither written nor durable until
    /// [`release`](Self::release).
    pub fn hold(&self) {
        self.state.lock().held = true;
    }

    /// Makes all rows durable that [`hold`](Self::hold) has delayed.
    pub fn release(&self) {
        let mut state = self.state.lock();
        state.held = false;
        state.settle();
        drop(state);
        self.notify_watchers();
    }

    /// Makes the store answer busy with this reason; `None` ends that.
    pub fn set_busy(&self, reason: Option<&str>) {
        self.state.lock().busy = reason.map(str::to_owned);
        self.notify_watchers();
    }

    /// Makes the store answer busy with this reason to a request for a new series; `None` ends that.
    pub fn set_series_busy(&self, reason: Option<&str>) {
        self.state.lock().series_busy = reason.map(str::to_owned);
        self.notify_watchers();
    }

    /// Limits the number of tables.
    pub fn set_tables_max(&self, tables: usize) {
        self.state.lock().tables_max = Some(tables);
    }

    /// Behaves as after a failed write: the store refuses appends, delayed rows never become durable, reads continue.
    pub fn seal(&self, cause: &str) {
        let mut state = self.state.lock();
        state.sealed = Some(cause.to_owned());
        state.progress.sealed = true;
        drop(state);
        self.notify_watchers();
    }

    /// Makes a write fail late. Readers still find its rows, which the contract allows.
    pub fn lose(&self, ticket: Ticket, cause: &str) {
        self.state.lock().lost.add(ticket, cause);
    }

    fn notify_watchers(&self) {
        let progress = self.progress();
        let watchers = self.watchers.lock().clone();
        watchers.iter().for_each(|watcher| watcher.progress(progress));
    }
}

impl State {
    fn rows(&self, series: SeriesId) -> Result<&Rows, StoreError> {
        let known = !u32::try_from(series.0).is_ok_and(|id| self.dropped.contains(id));
        let rows = self.series.get(series.0 as usize).filter(|_| known);
        rows.ok_or(StoreError::UnknownSeries(series))
    }

    /// Refuses series that the store does not know, and those of several tables.
    fn check_series(&self, series: &SeriesSet) -> Result<(), StoreError> {
        let mut tables = Vec::new();
        for id in series {
            self.rows(SeriesId(id.into()))?;
            tables.push(&self.table_of[id as usize]);
        }
        match tables.windows(2).all(|pair| pair[0] == pair[1]) {
            true => Ok(()),
            false => Err(several_tables()),
        }
    }

    fn drop_series(&mut self, series: &SeriesSet) {
        series.iter().for_each(|id| self.series[id as usize].clear());
        self.keys.retain(|_, id| !series.contains(id.0 as u32));
        self.dropped |= series;
    }

    fn take_deletion(&mut self) -> Sequence {
        self.progress.appended += 1;
        self.settle();
        self.progress.appended
    }

    fn check(&self, batch: &Batch) -> Result<(), StoreError> {
        self.check_writable()?;
        crate::check_batch_size(batch)?;
        self.check_rows(batch)
    }

    /// Refuses rows of unknown series, and those with a key that breaks the rules for names.
    fn check_rows(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut refused = Vec::new();
        for (index, row) in batch.rows().enumerate() {
            let check = || -> Result<(), StoreError> {
                self.rows(row.series())?;
                Ok(row.fields().try_for_each(|field| name::check_key(field.key))?)
            };
            refused.extend(check().err().map(|reason| RefusedRow::whole(index, reason)));
        }
        RefusedRows::check(refused)
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        self.check_open()?;
        match &self.busy {
            Some(reason) => Err(StoreError::Busy { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed {
            return Err(StoreError::Closed);
        }
        if let Some(cause) = &self.sealed {
            return Err(StoreError::Sealed { cause: cause.clone() });
        }
        Ok(())
    }

    fn table(&mut self, series: SeriesId) -> &mut TableColumns {
        let name = &self.table_of[series.0 as usize];
        self.tables.get_mut(name).expect("BUG: a series has a table")
    }

    /// The number, the key and the rows of each series of a table.
    fn series_of<'a>(
        &'a self,
        table: &'a TableName,
    ) -> impl Iterator<Item = (u32, &'a SeriesKey, &'a Rows)> + Clone {
        let of_table = self.keys.iter().filter(move |(key, _)| key.table() == table);
        of_table.map(|(key, id)| (id.0 as u32, key, &self.series[id.0 as usize]))
    }

    fn settle(&mut self) {
        if !self.held && self.sealed.is_none() {
            self.progress.written = self.progress.appended;
            self.progress.durable = self.progress.appended;
        }
    }
}

impl Writer for MemoryStore {
    fn series(&self, key: &SeriesKey) -> Result<SeriesId, StoreError> {
        let mut state = self.state.lock();
        if let Some(id) = state.keys.get(key) {
            return Ok(*id);
        }
        if let Some(reason) = &state.series_busy {
            return Err(StoreError::Busy { reason: reason.clone() });
        }
        let tables = state.tables.len();
        if let Some(limit) = state.tables_max.filter(|most| tables >= *most)
            && !state.tables.contains_key(key.table())
        {
            let (actual, limit) = (tables as u64 + 1, limit as u64);
            return Err(StoreError::OverLimit { what: "tables", actual, limit });
        }
        let tags: Vec<&str> = key.tags().iter().map(|(tag, _)| &**tag).collect();
        state.check_new(key.table(), &tags, 1)?;
        let id = SeriesId(state.series.len() as u64);
        state.keys.insert(key.clone(), id);
        state.series.push(Rows::new());
        state.table_of.push(key.table().clone());
        let table = state.tables.entry(key.table().clone());
        let columns = table.or_insert_with(|| TableColumns::new(key.table()));
        key.tags().iter().for_each(|(tag, _)| columns.add_tag(tag));
        Ok(id)
    }

    fn append(&self, batch: &Batch, _durability: Durability) -> Result<Sequence, StoreError> {
        let mut state = self.state.lock();
        state.check(batch)?;
        state.check_new_columns(batch)?;
        for row in batch.rows() {
            let columns = state.table(row.series());
            row.fields().for_each(|field| columns.add_field(field.key, field.value.field_type()));
            let fields = state.series[row.series().0 as usize].entry(row.ts()).or_default();
            fields.extend(row.fields().map(|field| (field.key.to_owned(), field.value.to_owned())));
        }
        state.progress.appended += batch.len() as u64;
        state.rows_appended += batch.len() as u64;
        state.settle();
        let sequence = state.progress.appended;
        drop(state);
        self.notify_watchers();
        Ok(sequence)
    }

    fn append_known(&self, batch: &Batch, durability: Durability) -> Result<Option<Sequence>, StoreError> {
        match self.missing_columns(batch)?.is_empty() {
            true => self.append(batch, durability).map(Some),
            false => Ok(None),
        }
    }

    fn missing_columns<'a>(&self, batch: &'a Batch) -> Result<Vec<MissingColumn<'a>>, StoreError> {
        let state = self.state.lock();
        state.check_rows(batch)?;
        let mut missing: Vec<MissingColumn<'a>> = Vec::new();
        for (index, row) in batch.rows().enumerate() {
            let columns = &state.tables[&state.table_of[row.series().0 as usize]];
            for field in row.fields() {
                let (key, field_type) = (field.key, field.value.field_type());
                let is_met = |one: &MissingColumn<'_>| {
                    (one.series, one.key, one.field_type) == (row.series(), key, field_type)
                };
                if !columns.has_field(key, field_type) && !missing.iter().any(is_met) {
                    missing.push(MissingColumn {
                        series: row.series(),
                        row: index,
                        table: columns.table.clone(),
                        key,
                        field_type,
                        table_columns: columns.tags.len() + columns.fields.len(),
                        // This store does not limit the number of columns.
                        table_columns_max: usize::MAX,
                    });
                }
            }
        }
        Ok(missing)
    }

    fn late_failure(&self, ticket: Ticket) -> Option<StoreError> {
        self.state.lock().lost.of(ticket)
    }

    fn progress(&self) -> Progress {
        self.state.lock().progress
    }

    fn watch(&self, watcher: Arc<dyn ProgressWatcher>) {
        self.watchers.lock().push(watcher);
    }

    fn delete_rows(&self, deletion: &Deletion, _durability: Durability) -> Result<Sequence, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.check_writable()?;
        state.check_series(&deletion.series)?;
        for id in &deletion.series {
            state.series[id as usize].retain(|ts, fields| {
                let is_meant = deletion.range.contains(*ts);
                let keys = deletion.keys.iter().flatten().filter(|_| is_meant);
                if keys.filter(|key| fields.remove(*key).is_some()).count() > 0 {
                    fields.insert(DROPPED.to_owned(), Value::Bool(true));
                }
                !is_meant || deletion.keys.is_some()
            });
        }
        let sequence = state.take_deletion();
        drop(guard);
        self.notify_watchers();
        Ok(sequence)
    }

    fn delete_series(&self, series: &SeriesSet, _durability: Durability) -> Result<Sequence, StoreError> {
        let mut state = self.state.lock();
        state.check_writable()?;
        state.check_series(series)?;
        state.drop_series(series);
        let sequence = state.take_deletion();
        drop(state);
        self.notify_watchers();
        Ok(sequence)
    }
}

impl Reader for MemoryStore {
    fn find_series(&self, key: &SeriesKey) -> Option<SeriesId> {
        self.state.lock().keys.get(key).copied()
    }

    fn latest(&self, series: SeriesId, keys: Option<&[String]>) -> Result<Vec<LatestValue>, StoreError> {
        let state = self.state.lock();
        let mut newest = BTreeMap::new();
        for (ts, fields) in state.rows(series)? {
            let is_asked = |key: &String| keys.is_none_or(|keys| keys.contains(key)) && key != DROPPED;
            for (key, value) in fields.iter().filter(|(key, _)| is_asked(key)) {
                newest.insert(key.clone(), LatestValue { key: key.clone(), ts: *ts, value: value.clone() });
            }
        }
        Ok(newest.into_values().collect())
    }

    fn scan_blocks(
        &self,
        scan: &Scan,
        visit: &mut dyn FnMut(ScannedBlock<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let state = self.state.lock();
        let rows = state.rows(scan.series)?;
        if scan.range.is_empty() {
            return Ok(());
        }
        let range = rows.range((Bound::Included(scan.range.start), Bound::Excluded(scan.range.end)));
        let mut ordered: Vec<_> = range.collect();
        if scan.order == Order::Descending {
            ordered.reverse();
        }
        let times: Vec<i64> = ordered.iter().map(|(ts, _)| ts.micros()).collect();
        let column = |key: &String, field_type: FieldType| {
            let values = ordered.iter().map(|(_, fields)| fields.get(key));
            let has_any = values.clone().flatten().any(|value| value.field_type() == field_type);
            has_any.then(|| ValueColumn::new(&table::array_of(field_type, values), field_type))
        };
        let of_key =
            |key| FieldType::ALL.into_iter().filter_map(|field_type| column(key, field_type)).collect();
        let columns: Vec<Vec<ValueColumn>> = scan.keys.iter().map(of_key).collect();
        // The answer of the visitor does not matter, because there is only one block.
        let _ = visit(ScannedBlock { times: &times, columns: &columns });
        Ok(())
    }

    fn tables(&self) -> Result<Vec<TableStatus>, StoreError> {
        let state = self.state.lock();
        let status = |table: &TableName| {
            let series = state.series_of(table);
            let rows =
                series.clone().flat_map(|(.., rows)| rows.iter().filter(|(_, fields)| !fields.is_empty()));
            TableStatus {
                table: table.clone(),
                series: series.count() as u64,
                rows: rows.clone().count() as u64,
                points: None,
                bytes: 0,
                raw_bytes: None,
                time_range: table::time_range(rows.map(|(ts, _)| *ts)),
                ttl: state.ttls.get(table).copied().flatten(),
            }
        };
        Ok(state.tables.keys().map(status).collect())
    }

    fn snapshot(&self, table: &TableName) -> Result<Option<Arc<dyn TableSnapshot>>, StoreError> {
        let state = self.state.lock();
        let Some(columns) = state.tables.get(table).map(TableColumns::joined) else { return Ok(None) };
        let (mut series, mut rows) = (BTreeMap::new(), Vec::new());
        for (id, key, of_series) in state.series_of(table) {
            series.insert(id, key.clone());
            let present = of_series.iter().filter(|(_, fields)| !fields.is_empty());
            rows.extend(present.map(|(ts, fields)| table::Row {
                series: id,
                ts: *ts,
                fields: fields.clone(),
            }));
        }
        rows.sort_by_key(|row| (row.series, row.ts));
        Ok(Some(Arc::new(table::Snapshot { columns, series, rows })))
    }
}

impl Maintenance for MemoryStore {
    fn set_ttl(&self, table: &TableName, ttl: Option<Duration>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check_writable()?;
        if !state.tables.contains_key(table) {
            state.check_new(table, &[], 0)?;
        }
        state.tables.entry(table.clone()).or_insert_with(|| TableColumns::new(table));
        state.ttls.insert(table.clone(), ttl);
        Ok(())
    }

    fn drop_key(&self, table: &TableName, key: &str) -> Result<bool, StoreError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.check_writable()?;
        let Some(columns) = state.tables.get_mut(table) else { return Ok(false) };
        let before = columns.fields.len();
        columns.fields.retain(|field| *field.key != *key);
        if columns.fields.len() == before {
            return Ok(false);
        }
        let of_table = state.series.iter_mut().zip(&state.table_of).filter(|(_, of)| *of == table);
        for fields in of_table.flat_map(|(rows, _)| rows.values_mut()) {
            if fields.remove(key).is_some() {
                fields.insert(DROPPED.to_owned(), Value::Bool(true));
            }
        }
        Ok(true)
    }

    fn drop_table(&self, table: &TableName) -> Result<bool, StoreError> {
        let mut state = self.state.lock();
        state.check_writable()?;
        let series = state.series_of(table).map(|(id, ..)| id).collect();
        state.drop_series(&series);
        state.ttls.remove(table);
        Ok(state.tables.remove(table).is_some())
    }

    fn ttl(&self, table: &TableName) -> Option<Duration> {
        self.state.lock().ttls.get(table).copied().flatten()
    }

    fn drop_expired(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut guard = self.state.lock();
        guard.check_open()?;
        let state = &mut *guard;
        let mut dropped = 0;
        for (rows, table) in state.series.iter_mut().zip(&state.table_of) {
            let Some(ttl) = state.ttls.get(table).copied().flatten() else { continue };
            let oldest = oldest_kept(now, ttl).micros();
            let day_has_passed =
                |ts: &Timestamp| (ts.micros().div_euclid(DAY_US) + 1).saturating_mul(DAY_US) <= oldest;
            let before = rows.len();
            rows.retain(|ts, _| !day_has_passed(ts));
            dropped += (before - rows.len()) as u64;
        }
        Ok(dropped)
    }

    fn limit_definitions(&self, limits: Arc<dyn DefinitionLimits>) {
        self.state.lock().limits = Some(limits);
    }

    fn definitions(&self) -> DefinitionCounts {
        self.state.lock().definitions()
    }

    fn status(&self) -> StoreStatus {
        let state = self.state.lock();
        StoreStatus {
            sealed: state.sealed.clone(),
            busy: state.busy.clone(),
            tables: state.tables.len() as u64,
            series: state.keys.len() as u64,
            rows_appended: state.rows_appended,
            ..StoreStatus::default()
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.closed = true;
        state.held = false;
        state.settle();
        match state.sealed.clone() {
            Some(cause) => Err(StoreError::Sealed { cause }),
            None => {
                drop(state);
                self.notify_watchers();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use model::ValueRef;

    use super::*;
    use crate::{Outcome, Store};

    #[test]
    fn held_rows_are_readable_but_not_durable() {
        let store = MemoryStore::new();
        let series = store.series(&SeriesKey::device("t", "d").unwrap()).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        builder.field("a", ValueRef::I64(1));
        builder.row(series, Timestamp::from_micros(5));
        builder.finish();

        store.hold();
        let ticket = store.append(&batch, Durability::Fsync).unwrap();
        assert_eq!(store.latest(series, None).unwrap().len(), 1);
        assert!(store.progress().durable < ticket);
        store.release();
        assert_eq!(store.progress().durable, ticket);
    }

    #[test]
    fn conforms() {
        crate::conformance::run(&|| Arc::new(MemoryStore::new()));
    }

    #[test]
    fn a_lost_write_fails_alone_and_not_before_it_is_reached() {
        let store = Arc::new(MemoryStore::new());
        let lose = |ticket| store.lose(ticket, "a test");
        crate::conformance::run_late_failures(&store, &lose);
        store.hold();
        let series = store.find_series(&SeriesKey::device("telemetry", "kept").unwrap()).unwrap();
        let batch = crate::conformance::batch_of(series, &[(1, &[("n", Value::I64(1))])]);
        let ticket = Ticket::of_rows(store.append(&batch, Durability::Fsync).unwrap(), 1);
        lose(ticket);
        assert!(matches!(store.outcome(ticket, Durability::Fsync), Outcome::Pending));
        store.release();
        assert!(matches!(store.outcome(ticket, Durability::Fsync), Outcome::Failed(_)));
    }
}
