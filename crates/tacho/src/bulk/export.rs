//! `tacho export`.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hub::bulk::{Export, ExportFormat, ExportRequest, parse_matcher};
use indicatif::HumanCount;
use model::{TimeRange, Timestamp};
use serde_json::json;
use store::TagMatcher;

use crate::cli::PlaceArgs;
use crate::client::{Api, ServerArgs};
use crate::config::Config;
use crate::progress::Progress;
use crate::upkeep::{open_store, stopped_or_running};

/// Writes a table as CSV or Parquet
///
/// All rows as they are at this moment, sorted by series and time, with a column for each tag, `ts` and each field. Parquet
/// keeps types and names exactly, and `tacho import --table` reads it without flags. In CSV an empty cell is no value, `""`
/// is an empty text, and times are RFC 3339 in UTC. A key that came as integers and as floats is one column; in Parquet its
/// integers stand beside it as they came, as `speed:i64` beside `speed`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho export --table telemetry --format parquet --out telemetry.parquet
  tacho export --table telemetry --where device=\"truck 7\" --from 2024-05-01T00:00:00Z | head
  tacho export --table telemetry --where 'device~^truck' --format csv --out trucks.csv")]
pub(crate) struct ExportArgs {
    /// The table (`tacho table list`)
    #[arg(long, value_name = "NAME")]
    table: String,
    /// Only series whose tag is that: TAG=VALUE, TAG!=VALUE, TAG~PATTERN, TAG!~PATTERN. Of several all must hold
    #[arg(long = "where", value_name = "CONDITION", value_parser = condition)]
    conditions: Vec<(String, TagMatcher)>,
    /// Only rows at or after this time, such as 2024-05-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<jiff::Timestamp>,
    /// Only rows before this time
    #[arg(long, value_name = "TIME")]
    to: Option<jiff::Timestamp>,
    /// csv or parquet
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    format: ExportFormat,
    /// The file, which must not be there yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

fn condition(text: &str) -> Result<(String, TagMatcher), String> {
    Ok((text.to_owned(), parse_matcher(text)?))
}

/// Runs the command.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let config = args.place.load()?;
    let Some(path) = &args.out else {
        let mut out = io::stdout();
        if args.format == ExportFormat::Parquet && out.is_terminal() {
            bail!("Parquet is nothing for a terminal; name a file with --out");
        }
        write(args, &config, &mut out).context("cannot write to standard output")?;
        return Ok(());
    };
    if path.exists() {
        bail!("{} is there already; name a file that is not", path.display());
    }
    // The file has its name only when it is whole.
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    let writing = || format!("cannot write {}", unfinished.display());
    let file = File::create(unfinished).with_context(writing)?;
    let mut out = BufWriter::with_capacity(1024 * 1024, file);
    let rows = match write(args, &config, &mut out) {
        Ok(rows) => rows,
        Err(error) => {
            // Of no use to anybody; the error is what matters.
            let _ = std::fs::remove_file(unfinished);
            return Err(error);
        }
    };
    let file = out.into_inner().map_err(io::IntoInnerError::into_error).with_context(writing)?;
    file.sync_all().with_context(writing)?;
    std::fs::rename(unfinished, path).with_context(|| format!("cannot name {}", path.display()))?;
    let rows = rows.map(|rows| format!("{} rows of ", HumanCount(rows))).unwrap_or_default();
    crate::cli::output::say(format_args!("exported  {rows}{} to {}", args.table, path.display()))
}

/// How many rows that were, if it is known here.
fn write(args: &ExportArgs, config: &Config, out: &mut (dyn Write + Send)) -> anyhow::Result<Option<u64>> {
    let done = stopped_or_running(&args.server, config, || stopped(args, config, &mut *out).map(Some))?;
    match done {
        Ok(rows) => Ok(rows),
        Err(api) => running(args, &api, out).map(|()| None),
    }
}

fn stopped(args: &ExportArgs, config: &Config, out: &mut (dyn Write + Send)) -> anyhow::Result<u64> {
    let store = open_store(config)?;
    let bound = |time: Option<jiff::Timestamp>, default| {
        time.map_or(default, |time| Timestamp::from_micros(time.as_microsecond()))
    };
    let request = ExportRequest {
        table: args.table.clone(),
        matchers: args.conditions.iter().map(|(_, matcher)| matcher.clone()).collect(),
        range: TimeRange::new(bound(args.from, TimeRange::ALL.start), bound(args.to, TimeRange::ALL.end)),
        format: args.format,
    };
    let export = Export::begin(store.as_ref(), &request)?;
    let total = export.rows_max();
    let mut progress = Progress::rows("exporting");
    let rows = export.write(out, &mut |rows| progress.at(rows, total))?;
    drop(progress);
    store.close()?;
    Ok(rows)
}

fn running(args: &ExportArgs, api: &Api, out: &mut dyn Write) -> anyhow::Result<()> {
    let format = match args.format {
        ExportFormat::Csv => "csv",
        ExportFormat::Parquet => "parquet",
    };
    let body = json!({
        "table": args.table,
        "where": args.conditions.iter().map(|(text, _)| text).collect::<Vec<_>>(),
        "fromUs": args.from.map(jiff::Timestamp::as_microsecond),
        "toUs": args.to.map(jiff::Timestamp::as_microsecond),
        "format": format,
    });
    let mut answer = api.post_for_stream("/api/tacho/export", body.to_string().as_bytes())?;
    let mut progress = Progress::new("exporting");
    let mut buffer = vec![0; 256 * 1024];
    let mut done = 0;
    loop {
        let count =
            answer.body.read(&mut buffer).context("the export broke off; the server's log says why")?;
        if count == 0 {
            out.flush()?;
            return Ok(());
        }
        out.write_all(&buffer[..count])?;
        done += count as u64;
        progress.at_least(done);
    }
}
