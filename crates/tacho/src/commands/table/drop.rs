//! `tacho table drop`.

use clap::Args;
use hub::bulk::drop_table;
use model::TableName;
use serde_json::json;

use crate::client::{ServerArgs, escaped};
use crate::config::Config;
use crate::confirm::{DropArgs, confirm};
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::say;

/// Drops a table with its series, rows, columns and time to live
///
/// Devices of the table stay: when one reports again, the table begins again. The table audit cannot be dropped. The command
/// asks for confirmation. Without a terminal it changes nothing unless --yes is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table drop weather --dry-run
  tacho table drop weather --yes")]
pub(crate) struct DropTableArgs {
    table: String,
    #[command(flatten)]
    drop: DropArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(super) fn run(args: &DropTableArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    if !args.drop.dry_run && !args.drop.yes {
        drop(args, &config, true)?;
        confirm(&format!("table {}: all its rows would be dropped for good", args.table))?;
    }
    drop(args, &config, args.drop.dry_run)?;
    if args.drop.json {
        return say(json!({ "table": args.table, "changed": !args.drop.dry_run }));
    }
    let what = if args.drop.dry_run { "would be dropped for good" } else { "dropped" };
    say(format_args!("table {}: {what}", args.table))
}

/// Drops the table; with `dry_run` only checks that it can be dropped.
fn drop(args: &DropTableArgs, config: &Config, dry_run: bool) -> anyhow::Result<()> {
    let stopped = || {
        let store = open_store(config)?;
        let dropped = drop_table(store.as_ref(), &TableName::try_from(args.table.as_str())?, dry_run);
        store.close()?;
        Ok(dropped?)
    };
    if let Access::Server(api) = directory_or_server(&args.server, config, stopped)? {
        api.delete(&format!("/api/tacho/tables?table={}&dryRun={dry_run}", escaped(&args.table)))?;
    }
    Ok(())
}
