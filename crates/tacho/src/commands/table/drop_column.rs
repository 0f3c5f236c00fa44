//! `tacho table drop-column`.

use clap::Args;
use hub::bulk::{TableColumn, drop_key};
use model::TableName;
use serde_json::{Value, json};

use super::columns::{column_of, json_of};
use crate::client::{Api, ServerArgs, escaped};
use crate::config::Config;
use crate::confirm::{DropArgs, confirm};
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::say;

/// Drops a key of a table with all its values
///
/// Devices report values under keys; a key has a column for each type that came. The command drops all columns of the key,
/// of all devices. Rows stay, also those that had nothing else. When the key is reported again it begins again, with the type
/// of its first value: so a column that got a wrong type, or keys that a device invented, can be put right.
///
/// Readers do not see the values from then on. The store frees their space when it merges parts; in a table with this one
/// number only, when the rows expire. The command shows the columns and asks for confirmation. Without a terminal it changes
/// nothing unless --yes is given.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table drop-column telemetry speeed --dry-run    which columns would go
  tacho table drop-column telemetry speeed")]
pub(crate) struct DropColumnArgs {
    table: String,
    /// The key, as in the column KEY of `tacho table columns`
    key: String,
    #[command(flatten)]
    drop: DropArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &DropColumnArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    if !args.drop.dry_run && !args.drop.yes {
        let columns = drop_columns(args, &config, true)?;
        confirm(&sentence(args, &columns, "would be dropped for good"))?;
    }
    let columns = drop_columns(args, &config, args.drop.dry_run)?;
    if args.drop.json {
        let columns: Vec<Value> = columns.iter().map(json_of).collect();
        return say(
            json!({ "table": args.table, "key": args.key, "columns": columns, "changed": !args.drop.dry_run }),
        );
    }
    say(sentence(args, &columns, if args.drop.dry_run { "would be dropped for good" } else { "dropped" }))
}

fn sentence(args: &DropColumnArgs, columns: &[TableColumn], what: &str) -> String {
    let names: Vec<String> = columns.iter().map(|it| format!("{} ({})", it.column, it.kind)).collect();
    format!("table {}, key {}: {what}: {}", args.table, args.key, names.join(", "))
}

/// Drops the key; with `dry_run` only finds its columns.
fn drop_columns(args: &DropColumnArgs, config: &Config, dry_run: bool) -> anyhow::Result<Vec<TableColumn>> {
    let stopped = || {
        let store = open_store(config)?;
        let dropped =
            drop_key(store.as_ref(), &TableName::try_from(args.table.as_str())?, &args.key, dry_run);
        store.close()?;
        Ok(dropped?)
    };
    match directory_or_server(&args.server, config, stopped)? {
        Access::Directory(columns) => Ok(columns),
        Access::Server(api) => running(&api, args, dry_run),
    }
}

fn running(api: &Api, args: &DropColumnArgs, dry_run: bool) -> anyhow::Result<Vec<TableColumn>> {
    let (table, key) = (escaped(&args.table), escaped(&args.key));
    let path = format!("/api/tacho/tables/columns?table={table}&key={key}&dryRun={dry_run}");
    let answer = api.delete(&path)?;
    let unexpected = || api.unexpected("DELETE", &path, "no list of columns in the answer");
    let listed = answer["columns"].as_array().ok_or_else(unexpected)?;
    Ok(listed.iter().map(|it| column_of(it).ok_or_else(unexpected)).collect::<Result<_, _>>()?)
}
