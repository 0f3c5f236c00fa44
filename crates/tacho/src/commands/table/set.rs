//! `tacho table set`.

use clap::Args;
use hub::clock::system_now;
use indicatif::HumanCount;
use model::TableName;
use serde_json::{Value, json};

use super::ttl::{Ttl, kept};
use crate::client::ServerArgs;
use crate::config::Config;
use crate::confirm::{DropArgs, confirm};
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server, open_store};
use crate::output::say;

/// Sets how long a table keeps its rows
///
/// The server drops whole days (UTC), within a minute after all of a day is older. A row that is older when it arrives is
/// refused and kept in the table dead_letter with the reason.
///
/// If the new time would drop rows, the command shows their number and days, and asks for confirmation. Without a terminal
/// it changes nothing unless --yes is given. Dropped rows cannot be restored.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho table set telemetry --ttl 90d --dry-run    shows which rows would be dropped
  tacho table set telemetry --ttl 90d
  tacho table set telemetry --ttl 0       keeps rows forever")]
pub(crate) struct SetArgs {
    table: String,
    /// Days or hours, such as 90d or 36h; 0 keeps rows forever
    #[arg(long, value_name = "TIME", value_parser = Ttl::parse)]
    ttl: Ttl,
    /// Creates the table if it does not exist
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    drop: DropArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// A day (UTC) and how many rows it has.
type Day = (String, u64);

fn rows_of(days: &[Day]) -> u64 {
    days.iter().map(|(_, rows)| rows).sum()
}

pub(super) fn run(args: &SetArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let days = expiring(args, &config)?;
    let rows = rows_of(&days);
    if args.drop.dry_run {
        return tell_set(args, &days, false);
    }
    if rows > 0 && !args.drop.yes {
        confirm(&would_go(args, &days))?;
    }
    let stopped = || {
        let store = open_store(&config)?;
        hub::retention::set_ttl(
            store.as_ref(),
            &TableName::try_from(args.table.as_str())?,
            args.ttl.0,
            args.create,
        )?;
        Ok(store.close()?)
    };
    if let Access::Server(api) = directory_or_server(&args.server, &config, stopped)? {
        api.post("/api/tacho/tables", &body(args, false))?;
    }
    tell_set(args, &days, true)
}

fn body(args: &SetArgs, dry_run: bool) -> Value {
    let ttl_s = args.ttl.seconds().unwrap_or(0);
    json!({ "table": args.table, "ttlS": ttl_s, "create": args.create, "dryRun": dry_run })
}

/// The days whose rows would be dropped.
fn expiring(args: &SetArgs, config: &Config) -> anyhow::Result<Vec<Day>> {
    let stopped = || {
        let store = open_store(config)?;
        let days = hub::retention::expiring(
            store.as_ref(),
            &TableName::try_from(args.table.as_str())?,
            args.ttl.0,
            args.create,
            system_now(),
        );
        let closed = store.close();
        let days = days?.into_iter().map(|(day, rows)| (day.to_string(), rows)).collect();
        closed?;
        Ok(days)
    };
    match directory_or_server(&args.server, config, stopped)? {
        Access::Directory(days) => Ok(days),
        Access::Server(api) => {
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
    if args.drop.json {
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
