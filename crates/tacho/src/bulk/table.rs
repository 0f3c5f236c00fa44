//! `tacho table`.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use hub::clock::system_now;
use indicatif::{HumanBytes, HumanCount};
use model::time::shown_duration;
use serde_json::{Value, json};

use super::columns::ColumnsArgs;
use super::confirm::confirm;
use super::drop_column::DropColumnArgs;
use crate::cli::PlaceArgs;
use crate::cli::output::{columns, say};
use crate::client::{Api, ServerArgs};
use crate::config::{Config, parse_ttl};
use crate::upkeep::{open_store, stopped_or_running};

/// The subcommands of `tacho table`.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    List(ListArgs),
    Columns(ColumnsArgs),
    DropColumn(DropColumnArgs),
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
    /// Prints the tables as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Says how long a table keeps its rows
///
/// Rows are dropped by the day (UTC): a day goes within a minute after all of it is older. A row that is older when it
/// comes is refused and kept in the table dead_letter with the reason.
///
/// Where rows would be dropped, the command says how many and of which days, and asks. Without a terminal to ask at it
/// changes nothing unless --yes is given. What was dropped is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table set telemetry --ttl 90d --dry-run    which rows would go
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
    /// Only says which rows would go
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Drops rows without asking
    #[arg(long)]
    yes: bool,
    /// Prints what was done as JSON
    #[arg(long)]
    json: bool,
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
        TableCommand::Columns(args) => super::columns::run(args),
        TableCommand::DropColumn(args) => super::drop_column::run(args),
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
    if args.json {
        return say(json!({ "tables": tables.iter().map(Listed::json).collect::<Vec<_>>() }));
    }
    let head =
        ["TABLE", "SERIES", "ROWS", "BYTES", "RAW", "RATIO", "OLDEST", "NEWEST", "KEPT"].map(str::to_owned);
    let rows: Vec<[String; 9]> = std::iter::once(head).chain(tables.iter().map(cells)).collect();
    columns(&rows, 1..6).iter().try_for_each(say)
}

impl Listed {
    fn json(&self) -> Value {
        json!({
            "table": self.name,
            "series": self.series,
            "rows": self.rows,
            "bytes": self.bytes,
            "rawBytes": self.raw_bytes,
            "oldest": self.oldest_us.map(time),
            "newest": self.newest_us.map(|end| time(end.saturating_sub(1))),
            "ttlS": self.ttl_s,
        })
    }
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
    ttl_s.map_or_else(|| "forever".to_owned(), |seconds| shown_duration(Duration::from_secs(seconds)))
}

fn time(micros: i64) -> String {
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        Err(_) => format!("{micros} us"),
    }
}

/// A day (UTC) and how many rows it has.
type Day = (String, u64);

fn rows_of(days: &[Day]) -> u64 {
    days.iter().map(|(_, rows)| rows).sum()
}

fn set(args: &SetArgs) -> anyhow::Result<()> {
    let config = args.place.load()?;
    let days = expiring(args, &config)?;
    let rows = rows_of(&days);
    if args.dry_run {
        return tell_set(args, &days, false);
    }
    if rows > 0 && !args.yes {
        // The question is no part of the result.
        writeln!(io::stderr(), "{}", would_go(args, &days)).context("cannot write to standard error")?;
        confirm("Drop them?")?;
    }
    let stopped = || {
        let store = open_store(&config)?;
        hub::retention::set_ttl(store.as_ref(), &args.table, args.ttl.0, args.create)?;
        Ok(store.close()?)
    };
    if let Err(api) = stopped_or_running(&args.server, &config, stopped)? {
        api.post("/api/tacho/tables", &body(args, false))?;
    }
    tell_set(args, &days, true)
}

fn body(args: &SetArgs, dry_run: bool) -> Value {
    let ttl_s = args.ttl.seconds().unwrap_or(0);
    json!({ "table": args.table, "ttlS": ttl_s, "create": args.create, "dryRun": dry_run })
}

/// The days whose rows would go.
fn expiring(args: &SetArgs, config: &Config) -> anyhow::Result<Vec<Day>> {
    let stopped = || {
        let store = open_store(config)?;
        let days =
            hub::retention::expiring(store.as_ref(), &args.table, args.ttl.0, args.create, system_now());
        let closed = store.close();
        let days = days?.into_iter().map(|(day, rows)| (day.to_string(), rows)).collect();
        closed?;
        Ok(days)
    };
    match stopped_or_running(&args.server, config, stopped)? {
        Ok(days) => Ok(days),
        Err(api) => {
            let path = "/api/tacho/tables";
            let answer = api.post(path, &body(args, true))?;
            let unexpected = || api.unexpected("POST", path, "no list of days in the answer");
            let day = |day: &Value| Some((day["day"].as_str()?.to_owned(), day["rows"].as_u64()?));
            let days = answer["days"].as_array().ok_or_else(unexpected)?;
            Ok(days.iter().map(|it| day(it).ok_or_else(unexpected)).collect::<Result<_, _>>()?)
        }
    }
}

fn would_go(args: &SetArgs, days: &[Day]) -> String {
    let rows = rows_of(days);
    let which = match days {
        [] => return format!("table {}: no rows are older than {}", args.table, kept(args.ttl.seconds())),
        [(day, _)] => format!("of one day ({day})"),
        [(first, _), .., (last, _)] => format!("of {} days ({first} to {last})", days.len()),
    };
    format!(
        "table {}: {} rows {which} are older than {} and would be dropped for good",
        args.table,
        HumanCount(rows),
        kept(args.ttl.seconds())
    )
}

fn tell_set(args: &SetArgs, days: &[Day], changed: bool) -> anyhow::Result<()> {
    let rows = rows_of(days);
    if args.json {
        let list: Vec<Value> = days.iter().map(|(day, rows)| json!({ "day": day, "rows": rows })).collect();
        return say(json!({
            "table": args.table,
            "ttlS": args.ttl.seconds(),
            "changed": changed,
            "rowsToDrop": rows,
            "days": list,
        }));
    }
    if !changed {
        say(would_go(args, days))?;
        for (day, rows) in days {
            say(format_args!("  {day}  {} rows", HumanCount(*rows)))?;
        }
        return Ok(());
    }
    say(format_args!("table {}: rows are kept {}", args.table, kept(args.ttl.seconds())))?;
    if rows > 0 {
        say(format_args!(
            "{} rows of {} days are older; a running server drops them within a minute",
            HumanCount(rows),
            days.len()
        ))?;
    }
    Ok(())
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
            "2d",
        ];
        assert_eq!(cells(&listed(&table).unwrap()), expected);
        let little = serde_json::json!({ "table": "t", "series": 0, "rows": 0, "bytes": 0 });
        assert_eq!(cells(&listed(&little).unwrap())[4..], ["-", "-", "-", "-", "forever"]);
        assert!(listed(&serde_json::json!({ "table": "t" })).is_none());
    }
}
