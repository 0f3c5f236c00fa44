//! Imports of devices' data: each row of a CSV file belongs to a device.

use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use hub::bulk::ImportRules;
use hub::registry::Registry;
use import::devices::{
    Destination, DeviceOf, Imported, Plan, Roles, Settings, Timing, UnknownDevice, examine, import, summary,
    text, upload,
};
use import::{FileOutcome, SkipPolicy, TimeFormat, TimeReader, totals, verdict};
use serde_json::{Value, json};

use super::args::ImportArgs;
use super::progress::progress;
use crate::config::Config;
use crate::data_directory::{Access, REGISTRY_FILE, directory_or_server, initialise, open_store};
use crate::output::say;
use crate::program;

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
    let settings = Settings {
        skip_policy: args.skip_policy(),
        rules,
        any_time: args.any_time,
        create: args.create,
        progress: &progress,
    };
    if settings.skip_policy == SkipPolicy::Strict {
        let examined = examine(&plan, &settings)?;
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
        say(text(file, outcome, &rules, stored))?;
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

fn with_login(
    args: &ImportArgs,
    plan: &Plan,
    settings: &Settings<'_>,
    config: &Config,
) -> anyhow::Result<()> {
    let destination = open(args, config)?;
    if !args.json {
        say(plan.describe())?;
    }
    let imported = import(plan, settings, &destination).map_err(with_remedy);
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
        say(summary(&imported))?;
        if let Some(read) = read {
            say(format_args!("read it   {read}"))?;
        }
    }
    verdict(&imported.files, settings.skip_policy)
}

/// Opens the server of `--url`, the server that has the directory, or the directory itself. With `--create` a missing
/// directory is created.
fn open(args: &ImportArgs, config: &Config) -> anyhow::Result<Destination> {
    let (server, tenant) = (&args.server, &args.tenant);
    if args.create && server.url.is_none() {
        initialise(&config.data)?;
    }
    let directory = || {
        let store = open_store(config)?;
        // The first start of a server sets and prints the administrator's password, so it is not kept here.
        let (registry, _first_start) = Registry::open(&config.data.join(REGISTRY_FILE))?;
        let tenant = tenant.of(&registry)?;
        Ok(Destination::Directory { store, registry: Box::new(registry), tenant })
    };
    Ok(match directory_or_server(server, config, directory)? {
        Access::Directory(directory) => directory,
        Access::Server(api) => {
            tenant.check_server()?;
            Destination::Server(api)
        }
    })
}

/// Describes how an unknown device is added.
fn with_remedy(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref() {
        Some(UnknownDevice(name)) => {
            anyhow!("{error}; add it with `tacho device add {}`, or let --create do it", program::word(name))
        }
        None => error,
    }
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
    let sent = upload(plan, &api, token)?;
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
