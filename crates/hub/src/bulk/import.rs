//! Imports Arrow batches into a table. Rows are durable before they are counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use arrow_array::{Array, ArrayRef, RecordBatch};
use model::{Batch, SeriesId, SeriesKey, TableName, Timestamp, ValueRef};
use store::table::oldest_kept;
use store::{Durability, Store, Ticket};

use super::BulkError;
use super::cells::{self, Cell};
use super::columns::{Columns, plain_columns};
use super::counts::{ImportCounts, ImportRules};
use super::local_column::LocalColumn;
use super::parquet::{ParquetBounds, ParquetRows};
use super::zone::Zone;
use crate::blocking_append::{retry, wait_durable};
use crate::clock::system_now;

/// Imports rows into one table of a store.
pub struct Importer<'a> {
    columns: Columns,
    rules: ImportRules,
    /// Older rows would expire at once, so they are left out.
    oldest: Option<Timestamp>,
    series: SeriesLookup<'a>,
    batch: Batch,
    /// The rows that may not be durable yet.
    tickets: Vec<Ticket>,
    counts: ImportCounts,
    /// Buffer for texts of values of other types.
    text: String,
}

/// Finds or makes the series of rows.
struct SeriesLookup<'a> {
    /// `None` for a dry run.
    store: Option<&'a dyn Store>,
    table: TableName,
    busy_timeout: Duration,
    /// Cache of series by their tag values. It is emptied when it is full.
    known: HashMap<Vec<Option<String>>, Result<SeriesId, String>>,
}

/// Series in the cache of an importer.
const SERIES_REMEMBERED: usize = 100_000;

impl<'a> Importer<'a> {
    /// Begins an import. It ends if the store is busy for longer than `busy_timeout`. The start time decides which rows are too old
    /// for the table.
    ///
    pub fn new(
        store: &'a dyn Store,
        table: &TableName,
        columns: Columns,
        rules: ImportRules,
        busy_timeout: Duration,
    ) -> Self {
        let oldest = store.ttl(table).map(|ttl| oldest_kept(system_now(), ttl));
        let mut importer = Self { oldest, ..Self::examine(table, columns, rules) };
        (importer.series.store, importer.series.busy_timeout) = (Some(store), busy_timeout);
        importer
    }

    /// A dry run: it counts rows and stores nothing. It does not know the retention of the table.
    pub fn examine(table: &TableName, columns: Columns, rules: ImportRules) -> Self {
        Self {
            columns,
            rules,
            oldest: None,
            series: SeriesLookup {
                store: None,
                table: table.clone(),
                busy_timeout: Duration::ZERO,
                known: HashMap::new(),
            },
            batch: Batch::new(),
            tickets: Vec::new(),
            counts: ImportCounts::default(),
            text: String::new(),
        }
    }

    /// Appends the rows of a batch. [`sync`](Self::sync) counts them.
    ///
    /// # Errors
    /// The store refuses the rows. Rows of earlier calls stay.
    pub fn append(&mut self, rows: &RecordBatch) -> Result<(), BulkError> {
        let columns = plain_columns(rows)?;
        for row in 0..rows.num_rows() {
            self.row(&columns, row)?;
            if self.batch.is_full() {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Waits until all appended rows are durable. Returns the counts since the last call.
    ///
    /// # Errors
    /// The store fails.
    pub fn sync(&mut self) -> Result<ImportCounts, BulkError> {
        self.send()?;
        let Some(store) = self.series.store else { return Ok(std::mem::take(&mut self.counts)) };
        for ticket in self.tickets.drain(..) {
            wait_durable(store, ticket)?;
        }
        Ok(std::mem::take(&mut self.counts))
    }

    fn send(&mut self) -> Result<(), BulkError> {
        if let (Some(store), false) = (self.series.store, self.batch.is_empty()) {
            let began = Instant::now();
            let last =
                retry(began, self.series.busy_timeout, || store.append(&self.batch, Durability::Fsync))?;
            self.tickets.push(Ticket::of_rows(last, self.batch.len()));
        }
        self.batch.clear();
        Ok(())
    }

    fn row(&mut self, columns: &[ArrayRef], row: usize) -> Result<(), BulkError> {
        let Some(ts) = self.time(columns[self.columns.ts].as_ref(), row) else { return Ok(()) };
        let mut builder = self.batch.builder();
        for ((index, key, json), exact) in self.columns.fields.iter().zip(&self.columns.exact) {
            if exact.is_some_and(|exact| columns[exact].is_valid(row)) {
                continue;
            }
            let value = match cells::value(columns[*index].as_ref(), row, *json, &mut self.text) {
                Cell::Value(value) => value,
                Cell::Null => continue,
                Cell::TooLarge => {
                    self.counts.too_large += 1;
                    continue;
                }
                Cell::Rounded(number) => {
                    self.counts.rounded += 1;
                    ValueRef::F64(number)
                }
            };
            if let ValueRef::String(text) | ValueRef::Json(text) = value
                && (text.len() > self.rules.text_value_bytes_max
                    || text.len() + key.len() > builder.text_room_bytes())
            {
                self.counts.too_long += 1;
                continue;
            }
            builder.field(key, value);
        }
        let values = builder.open_fields() as u64;
        if values == 0 {
            self.counts.without_value += 1;
            return Ok(());
        }
        // A row that is left out makes no series.
        let series = match self.series.find(&self.columns, columns, row)? {
            Ok(series) => series,
            Err(reason) => {
                self.counts.bad_tags += 1;
                self.counts.bad_tags_reason.get_or_insert(reason);
                return Ok(());
            }
        };
        builder.row(series, ts);
        builder.finish();
        self.counts.rows += 1;
        self.counts.values += values;
        Ok(())
    }

    /// The time of a row; `None` if the row is left out because of its time.
    fn time(&mut self, column: &dyn Array, row: usize) -> Option<Timestamp> {
        let (ts, cut) = match cells::time(column, row) {
            Ok(Some(time)) => time,
            Ok(None) => {
                self.counts.without_time += 1;
                return None;
            }
            Err(()) => {
                self.counts.time_out_of_range += 1;
                return None;
            }
        };
        if !self.rules.plausible.contains(ts) {
            self.counts.implausible += 1;
            self.counts.first_implausible_us.get_or_insert(ts.micros());
            return None;
        }
        if self.oldest.is_some_and(|oldest| ts < oldest) {
            self.counts.too_old += 1;
            return None;
        }
        self.counts.cut_times += u64::from(cut);
        Some(ts)
    }
}

impl SeriesLookup<'_> {
    /// The series of a row; the inner error tells what is wrong with its tags.
    fn find(
        &mut self,
        columns: &Columns,
        rows: &[ArrayRef],
        row: usize,
    ) -> Result<Result<SeriesId, String>, BulkError> {
        let tags = columns.tags.iter().map(|(index, _)| cells::tag(rows[*index].as_ref(), row));
        let values: Vec<Option<String>> = tags.collect();
        if let Some(known) = self.known.get(&values) {
            return Ok(known.clone());
        }
        let names = columns.tags.iter().zip(&values);
        let tags: Vec<(&str, &str)> =
            names.filter_map(|((_, name), value)| Some((name.as_str(), value.as_deref()?))).collect();
        let series = match (SeriesKey::new(&self.table, &tags), self.store) {
            (Ok(key), Some(store)) => Ok(retry(Instant::now(), self.busy_timeout, || store.series(&key))?),
            // No reader looks the series up.
            (Ok(_), None) => Ok(SeriesId(0)),
            (Err(error), _) => Err(error.to_string()),
        };
        if self.known.len() >= SERIES_REMEMBERED {
            self.known.clear();
        }
        self.known.insert(values, series.clone());
        Ok(series)
    }
}

/// Imports a whole Parquet file whose schema has the roles of its columns. Times without a zone are local times of `zone`.
///
/// # Errors
/// The file cannot be read within `bounds`, a zone is missing or does not apply, or the store refuses rows. Rows that were
/// appended before stay.
pub fn import_parquet(
    store: &dyn Store,
    table: &TableName,
    file: bytes::Bytes,
    bounds: ParquetBounds,
    zone: Option<&Zone>,
    rules: ImportRules,
    busy_timeout: Duration,
) -> Result<ImportCounts, BulkError> {
    let mut reader = ParquetRows::open(file, bounds)?;
    let columns = Columns::of(reader.schema(), &[], None)?;
    let mut local = LocalColumn::of(reader.schema().field(columns.ts), columns.ts, zone)?;
    let mut importer = Importer::new(store, table, columns, rules, busy_timeout);
    while let Some(rows) = reader.next_rows()? {
        match &mut local {
            Some(local) => importer.append(&local.in_utc(rows)?)?,
            None => importer.append(&rows)?,
        }
    }
    let mut counts = importer.sync()?;
    if let Some(local) = local {
        local.tell(&mut counts);
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Float64Array, Int64Array, StringArray, TimestampMillisecondArray, UInt64Array,
    };
    use model::limits::IngestLimits;
    use store::conformance::{self, scan_all};
    use store::{Maintenance, MemoryStore, Reader};

    use super::super::{Export, ExportFormat, ExportRequest};
    use super::*;

    fn rows() -> RecordBatch {
        let columns: Vec<(&str, Arc<dyn Array>)> = vec![
            ("site", Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), Some("b"), Some("b")]))),
            (
                "when",
                Arc::new(TimestampMillisecondArray::from(vec![Some(1), Some(2), None, Some(4), Some(5)])),
            ),
            ("n", Arc::new(Int64Array::from(vec![Some(-1), Some(2), Some(3), None, Some(5)]))),
            ("x", Arc::new(Float64Array::from(vec![Some(0.1), None, Some(3.0), None, None]))),
            ("ok", Arc::new(BooleanArray::from(vec![Some(true), None, None, None, None]))),
            ("big", Arc::new(UInt64Array::from(vec![None, None, None, None, Some(u64::MAX)]))),
            ("text", Arc::new(StringArray::from(vec![Some(""), Some("a,\"b\"\n"), None, None, None]))),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    const BOUNDS: ParquetBounds = ParquetBounds { held_bytes_max: 1024 * 1024, rows_max: 1_000 };

    /// Limits without a limit on time, because most tests begin at time 0.
    fn rules() -> ImportRules {
        ImportRules::of(&IngestLimits::default(), system_now(), true)
    }

    fn import(store: &MemoryStore, table: &str) -> ImportCounts {
        let rows = rows();
        let columns = Columns::of(rows.schema_ref(), &["site".to_owned()], Some("when")).unwrap();
        let mut importer = Importer::new(store, &conformance::table(table), columns, rules(), Duration::ZERO);
        importer.append(&rows).unwrap();
        importer.sync().unwrap()
    }

    fn export(store: &MemoryStore, table: &str, format: ExportFormat) -> Vec<u8> {
        let request = ExportRequest { matchers: Vec::new(), range: model::TimeRange::ALL, format };
        let mut out = Vec::new();
        Export::begin(store, &conformance::table(table), &request)
            .unwrap()
            .write(&mut out, &mut |_| {})
            .unwrap();
        out
    }

    #[test]
    fn every_row_is_imported_or_counted_with_its_reason() {
        let store = MemoryStore::new();
        let counts = import(&store, "t");
        let expected = ImportCounts {
            rows: 3,
            values: 7,
            without_time: 1,
            without_value: 1,
            too_large: 1,
            ..ImportCounts::default()
        };
        assert_eq!((counts.clone(), counts.skipped()), (expected, 2));
        let series = store.find_series(&SeriesKey::new("t", &[("site", "a")]).unwrap()).unwrap();
        let mut found = Vec::new();
        let mut visit = |row: store::ScannedRow<'_>| {
            found.push((
                row.ts.micros(),
                row.values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>(),
            ));
            ControlFlow::Continue(())
        };
        store.scan(&scan_all(series, &["n", "x", "ok", "text"]), &mut visit).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 1_000);
        assert!(store.find_series(&SeriesKey::new("t", &[]).unwrap()).is_some(), "a row without tags");
    }

    #[test]
    fn an_export_is_imported_unchanged() {
        let store = MemoryStore::new();
        import(&store, "t");
        let file = export(&store, "t", ExportFormat::Parquet);
        let other = MemoryStore::new();
        let counts = import_parquet(
            &other,
            &conformance::table("t"),
            file.into(),
            BOUNDS,
            None,
            rules(),
            Duration::ZERO,
        )
        .unwrap();
        assert_eq!((counts.rows, counts.values, counts.skipped()), (3, 7, 0));
        let (before, after) =
            (export(&store, "t", ExportFormat::Csv), export(&other, "t", ExportFormat::Csv));
        assert_eq!(String::from_utf8(before).unwrap(), String::from_utf8(after).unwrap());
    }

    #[test]
    fn rows_older_than_the_time_to_live_are_left_out_and_counted() {
        const DAY_MS: i64 = 86_400_000;
        let store = MemoryStore::new();
        let now_ms = system_now().millis();
        let times: Vec<i64> = [11, 9, 12, 0].iter().map(|days| now_ms - days * DAY_MS).collect();
        let columns: [(&str, Arc<dyn Array>); 2] = [
            ("ts", Arc::new(TimestampMillisecondArray::from(times.clone()))),
            ("n", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let import = |table: &str| {
            let columns = Columns::of(rows.schema_ref(), &[], None).unwrap();
            let mut importer =
                Importer::new(&store, &conformance::table(table), columns, rules(), Duration::ZERO);
            importer.append(&rows).unwrap();
            importer.sync().unwrap()
        };
        store.set_ttl(&conformance::table("t"), Some(Duration::from_secs(10 * 86_400))).unwrap();
        let counts = import("t");
        assert_eq!((counts.rows, counts.too_old, counts.skipped()), (2, 2, 2));
        let series = store.find_series(&SeriesKey::new("t", &[]).unwrap()).unwrap();
        let mut found = Vec::new();
        let mut visit = |row: store::ScannedRow<'_>| {
            found.push(row.ts.millis());
            ControlFlow::Continue(())
        };
        store.scan(&scan_all(series, &["n"]), &mut visit).unwrap();
        assert_eq!(found, [times[1], times[3]]);
        assert_eq!(import("kept_for_good").rows, 4);
    }

    /// All rows of a table as CSV.
    fn text_of(store: &MemoryStore, table: &str) -> String {
        String::from_utf8(export(store, table, ExportFormat::Csv)).unwrap()
    }

    #[test]
    fn tags_that_are_no_text_become_their_exact_text() {
        let columns: [(&str, Arc<dyn Array>); 5] = [
            ("ts", Arc::new(TimestampMillisecondArray::from(vec![1, 1, 1]))),
            ("unit", Arc::new(Int64Array::from(vec![Some(7), Some(8), None]))),
            ("kind", Arc::new(arrow_array::Float64Array::from(vec![1.5, 1.5, 1.5]))),
            ("day", Arc::new(arrow_array::Date32Array::from(vec![0, 0, 1]))),
            ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let tags = ["unit", "kind", "day"].map(str::to_owned);
        let columns = Columns::of(rows.schema_ref(), &tags, None).unwrap();
        let store = MemoryStore::new();
        let mut importer = Importer::new(&store, &conformance::table("t"), columns, rules(), Duration::ZERO);
        importer.append(&rows).unwrap();
        assert_eq!(importer.sync().unwrap().rows, 3);
        let text = text_of(&store, "t");
        for row in ["1.5,1970-01-01,7", "1.5,1970-01-01,8"] {
            let sorted = |row: &str| {
                let mut cells: Vec<_> = row.split(',').map(str::to_owned).collect();
                cells.sort();
                cells
            };
            let has = |line: &str| sorted(row).iter().all(|cell| sorted(line).contains(cell));
            assert!(text.lines().any(has), "{row} is not in\n{text}");
        }
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn times_of_a_wrong_unit_are_left_out_and_the_first_is_reported() {
        let columns: [(&str, Arc<dyn Array>); 2] = [
            // Milliseconds that were read as microseconds, and a plausible time.
            ("ts", Arc::new(Int64Array::from(vec![1_714_550_400_000, 1_714_550_400_000_000, i64::MAX]))),
            ("n", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let rules = ImportRules::of(&IngestLimits::default(), system_now(), false);
        let columns = Columns::of(rows.schema_ref(), &[], None).unwrap();
        let store = MemoryStore::new();
        let mut importer =
            Importer::new(&store, &conformance::table("t"), columns.clone(), rules, Duration::ZERO);
        importer.append(&rows).unwrap();
        let counts = importer.sync().unwrap();
        assert_eq!((counts.rows, counts.implausible, counts.time_out_of_range), (1, 1, 1));
        assert_eq!(counts.first_implausible_us, Some(1_714_550_400_000));
        let mut look = Importer::examine(&conformance::table("t"), columns, rules);
        look.append(&rows).unwrap();
        assert_eq!(look.sync().unwrap(), counts, "a look counts the same");
    }

    #[test]
    fn cut_rounded_and_skipped_values_are_counted() {
        use arrow_array::types::Int32Type;
        use arrow_array::{DictionaryArray, TimestampNanosecondArray};
        let words: DictionaryArray<Int32Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
        let columns: Vec<(&str, Arc<dyn Array>, bool)> = vec![
            ("ts", Arc::new(TimestampNanosecondArray::from(vec![1_999, 2_000, -1])), true),
            ("word", Arc::new(words), true),
            ("big", Arc::new(UInt64Array::from(vec![u64::MAX, 1, 2])), true),
            ("long", Arc::new(StringArray::from(vec!["x".repeat(70_000), "y".into(), "z".into()])), true),
        ];
        let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let columns = Columns::of(rows.schema_ref(), &[], None).unwrap();
        let store = MemoryStore::new();
        let mut importer = Importer::new(&store, &conformance::table("t"), columns, rules(), Duration::ZERO);
        importer.append(&rows).unwrap();
        let counts = importer.sync().unwrap();
        assert_eq!((counts.rows, counts.cut_times, counts.too_large, counts.too_long), (3, 2, 1, 1));
        assert_eq!((counts.values, counts.skipped(), counts.skipped_values()), (6, 0, 2));
        let text = text_of(&store, "t");
        assert!(text.contains("1969-12-31T23:59:59.999999Z,"), "{text}");
    }

    #[test]
    fn missing_columns_and_damaged_files_are_errors() {
        let rows = rows();
        let of = |tags: &[&str], ts| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Columns::of(rows.schema_ref(), &tags, ts)
        };
        assert!(of(&["nope"], Some("when")).unwrap_err().to_string().contains("nope"));
        assert!(of(&[], None).unwrap_err().to_string().contains("ts"));
        let store = MemoryStore::new();
        assert!(
            import_parquet(
                &store,
                &conformance::table("t"),
                b"PAR1".as_slice().into(),
                BOUNDS,
                None,
                rules(),
                Duration::ZERO
            )
            .is_err()
        );
        let request =
            ExportRequest { matchers: Vec::new(), range: model::TimeRange::ALL, format: ExportFormat::Csv };
        assert!(matches!(
            Export::begin(&store, &conformance::table("nope"), &request),
            Err(BulkError::NoTable { .. })
        ));
    }
}
