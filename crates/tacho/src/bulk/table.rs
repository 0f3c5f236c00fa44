//! `tacho table`.

use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};

use crate::cli::PlaceArgs;
use crate::cli::output::say;
use crate::client::{Api, ServerArgs};
use crate::config::{Config, parse_ttl};
use crate::upkeep::{open_store, stopped_or_running};

/// The subcommands of `tacho table`.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    List(ListArgs),
    Set(SetArgs),
}

/// Lists tables: rows, series, bytes, times, how long rows are kept
///
/// RAW is what the values would take as plain columns, RATIO how many times less they take on disk. Rows that were
/// written more than once may count more than once.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table list --data /var/lib/tacho")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Says how long a table keeps its rows
///
/// Rows are dropped by the day (UTC): a day goes within a minute after all of it is older. A row that is older when it
/// comes is refused and kept in the table dead_letter with the reason.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table set telemetry --ttl 90d
  tacho table set telemetry --ttl 0       for good")]
pub(crate) struct SetArgs {
    /// The table
    table: String,
    /// Days or hours, such as 90d or 36h; 0 keeps rows for good
    #[arg(long, value_name = "TIME", value_parser = Ttl::parse)]
    ttl: Ttl,
    /// Make the table if there is none yet
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// How long rows are kept; for good when `None`. A type of its own, because an optional argument is something else.
#[derive(Debug, Clone, Copy)]
struct Ttl(Option<Duration>);

impl Ttl {
    fn parse(text: &str) -> Result<Self, &'static str> {
        parse_ttl(text).map(Self)
    }

    fn seconds(self) -> Option<u64> {
        self.0.map(|ttl| ttl.as_secs())
    }
}

/// Runs a subcommand.
pub(crate) fn run(command: &TableCommand) -> anyhow::Result<()> {
    match command {
        TableCommand::List(args) => list(args),
        TableCommand::Set(args) => set(args),
    }
}

/// A table as it is listed.
struct Listed {
    name: String,
    series: u64,
    rows: u64,
    bytes: u64,
    raw_bytes: Option<u64>,
    oldest_us: Option<i64>,
    /// The first time behind the newest row.
    newest_us: Option<i64>,
    ttl_s: Option<u64>,
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let config = args.place.load()?;
    let tables = match stopped_or_running(&args.server, &config, || stopped(&config))? {
        Ok(tables) => tables,
        Err(api) => running(&api)?,
    };
    let head =
        ["TABLE", "SERIES", "ROWS", "BYTES", "RAW", "RATIO", "OLDEST", "NEWEST", "KEPT"].map(str::to_owned);
    let rows: Vec<[String; 9]> = std::iter::once(head).chain(tables.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..9).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            1..=5 => format!("{cell:>width$}"),
            _ => format!("{cell:width$}"),
        });
        say(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn cells(table: &Listed) -> [String; 9] {
    let nothing = || "-".to_owned();
    let ratio = table.raw_bytes.filter(|_| table.bytes > 0).map(|raw| raw as f64 / table.bytes as f64);
    let newest = table.newest_us.map(|end| end.saturating_sub(1));
    [
        table.name.clone(),
        HumanCount(table.series).to_string(),
        HumanCount(table.rows).to_string(),
        HumanBytes(table.bytes).to_string(),
        table.raw_bytes.map_or_else(nothing, |raw| HumanBytes(raw).to_string()),
        ratio.map_or_else(nothing, |ratio| format!("{ratio:.1}")),
        table.oldest_us.map_or_else(nothing, time),
        newest.map_or_else(nothing, time),
        kept(table.ttl_s),
    ]
}

/// How long rows are kept that are kept for so many seconds.
fn kept(ttl_s: Option<u64>) -> String {
    ttl_s.map_or_else(|| "forever".to_owned(), |seconds| format!("{} d", seconds as f64 / 86_400.0))
}

fn time(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{micros} us"),
    }
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    let config = args.place.load()?;
    let stopped = || {
        let store = open_store(&config)?;
        hub::retention::set_ttl(store.as_ref(), &args.table, args.ttl.0, args.create)?;
        Ok(store.close()?)
    };
    if let Err(api) = stopped_or_running(&args.server, &config, stopped)? {
        let ttl_s = args.ttl.seconds().unwrap_or(0);
        api.post("/api/tacho/tables", &json!({ "table": args.table, "ttlS": ttl_s, "create": args.create }))?;
    }
    say(format!("table {}: rows are kept {}", args.table, kept(args.ttl.seconds())))
}

fn stopped(config: &Config) -> anyhow::Result<Vec<Listed>> {
    let store = open_store(config)?;
    let tables = store.tables()?.into_iter().map(|table| Listed {
        name: table.table,
        series: table.series,
        rows: table.rows,
        bytes: table.bytes,
        raw_bytes: table.raw_bytes,
        oldest_us: table.time_range.map(|range| range.start.micros()),
        newest_us: table.time_range.map(|range| range.end.micros()),
        ttl_s: table.ttl.map(|ttl| ttl.as_secs()),
    });
    let tables = tables.collect();
    store.close()?;
    Ok(tables)
}

fn running(api: &Api) -> anyhow::Result<Vec<Listed>> {
    let path = "/api/tacho/tables";
    let answer = api.get(path)?;
    let unexpected = || api.unexpected("GET", path, "no list of tables in the answer");
    let tables = answer["tables"].as_array().ok_or_else(unexpected)?;
    tables.iter().map(|table| Ok(listed(table).ok_or_else(unexpected)?)).collect()
}

fn listed(table: &Value) -> Option<Listed> {
    Some(Listed {
        name: table["table"].as_str()?.to_owned(),
        series: table["series"].as_u64()?,
        rows: table["rows"].as_u64()?,
        bytes: table["bytes"].as_u64()?,
        raw_bytes: table["rawBytes"].as_u64(),
        oldest_us: table["oldestUs"].as_i64(),
        newest_us: table["newestUs"].as_i64(),
        ttl_s: table["ttlS"].as_u64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_says_what_is_known() {
        let table = serde_json::json!({
            "table": "t", "series": 1_000, "rows": 2, "bytes": 1_024, "rawBytes": 4_096, "oldestUs": 0,
            "newestUs": 1_000_001, "ttlS": 172_800,
        });
        let expected = [
            "t",
            "1,000",
            "2",
            "1.00 KiB",
            "4.00 KiB",
            "4.0",
            "1970-01-01T00:00:00Z",
            "1970-01-01T00:00:01Z",
            "2 d",
        ];
        assert_eq!(cells(&listed(&table).unwrap()), expected);
        let little = serde_json::json!({ "table": "t", "series": 0, "rows": 0, "bytes": 0 });
        assert_eq!(cells(&listed(&little).unwrap())[4..], ["-", "-", "-", "-", "forever"]);
        assert!(listed(&serde_json::json!({ "table": "t" })).is_none());
    }
}
