//! `tacho import --table`: files with tag columns into a table, straight into a stopped directory's store or through the
//! bulk door of a running server.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use hub::bulk::{Columns, ImportCounts, Importer};
use indicatif::HumanCount;
use model::limits::EXPORT_BATCH_ROWS;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde_json::Value;

use super::ahead::ahead;
use super::read_csv::CsvBatches;
use super::read_lines::{LineFile, Precision};
use crate::cli::output::say;
use crate::client::{Api, ApiError, ServerArgs, escaped};
use crate::config::Config;
use crate::import::{TimeFormat, pause_after};
use crate::limits::{IMPORT_ATTEMPTS_MAX, IMPORT_PIECE_BYTES, IMPORT_PIECE_ROWS, IMPORT_PIECES_AHEAD};
use crate::progress::Progress;
use crate::upkeep::{open_store, stopped_or_running};

/// How long a stopped directory's store may be busy with a flush.
const PATIENCE: Duration = Duration::from_secs(600);

/// What to import, and what its columns are.
pub(crate) struct BulkImport<'a> {
    /// The table; lines name theirs.
    pub table: &'a str,
    /// How the files are written.
    pub format: FileFormat,
    /// Unit of the times of lines.
    pub precision: Precision,
    /// Columns that are tags.
    pub tags: &'a [String],
    /// Column with the times; `ts` if none is named.
    pub ts: Option<&'a str>,
    /// How the times of CSV files are written.
    pub ts_format: &'a TimeFormat,
    /// The files.
    pub files: &'a [PathBuf],
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FileFormat {
    /// CSV, with a header
    Csv,
    /// Parquet
    Parquet,
    /// InfluxDB's line protocol; each measurement is a table
    Lines,
}

impl FileFormat {
    /// What the endings of files say.
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let is_parquet = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "parquet");
        if files.iter().all(is_parquet) { Self::Parquet } else { Self::Csv }
    }
}

/// Runs the import on the directory or the server.
pub(crate) fn run(import: &BulkImport<'_>, server: &ServerArgs, config: &Config) -> anyhow::Result<()> {
    let done = stopped_or_running(server, config, || {
        let store = open_store(config)?;
        let counts = import.all(&mut |table, columns| {
            let importer = Importer::new(store.as_ref(), table, columns, PATIENCE)?;
            Ok(Box::new(IntoStore { importer }))
        });
        let closed = store.close();
        let counts = counts?;
        closed.context(
            "the rows were imported, but the store did not close cleanly; the next start recovers it",
        )?;
        Ok(counts)
    })?;
    let counts = match done {
        Ok(counts) => counts,
        Err(api) => import.all(&mut |table, columns| Ok(Box::new(IntoServer::new(&api, table, columns))))?,
    };
    say(total(&counts, import))
}

/// Takes rows and says what became of them.
trait Sink {
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()>;
    /// Everything since the last call is durable after it.
    fn sync(&mut self) -> anyhow::Result<ImportCounts>;
}

/// Makes a sink of a table.
type MakeSink<'s> = dyn FnMut(&str, Columns) -> anyhow::Result<Box<dyn Sink + 's>> + 's;

impl BulkImport<'_> {
    fn all(&self, make: &mut MakeSink<'_>) -> anyhow::Result<ImportCounts> {
        let mut all = ImportCounts::default();
        for path in self.files {
            let counts = match self.format {
                FileFormat::Lines => self.line_file(path, make),
                FileFormat::Csv | FileFormat::Parquet => self.file(path, make),
            };
            let counts = counts.with_context(|| {
                format!("{}: stopped; importing the same files again is safe, a row is known by its tags and time", path.display())
            })?;
            all.add(&counts);
        }
        Ok(all)
    }

    fn file(&self, path: &Path, make: &mut MakeSink<'_>) -> anyhow::Result<ImportCounts> {
        let mut source = self.open(path)?;
        let columns = Columns::of(&source.schema(), self.tags, self.ts)?;
        for (column, reason) in &columns.skipped {
            say(format_args!("{}: the column {column:?} is skipped: {reason}", path.display()))?;
        }
        let mut sink = make(self.table, columns)?;
        let mut progress = Progress::new("importing");
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let mut unsynced = 0;
        let piece = || Ok(source.next()?.map(|rows| (rows, source.position(bytes))));
        ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((rows, position)) = next()? {
                sink.rows(&rows)?;
                unsynced += rows.num_rows();
                if unsynced >= IMPORT_PIECE_ROWS {
                    unsynced = 0;
                    counts.add(&sink.sync()?);
                }
                progress.at(position, bytes);
            }
            anyhow::Ok(())
        })?;
        counts.add(&sink.sync()?);
        drop(progress);
        say(format_args!("{}: {}", path.display(), outcome(&counts)))?;
        if let Source::Csv(csv) = &source
            && let Some(first) = &csv.first_bad_time
        {
            say(format_args!(
                "  {} times are not understood, such as {first:?}; see --ts-format",
                csv.bad_times
            ))?;
        }
        Ok(counts)
    }

    fn line_file(&self, path: &Path, make: &mut MakeSink<'_>) -> anyhow::Result<ImportCounts> {
        let mut file = LineFile::open(path, self.precision)?;
        let mut progress = Progress::new("importing");
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let piece = || Ok(file.next()?.map(|tables| (tables, file.position())));
        ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((tables, position)) = next()? {
                for (table, rows) in tables {
                    let mut sink = make(&table, Columns::of(rows.schema_ref(), &[], None)?)?;
                    sink.rows(&rows)?;
                    counts.add(&sink.sync()?);
                }
                progress.at(position, bytes);
            }
            anyhow::Ok(())
        })?;
        (counts.bad_lines, counts.bad_lines_reason) = (file.bad, file.first_bad);
        drop(progress);
        say(format_args!("{}: {}", path.display(), outcome(&counts)))?;
        Ok(counts)
    }

    fn open(&self, path: &Path) -> anyhow::Result<Source> {
        match self.format {
            FileFormat::Lines => bail!("BUG: lines are read another way"),
            FileFormat::Csv => {
                let ts = self.ts.unwrap_or(store::table::TS_COLUMN);
                Ok(Source::Csv(CsvBatches::open(path, self.tags, ts, self.ts_format.clone())?))
            }
            FileFormat::Parquet => {
                let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                let reader = ParquetRecordBatchReaderBuilder::try_new(file)
                    .with_context(|| format!("{} is no Parquet file", path.display()))?;
                let rows = reader.metadata().file_metadata().num_rows().cast_unsigned();
                let schema = reader.schema().clone();
                let reader = reader.with_batch_size(EXPORT_BATCH_ROWS).build()?;
                Ok(Source::Parquet { reader, schema, rows, done: 0 })
            }
        }
    }
}

enum Source {
    Csv(CsvBatches),
    Parquet { reader: ParquetRecordBatchReader, schema: SchemaRef, rows: u64, done: u64 },
}

impl Source {
    fn schema(&self) -> SchemaRef {
        match self {
            Self::Csv(csv) => Arc::clone(csv.schema()),
            Self::Parquet { schema, .. } => Arc::clone(schema),
        }
    }

    fn next(&mut self) -> anyhow::Result<Option<RecordBatch>> {
        match self {
            Self::Csv(csv) => csv.next(),
            Self::Parquet { reader, done, .. } => {
                let rows = reader.next().transpose().context("the file cannot be read")?;
                *done += rows.as_ref().map_or(0, |rows| rows.num_rows() as u64);
                Ok(rows)
            }
        }
    }

    /// About how many of the file's bytes are done.
    fn position(&self, bytes: u64) -> u64 {
        match self {
            Self::Csv(csv) => csv.position(),
            Self::Parquet { rows, done, .. } => {
                (u128::from(bytes) * u128::from(*done) / u128::from((*rows).max(1))) as u64
            }
        }
    }
}

struct IntoStore<'a> {
    importer: Importer<'a>,
}

impl Sink for IntoStore<'_> {
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()> {
        Ok(self.importer.append(rows)?)
    }

    fn sync(&mut self) -> anyhow::Result<ImportCounts> {
        Ok(self.importer.sync()?)
    }
}

/// Sends pieces as Parquet files, each acknowledged before the next.
struct IntoServer<'a> {
    api: &'a Api,
    path: String,
    columns: Columns,
    piece: Option<ArrowWriter<Vec<u8>>>,
    counts: ImportCounts,
}

impl<'a> IntoServer<'a> {
    fn new(api: &'a Api, table: &str, columns: Columns) -> Self {
        let path = format!("/api/tacho/import?table={}", escaped(table));
        Self { api, path, columns, piece: None, counts: ImportCounts::default() }
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let Some(piece) = self.piece.take() else { return Ok(()) };
        let bytes = piece.into_inner()?;
        for attempt in 1.. {
            match self.api.post_for_stream(&self.path, &bytes) {
                Ok(mut answer) => {
                    let mut text = String::new();
                    std::io::Read::read_to_string(&mut answer.body, &mut text)?;
                    let counts = serde_json::from_str(&text).ok().and_then(|json| counts_of(&json));
                    self.counts.add(&counts.context("the server's answer is not understood")?);
                    return Ok(());
                }
                Err(error) => match pause_after(&error).filter(|_| attempt < IMPORT_ATTEMPTS_MAX) {
                    Some(pause) => std::thread::sleep(pause),
                    None => return Err(told(error)),
                },
            }
        }
        Ok(())
    }
}

fn told(error: ApiError) -> anyhow::Error {
    anyhow::Error::new(error).context("the server did not take the rows")
}

impl Sink for IntoServer<'_> {
    fn rows(&mut self, rows: &RecordBatch) -> anyhow::Result<()> {
        let rows = self.columns.described(rows)?;
        let piece = match &mut self.piece {
            Some(piece) => piece,
            none => none.insert(ArrowWriter::try_new(Vec::new(), rows.schema(), None)?),
        };
        piece.write(&rows)?;
        if piece.in_progress_size() + piece.bytes_written() >= IMPORT_PIECE_BYTES {
            self.send()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> anyhow::Result<ImportCounts> {
        self.send()?;
        Ok(std::mem::take(&mut self.counts))
    }
}

fn counts_of(json: &Value) -> Option<ImportCounts> {
    let number = |name: &str| json[name].as_u64();
    Some(ImportCounts {
        rows: number("rows")?,
        values: number("values")?,
        without_time: number("withoutTime")?,
        without_value: number("withoutValue")?,
        time_out_of_range: number("timeOutOfRange")?,
        too_old: number("tooOld")?,
        bad_tags: number("badTags")?,
        bad_tags_reason: json["badTagsReason"].as_str().map(str::to_owned),
        too_large: number("tooLarge")?,
        // Known where the file is read.
        bad_lines: 0,
        bad_lines_reason: None,
    })
}

fn outcome(counts: &ImportCounts) -> String {
    let mut text =
        format!("{} rows with {} values imported", HumanCount(counts.rows), HumanCount(counts.values));
    let reasons = [
        (counts.without_time, "have no time"),
        (counts.without_value, "have no value"),
        (counts.time_out_of_range, "have a time that cannot be represented"),
        (counts.too_old, "are older than their table keeps rows"),
        (counts.bad_tags, "have tags that are refused"),
        (counts.bad_lines, "are not understood"),
    ];
    for (count, reason) in reasons.into_iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!("\n  skipped: {} rows {reason}", HumanCount(count)));
    }
    for reason in counts.bad_tags_reason.iter().chain(&counts.bad_lines_reason) {
        text.push_str(&format!(" ({reason})"));
    }
    if counts.too_large > 0 {
        let count = HumanCount(counts.too_large);
        text.push_str(&format!(
            "\n  skipped: {count} values beyond 63 bits; the other values of their rows were taken"
        ));
    }
    text
}

fn total(counts: &ImportCounts, import: &BulkImport<'_>) -> String {
    let into = match import.format {
        FileFormat::Lines => "the tables that they name".to_owned(),
        FileFormat::Csv | FileFormat::Parquet => format!("{:?}", import.table),
    };
    format!(
        "imported  {} rows into {into}, {} skipped",
        HumanCount(counts.rows),
        HumanCount(counts.skipped())
    )
}
