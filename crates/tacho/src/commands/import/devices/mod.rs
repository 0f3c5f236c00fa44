//! Imports of devices' data: each row of a CSV file belongs to a device.

mod destination;
mod header;
mod plan;
mod report;
mod rows;
mod store_rows;
mod upload;
mod verify;

use std::time::Duration;

use anyhow::{bail, ensure};
use hub::bulk::ImportRules;
use serde_json::{Value, json};

use super::args::ImportArgs;
use super::options::DeviceOf;
use super::outcome::{FileOutcome, SkipPolicy, totals, verdict};
use super::time::{TimeFormat, TimeReader};
use crate::config::Config;
use crate::output::say;
use crate::program;
use destination::Destination;
use plan::{Plan, Timing};
use rows::Roles;
use store_rows::{Imported, Settings};

/// Time between two rows without `--interval`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Imports the files as rows of devices.
pub(super) fn run(
    args: &ImportArgs,
    of: &DeviceOf,
    rules: ImportRules,
    config: &Config,
) -> anyhow::Result<()> {
    let format = args.ts_format.clone().unwrap_or(TimeFormat::Rfc3339);
    let roles = Roles {
        time: args.ts_column.clone(),
        times: TimeReader { format, zone: args.zone() },
        device: args.device_column.clone(),
        dialect: args.dialect(),
    };
    let timing = Timing { start_us: args.start, interval: args.interval.unwrap_or(INTERVAL) };
    let plan = Plan::read(&args.files, &roles, &timing, of)?;
    let settings =
        Settings { skip_policy: args.skip_policy(), rules, any_time: args.any_time, create: args.create };
    if settings.skip_policy == SkipPolicy::Strict {
        let examined = store_rows::examine(&plan, &settings)?;
        if !examined.iter().all(FileOutcome::is_exact) {
            tell_files(args, &plan, &examined, rules, false)?;
            bail!(
                "not everything in the files can be stored as it is; because of --strict nothing was imported"
            );
        }
    }
    match &args.token {
        Some(token) => with_token(args, &plan, token, rules, config),
        None => with_login(args, &plan, &settings, config),
    }
}

/// Prints the report about the files; as JSON the whole report of an import that stored nothing.
fn tell_files(
    args: &ImportArgs,
    plan: &Plan,
    outcomes: &[FileOutcome],
    rules: ImportRules,
    stored: bool,
) -> anyhow::Result<()> {
    if args.json {
        return say(json_of(outcomes, stored, &[]));
    }
    for (file, outcome) in plan.files.iter().zip(outcomes) {
        say(report::text(file, outcome, &rules, stored))?;
    }
    Ok(())
}

fn json_of(outcomes: &[FileOutcome], stored: bool, more: &[(&str, Value)]) -> Value {
    let [rows, values, skipped_rows, skipped_values] = totals(outcomes);
    let mut report = json!({
        "stored": stored,
        "rows": rows,
        "values": values,
        "skippedRows": skipped_rows,
        "skippedValues": skipped_values,
        "files": outcomes.iter().map(FileOutcome::json).collect::<Vec<_>>(),
    });
    for (name, value) in more {
        report[*name] = value.clone();
    }
    report
}

fn with_login(args: &ImportArgs, plan: &Plan, settings: &Settings, config: &Config) -> anyhow::Result<()> {
    let destination = Destination::open((&args.server, &args.tenant), config, args.create)?;
    if !args.json {
        say(plan.describe())?;
    }
    let imported = store_rows::import(plan, settings, &destination);
    let server = destination.json();
    let closed = destination.close();
    let imported = imported?;
    closed?;
    let read = command_that_reads(args, config, &imported);
    if args.json {
        let devices = imported.devices.iter().map(|(name, device)| device.json(name)).collect();
        let more = [
            ("devices", devices),
            ("verified", imported.verified.clone().into()),
            ("destination", server),
            ("read", read.into()),
        ];
        say(json_of(&imported.files, true, &more))?;
    } else {
        tell_files(args, plan, &imported.files, settings.rules, true)?;
        say(store_rows::summary(&imported))?;
        if let Some(read) = read {
            say(format_args!("read it   {read}"))?;
        }
    }
    verdict(&imported.files, settings.skip_policy)
}

/// A command that shows rows of the first imported device.
fn command_that_reads(args: &ImportArgs, config: &Config, imported: &Imported) -> Option<String> {
    let (name, device) = imported.devices.iter().find(|(_, device)| device.rows > 0)?;
    let table = format!("\"{}\"", device.known.table.replace('"', "\"\""));
    let table = if is_plain(&device.known.table) { device.known.table.clone() } else { table };
    let statement = format!(
        "SELECT * FROM {table} WHERE device = '{}' ORDER BY ts DESC LIMIT 5",
        name.replace('\'', "''")
    );
    let place = match &args.server.url {
        Some(_) => args.server.words(),
        None => {
            let data = format!(" --data {}", program::path_word(&config.data));
            let file =
                args.data.config.as_ref().map(|file| format!(" --config {}", program::path_word(file)));
            format!("{data}{}", file.unwrap_or_default())
        }
    };
    Some(format!("{} sql {}{place}", program::name(), program::double_quoted(&statement)))
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

/// Sends the rows to the device API, with the token of the device.
fn with_token(
    args: &ImportArgs,
    plan: &Plan,
    token: &str,
    rules: ImportRules,
    config: &Config,
) -> anyhow::Result<()> {
    ensure!(!args.any_time, "--any-time does not apply: the door that takes a token has its own bounds");
    let api = args.server.find(config)?;
    if !args.json {
        say(plan.describe())?;
    }
    let sent = upload::upload(plan, &api, token)?;
    let unverified = "not read back: that needs a login (leave --token out and set TACHO_PASSWORD)";
    if args.json {
        say(json_of(&sent.files, true, &[("verified", unverified.into())]))?;
    } else {
        tell_files(args, plan, &sent.files, rules, true)?;
        if sent.repetitions > 0 {
            say(format_args!("{} requests were repeated because the server was busy", sent.repetitions))?;
        }
        let [rows, values, skipped, _] = totals(&sent.files);
        say(format_args!("imported  {rows} rows with {values} values, {skipped} rows skipped"))?;
        say(unverified)?;
    }
    verdict(&sent.files, args.skip_policy())
}
