//! Imports of tables: files with tag columns, into the store of a data directory or through the bulk import of a running
//! server.

mod csv;
mod lines;
mod parquet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use hub::bulk::{Columns, ImportCounts, ImportRules, Importer, Zone};
use hub::registry::Registry;
use indicatif::HumanCount;
use model::TableName;
use serde_json::json;

use super::csv_counts::CsvCounts;
use super::csv_file::{Dialect, delimiter_name};
use super::file_format::{FileFormat, Precision};
use super::outcome::{FileOutcome, SkipPolicy, hint, totals, verdict};
use super::read_ahead::read_ahead;
use super::repeated::Repeated;
use super::sink::{ServerSink, Sink, WRITE_TIMEOUT};
use super::time::{TimeFormat, TimeReader};
use crate::client::ServerArgs;
use crate::config::Config;
use crate::data_directory::{Access, REGISTRY_FILE, directory_or_server, open_store};
use crate::limits::{IMPORT_PIECE_ROWS, IMPORT_PIECES_AHEAD};
use crate::output::say;
use crate::progress::Progress;
use crate::tenant_arg::TenantArg;
use csv::CsvBatches;
use lines::LineFile;
use parquet::ParquetFile;

/// An import of files into tables.
pub(super) struct TableImport<'a> {
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
    /// The form of CSV files.
    pub dialect: Dialect,
    /// The files.
    pub files: &'a [PathBuf],
    /// What happens when something cannot be imported.
    pub skip_policy: SkipPolicy,
    /// The limits on rows.
    pub rules: ImportRules,
    /// Whether any year is accepted.
    pub any_time: bool,
    /// Whether the report is JSON.
    pub json: bool,
}

/// Runs the import, in the directory or through its server.
pub(super) fn run(
    import: &TableImport<'_>,
    (server, tenant): (&ServerArgs, &TenantArg),
    config: &Config,
) -> anyhow::Result<()> {
    if import.skip_policy == SkipPolicy::Strict {
        let examined = import.examine()?;
        if !examined.iter().all(FileOutcome::is_exact) {
            import.report(&examined, false)?;
            bail!(
                "not everything in the files can be stored as it is; because of --strict nothing was imported"
            );
        }
    }
    let done = directory_or_server(server, config, || {
        let store = open_store(config)?;
        let (registry, _first_start) = Registry::open(&config.data.join(REGISTRY_FILE))?;
        let namespace = registry.namespace(tenant.of(&registry)?);
        let outcomes = import.all(&mut |table, columns| {
            Ok(Box::new(Importer::new(
                store.as_ref(),
                &TableName::new(&namespace, table)?,
                columns,
                import.rules,
                WRITE_TIMEOUT,
            )))
        });
        let closed = store.close();
        let outcomes = outcomes?;
        closed.context(
            "the rows were imported, but the store did not close cleanly; the next start recovers it",
        )?;
        Ok(outcomes)
    })?;
    let outcomes = match done {
        Access::Directory(outcomes) => outcomes,
        Access::Server(api) => {
            tenant.check_server()?;
            import.all(&mut |table, columns| {
                Ok(Box::new(ServerSink::new(&api, table, columns, import.any_time)))
            })?
        }
    };
    import.report(&outcomes, true)?;
    verdict(&outcomes, import.skip_policy)
}

/// Makes the sink of a table.
type MakeSink<'s> = dyn FnMut(&str, Columns) -> anyhow::Result<Box<dyn Sink + 's>> + 's;

impl TableImport<'_> {
    /// The outcome that an import would have.
    fn examine(&self) -> anyhow::Result<Vec<FileOutcome>> {
        self.all(&mut |table, columns| {
            Ok(Box::new(Importer::examine(&TableName::try_from(table)?, columns, self.rules)))
        })
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
        read_ahead(IMPORT_PIECES_AHEAD, piece, |next| {
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
        read_ahead(IMPORT_PIECES_AHEAD, piece, |next| {
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
