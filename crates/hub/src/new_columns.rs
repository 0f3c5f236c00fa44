//! Bounds on the columns that a device may add to its table.
//!
//! A column is a key with one type. All devices of a table share its columns, so a device that invents names must not use
//! them up. A batch without new columns costs nothing here: the store detects it while it appends. The counts are in memory
//! and start with the server.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use model::limits::{IngestLimits, NEW_COLUMN_DEVICES_MAX, NEW_COLUMNS_WINDOW, REFUSED_KEYS_NAMED_MAX};
use model::{FieldType, SeriesId, TableName};
use parking_lot::Mutex;
use store::{MissingColumn, StoreError};

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
pub(crate) struct Plan {
    /// Number of allowed columns per series.
    allowed: HashMap<SeriesId, usize>,
    /// Indices of the refused columns.
    refused: Vec<usize>,
    over: Option<Over>,
}

/// An exceeded bound.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Over {
    bound: Bound,
    actual: usize,
    limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Bound {
    Device,
    Minute,
    Table(TableName),
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
    pub(crate) fn plan(&self, counts: &Counts, missing: &[MissingColumn<'_>], now: Instant) -> Plan {
        let mut plan = Plan::default();
        let mut of_tables: HashMap<&TableName, usize> = HashMap::new();
        for (index, column) in missing.iter().enumerate() {
            let of_table = of_tables.entry(&column.table).or_default();
            let allowed = plan.allowed.get(&column.series).copied().unwrap_or(0);
            match self.bound(counts, column, *of_table, allowed, now) {
                None => {
                    *of_table += 1;
                    plan.allowed.insert(column.series, allowed + 1);
                }
                Some(bound) => {
                    plan.refused.push(index);
                    if plan.over.is_none() {
                        plan.over = Some(self.over(bound, counts, column, missing, now));
                    }
                }
            }
        }
        plan
    }

    /// The bound that one more column would exceed, after the already allowed columns of the same table and series.
    fn bound(
        &self,
        counts: &Counts,
        column: &MissingColumn<'_>,
        of_table: usize,
        allowed: usize,
        now: Instant,
    ) -> Option<Bound> {
        if column.table_columns.saturating_add(of_table) >= column.table_columns_max {
            return Some(Bound::Table(column.table.clone()));
        }
        if !is_of_a_device(column) {
            return None;
        }
        let (columns, in_window) = counts.of(column.series, now);
        if columns + allowed >= self.per_device_max {
            return Some(Bound::Device);
        }
        (in_window + allowed >= self.per_minute_max).then_some(Bound::Minute)
    }

    fn over(
        &self,
        bound: Bound,
        counts: &Counts,
        column: &MissingColumn<'_>,
        missing: &[MissingColumn<'_>],
        now: Instant,
    ) -> Over {
        let (columns, in_window) = counts.of(column.series, now);
        let of_series = || missing.iter().filter(|one| one.series == column.series).count();
        let of_table = || missing.iter().filter(|one| one.table == column.table).count();
        let (actual, limit) = match bound {
            Bound::Device => (columns + of_series(), self.per_device_max),
            Bound::Minute => (in_window + of_series(), self.per_minute_max),
            Bound::Table(_) => (column.table_columns + of_table(), column.table_columns_max),
        };
        Over { bound, actual, limit }
    }
}

impl Counts {
    /// The columns that a series has added in total, and in the current window.
    fn of(&self, series: SeriesId, now: Instant) -> (usize, usize) {
        self.0.get(&series).map_or((0, 0), |added| (added.columns, added.in_window_at(now)))
    }

    /// Counts created columns.
    pub(crate) fn add(&mut self, plan: &Plan, missing: &[MissingColumn<'_>], now: Instant) {
        let of_devices: HashSet<SeriesId> =
            missing.iter().filter(|column| is_of_a_device(column)).map(|column| column.series).collect();
        for (series, columns) in plan.allowed.iter().filter(|(series, _)| of_devices.contains(series)) {
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

impl Plan {
    /// The keys and types of the refused columns.
    pub(crate) fn refused<'a>(&self, missing: &[MissingColumn<'a>]) -> HashSet<(&'a str, FieldType)> {
        self.refused.iter().map(|index| (missing[*index].key, missing[*index].field_type)).collect()
    }

    /// The refusal as an error of the whole batch.
    pub(crate) fn error(&self) -> Option<StoreError> {
        let Over { bound, actual, limit } = self.over.as_ref()?;
        let what = match bound {
            Bound::Device => "number of columns that one device has added",
            Bound::Minute => "number of columns that one device has added in a minute",
            Bound::Table(_) => "columns of a table",
        };
        Some(StoreError::OverLimit { what, actual: *actual as u64, limit: *limit as u64 })
    }

    /// The reason for the sender: the exceeded bound and the refused keys. `sender` has new columns, such as `the device truck-1`.
    pub(crate) fn reason(&self, sender: &str, missing: &[MissingColumn<'_>]) -> Option<String> {
        let Over { bound, actual, limit } = self.over.as_ref()?;
        let what = match bound {
            Bound::Device => format!(
                "with this message {sender} would have added {actual} columns since the start of the server, the limit is {limit} (ingest.columns_per_device_max)"
            ),
            Bound::Minute => format!(
                "with this message {sender} would have added {actual} columns in a minute, the limit is {limit} (ingest.new_columns_per_minute_max); send the keys again later"
            ),
            Bound::Table(table) => {
                let table = table.name();
                format!(
                    "with this message the table {table} would have {actual} columns, the limit is {limit}"
                )
            }
        };
        let named = self.refused.iter().take(REFUSED_KEYS_NAMED_MAX).map(|index| missing[*index].key);
        let named = named.collect::<Vec<_>>().join(", ");
        Some(match self.refused.len().saturating_sub(REFUSED_KEYS_NAMED_MAX) {
            0 => format!("{what}; refused keys: {named}"),
            more => format!("{what}; refused keys: {named} and {more} more"),
        })
    }
}

/// Whether a device adds the column. The server itself writes dead letters, with few known columns.
fn is_of_a_device(column: &MissingColumn<'_>) -> bool {
    column.table.name() != DEAD_LETTER_TABLE
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn bounds(per_device: usize, per_minute: usize) -> NewColumns {
        let limits = IngestLimits {
            columns_per_device_max: per_device,
            new_columns_per_minute_max: per_minute,
            ..IngestLimits::default()
        };
        NewColumns::new(&limits)
    }

    fn missing<'a>(table: &str, series: u64, keys: &[&'a str]) -> Vec<MissingColumn<'a>> {
        let column = |key: &&'a str| MissingColumn {
            series: SeriesId(series),
            table: table.try_into().unwrap(),
            key,
            field_type: FieldType::I64,
            table_columns: 10,
            table_columns_max: 15,
        };
        keys.iter().map(column).collect()
    }

    /// The refused columns. Counts the others.
    fn refused(bounds: &NewColumns, missing: &[MissingColumn<'_>], now: Instant) -> Vec<String> {
        let mut counts = bounds.lock();
        let plan = bounds.plan(&counts, missing, now);
        counts.add(&plan, missing, now);
        plan.refused.iter().map(|index| missing[*index].key.to_owned()).collect()
    }

    #[test]
    fn a_device_has_a_bound_for_each_minute_and_one_in_all() {
        let bounds = bounds(4, 3);
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(refused(&bounds, &missing("t", 1, &["a", "b"]), at(0)), [""; 0]);
        assert_eq!(refused(&bounds, &missing("t", 1, &["c", "d", "e"]), at(59)), ["d", "e"]);
        assert_eq!(refused(&bounds, &missing("t", 2, &["d"]), at(59)), [""; 0], "another device has its own");
        assert_eq!(refused(&bounds, &missing("t", 1, &["d", "e"]), at(60)), ["e"], "the bound in all");
        assert_eq!(refused(&bounds, &missing("t", 1, &["e"]), at(6_000)), ["e"]);
    }

    #[test]
    fn the_tables_bound_counts_all_series_and_dead_letters_have_no_other() {
        let bounds = bounds(2, 2);
        let now = Instant::now();
        let keys = ["a", "b", "c", "d", "e", "f"];
        assert_eq!(refused(&bounds, &missing(DEAD_LETTER_TABLE, 9, &keys), now), ["f"]);
        let mut both = missing("t", 1, &["a", "b"]);
        both.extend(missing("t", 2, &["c", "d"]));
        both.extend(missing("t", 3, &["e", "f"]));
        assert_eq!(refused(&bounds, &both, now), ["f"]);
    }

    #[test]
    fn a_reason_names_the_bound_its_value_and_the_keys() {
        let names: Vec<String> = (0..11).map(|n| format!("k{n}")).collect();
        let keys: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut missing = missing("t", 1, &keys);
        missing.iter_mut().for_each(|column| column.table_columns_max = 1_000);
        let reason = |bounds: &NewColumns, missing: &[MissingColumn<'_>]| {
            bounds.plan(&bounds.lock(), missing, Instant::now()).reason("the device car", missing).unwrap()
        };
        assert_eq!(
            reason(&bounds(2, 100), &missing),
            "with this message the device car would have added 11 columns since the start of the server, the limit is 2 (ingest.columns_per_device_max); refused keys: k2, k3, k4, k5, k6, k7, k8, k9 and 1 more"
        );
        let minute = reason(&bounds(100, 10), &missing);
        assert!(minute.contains("11 columns in a minute, the limit is 10"), "{minute}");
        assert!(minute.ends_with("refused keys: k10"), "{minute}");
        missing.iter_mut().for_each(|column| column.table_columns_max = 20);
        let table = reason(&bounds(100, 100), &missing);
        assert!(table.contains("the table t would have 21 columns, the limit is 20"), "{table}");
    }

    #[test]
    fn the_count_itself_is_bounded() {
        let bounds = bounds(1, 1);
        let start = Instant::now();
        for series in 0..=NEW_COLUMN_DEVICES_MAX as u64 {
            let now = start + Duration::from_micros(series);
            assert_eq!(refused(&bounds, &missing("t", series, &["a"]), now), [""; 0]);
        }
        assert!(bounds.lock().0.len() <= NEW_COLUMN_DEVICES_MAX);
        let last = NEW_COLUMN_DEVICES_MAX as u64;
        assert_eq!(refused(&bounds, &missing("t", last, &["b"]), start), ["b"], "the newest are remembered");
    }
}
