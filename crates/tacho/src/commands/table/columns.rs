//! `tacho table columns`.

use clap::Args;
use hub::bulk::{TableColumn, table_columns};
use model::TableName;
use serde_json::{Value, json};

use crate::client::{Api, ServerArgs, escaped};
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::{columns, say};

/// Lists the columns of a table
///
/// A column is a key with one type. TYPE is that type, or states that the column is a tag or the time. KEY is the name under
/// which devices report the values. A table has at most 20,000 columns, which all its devices share. The settings
/// columns_per_device_max and new_columns_per_minute_max of the section "ingest" limit the columns that one device may add.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table columns telemetry
  tacho table columns telemetry --json --data /var/lib/tacho")]
pub(crate) struct ColumnsArgs {
    table: String,
    /// Prints the columns as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &ColumnsArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let listed = match directory_or_server(&args.server, &config, || stopped(&config, &args.table))? {
        Access::Directory(listed) => listed,
        Access::Server(api) => running(&api, &args.table)?,
    };
    if args.json {
        let listed: Vec<Value> = listed.iter().map(json_of).collect();
        return say(json!({ "table": args.table, "columns": listed }));
    }
    let head = ["COLUMN", "TYPE", "KEY"].map(str::to_owned);
    let rows = listed.iter().map(|it| [it.column.clone(), it.kind.clone(), it.name.clone()]);
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 0..0).iter().try_for_each(say)
}

pub(super) fn json_of(column: &TableColumn) -> Value {
    json!({ "column": column.column, "type": column.kind, "key": column.name })
}

fn stopped(config: &Config, table: &str) -> anyhow::Result<Vec<TableColumn>> {
    let store = open_store(config)?;
    let listed = table_columns(store.as_ref(), &TableName::try_from(table)?);
    store.close()?;
    Ok(listed?)
}

fn running(api: &Api, table: &str) -> anyhow::Result<Vec<TableColumn>> {
    let path = format!("/api/tacho/tables/columns?table={}", escaped(table));
    let answer = api.get(&path)?;
    let unexpected = || api.unexpected("GET", &path, "no list of columns in the answer");
    let listed = answer["columns"].as_array().ok_or_else(unexpected)?;
    Ok(listed.iter().map(|it| column_of(it).ok_or_else(unexpected)).collect::<Result<_, _>>()?)
}

/// A column as the server's answers have it.
pub(super) fn column_of(listed: &Value) -> Option<TableColumn> {
    let text = |key: &str| listed[key].as_str().map(str::to_owned);
    Some(TableColumn { column: text("column")?, kind: text("type")?, name: text("key")? })
}
