//! `tacho import --table`: files with tag columns into a table, straight into a stopped directory's store or through the
//! bulk door of a running server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use hub::bulk::{Columns, ImportCounts, ImportRules, Importer, Zone};
use indicatif::HumanCount;
use serde_json::json;

use super::ahead::ahead;
use super::outcome::{Care, FileOutcome, hint, totals};
use super::read_csv::{CsvBatches, CsvCounts};
use super::read_lines::{LineFile, Precision};
use super::read_parquet::ParquetFile;
use super::repeated::Repeated;
use super::sink::{IntoServer, Sink};
use crate::cli::output::say;
use crate::client::ServerArgs;
use crate::config::Config;
use crate::import::{Dialect, TimeFormat, TimeReader, delimiter_name};
use crate::limits::{IMPORT_PIECE_ROWS, IMPORT_PIECES_AHEAD};
use crate::progress::Progress;
use crate::upkeep::{open_store, stopped_or_running};

/// How long a stopped directory's store may be busy with a flush.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The type of times in a batch: microseconds since 1970, UTC.
pub(crate) fn ts_type() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

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
    /// How the times are written, if that was said.
    pub ts_format: Option<&'a TimeFormat>,
    /// Of times without an offset.
    pub zone: Option<Zone>,
    /// Form of CSV files.
    pub dialect: Dialect,
    /// The files.
    pub files: &'a [PathBuf],
    /// What to do when something cannot be imported.
    pub care: Care,
    /// What is taken of a row.
    pub rules: ImportRules,
    /// Whether times may be of any year.
    pub any_time: bool,
    /// Whether the report is JSON.
    pub json: bool,
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
    /// What the endings of files say; an error when they say different things.
    pub(crate) fn of(files: &[PathBuf]) -> Result<Self, String> {
        let of = |file: &PathBuf| match file.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => Self::Parquet,
            Some("lp" | "line") => Self::Lines,
            _ => Self::Csv,
        };
        let mut formats = files.iter().map(of);
        let first = formats.next().unwrap_or(Self::Csv);
        match formats.all(|format| format == first) {
            true => Ok(first),
            false => Err("the files are of different kinds; import those of one kind at a time".to_owned()),
        }
    }
}

/// Runs the import on the directory or the server.
pub(crate) fn run(import: &BulkImport<'_>, server: &ServerArgs, config: &Config) -> anyhow::Result<()> {
    if import.care == Care::Strict {
        let examined = import.examine()?;
        if !examined.iter().all(FileOutcome::is_exact) {
            import.report(&examined, false)?;
            bail!(
                "not everything in the files can be stored as it is; because of --strict nothing was imported"
            );
        }
    }
    let done = stopped_or_running(server, config, || {
        let store = open_store(config)?;
        let outcomes = import.all(&mut |table, columns| {
            Ok(Box::new(Importer::new(store.as_ref(), table, columns, import.rules, PATIENCE)?))
        });
        let closed = store.close();
        let outcomes = outcomes?;
        closed.context(
            "the rows were imported, but the store did not close cleanly; the next start recovers it",
        )?;
        Ok(outcomes)
    })?;
    let outcomes = match done {
        Ok(outcomes) => outcomes,
        Err(api) => import.all(&mut |table, columns| {
            Ok(Box::new(IntoServer::new(&api, table, columns, import.any_time)))
        })?,
    };
    import.report(&outcomes, true)?;
    verdict(&outcomes, import.care)
}

/// The command fails when something was left out, unless that was expected.
pub(crate) fn verdict(outcomes: &[FileOutcome], care: Care) -> anyhow::Result<()> {
    if care == Care::Lenient || outcomes.iter().all(FileOutcome::is_whole) {
        return Ok(());
    }
    let [_, _, rows, values] = totals(outcomes);
    let columns: usize = outcomes.iter().map(|file| file.skipped_columns.len()).sum();
    let what = [(rows, "rows"), (values, "values"), (columns as u64, "columns")];
    let what = what.into_iter().filter(|(count, _)| *count > 0);
    let what: Vec<String> = what.map(|(count, name)| format!("{} {name}", HumanCount(count))).collect();
    bail!(
        "{} were skipped, the rest was imported (--lenient makes that a success, --strict imports nothing then)",
        what.join(" and ")
    )
}

/// Makes a sink of a table.
pub(crate) type MakeSink<'s> = dyn FnMut(&str, Columns) -> anyhow::Result<Box<dyn Sink + 's>> + 's;

impl BulkImport<'_> {
    /// What would become of the files.
    fn examine(&self) -> anyhow::Result<Vec<FileOutcome>> {
        self.all(&mut |table, columns| Ok(Box::new(Importer::examine(table, columns, self.rules)?)))
    }

    fn all(&self, make: &mut MakeSink<'_>) -> anyhow::Result<Vec<FileOutcome>> {
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
        let mut repeated = Repeated::new(false);
        let mut sink = make(self.table, columns.clone())?;
        let mut progress = Progress::new("importing");
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let mut unsynced = 0;
        let piece = || Ok(source.next()?.map(|rows| (rows, source.position(bytes))));
        ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((rows, position)) = next()? {
                repeated.batch(self.table, &columns, &rows);
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
        let mut repeated = Repeated::new(true);
        let mut progress = Progress::new("importing");
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let mut counts = ImportCounts::default();
        let piece = || Ok(file.next()?.map(|tables| (tables, file.position())));
        ahead(IMPORT_PIECES_AHEAD, piece, |next| {
            while let Some((tables, position)) = next()? {
                for (table, rows) in tables {
                    let columns = Columns::of(rows.schema_ref(), &[], None)?;
                    repeated.batch(&table, &columns, &rows);
                    let mut sink = make(&table, columns)?;
                    sink.rows(&rows)?;
                    counts.add(&sink.sync()?);
                }
                progress.at(position, bytes);
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

    fn report(&self, outcomes: &[FileOutcome], stored: bool) -> anyhow::Result<()> {
        let [rows, values, skipped_rows, skipped_values] = totals(outcomes);
        let table = match self.format {
            FileFormat::Lines => None,
            FileFormat::Csv | FileFormat::Parquet => Some(self.table),
        };
        if self.json {
            let files: Vec<_> = outcomes.iter().map(FileOutcome::json).collect();
            return say(json!({
                "table": table,
                "stored": stored,
                "rows": rows,
                "values": values,
                "skippedRows": skipped_rows,
                "skippedValues": skipped_values,
                "files": files,
            }));
        }
        for outcome in outcomes {
            say(outcome.text(&self.rules, stored))?;
        }
        if !stored {
            return Ok(());
        }
        let into = table.map_or_else(|| "the tables that they name".to_owned(), |table| format!("{table:?}"));
        let values = match skipped_values {
            0 => String::new(),
            count => format!(", {} values of other rows skipped", HumanCount(count)),
        };
        say(format_args!(
            "imported  {} rows into {into}, {} skipped{values}",
            HumanCount(rows),
            HumanCount(skipped_rows)
        ))
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

    /// About how many of the file's bytes are done.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_how_files_are_written_if_they_agree() {
        let of = |names: &[&str]| FileFormat::of(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["a.parquet", "b.parquet"]), Ok(FileFormat::Parquet));
        assert_eq!(of(&["a.csv", "b.txt", "c"]), Ok(FileFormat::Csv));
        assert_eq!(of(&["a.lp"]), Ok(FileFormat::Lines));
        assert!(of(&["a.csv", "b.parquet"]).unwrap_err().contains("one kind at a time"));
    }
}
