//! `tacho import`: CSV files become a device's data, through the same HTTP door that devices use.
//!
//! Two passes: the first reads every file to its end and finds what cannot be imported before anything is sent, and how
//! many rows there are; the second sends them, each request acknowledged before the next. Importing the same rows with
//! the same times again changes nothing, because a row is known by its time.

mod cell;
mod header;
mod plan;
mod report;
mod rows;
mod time;
mod upload;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::Value;

use crate::bulk::Precision;
use crate::bulk::import::{BulkImport, FileFormat};
use crate::cli::PlaceArgs;
use crate::cli::output::say;
use crate::client::{Api, ServerArgs, escaped};
use crate::config::Config;
pub(crate) use time::TimeFormat;
pub(crate) use upload::pause_after;

/// Imports CSV files as data of a device, or CSV, Parquet and line protocol files into tables
///
/// With --device:
///
/// The first line of a file names the columns; each becomes a key. Blanks around a name, a unit in parentheses at its end
/// and an empty `()` are taken off: `ENGINE_RPM ()` is the key ENGINE_RPM, `SPEED (km/h)` the key SPEED. A column without
/// a name is skipped. Numbers become numbers, all other text stays text, empty cells are skipped and counted.
///
/// Without --ts-column a row has no time of its own: rows are laid one --interval apart from --start on, those of several
/// files one file after the other. Without --start the last row is placed at the present time.
///
/// Rows travel through the device door of a running server and are acknowledged when they are on its disk. At the end
/// the server is asked what it has, and the command fails if anything is missing.
///
/// With --table: columns named by --tag are tags, the one named by --ts-column (or `ts`) has the times, all others are
/// fields under their names; each has one type, the narrowest that holds all its cells. Files of `tacho export` in Parquet
/// need no flags. Rows go straight into the store of a stopped server's directory, or through the bulk door of a running
/// one, and are on the disk before they are counted. Every row is counted: imported, or skipped and why.
///
/// With --format lines the files are in InfluxDB's line protocol: each measurement is a table, so none is named. Lines
/// without a time are skipped.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho import --device car drive1.csv
  tacho import --device car --start 2024-05-01T08:00:00Z --interval 1s drive1.csv drive2.csv
  tacho import --device car --ts-column time --ts-format ms log.csv
  tacho import --device car --ts-column Date --ts-format \"%d.%m.%Y %H:%M:%S\" log.csv
  tacho import --table telemetry telemetry.parquet
  tacho import --table weather --tag site --tag sensor --ts-column time weather.csv
  tacho import --format lines --precision s export.lp")]
pub(crate) struct ImportArgs {
    /// Name of the device that the data is of; it must be there (`tacho device add`)
    #[arg(long, value_name = "NAME", required_unless_present_any = ["table", "format"], conflicts_with_all = ["table", "format"])]
    device: Option<String>,
    /// Table that the rows go to
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// How the files are written [default: parquet if all of them end in .parquet, otherwise csv]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Unit of the times of lines
    #[arg(long, value_enum, default_value = "ns", requires = "format")]
    precision: Precision,
    /// Column that is a tag of the table; may be repeated
    #[arg(long = "tag", value_name = "COLUMN", requires = "table")]
    tags: Vec<String>,
    /// Column with the time of each row
    #[arg(long, value_name = "COLUMN")]
    ts_column: Option<String>,
    /// How it is written: rfc3339, s, ms or us since 1970, or a pattern such as "%d.%m.%Y %H:%M:%S" (UTC unless the
    /// pattern has an offset)
    #[arg(long, value_name = "FORMAT", default_value = "rfc3339", requires = "ts_column")]
    ts_format: TimeFormat,
    /// Time of the first row, such as 2024-05-01T08:00:00Z [default: so that the last row is now]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["ts_column", "table"], value_parser = parse_start)]
    start: Option<i64>,
    /// Time between two rows, such as 1s or 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", conflicts_with_all = ["ts_column", "table"], value_parser = time::parse_interval)]
    interval: Duration,
    /// Access token of the device, where there is no login to look it up with
    #[arg(long)]
    token: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    place: PlaceArgs,
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

fn parse_start(text: &str) -> Result<i64, String> {
    TimeFormat::Rfc3339
        .parse(text)
        .map_err(|_| format!("\"{text}\" is no time; write it as 2024-05-01T08:00:00Z"))
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let config = args.place.load()?;
    let format = args.format.unwrap_or_else(|| FileFormat::of(&args.files));
    match (&args.table, &args.device, format) {
        (None, _, FileFormat::Lines) => into_tables(args, "", format, &config),
        (Some(_), _, FileFormat::Lines) => {
            anyhow::bail!("lines name their tables: leave --table out, or say another --format")
        }
        (Some(table), _, _) => into_tables(args, table, format, &config),
        (None, Some(device), _) => into_device(args, device, &config),
        (None, None, _) => anyhow::bail!("say which --table the rows go to"),
    }
}

fn into_tables(args: &ImportArgs, table: &str, format: FileFormat, config: &Config) -> anyhow::Result<()> {
    let (tags, ts, ts_format) = (&args.tags, args.ts_column.as_deref(), &args.ts_format);
    let (precision, files) = (args.precision, args.files.as_slice());
    let import = BulkImport { table, format, precision, tags, ts, ts_format, files };
    crate::bulk::import::run(&import, &args.server, config)
}

fn into_device(args: &ImportArgs, name: &str, config: &Config) -> anyhow::Result<()> {
    let timing = plan::Timing {
        column: args.ts_column.clone(),
        format: args.ts_format.clone(),
        start_ms: args.start,
        interval_ms: i64::try_from(args.interval.as_millis()).context("the interval is too long")?,
    };
    let plan = plan::Plan::read(&args.files, &timing)?;
    let mut api = args.server.find(config)?;
    let device = match &args.token {
        // A login is of use for reading back, but not needed.
        Some(token) => match args.server.log_in(&mut api, config) {
            Ok(()) => Device { token: token.clone(), id: Some(find(&api, name)?.0) },
            Err(_) => Device { token: token.clone(), id: None },
        },
        None => {
            args.server.log_in(&mut api, config)?;
            let (id, token) = find(&api, name)?;
            Device { token, id: Some(id) }
        }
    };
    say(plan.describe())?;
    let sent = upload::upload(&plan, &api, &device.token)?;
    say(report::summary(&plan, &sent, name))?;
    match device.id {
        Some(id) => say(verify::verify(&api, &id, &sent)?),
        None => say("not read back: there is no login (set TACHO_PASSWORD)"),
    }
}

/// The device that the rows are sent as.
struct Device {
    token: String,
    /// Known when there is a login.
    id: Option<String>,
}

/// Id and access token of a device.
fn find(api: &Api, name: &str) -> anyhow::Result<(String, String)> {
    let path = format!("/api/tenant/devices?deviceName={}", escaped(name));
    let hint = || format!("cannot find the device \"{name}\"; add it with `tacho device add`");
    let device = api.get(&path).with_context(hint)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let id =
        text(&device["id"]["id"]).ok_or_else(|| api.unexpected("GET", &path, "a device without an id"))?;
    let path = format!("/api/device/{id}/credentials");
    let credentials = api.get(&path)?;
    let token = text(&credentials["credentialsId"]);
    let token = token.ok_or_else(|| api.unexpected("GET", &path, "no credentialsId in the answer"))?;
    Ok((id, token))
}
