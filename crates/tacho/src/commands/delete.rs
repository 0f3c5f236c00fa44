//! `tacho delete`.

use clap::Args;
use hub::bulk::{DeleteRequest, Deleted, delete_rows};
use indicatif::HumanCount;
use model::TableName;
use serde_json::json;

use crate::client::{Api, ServerArgs};
use crate::config::Config;
use crate::confirm::{DropArgs, confirm};
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::say;
use crate::row_args::RowArgs;

/// Deletes rows of a table, values of some keys, or whole series
///
/// Without --where the command deletes from all series of the table, without --from and --to at all times. Readers do not see
/// the rows from then on, and they stay deleted after a crash. The store frees their space when it rewrites files. Rows that
/// arrive later stay, also with an older time. Nothing can be deleted from the table audit.
///
/// The command counts the rows and asks for confirmation. Without a terminal it changes nothing unless --yes is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho delete telemetry --where device=\"truck 7\" --to 2024-05-01T00:00:00Z --dry-run    counts the rows
  tacho delete telemetry --where device=\"truck 7\" --key speed
  tacho delete telemetry --where device=\"truck 7\" --series")]
pub(crate) struct DeleteArgs {
    /// The table (`tacho table list`)
    table: String,
    #[command(flatten)]
    rows: RowArgs,
    /// Deletes only the values of this key and keeps the rows. Can be repeated
    #[arg(long = "key", value_name = "KEY")]
    keys: Vec<String>,
    /// Deletes the series with all their rows, so that lists do not have them any more
    #[arg(long, conflicts_with_all = ["keys", "from", "to"])]
    series: bool,
    #[command(flatten)]
    drop: DropArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &DeleteArgs) -> anyhow::Result<()> {
    args.rows.check()?;
    let config = args.data.load()?;
    if !args.drop.dry_run && !args.drop.yes {
        let rows = delete(args, &config, true)?;
        confirm(&sentence(args, rows, "would be deleted for good"))?;
    }
    let rows = delete(args, &config, args.drop.dry_run)?;
    if args.drop.json {
        return say(json!({ "table": args.table, "rows": rows, "changed": !args.drop.dry_run }));
    }
    say(sentence(args, rows, if args.drop.dry_run { "would be deleted for good" } else { "deleted" }))
}

fn sentence(args: &DeleteArgs, rows: u64, what: &str) -> String {
    let (table, rows) = (&args.table, HumanCount(rows));
    match (args.keys.is_empty(), args.series) {
        (false, _) => format!("table {table}: the values of {} in {rows} rows {what}", args.keys.join(", ")),
        (true, true) => format!("table {table}: series with {rows} rows {what}"),
        (true, false) => format!("table {table}: {rows} rows {what}"),
    }
}

/// Deletes and returns the number of rows; with `dry_run` only counts them.
fn delete(args: &DeleteArgs, config: &Config, dry_run: bool) -> anyhow::Result<u64> {
    let stopped = || {
        let store = open_store(config)?;
        let table = TableName::try_from(args.table.as_str())?;
        let rows = delete_rows(store.as_ref(), &table, &request(args), dry_run);
        store.close()?;
        Ok(rows?)
    };
    match directory_or_server(&args.server, config, stopped)? {
        Access::Directory(rows) => Ok(rows),
        Access::Server(api) => running(&api, args, dry_run),
    }
}

fn request(args: &DeleteArgs) -> DeleteRequest {
    let what = match args.series {
        true => Deleted::Series,
        false => Deleted::Rows { keys: keys(args), range: args.rows.range() },
    };
    DeleteRequest { matchers: args.rows.matchers(), what }
}

/// The keys; `None` for whole rows.
fn keys(args: &DeleteArgs) -> Option<Vec<String>> {
    (!args.keys.is_empty()).then(|| args.keys.clone())
}

fn running(api: &Api, args: &DeleteArgs, dry_run: bool) -> anyhow::Result<u64> {
    let path = "/api/tacho/delete";
    let body = json!({
        "table": args.table,
        "where": args.rows.conditions(),
        "keys": keys(args),
        "fromUs": args.rows.start_us(),
        "toUs": args.rows.end_us(),
        "series": args.series,
        "dryRun": dry_run,
    });
    let answer = api.post(path, &body)?;
    let rows = answer["rows"].as_u64();
    Ok(rows.ok_or_else(|| api.unexpected("POST", path, "no number of rows in the answer"))?)
}
