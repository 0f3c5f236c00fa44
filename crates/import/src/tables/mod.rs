//! Imports of tables: files with tag columns.

mod csv;
mod lines;
mod parquet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use hub::bulk::{Columns, ImportCounts, ImportRules, Importer, Zone};
use indicatif::HumanCount;
use model::TableName;
use serde_json::{Value, json};

use crate::csv_counts::CsvCounts;
use crate::csv_file::{Dialect, delimiter_name};
use crate::duplicate_rows::DuplicateRows;
use crate::file_format::{FileFormat, Precision};
use crate::limits::{IMPORT_PIECE_ROWS, IMPORT_PIECES_AHEAD};
use crate::outcome::{FileOutcome, hint, totals};
use crate::progress::{Counted, StartProgress};
use crate::read_ahead::read_ahead;
use crate::sink::RowSink;
use crate::time::{TimeFormat, TimeReader};
use csv::CsvBatches;
use lines::LineFile;
use parquet::ParquetFile;

/// An import of files into tables.
pub struct TableImport<'a> {
    /// The table. Line protocol names its own tables.
    pub table: &'a str,
    /// The format of the files.
    pub format: FileFormat,
    /// The unit of the times of line protocol.
    pub precision: Precision,
    /// The names of tag columns.
    pub tags: &'a [String],
    /// The column with the times; `None` is `ts`.
    pub ts: Option<&'a str>,
    /// The format of the times, if the option is given.
    pub ts_format: Option<&'a TimeFormat>,
    /// The zone of times without an offset.
    pub zone: Option<Zone>,
    /// The CSV form files.
    pub dialect: Dialect,
    pub files: &'a [PathBuf],
    /// The limits on rows.
    pub rules: ImportRules,
    /// Shows the progress.
    pub progress: &'a StartProgress,
}

/// Makes the sink of a table.
pub type MakeSink<'s> = dyn FnMut(&str, Columns) -> anyhow::Result<Box<dyn RowSink + 's>> + 's;

impl TableImport<'_> {
    /// The outcome that an import would have.
    pub fn examine(&self) -> anyhow::Result<Vec<FileOutcome>> {
        self.all(&mut |table, columns| {
            Ok(Box::new(Importer::examine(&TableName::try_from(table)?, columns, self.rules)))
        })
    }

    /// Imports all files.
    pub fn all(&self, make: &mut MakeSink<'_>) -> anyhow::Result<Vec<FileOutcome>> {
        let mut all = Vec::new();
        for path in self.files {
            let outcome = match self.format {
                FileFormat::Lines => self.line_file(path, make),
                FileFormat::Csv | FileFormat::Parquet => self.file(path, make),
            };
            all.push(outcome.with_context(|| {
                format!("{}: stopped; importing the same files again is safe, a row is known by its tags and time", path.display())
            })?);
        }
        Ok(all)
    }

    fn file(&self, path: &Path, make: &mut MakeSink<'_>) -> anyhow::Result<FileOutcome> {
        let mut source = self.open(path)?;
        let columns = Columns::of(&source.schema(), self.tags, self.ts)?;
        let skipped_columns = columns.skipped.clone();
        let mut repeated = DuplicateRows::new(false);
        let mut sink = make(self.table, columns.clone())?;
        let mut progress = (self.progress)(Counted::Bytes);
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let mut unsynced = 0;
        let piece = || Ok(source.next()?.map(|rows| (rows, source.position(bytes))));
        read_ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((rows, position)) = next()? {
                repeated.batch(self.table, &columns, &rows);
                sink.rows(&rows)?;
                unsynced += rows.num_rows();
                if unsynced >= IMPORT_PIECE_ROWS {
                    unsynced = 0;
                    counts.add(&sink.sync()?);
                }
                progress(position, bytes);
            }
            anyhow::Ok(())
        })?;
        counts.add(&sink.sync()?);
        let seen = source.counts();
        let unit = match self.ts_format {
            Some(TimeFormat::Epoch(unit)) => Some(*unit),
            _ => None,
        };
        let first = counts.first_implausible_us;
        let hint = unit.and_then(|unit| hint(first, unit, &self.rules, "--ts-format"));
        Ok(FileOutcome {
            path: path.to_owned(),
            counts,
            seen,
            skipped_columns,
            repeated: repeated.rows,
            repeated_is_least: repeated.is_least,
            hint,
            delimiter: source.delimiter(),
        })
    }

    fn line_file(&self, path: &Path, make: &mut MakeSink<'_>) -> anyhow::Result<FileOutcome> {
        let mut file = LineFile::open(path, self.precision)?;
        let mut repeated = DuplicateRows::new(true);
        let mut progress = (self.progress)(Counted::Bytes);
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let piece = || Ok(file.next()?.map(|tables| (tables, file.position())));
        read_ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((tables, position)) = next()? {
                for (table, rows) in tables {
                    let columns = Columns::of(rows.schema_ref(), &[], None)?;
                    repeated.batch(&table, &columns, &rows);
                    let mut sink = make(&table, columns)?;
                    sink.rows(&rows)?;
                    counts.add(&sink.sync()?);
                }
                progress(position, bytes);
            }
            anyhow::Ok(())
        })?;
        (counts.bad_lines, counts.bad_lines_reason) = (file.bad, file.first_bad);
        counts.cut_times += file.cut_times;
        let first = counts.first_implausible_us;
        Ok(FileOutcome {
            path: path.to_owned(),
            counts,
            repeated: repeated.rows,
            repeated_is_least: repeated.is_least,
            hint: hint(first, self.precision.unit(), &self.rules, "--precision"),
            ..FileOutcome::default()
        })
    }

    fn open(&self, path: &Path) -> anyhow::Result<Source> {
        match self.format {
            FileFormat::Lines => bail!("BUG: lines are read another way"),
            FileFormat::Csv => {
                let ts = self.ts.unwrap_or(store::table::TS_COLUMN);
                let format = self.ts_format.cloned().unwrap_or(TimeFormat::Rfc3339);
                let times = TimeReader { format, zone: self.zone.clone() };
                Ok(Source::Csv(CsvBatches::open(path, self.tags, ts, &times, &self.dialect)?))
            }
            FileFormat::Parquet => {
                Ok(Source::Parquet(ParquetFile::open(path, self.ts, self.ts_format, self.zone.as_ref())?))
            }
        }
    }

    /// The report as JSON. `stored` indicates whether the rows were imported or only examined.
    pub fn json(&self, outcomes: &[FileOutcome], stored: bool) -> Value {
        let [rows, values, skipped_rows, skipped_values] = totals(outcomes);
        let files: Vec<_> = outcomes.iter().map(FileOutcome::json).collect();
        json!({
            "table": self.named_table(),
            "stored": stored,
            "rows": rows,
            "values": values,
            "skippedRows": skipped_rows,
            "skippedValues": skipped_values,
            "files": files,
        })
    }

    /// The last line of a report.
    pub fn summary(&self, outcomes: &[FileOutcome]) -> String {
        let [rows, _, skipped_rows, skipped_values] = totals(outcomes);
        let into = self
            .named_table()
            .map_or_else(|| "the tables that they name".to_owned(), |table| format!("{table:?}"));
        let values = match skipped_values {
            0 => String::new(),
            count => format!(", {} values of other rows skipped", HumanCount(count)),
        };
        format!(
            "imported  {} rows into {into}, {} skipped{values}",
            HumanCount(rows),
            HumanCount(skipped_rows)
        )
    }

    /// The table of all rows; `None` if lines name their tables.
    fn named_table(&self) -> Option<&str> {
        match self.format {
            FileFormat::Lines => None,
            FileFormat::Csv | FileFormat::Parquet => Some(self.table),
        }
    }
}

enum Source {
    Csv(CsvBatches),
    Parquet(ParquetFile),
}

impl Source {
    fn schema(&self) -> SchemaRef {
        match self {
            Self::Csv(csv) => Arc::clone(csv.schema()),
            Self::Parquet(file) => Arc::clone(file.schema()),
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        match self {
            Self::Csv(csv) => csv.next(),
            Self::Parquet(file) => file.next(),
        }
    }

    /// Approximate number of the file's bytes that are read.
    fn position(&self, bytes: u64) -> u64 {
        match self {
            Self::Csv(csv) => csv.position(),
            Self::Parquet(file) => file.position(bytes),
        }
    }

    fn counts(&self) -> CsvCounts {
        match self {
            Self::Csv(csv) => csv.counts.clone(),
            Self::Parquet(file) => CsvCounts { times: file.counts.clone(), ..CsvCounts::default() },
        }
    }

    fn delimiter(&self) -> Option<String> {
        match self {
            Self::Csv(csv) if csv.delimiter() != b',' => Some(delimiter_name(csv.delimiter())),
            _ => None,
        }
    }
}
