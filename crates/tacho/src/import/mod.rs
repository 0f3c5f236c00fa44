//! `tacho import`: CSV, Parquet and line protocol files become rows of devices or of tables.
//!
//! Data of devices are read twice: the first pass finds what cannot be imported before anything is stored, what the columns
//! hold and how many rows there are; the second stores them. Importing the same rows with the same times again changes
//! nothing, because a row is known by its device and time.

mod cell;
mod csv_file;
mod destination;
mod devices;
mod header;
mod options;
mod plan;
mod report;
mod rows;
mod time;
mod upload;
mod verify;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hub::bulk::{ClockChange, ImportRules, Zone};
use hub::clock::system_now;
use serde_json::{Value, json};

use crate::bulk::import::{BulkImport, FileFormat, verdict};
use crate::bulk::{Care, FileOutcome, Precision, totals};
use crate::cli::output::say;
use crate::cli::{PlaceArgs, program};
use crate::client::ServerArgs;
use crate::config::Config;
pub(crate) use cell::{DecimalMark, has_decimal_comma, is_not_finite, is_rounded, number};
pub(crate) use csv_file::{CsvFile, Dialect, FileError, line_of, name as delimiter_name};
use destination::Destination;
use devices::{Imported, Settings};
pub(crate) use header::HeaderError;
use options::Task;
pub(crate) use plan::shown as shown_time;
use plan::{DeviceOf, Plan, Timing};
use rows::Roles;
pub(crate) use time::{Time, TimeCounts, TimeError, TimeFormat, TimeReader, Unit};
pub(crate) use upload::pause_after;

/// Time between two rows when nothing is said.
const INTERVAL: Duration = Duration::from_secs(1);

/// Imports CSV files as data of devices, or CSV, Parquet and line protocol files into tables
///
/// DATA OF DEVICES: with --device (or --device-column, where a column names the device of each row) the first line of a CSV
/// file names the columns; each becomes a key. Blanks around a name, a unit in parentheses at its end and an empty `()` are
/// taken off: `ENGINE_RPM ()` is the key ENGINE_RPM, `SPEED (km/h)` the key SPEED. A column without a name is skipped.
///
/// Without --ts-column a row has no time of its own: rows are laid one --interval apart from --start on, those of several
/// files one file after the other. Without --start the last row is placed at the present time.
///
/// --create makes what is missing: the data directory and the devices. Without --device a file is then the data of a device
/// that is called like the file. No server is needed: rows go to the one that runs on the data directory, or straight into
/// the directory. What came in is read back, and the command says how to look at it.
///
/// TABLES: with --table, columns named by --tag are tags, the one named by --ts-column (or `ts`) has the times, all others
/// are fields under their names; each has one type, the narrowest that holds all its cells. Files of `tacho export` in
/// Parquet need no flags. Tags and fields of Parquet may have any type that has an exact text (docs/ops/import.md).
///
/// LINES: with --format lines (or files *.lp) the files are in InfluxDB's line protocol: each measurement is a table.
///
/// CELLS: numbers are numbers, all else is text. `00123` is text, and so is a whole number beyond 64 bits. NaN and inf among
/// numbers are left out. The first line says what stands between cells; numbers with decimal commas are asked about.
///
/// TIMES are kept to the microsecond. One without an offset from UTC needs --timezone; where clocks there showed it twice or
/// never it is left out, unless --clock-change says which of the two times it means. One that no device may send (before
/// 1971, or more than a week ahead, as the configuration has it) is left out: it is of another unit more often than not.
///
/// Everything that is left out is counted and named. The command then fails, after the rest was imported: --strict imports
/// nothing instead, --lenient takes it for a success. Rows are on the disk before they are counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho import drive.csv --create --data ./data       a device `drive`, readable at once
  tacho import --device car drive1.csv
  tacho import --device car --start 2024-05-01T08:00:00Z --interval 1s drive1.csv drive2.csv
  tacho import --device car --ts-column time --ts-format ms log.csv
  tacho import --device car --ts-column Date --ts-format \"%d.%m.%Y %H:%M:%S%.f\" --timezone Europe/Berlin log.csv
  tacho import --device-column car --create --ts-column time --delimiter ';' --decimal , fleet.csv
  tacho import --table telemetry telemetry.parquet
  tacho import --table weather --tag site --tag sensor --ts-column time weather.csv
  tacho import --format lines --precision s export.lp")]
pub(crate) struct ImportArgs {
    /// Name of the device that the data is of
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "device_column"])]
    device: Option<String>,
    /// Column with the name of the device of each row
    #[arg(long, value_name = "COLUMN", conflicts_with = "table")]
    device_column: Option<String>,
    /// Table that the rows go to
    #[arg(long, value_name = "NAME")]
    table: Option<String>,
    /// Makes the data directory and the devices that are missing
    #[arg(long)]
    create: bool,
    /// How the files are written [default: what their endings say: .parquet, .lp for lines, otherwise csv]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Unit of the times of lines [default: ns]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Column that is a tag of the table; may be repeated
    #[arg(long = "tag", value_name = "COLUMN")]
    tags: Vec<String>,
    /// Column with the time of each row
    #[arg(long, value_name = "COLUMN")]
    ts_column: Option<String>,
    /// How it is written: rfc3339; s, ms, us or ns since 1970; or a pattern such as "%d.%m.%Y %H:%M:%S%.f" [default: rfc3339]
    #[arg(long, value_name = "FORMAT")]
    ts_format: Option<TimeFormat>,
    /// Where times without an offset were written: UTC, +02:00, Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<Zone>,
    /// What a local time means that clocks there showed twice, or skipped: the earlier or the later of the two times that it
    /// can be; or it is left out and counted [default: refuse]
    #[arg(long, value_name = "WHICH", value_parser = clap_clock_change())]
    clock_change: Option<ClockChange>,
    /// Time of the first row, such as 2024-05-01T08:00:00Z [default: so that the last row is now]
    #[arg(long, value_name = "TIME", value_parser = time::parse_start)]
    start: Option<i64>,
    /// Time between two rows, such as 1s or 100ms [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time::parse_interval)]
    interval: Option<Duration>,
    /// What stands between the cells of CSV files: one character, or tab [default: what the first line says]
    #[arg(long, value_name = "CHARACTER", value_parser = csv_file::parse_delimiter)]
    delimiter: Option<u8>,
    /// What stands before decimal places in CSV files [default: . unless a cell looks otherwise, which is asked about]
    #[arg(long, value_enum, value_name = "MARK")]
    decimal: Option<DecimalMark>,
    /// Takes times that no device may send
    #[arg(long)]
    any_time: bool,
    /// Imports nothing unless everything can be stored as it is
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,
    /// Succeeds although something was left out; the report says what
    #[arg(long)]
    lenient: bool,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
    /// Access token of the device, where there is no login: rows then go through the door for devices
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

/// The names of what can be done where clocks were changed.
fn clap_clock_change() -> impl TypedValueParser<Value = ClockChange> {
    PossibleValuesParser::new(["refuse", "earlier", "later"])
        .map(|name| name.parse().expect("BUG: a possible value is understood"))
}

impl ImportArgs {
    /// Where times without an offset were written, and what is done where clocks were changed.
    fn zone(&self) -> Option<Zone> {
        let zone = self.timezone.clone()?;
        Some(zone.with_clock_change(self.clock_change.unwrap_or_default()))
    }

    fn care(&self) -> Care {
        match (self.strict, self.lenient) {
            (true, _) => Care::Strict,
            (_, true) => Care::Lenient,
            _ => Care::Default,
        }
    }

    fn dialect(&self) -> Dialect {
        Dialect { delimiter: self.delimiter, decimal: self.decimal }
    }
}

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let task = options::task(args).map_err(|reason| anyhow!(reason))?;
    options::check_files(&args.files).map_err(|reason| anyhow!(reason))?;
    let config = args.place.load()?;
    let rules = ImportRules::of(&config.ingest, system_now(), args.any_time);
    match task {
        Task::Devices(of) => into_devices(args, &of, rules, &config),
        Task::Table(table, format) => into_tables(args, &table, format, rules, &config),
        Task::Lines => into_tables(args, "", FileFormat::Lines, rules, &config),
    }
}

fn into_tables(
    args: &ImportArgs,
    table: &str,
    format: FileFormat,
    rules: ImportRules,
    config: &Config,
) -> anyhow::Result<()> {
    if args.create {
        crate::upkeep::make(&config.data)?;
    }
    let import = BulkImport {
        table,
        format,
        precision: args.precision.unwrap_or(Precision::Ns),
        tags: &args.tags,
        ts: args.ts_column.as_deref(),
        ts_format: args.ts_format.as_ref(),
        zone: args.zone(),
        dialect: args.dialect(),
        files: &args.files,
        care: args.care(),
        rules,
        any_time: args.any_time,
        json: args.json,
    };
    crate::bulk::import::run(&import, &args.server, config)
}

fn into_devices(args: &ImportArgs, of: &DeviceOf, rules: ImportRules, config: &Config) -> anyhow::Result<()> {
    let format = args.ts_format.clone().unwrap_or(TimeFormat::Rfc3339);
    let roles = Roles {
        time: args.ts_column.clone(),
        times: TimeReader { format, zone: args.zone() },
        device: args.device_column.clone(),
        dialect: args.dialect(),
    };
    let timing = Timing { start_us: args.start, interval: args.interval.unwrap_or(INTERVAL) };
    let plan = Plan::read(&args.files, &roles, &timing, of)?;
    let settings = Settings { care: args.care(), rules, any_time: args.any_time, create: args.create };
    if settings.care == Care::Strict {
        let examined = devices::examine(&plan, &settings)?;
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

/// The report about files; as JSON all that is known when nothing was stored.
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
    let destination = Destination::open(&args.server, config, args.create)?;
    if !args.json {
        say(plan.describe())?;
    }
    let imported = devices::import(plan, settings, &destination);
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
        say(devices::summary(&imported))?;
        if let Some(read) = read {
            say(format_args!("read it   {read}"))?;
        }
    }
    verdict(&imported.files, settings.care)
}

/// A command that shows rows of the first device, as it can be typed.
fn command_that_reads(args: &ImportArgs, config: &Config, imported: &Imported) -> Option<String> {
    let (name, device) = imported.devices.iter().find(|(_, device)| device.rows > 0)?;
    let table = format!("\"{}\"", device.known.table.replace('"', "\"\""));
    let table = if is_plain(&device.known.table) { device.known.table.clone() } else { table };
    let statement = format!(
        "SELECT * FROM {table} WHERE device = '{}' ORDER BY ts DESC LIMIT 5",
        name.replace('\'', "''")
    );
    let place = match &args.server.url {
        Some(url) => format!("--url {}", program::word(url)),
        None => {
            let data = format!("--data {}", program::path_word(&config.data));
            let file =
                args.place.config.as_ref().map(|file| format!(" --config {}", program::path_word(file)));
            data + &file.unwrap_or_default()
        }
    };
    Some(format!("{} sql {} {place}", program::name(), program::double_quoted(&statement)))
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
}

/// Through the door for devices, with nothing but a token.
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
    verdict(&sent.files, args.care())
}
