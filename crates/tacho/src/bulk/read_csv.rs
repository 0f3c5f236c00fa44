//! CSV files as Arrow batches. A column has one type: a first pass over the file finds it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use model::limits::EXPORT_BATCH_ROWS;

use crate::import::TimeFormat;

/// What the columns of a file hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No cell so far.
    Unknown,
    Bool,
    I64,
    F64,
    Text,
    /// Text whatever it looks like.
    Tag,
    Time,
}

/// A file that is being read the second time.
pub(super) struct CsvBatches {
    path: PathBuf,
    reader: csv::Reader<Box<dyn Read + Send>>,
    kinds: Vec<Kind>,
    schema: SchemaRef,
    format: TimeFormat,
    /// Rows whose time is not understood, and the first of them.
    pub(super) bad_times: u64,
    pub(super) first_bad_time: Option<String>,
}

fn open(path: &Path) -> anyhow::Result<csv::Reader<Box<dyn Read + Send>>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let reader: Box<dyn Read + Send> = Box::new(BufReader::with_capacity(1024 * 1024, file));
    Ok(csv::ReaderBuilder::new().from_reader(reader))
}

impl CsvBatches {
    /// Reads the file once. `tags` and `ts` name columns.
    pub(super) fn open(path: &Path, tags: &[String], ts: &str, format: TimeFormat) -> anyhow::Result<Self> {
        let reading = || format!("cannot read {}", path.display());
        let mut reader = open(path)?;
        let names: Vec<String> = reader.headers().with_context(reading)?.iter().map(str::to_owned).collect();
        let mut kinds: Vec<Kind> = names
            .iter()
            .map(|name| match name {
                name if name == ts => Kind::Time,
                name if tags.contains(name) => Kind::Tag,
                _ => Kind::Unknown,
            })
            .collect();
        if !kinds.contains(&Kind::Time) {
            bail!("{} has no column {ts:?} with times; name it with --ts-column", path.display());
        }
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).with_context(reading)? {
            for (kind, cell) in kinds.iter_mut().zip(&record) {
                *kind = widened(*kind, cell);
            }
        }
        let fields = names.iter().zip(&kinds).map(|(name, kind)| Field::new(name, data_type(*kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (bad_times, first_bad_time) = (0, None);
        Ok(Self {
            path: path.to_owned(),
            reader: open(path)?,
            kinds,
            schema,
            format,
            bad_times,
            first_bad_time,
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes of the file that were read.
    pub(super) fn position(&self) -> u64 {
        self.reader.position().byte()
    }

    /// The next rows; `None` after the last.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        let mut columns: Vec<Column> = self.kinds.iter().map(|kind| Column::new(*kind)).collect();
        let mut record = csv::StringRecord::new();
        let mut rows = 0;
        while rows < EXPORT_BATCH_ROWS {
            let reading = || format!("cannot read {}", self.path.display());
            if !self.reader.read_record(&mut record).with_context(reading)? {
                break;
            }
            rows += 1;
            for (column, cell) in columns.iter_mut().zip(&record) {
                if !column.push(cell, &self.format) {
                    self.bad_times += 1;
                    self.first_bad_time.get_or_insert_with(|| cell.to_owned());
                }
            }
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns = columns.into_iter().map(Column::finish).collect();
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

/// The narrowest kind that takes what was there and this cell.
fn widened(kind: Kind, cell: &str) -> Kind {
    if cell.is_empty() || matches!(kind, Kind::Tag | Kind::Time | Kind::Text) {
        return kind;
    }
    let found = if cell == "true" || cell == "false" {
        Kind::Bool
    } else if cell.parse::<i64>().is_ok() {
        Kind::I64
    } else if cell.parse::<f64>().is_ok() {
        Kind::F64
    } else {
        Kind::Text
    };
    match (kind, found) {
        (Kind::Unknown, found) => found,
        (kind, found) if kind == found => kind,
        (Kind::I64, Kind::F64) | (Kind::F64, Kind::I64) => Kind::F64,
        _ => Kind::Text,
    }
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Bool => DataType::Boolean,
        Kind::I64 => DataType::Int64,
        Kind::F64 => DataType::Float64,
        Kind::Unknown | Kind::Text | Kind::Tag => DataType::Utf8,
        Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
    }
}

enum Column {
    Bool(BooleanBuilder),
    I64(Int64Builder),
    F64(Float64Builder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder),
}

impl Column {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::I64 => Self::I64(Int64Builder::new()),
            Kind::F64 => Self::F64(Float64Builder::new()),
            Kind::Unknown | Kind::Text | Kind::Tag => Self::Text(StringBuilder::new()),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::new()),
        }
    }

    /// `false` when a time is not understood; the row has none then.
    fn push(&mut self, cell: &str, format: &TimeFormat) -> bool {
        let text = Some(cell).filter(|cell| !cell.is_empty());
        match self {
            Self::Bool(cells) => cells.append_option(text.map(|cell| cell == "true")),
            Self::I64(cells) => cells.append_option(text.and_then(|cell| cell.parse().ok())),
            Self::F64(cells) => cells.append_option(text.and_then(|cell| cell.parse().ok())),
            Self::Text(cells) => cells.append_option(text),
            Self::Time(cells) => {
                let time = text.map(|cell| format.parse_us(cell));
                let understood = !matches!(time, Some(Err(_)));
                cells.append_option(time.and_then(Result::ok));
                return understood;
            }
        }
        true
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Bool(mut cells) => Arc::new(cells.finish()),
            Self::I64(mut cells) => Arc::new(cells.finish()),
            Self::F64(mut cells) => Arc::new(cells.finish()),
            Self::Text(mut cells) => Arc::new(cells.finish()),
            Self::Time(mut cells) => Arc::new(cells.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_narrowest_type_that_holds_all_its_cells() {
        let kind = |cells: &[&str]| cells.iter().fold(Kind::Unknown, |kind, cell| widened(kind, cell));
        assert_eq!(kind(&["1", "", "-2"]), Kind::I64);
        assert_eq!(kind(&["1", "2.5"]), Kind::F64);
        assert_eq!(kind(&["2.5", "1", "NaN"]), Kind::F64);
        assert_eq!(kind(&["true", "false"]), Kind::Bool);
        assert_eq!(kind(&["true", "1"]), Kind::Text);
        assert_eq!(kind(&["1", "x", "2"]), Kind::Text);
        assert_eq!(kind(&["", ""]), Kind::Unknown);
        assert_eq!(widened(Kind::Tag, "7"), Kind::Tag);
    }

    #[test]
    fn a_file_becomes_batches() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        std::fs::write(&path, "site,ts,n,x,t\n7,2024-05-01T08:00:00Z,1,1,a\n8,yesterday,,2.5,\n").unwrap();
        let mut file = CsvBatches::open(&path, &["site".to_owned()], "ts", TimeFormat::Rfc3339).unwrap();
        let batch = file.next().unwrap().unwrap();
        let types: Vec<_> =
            batch.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
        assert_eq!(types[0], "Utf8");
        assert_eq!(types[2..], ["Int64", "Float64", "Utf8"]);
        assert_eq!((batch.num_rows(), batch.column(1).null_count(), batch.column(2).null_count()), (2, 1, 1));
        assert_eq!((file.bad_times, file.first_bad_time.as_deref()), (1, Some("yesterday")));
        assert!(file.next().unwrap().is_none());
        assert!(CsvBatches::open(&path, &[], "time", TimeFormat::Rfc3339).is_err());
    }
}
