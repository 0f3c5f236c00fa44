//! Bounds on the columns that a device may add to its table.
//!
//! A column is a key with one type. All devices of a table share its columns, so a device that invents names must not use
//! them up. A batch without new columns costs nothing here: the store detects it while it appends. The counts are in memory
//! and start with the server.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use model::limits::{IngestLimits, NEW_COLUMN_DEVICES_MAX, NEW_COLUMNS_WINDOW, REFUSED_KEYS_NAMED_MAX};
use model::{Batch, FieldType, SeriesId, TableName};
use parking_lot::Mutex;
use store::{MissingColumn, RefusedRow, RefusedRows, StoreError};

use crate::dead_letter::DEAD_LETTER_TABLE;

/// The columns that devices have added since the start.
#[derive(Debug)]
pub(crate) struct NewColumns {
    per_device_max: usize,
    per_minute_max: usize,
    /// Locked from the query for missing columns until they exist, so two batches cannot use the same allowance.
    counts: Mutex<Counts>,
}

/// Added columns by the series of their first row: a device is one series of its table.
#[derive(Debug, Default)]
pub(crate) struct Counts(HashMap<SeriesId, Added>);

#[derive(Debug, Clone, Copy)]
struct Added {
    columns: usize,
    /// Columns added in the window that began at `window_began`.
    in_window: usize,
    window_began: Instant,
}

/// The missing columns that may be created, and those that may not.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    /// Number of allowed columns of each device.
    allowed: HashMap<SeriesId, usize>,
    refused: HashMap<(SeriesId, &'a str, FieldType), Refused>,
}

/// A column that a series may not add.
#[derive(Debug)]
struct Refused {
    reason: StoreError,
    /// From this row of the batch on, the column is there: another series adds it.
    added_at: usize,
}

/// An exceeded bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Device,
    Minute,
    Table,
}

impl Bound {
    const ALL: [Self; 3] = [Self::Device, Self::Minute, Self::Table];

    /// What it bounds, as errors say it.
    const fn what(self) -> &'static str {
        match self {
            Self::Device => "number of columns that one device has added",
            Self::Minute => "number of columns that one device has added in a minute",
            Self::Table => "columns of a table",
        }
    }
}

impl NewColumns {
    pub(crate) fn new(limits: &IngestLimits) -> Self {
        Self {
            per_device_max: limits.columns_per_device_max,
            per_minute_max: limits.new_columns_per_minute_max,
            counts: Mutex::default(),
        }
    }

    pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, Counts> {
        self.counts.lock()
    }

    /// Decides which missing columns may be created now; earlier ones take precedence.
    pub(crate) fn plan<'a>(&self, counts: &Counts, missing: &[MissingColumn<'a>], now: Instant) -> Plan<'a> {
        let mut plan = Plan::default();
        let mut refused = Vec::new();
        // The first rows with the columns that are added to each table.
        let mut added: HashMap<&TableName, HashMap<(&str, FieldType), usize>> = HashMap::new();
        for column in missing {
            let of_table = added.entry(&column.table).or_default();
            let name = (column.key, column.field_type);
            if of_table.contains_key(&name) {
                continue;
            }
            let allowed = plan.allowed.get(&column.series).copied().unwrap_or(0);
            match self.check(counts, column, of_table.len(), allowed, now) {
                Ok(()) => {
                    of_table.insert(name, column.row);
                    if is_of_a_device(column) {
                        plan.allowed.insert(column.series, allowed + 1);
                    }
                }
                Err(reason) => refused.push((column, reason)),
            }
        }
        for (MissingColumn { series, table, key, field_type, .. }, reason) in refused {
            let added_at = added[table].get(&(*key, *field_type)).copied().unwrap_or(usize::MAX);
            plan.refused.insert((*series, *key, *field_type), Refused { reason, added_at });
        }
        plan
    }

    /// Refuses a column that would exceed a bound, after the already allowed columns of the same table and series.
    fn check(
        &self,
        counts: &Counts,
        column: &MissingColumn<'_>,
        of_table: usize,
        allowed: usize,
        now: Instant,
    ) -> Result<(), StoreError> {
        let check = |bound: Bound, present: usize, limit: usize| match present < limit {
            true => Ok(()),
            false => Err(StoreError::TooManyColumns {
                table: column.table.clone(),
                what: bound.what(),
                actual: present as u64 + 1,
                limit: limit as u64,
            }),
        };
        check(Bound::Table, column.table_columns.saturating_add(of_table), column.table_columns_max)?;
        if !is_of_a_device(column) {
            return Ok(());
        }
        let (columns, in_window) = counts.of(column.series, now);
        check(Bound::Device, columns + allowed, self.per_device_max)?;
        check(Bound::Minute, in_window + allowed, self.per_minute_max)
    }
}

impl Counts {
    /// The columns that a series has added in total, and in the current window.
    fn of(&self, series: SeriesId, now: Instant) -> (usize, usize) {
        self.0.get(&series).map_or((0, 0), |added| (added.columns, added.in_window_at(now)))
    }

    /// Counts created columns.
    pub(crate) fn add(&mut self, plan: &Plan<'_>, now: Instant) {
        for (series, columns) in &plan.allowed {
            if self.0.len() >= NEW_COLUMN_DEVICES_MAX && !self.0.contains_key(series) {
                self.forget_half();
            }
            let fresh = Added { columns: 0, in_window: 0, window_began: now };
            let added = self.0.entry(*series).or_insert(fresh);
            added.in_window = added.in_window_at(now) + columns;
            if added.in_window == *columns {
                added.window_began = now;
            }
            added.columns += columns;
        }
    }

    /// Forgets at least half of the series: those with the oldest window. Their counts start again.
    fn forget_half(&mut self) {
        let mut times: Vec<Instant> = self.0.values().map(|added| added.window_began).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.0.retain(|_, added| added.window_began > median);
    }
}

impl Added {
    fn in_window_at(&self, now: Instant) -> usize {
        match now.saturating_duration_since(self.window_began) < NEW_COLUMNS_WINDOW {
            true => self.in_window,
            false => 0,
        }
    }
}

impl Plan<'_> {
    /// Refuses the rows of a batch with fields whose columns may not be created.
    ///
    /// # Errors
    /// [`StoreError::Rows`].
    pub(crate) fn check(&self, batch: &Batch) -> Result<(), StoreError> {
        if self.refused.is_empty() {
            return Ok(());
        }
        let mut rows = Vec::new();
        for (row, of_batch) in batch.rows().enumerate() {
            let (mut fields, mut first) = (Vec::new(), None);
            for (number, field) in of_batch.fields().enumerate() {
                let column = (of_batch.series(), field.key, field.value.field_type());
                if let Some(refused) = self.refused.get(&column).filter(|refused| row < refused.added_at) {
                    fields.push(number);
                    first.get_or_insert(refused);
                }
            }
            if let Some(Refused { reason, .. }) = first {
                rows.push(RefusedRow { row, fields, reason: reason.clone() });
            }
        }
        RefusedRows::check(rows)
    }
}

/// The reason for the sender of fields that are refused: the exceeded bound and their keys. `sender` has new columns, such as
/// `the device truck-1`. `None` if a row is refused for something else than its columns.
pub(crate) fn reason(sender: &str, batch: &Batch, refused: &[RefusedRow]) -> Option<String> {
    let (table, what, limit) = match &refused.first()?.reason {
        StoreError::TooManyColumns { table, what, limit, .. } => (Some(table.name()), *what, *limit),
        StoreError::OverLimit { what, limit, .. } => (None, *what, *limit),
        _ => return None,
    };
    let (mut keys, mut columns) = (Vec::new(), HashSet::new());
    for RefusedRow { row, fields, .. } in refused {
        if fields.is_empty() {
            return None;
        }
        let mut of_row = batch.row(*row).fields().enumerate();
        for number in fields {
            let (_, field) = of_row.find(|(of_field, _)| of_field == number)?;
            if columns.insert((field.key, field.value.field_type())) {
                keys.push(field.key);
            }
        }
    }
    let actual = limit + keys.len() as u64;
    let what = match Bound::ALL.into_iter().find(|bound| bound.what() == what) {
        Some(Bound::Device) => format!(
            "with this message {sender} would have added {actual} columns since the start of the server, the limit is {limit} (ingest.columns_per_device_max)"
        ),
        Some(Bound::Minute) => format!(
            "with this message {sender} would have added {actual} columns in a minute, the limit is {limit} (ingest.new_columns_per_minute_max); send the keys again later"
        ),
        Some(Bound::Table) | None => match table {
            Some(table) => {
                format!(
                    "with this message the table {table} would have {actual} columns, the limit is {limit}"
                )
            }
            None => format!("the {what} would be above the limit, which is {limit}"),
        },
    };
    let named = keys.iter().take(REFUSED_KEYS_NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    Some(match keys.len().saturating_sub(REFUSED_KEYS_NAMED_MAX) {
        0 => format!("{what}; refused keys: {named}"),
        more => format!("{what}; refused keys: {named} and {more} more"),
    })
}

/// Whether a device adds the column. The server itself writes dead letters, with few known columns.
fn is_of_a_device(column: &MissingColumn<'_>) -> bool {
    column.table.name() != DEAD_LETTER_TABLE
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::{Timestamp, ValueRef};

    use super::*;

    fn bounds(per_device: usize, per_minute: usize) -> NewColumns {
        let limits = IngestLimits {
            columns_per_device_max: per_device,
            new_columns_per_minute_max: per_minute,
            ..IngestLimits::default()
        };
        NewColumns::new(&limits)
    }

    /// The columns of a row in an empty table, whose number in its batch is `row`.
    fn missing<'a>(table: &str, series: u64, row: usize, keys: &[&'a str]) -> Vec<MissingColumn<'a>> {
        let column = |key: &&'a str| MissingColumn {
            series: SeriesId(series),
            row,
            table: table.try_into().unwrap(),
            key,
            field_type: FieldType::I64,
            table_columns: 10,
            table_columns_max: 15,
        };
        keys.iter().map(column).collect()
    }

    /// The batch that needs these columns.
    fn batch_of(missing: &[MissingColumn<'_>]) -> Batch {
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for columns in missing.chunk_by(|one, next| one.row == next.row) {
            columns.iter().for_each(|column| builder.field(column.key, ValueRef::I64(1)));
            builder.row(columns[0].series, Timestamp::from_micros(1));
        }
        builder.finish();
        batch
    }

    fn check(
        bounds: &NewColumns,
        missing: &[MissingColumn<'_>],
        batch: &Batch,
        now: Instant,
    ) -> Vec<RefusedRow> {
        let mut counts = bounds.lock();
        let plan = bounds.plan(&counts, missing, now);
        counts.add(&plan, now);
        match plan.check(batch) {
            Ok(()) => Vec::new(),
            Err(StoreError::Rows(refused)) => refused.rows().to_vec(),
            Err(other) => panic!("{other}"),
        }
    }

    /// The refused columns. Counts the others.
    fn refused(bounds: &NewColumns, missing: &[MissingColumn<'_>], now: Instant) -> Vec<String> {
        let batch = batch_of(missing);
        let key = |row: usize, field: usize| batch.row(row).fields().nth(field).unwrap().key.to_owned();
        let rows = check(bounds, missing, &batch, now);
        rows.iter().flat_map(|refused| refused.fields.iter().map(|field| key(refused.row, *field))).collect()
    }

    #[test]
    fn a_device_has_a_bound_for_each_minute_and_one_in_all() {
        let bounds = bounds(4, 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(refused(&bounds, &missing("t", 1, 0, &["a", "b"]), at(0)), [""; 0]);
        assert_eq!(refused(&bounds, &missing("t", 1, 0, &["c", "d", "e"]), at(59)), ["d", "e"]);
        assert_eq!(
            refused(&bounds, &missing("t", 2, 0, &["d"]), at(59)),
            [""; 0],
            "another device has its own"
        );
        assert_eq!(refused(&bounds, &missing("t", 1, 0, &["d", "e"]), at(60)), ["e"], "the bound in all");
        assert_eq!(refused(&bounds, &missing("t", 1, 0, &["e"]), at(6_000)), ["e"]);
    }

    #[test]
    fn the_tables_bound_counts_all_series_and_dead_letters_have_no_other() {
        let bounds = bounds(2, 2);
        let now = Instant::now();
        let keys = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(refused(&bounds, &missing(DEAD_LETTER_TABLE, 9, 0, &keys), now), ["f"]);
        let mut both = missing("t", 1, 0, &["a", "b"]);
        both.extend(missing("t", 2, 1, &["c", "d"]));
        both.extend(missing("t", 3, 2, &["e", "f"]));
        assert_eq!(refused(&bounds, &both, now), ["f"]);
    }

    #[test]
    fn a_column_that_one_device_may_not_add_may_be_added_by_another() {
        let bounds = bounds(1, 1);
        let needs = [("a", 1), ("b", 1), ("b", 2), ("b", 1), ("c", 2)];
        let mut missing: Vec<_> =
            (0..).zip(&needs).flat_map(|(row, (key, series))| missing("t", *series, row, &[*key])).collect();
        let batch = batch_of(&missing);
        // The series needs the column already.
        missing.remove(3);
        let rows: Vec<usize> =
            check(&bounds, &missing, &batch, Instant::now()).iter().map(|refused| refused.row).collect();
        assert_eq!(rows, [1, 4], "row 3 finds the column that row 2 has added");
    }

    #[test]
    fn a_reason_names_the_bound_its_value_and_the_keys() {
        let names: Vec<String> = (0..11).map(|n| format!("k{n}")).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut missing = missing("t", 1, 0, &keys);
        missing.iter_mut().for_each(|column| column.table_columns_max = 1_000);
        let told = |bounds: &NewColumns, missing: &[MissingColumn<'_>]| {
            let batch = batch_of(missing);
            reason("the device car", &batch, &check(bounds, missing, &batch, Instant::now())).unwrap()
        };
        assert_eq!(
            told(&bounds(2, 100), &missing),
            "with this message the device car would have added 11 columns since the start of the server, the limit is 2 (ingest.columns_per_device_max); refused keys: k2, k3, k4, k5, k6, k7, k8, k9 and 1 more"
        );
        let minute = told(&bounds(100, 10), &missing);
        assert!(minute.contains("11 columns in a minute, the limit is 10"), "{minute}");
        assert!(minute.ends_with("refused keys: k10"), "{minute}");
        missing.iter_mut().for_each(|column| column.table_columns_max = 20);
        let table = told(&bounds(100, 100), &missing);
        assert!(table.contains("the table t would have 21 columns, the limit is 20"), "{table}");
    }

    #[test]
    fn the_count_itself_is_bounded() {
        let bounds = bounds(1, 1);
        let start = Instant::now();
        for series in 0..=NEW_COLUMN_DEVICES_MAX as u64 {
            let now = start + Duration::from_micros(series);
            assert_eq!(refused(&bounds, &missing("t", series, 0, &["a"]), now), [""; 0]);
        }
        assert!(bounds.lock().0.len() <= NEW_COLUMN_DEVICES_MAX);
        let last = NEW_COLUMN_DEVICES_MAX as u64;
        assert_eq!(
            refused(&bounds, &missing("t", last, 0, &["b"]), start),
            ["b"],
            "the newest are remembered"
        );
    }
}
