//! `tacho table list`.

use clap::Args;
use indicatif::{HumanBytes, HumanCount};
use model::Namespace;
use serde_json::{Value, json};

use super::ttl::kept;
use crate::client::{Api, ServerArgs};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::{columns, say};
use model::calendar::seconds_of_micros;

/// Lists tables with their rows, series, bytes, times and time to live
///
/// RAW is the size of the values as plain columns. RATIO is RAW divided by the size on disk. A row that was written more than
/// once may count more than once.
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
    data: DataArgs,
}

/// A table in the list.
struct Listed {
    name: String,
    series: u64,
    rows: u64,
    bytes: u64,
    raw_bytes: Option<u64>,
    oldest_us: Option<i64>,
    /// The end of the time range: the first microsecond after the newest row.
    newest_us: Option<i64>,
    ttl_s: Option<u64>,
}

/// Runs the subcommand.
pub(super) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let tables = match directory_or_server(&args.server, &config, || stopped(&config))? {
        Access::Directory(tables) => tables,
        Access::Server(api) => running(&api)?,
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
            "oldest": self.oldest_us.map(seconds_of_micros),
            "newest": self.newest_us.map(|end| seconds_of_micros(end.saturating_sub(1))),
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
        table.oldest_us.map_or_else(nothing, seconds_of_micros),
        newest.map_or_else(nothing, seconds_of_micros),
        kept(table.ttl_s),
    ]
}

fn stopped(config: &Config) -> anyhow::Result<Vec<Listed>> {
    let store = open_store(config)?;
    let tables = store.tables()?.into_iter().filter(|table| table.table.is_in(&Namespace::DEFAULT));
    let tables = tables.map(|table| Listed {
        name: table.table.name().to_owned(),
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
    fn a_listing_shows_known_values_and_dashes() {
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
