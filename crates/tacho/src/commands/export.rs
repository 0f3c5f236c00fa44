//! `tacho export`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hub::bulk::{Export, ExportFormat, ExportRequest};
use hub::registry::Registry;
use indicatif::HumanCount;
use model::TableName;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::json;

use crate::client::{Api, ServerArgs};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{Access, REGISTRY_FILE, directory_or_server, open_store};
use crate::output::say;
use crate::progress::Progress;
use crate::row_args::RowArgs;
use crate::tenant_arg::TenantArg;

/// Writes a table as CSV or Parquet
///
/// The export has all rows of this moment, sorted by series and time, with a column for each tag, `ts` and each field. Parquet
/// keeps types and names exactly, and `tacho import --table` reads it without further options. In CSV an empty cell is a
/// missing value, `""` is an empty text, and times are RFC 3339 in UTC. A key with integers and floating-point numbers is one
/// column; Parquet has a second column with the exact integers, such as `speed:i64` beside `speed`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho export --table telemetry --out telemetry.parquet
  tacho export --table telemetry --where device=\"truck 7\" --from 2024-05-01T00:00:00Z | head
  tacho export --table telemetry --where 'device~^truck' --out trucks.csv")]
pub(crate) struct ExportArgs {
    /// The table (`tacho table list`)
    #[arg(long, value_name = "NAME")]
    table: String,
    #[command(flatten)]
    rows: RowArgs,
    /// csv or parquet [default: the format that the extension of --out names; csv without --out]
    #[arg(long, value_name = "FORMAT")]
    format: Option<ExportFormat>,
    /// The file, which must not exist [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Prints a summary as JSON; needs --out
    #[arg(long, requires = "out")]
    json: bool,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// The format of the file: that of `--format`, or that of the file name's extension.
fn format(args: &ExportArgs) -> anyhow::Result<ExportFormat> {
    let Some(out) = &args.out else { return Ok(args.format.unwrap_or(ExportFormat::Csv)) };
    let ending = out.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match (args.format, ending.parse::<ExportFormat>().ok()) {
        (Some(wanted), Some(named)) if wanted != named => bail!(
            "{}: the ending says another format than --format {}; change one of them",
            out.display(),
            name(wanted)
        ),
        (Some(format), _) | (None, Some(format)) => Ok(format),
        (None, None) => bail!("{}: the ending names no format; say --format csv or parquet", out.display()),
    }
}

fn name(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Csv => "csv",
        ExportFormat::Parquet => "parquet",
    }
}

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let format = format(args)?;
    args.rows.check()?;
    let config = args.data.load()?;
    let Some(path) = &args.out else {
        let mut out = io::stdout();
        if format == ExportFormat::Parquet && out.is_terminal() {
            bail!("Parquet is nothing for a terminal; name a file with --out");
        }
        write(args, format, &config, &mut out).context("cannot write to standard output")?;
        return Ok(());
    };
    if path.exists() {
        bail!("{} is there already; name a file that is not", path.display());
    }
    // The file gets its name when it is complete.
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    let writing = || format!("cannot write {}", unfinished.display());
    let file = File::create(unfinished).with_context(writing)?;
    let mut out = BufWriter::with_capacity(1024 * 1024, file);
    let rows = match write(args, format, &config, &mut out) {
        Ok(rows) => rows,
        Err(error) => {
            // A failure to remove the incomplete file matters less than the error.
            let _ = std::fs::remove_file(unfinished);
            return Err(error);
        }
    };
    let file = out.into_inner().map_err(io::IntoInnerError::into_error).with_context(writing)?;
    file.sync_all().with_context(writing)?;
    let rows = match rows {
        Some(rows) => rows,
        None => parquet_rows(unfinished).with_context(|| format!("{} is not whole", unfinished.display()))?,
    };
    std::fs::rename(unfinished, path).with_context(|| format!("cannot name {}", path.display()))?;
    if args.json {
        let file = path.to_string_lossy();
        return say(json!({ "table": args.table, "file": file, "format": name(format), "rows": rows }));
    }
    say(format_args!("exported  {} rows of {} to {}", HumanCount(rows), args.table, path.display()))
}

/// The number of rows of a Parquet file.
fn parquet_rows(path: &Path) -> anyhow::Result<u64> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    Ok(reader.metadata().file_metadata().num_rows().cast_unsigned())
}

/// Writes the table. Returns the number of rows, if it is known.
fn write(
    args: &ExportArgs,
    format: ExportFormat,
    config: &Config,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<Option<u64>> {
    let stopped = || stopped(args, format, config, &mut *out).map(Some);
    match directory_or_server(&args.server, config, stopped)? {
        Access::Directory(rows) => Ok(rows),
        Access::Server(api) => {
            args.tenant.check_server()?;
            running(args, format, &api, out)
        }
    }
}

fn stopped(
    args: &ExportArgs,
    format: ExportFormat,
    config: &Config,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<u64> {
    let store = open_store(config)?;
    let request = ExportRequest { matchers: args.rows.matchers(), range: args.rows.range(), format };
    let (registry, _) = Registry::open(&config.data.join(REGISTRY_FILE))?;
    let table = TableName::new(&registry.namespace(args.tenant.of(&registry)?), &args.table)?;
    let export = Export::begin(store.as_ref(), &table, &request)?;
    let total = export.rows_max();
    let mut progress = Progress::rows("exporting");
    let rows = export.write(out, &mut |rows| progress.at(rows, total))?;
    drop(progress);
    store.close()?;
    Ok(rows)
}

/// Copies the answer of a server. Counts the CSV rows; a Parquet file says its own number.
fn running(
    args: &ExportArgs,
    format: ExportFormat,
    api: &Api,
    out: &mut dyn Write,
) -> anyhow::Result<Option<u64>> {
    let body = json!({
        "table": args.table,
        "where": args.rows.conditions(),
        "fromUs": args.rows.start_us(),
        "toUs": args.rows.end_us(),
        "format": name(format),
    });
    let mut answer = api.post_for_stream("/api/tacho/export", body.to_string().as_bytes())?;
    let mut progress = Progress::new("exporting");
    let mut buffer = vec![0; 256 * 1024];
    let mut done = 0;
    let mut rows = CsvRows::default();
    loop {
        let count =
            answer.body.read(&mut buffer).context("the export broke off; the server's log says why")?;
        if count == 0 {
            out.flush()?;
            return Ok((format == ExportFormat::Csv).then(|| rows.count()));
        }
        out.write_all(&buffer[..count])?;
        rows.see(&buffer[..count]);
        done += count as u64;
        progress.at_least(done);
    }
}

/// Counts the CSV rows: line ends outside of quotes, without the header.
#[derive(Debug, Default)]
struct CsvRows {
    lines: u64,
    quoted: bool,
}

impl CsvRows {
    fn see(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'"' => self.quoted = !self.quoted,
                b'\n' if !self.quoted => self.lines += 1,
                _ => {}
            }
        }
    }

    fn count(&self) -> u64 {
        self.lines.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ExportArgs,
    }

    #[test]
    fn the_file_extension_selects_the_format_unless_an_option_does() {
        let asked = |line: &str| {
            let words = ["export", "--table", "t"].into_iter().chain(line.split_whitespace());
            format(&Line::try_parse_from(words).unwrap().args).map_err(|error| error.to_string())
        };
        assert_eq!(asked(""), Ok(ExportFormat::Csv));
        assert_eq!(asked("--out e.parquet"), Ok(ExportFormat::Parquet));
        assert_eq!(asked("--out e.csv"), Ok(ExportFormat::Csv));
        assert_eq!(asked("--format parquet"), Ok(ExportFormat::Parquet));
        assert_eq!(asked("--out e.dat --format parquet"), Ok(ExportFormat::Parquet));
        assert!(asked("--out e.dat").unwrap_err().contains("e.dat: the ending names no format"));
        assert!(asked("--out e").unwrap_err().contains("--format csv or parquet"));
        assert!(asked("--out e.parquet --format csv").unwrap_err().contains("another format"));
        assert!(Line::try_parse_from(["export", "--table", "t", "--json"]).is_err());
    }

    #[test]
    fn rows_of_csv_are_counted_across_pieces_and_quotes() {
        let mut rows = CsvRows::default();
        rows.see(b"a,b\n1,\"x\ny");
        rows.see(b"\"\"z\"\n2,\n");
        assert_eq!(rows.count(), 2);
    }
}
