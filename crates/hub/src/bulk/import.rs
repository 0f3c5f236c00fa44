//! Arrow batches into a table: rows are appended and durable before they are counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use model::{Batch, SeriesId, SeriesKey, Timestamp, ValueRef};
use store::table::{COLUMN_KIND, COLUMN_NAME, TS_COLUMN, oldest_kept};
use store::{Blame, Durability, Sequence, Store, StoreError};

use super::BulkError;
use crate::clock::system_now;

/// Pause before a busy store is asked again, and between looks at what is durable.
const PAUSE: Duration = Duration::from_millis(2);

/// What the columns of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    ts: usize,
    tags: Vec<(usize, String)>,
    fields: Vec<(usize, String, bool)>,
    /// For each field the column with the exact integers of a column of numbers, as an export of a key with both kinds has it: a row
    /// that has one is not read twice.
    exact: Vec<Option<usize>>,
    /// Columns that are not imported, with the reason.
    pub skipped: Vec<(String, String)>,
}

impl Columns {
    /// Reads a schema: what an export wrote says what each column is; otherwise `tags` and `ts` name columns, and all
    /// others are fields.
    ///
    /// # Errors
    /// In words, when a named column is not there or there is no time.
    pub fn of(schema: &Schema, tags: &[String], ts: Option<&str>) -> Result<Self, BulkError> {
        let (tags_found, fields, exact) = (Vec::new(), Vec::new(), Vec::new());
        let mut columns = Self { ts: usize::MAX, tags: tags_found, fields, exact, skipped: Vec::new() };
        for tag in tags {
            if schema.index_of(tag).is_err() {
                return Err(BulkError::Asked(format!("there is no column {tag:?} for a tag")));
            }
        }
        let ts = ts.unwrap_or(TS_COLUMN);
        for (index, field) in schema.fields().iter().enumerate() {
            columns.column(index, field, tags, ts);
        }
        let of_type = |index: usize, of: &DataType| schema.field(index).data_type() == of;
        let exact = |(index, key, _): &(usize, String, bool)| {
            let is_exact = |(of_other, other, _): &&(usize, String, bool)| {
                other == key && of_type(*of_other, &DataType::Int64)
            };
            let found = columns.fields.iter().find(is_exact).filter(|_| of_type(*index, &DataType::Float64));
            found.map(|(of_other, ..)| *of_other)
        };
        columns.exact = columns.fields.iter().map(exact).collect();
        match columns.ts {
            usize::MAX => Err(BulkError::Asked(format!("there is no column {ts:?} with times; name it"))),
            _ => Ok(columns),
        }
    }

    fn column(&mut self, index: usize, field: &Field, tags: &[String], ts: &str) {
        let kind = field.metadata().get(COLUMN_KIND).map(String::as_str);
        let name = field.metadata().get(COLUMN_NAME).unwrap_or(field.name()).clone();
        let is_tag = kind == Some("tag") || tags.contains(field.name());
        let mut skip = |reason: &str| self.skipped.push((field.name().clone(), reason.to_owned()));
        if field.name() == ts || kind == Some("ts") {
            match field.data_type() {
                DataType::Timestamp(_, _) | DataType::Int64 => self.ts = index,
                _ => skip("it holds no times"),
            }
        } else if is_tag && is_text(field.data_type()) {
            self.tags.push((index, name));
        } else if is_tag {
            skip("a tag must be text");
        } else if field.name().starts_with("__") {
            skip("it is the store's own");
        } else if is_value(field.data_type()) {
            self.fields.push((index, name, kind == Some("json")));
        } else {
            skip(&format!("values of type {} are not understood", field.data_type()));
        }
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_value(data_type: &DataType) -> bool {
    use DataType::{Boolean, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let number = matches!(
        data_type,
        Boolean | Float32 | Float64 | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64
    );
    number || is_text(data_type)
}

/// What became of the rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportCounts {
    /// Rows that are durable.
    pub rows: u64,
    /// Their values.
    pub values: u64,
    /// Rows without a time.
    pub without_time: u64,
    /// Rows without any value.
    pub without_value: u64,
    /// Rows whose time is beyond what can be represented.
    pub time_out_of_range: u64,
    /// Rows older than their table keeps them.
    pub too_old: u64,
    /// Rows whose tags the store refuses, with the first reason.
    pub bad_tags: u64,
    /// The first of those reasons.
    pub bad_tags_reason: Option<String>,
    /// Lines that whoever reads the file does not understand.
    pub bad_lines: u64,
    /// What is wrong with the first of them.
    pub bad_lines_reason: Option<String>,
    /// Whole numbers beyond 63 bits; the other values of their rows were taken.
    pub too_large: u64,
}

impl ImportCounts {
    /// Adds the counts of another piece.
    pub fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.values += other.values;
        self.without_time += other.without_time;
        self.without_value += other.without_value;
        self.time_out_of_range += other.time_out_of_range;
        self.too_old += other.too_old;
        self.bad_tags += other.bad_tags;
        self.bad_lines += other.bad_lines;
        self.too_large += other.too_large;
        if self.bad_lines_reason.is_none() {
            self.bad_lines_reason.clone_from(&other.bad_lines_reason);
        }
        if self.bad_tags_reason.is_none() {
            self.bad_tags_reason.clone_from(&other.bad_tags_reason);
        }
    }

    /// Rows that were not imported.
    pub fn skipped(&self) -> u64 {
        let of_time = self.without_time + self.time_out_of_range + self.too_old;
        of_time + self.without_value + self.bad_tags + self.bad_lines
    }
}

/// Puts rows into one table of a store.
pub struct Importer<'a> {
    store: &'a dyn Store,
    table: String,
    columns: Columns,
    /// Older rows would go with the next look at what is too old.
    oldest: Option<Timestamp>,
    patience: Duration,
    /// Series by their tag values; forgotten when there are many.
    series: HashMap<Vec<Option<String>>, Result<SeriesId, String>>,
    batch: Batch,
    last: Sequence,
    counts: ImportCounts,
}

/// Series that an importer remembers.
const SERIES_REMEMBERED: usize = 100_000;

impl<'a> Importer<'a> {
    /// Begins an import. A store that is busy for longer than `patience` ends it. Which rows are too old for the table is decided by
    /// the time at which it begins.
    ///
    /// # Errors
    /// When the table's name breaks the rules.
    pub fn new(
        store: &'a dyn Store,
        table: &str,
        columns: Columns,
        patience: Duration,
    ) -> Result<Self, BulkError> {
        model::name::check_table(table).map_err(StoreError::from)?;
        let oldest = store.ttl(table).map(|ttl| oldest_kept(system_now(), ttl));
        let (table, series) = (table.to_owned(), HashMap::new());
        let (batch, counts) = (Batch::new(), ImportCounts::default());
        Ok(Self { store, table, columns, oldest, patience, series, batch, last: 0, counts })
    }

    /// Appends the rows of a batch. They are counted by [`sync`](Self::sync).
    ///
    /// # Errors
    /// When the store refuses them; rows of earlier calls are kept.
    pub fn append(&mut self, rows: &RecordBatch) -> Result<(), BulkError> {
        for row in 0..rows.num_rows() {
            self.row(rows, row)?;
            if self.batch.is_full() {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Waits until everything appended is durable and returns what became of the rows since the last call.
    ///
    /// # Errors
    /// When the store fails before that.
    pub fn sync(&mut self) -> Result<ImportCounts, BulkError> {
        self.send()?;
        loop {
            let progress = self.store.progress();
            if progress.reached(Durability::Fsync) >= self.last {
                return Ok(std::mem::take(&mut self.counts));
            }
            if progress.sealed {
                let cause = self.store.status().sealed.unwrap_or_else(|| "a write failed".to_owned());
                return Err(StoreError::Sealed { cause }.into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn send(&mut self) -> Result<(), BulkError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        self.last = retry(began, self.patience, || self.store.append(&self.batch, Durability::Fsync))?;
        self.batch.clear();
        Ok(())
    }

    fn row(&mut self, rows: &RecordBatch, row: usize) -> Result<(), BulkError> {
        let ts = match time(rows.column(self.columns.ts).as_ref(), row) {
            Ok(Some(ts)) => ts,
            Ok(None) => {
                self.counts.without_time += 1;
                return Ok(());
            }
            Err(()) => {
                self.counts.time_out_of_range += 1;
                return Ok(());
            }
        };
        if self.oldest.is_some_and(|oldest| ts < oldest) {
            self.counts.too_old += 1;
            return Ok(());
        }
        let series = match self.series_of(rows, row)? {
            Ok(series) => series,
            Err(reason) => {
                self.counts.bad_tags += 1;
                self.counts.bad_tags_reason.get_or_insert(reason);
                return Ok(());
            }
        };
        let mut builder = self.batch.builder();
        for ((index, key, json), exact) in self.columns.fields.iter().zip(&self.columns.exact) {
            if exact.is_some_and(|exact| rows.column(exact).is_valid(row)) {
                continue;
            }
            match value(rows.column(*index).as_ref(), row, *json) {
                Cell::Value(value) => builder.field(key, value),
                Cell::Null => {}
                Cell::TooLarge => self.counts.too_large += 1,
            }
        }
        let values = builder.open_fields() as u64;
        if values == 0 {
            self.counts.without_value += 1;
            return Ok(());
        }
        builder.row(series, ts);
        builder.finish();
        self.counts.rows += 1;
        self.counts.values += values;
        Ok(())
    }

    fn series_of(&mut self, rows: &RecordBatch, row: usize) -> Result<Result<SeriesId, String>, BulkError> {
        let tags = self.columns.tags.iter().map(|(index, _)| text(rows.column(*index).as_ref(), row));
        let values: Vec<Option<String>> = tags.map(|tag| tag.map(str::to_owned)).collect();
        if let Some(known) = self.series.get(&values) {
            return Ok(known.clone());
        }
        let names = self.columns.tags.iter().zip(&values);
        let tags: Vec<(&str, &str)> =
            names.filter_map(|((_, name), value)| Some((name.as_str(), value.as_deref()?))).collect();
        let series = match SeriesKey::new(&self.table, &tags) {
            Ok(key) => Ok(retry(Instant::now(), self.patience, || self.store.series(&key))?),
            Err(error) => Err(error.to_string()),
        };
        if self.series.len() >= SERIES_REMEMBERED {
            self.series.clear();
        }
        self.series.insert(values, series.clone());
        Ok(series)
    }
}

fn retry<T>(
    began: Instant,
    patience: Duration,
    mut attempt: impl FnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        match attempt() {
            Err(error) if error.blame() == Blame::Busy && began.elapsed() < patience => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

enum Cell<'a> {
    Value(ValueRef<'a>),
    Null,
    TooLarge,
}

fn time(column: &dyn Array, row: usize) -> Result<Option<Timestamp>, ()> {
    if column.is_null(row) {
        return Ok(None);
    }
    let micros = match column.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            column.as_primitive::<TimestampSecondType>().value(row).checked_mul(1_000_000)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            column.as_primitive::<TimestampMillisecondType>().value(row).checked_mul(1_000)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Some(column.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Some(column.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1_000))
        }
        _ => Some(column.as_primitive::<Int64Type>().value(row)),
    };
    micros.map(|micros| Some(Timestamp::from_micros(micros))).ok_or(())
}

fn text(column: &dyn Array, row: usize) -> Option<&str> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(column.as_string_view().value(row)),
        _ => None,
    }
}

fn value(column: &dyn Array, row: usize, json: bool) -> Cell<'_> {
    if column.is_null(row) {
        return Cell::Null;
    }
    let value = match column.data_type() {
        DataType::Boolean => ValueRef::Bool(column.as_boolean().value(row)),
        DataType::Int8 => ValueRef::I64(column.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => ValueRef::I64(column.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => ValueRef::I64(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => ValueRef::I64(column.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => ValueRef::I64(column.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => ValueRef::I64(column.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => ValueRef::I64(column.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => match i64::try_from(column.as_primitive::<UInt64Type>().value(row)) {
            Ok(number) => ValueRef::I64(number),
            Err(_) => return Cell::TooLarge,
        },
        DataType::Float32 => ValueRef::F64(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => ValueRef::F64(column.as_primitive::<Float64Type>().value(row)),
        _ => match text(column, row) {
            Some(text) if json => ValueRef::Json(text),
            Some(text) => ValueRef::String(text),
            None => return Cell::Null,
        },
    };
    Cell::Value(value)
}

impl Columns {
    /// The columns that are imported, with a schema that says what each is, so that [`of`](Self::of) needs no names.
    ///
    /// # Errors
    /// [`BulkError::Data`] when the batch is not one of the schema that these columns were read from.
    pub fn described(&self, rows: &RecordBatch) -> Result<RecordBatch, BulkError> {
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        let mut push = |index: usize, name: &str, kind: &str| {
            let pairs =
                [(COLUMN_KIND.to_owned(), kind.to_owned()), (COLUMN_NAME.to_owned(), name.to_owned())];
            let field = rows.schema_ref().field(index).clone().with_metadata(pairs.into_iter().collect());
            fields.push(field);
            columns.push(rows.column(index).clone());
        };
        push(self.ts, TS_COLUMN, "ts");
        self.tags.iter().for_each(|(index, name)| push(*index, name, "tag"));
        self.fields
            .iter()
            .for_each(|(index, name, json)| push(*index, name, if *json { "json" } else { "" }));
        let schema = std::sync::Arc::new(Schema::new(fields));
        RecordBatch::try_new(schema, columns).map_err(|error| BulkError::Data(error.to_string()))
    }
}

/// Imports a whole Parquet file whose schema says what its columns are.
///
/// # Errors
/// When the file cannot be read or the store refuses; what was appended before is kept.
pub fn import_parquet(
    store: &dyn Store,
    table: &str,
    file: bytes::Bytes,
    patience: Duration,
) -> Result<ImportCounts, BulkError> {
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    let data = |error: &dyn std::fmt::Display| BulkError::Data(format!("this is no Parquet file: {error}"));
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| data(&error))?;
    let columns = Columns::of(reader.schema(), &[], None)?;
    let mut importer = Importer::new(store, table, columns, patience)?;
    let reader = reader.with_batch_size(model::limits::EXPORT_BATCH_ROWS).build();
    for rows in reader.map_err(|error| data(&error))? {
        importer.append(&rows.map_err(|error| data(&error))?)?;
    }
    importer.sync()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use arrow_array::{
        BooleanArray, Float64Array, Int64Array, StringArray, TimestampMillisecondArray, UInt64Array,
    };
    use store::MemoryStore;
    use store::conformance::scan_all;

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

    fn import(store: &MemoryStore, table: &str) -> ImportCounts {
        let rows = rows();
        let columns = Columns::of(rows.schema_ref(), &["site".to_owned()], Some("when")).unwrap();
        let mut importer = Importer::new(store, table, columns, Duration::ZERO).unwrap();
        importer.append(&rows).unwrap();
        importer.sync().unwrap()
    }

    fn export(store: &MemoryStore, table: &str, format: ExportFormat) -> Vec<u8> {
        let request =
            ExportRequest { table: table.into(), matchers: Vec::new(), range: model::TimeRange::ALL, format };
        let mut out = Vec::new();
        Export::begin(store, &request).unwrap().write(&mut out, &mut |_| {}).unwrap();
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
    fn what_was_exported_is_imported_as_it_was() {
        let store = MemoryStore::new();
        import(&store, "t");
        let file = export(&store, "t", ExportFormat::Parquet);
        let other = MemoryStore::new();
        let counts = import_parquet(&other, "t", file.into(), Duration::ZERO).unwrap();
        assert_eq!((counts.rows, counts.values, counts.skipped()), (3, 7, 0));
        let (before, after) =
            (export(&store, "t", ExportFormat::Csv), export(&other, "t", ExportFormat::Csv));
        assert_eq!(String::from_utf8(before).unwrap(), String::from_utf8(after).unwrap());
    }

    #[test]
    fn rows_that_the_table_would_not_keep_are_left_out_and_counted() {
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
            let mut importer = Importer::new(&store, table, columns, Duration::ZERO).unwrap();
            importer.append(&rows).unwrap();
            importer.sync().unwrap()
        };
        store.set_ttl("t", Some(Duration::from_secs(10 * 86_400))).unwrap();
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

    #[test]
    fn names_that_are_not_there_and_broken_files_are_told() {
        let rows = rows();
        let of = |tags: &[&str], ts| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Columns::of(rows.schema_ref(), &tags, ts)
        };
        assert!(of(&["nope"], Some("when")).unwrap_err().to_string().contains("nope"));
        assert!(of(&[], None).unwrap_err().to_string().contains("ts"));
        let store = MemoryStore::new();
        assert!(import_parquet(&store, "t", b"PAR1".as_slice().into(), Duration::ZERO).is_err());
        let request = ExportRequest {
            table: "nope".into(),
            matchers: Vec::new(),
            range: model::TimeRange::ALL,
            format: ExportFormat::Csv,
        };
        assert!(matches!(Export::begin(&store, &request), Err(BulkError::NoTable(_))));
    }
}
