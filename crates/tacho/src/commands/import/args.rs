//! The options of `tacho import`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hub::bulk::{ClockChange, Zone};

use super::cell::DecimalMark;
use super::csv_file::{self, Dialect};
use super::file_format::{FileFormat, Precision};
use super::outcome::Care;
use super::time::{self, TimeFormat};
use crate::client::ServerArgs;
use crate::data_args::DataArgs;

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
    pub(super) device: Option<String>,
    /// Column with the name of the device of each row
    #[arg(long, value_name = "COLUMN", conflicts_with = "table")]
    pub(super) device_column: Option<String>,
    /// Table that the rows go to
    #[arg(long, value_name = "NAME")]
    pub(super) table: Option<String>,
    /// Makes the data directory and the devices that are missing
    #[arg(long)]
    pub(super) create: bool,
    /// How the files are written [default: what their endings say: .parquet, .lp for lines, otherwise csv]
    #[arg(long, value_enum)]
    pub(super) format: Option<FileFormat>,
    /// Unit of the times of lines [default: ns]
    #[arg(long, value_enum)]
    pub(super) precision: Option<Precision>,
    /// Column that is a tag of the table; may be repeated
    #[arg(long = "tag", value_name = "COLUMN")]
    pub(super) tags: Vec<String>,
    /// Column with the time of each row
    #[arg(long, value_name = "COLUMN")]
    pub(super) ts_column: Option<String>,
    /// How it is written: rfc3339; s, ms, us or ns since 1970; or a pattern such as "%d.%m.%Y %H:%M:%S%.f" [default: rfc3339]
    #[arg(long, value_name = "FORMAT")]
    pub(super) ts_format: Option<TimeFormat>,
    /// Where times without an offset were written: UTC, +02:00, Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    pub(super) timezone: Option<Zone>,
    /// What a local time means that clocks there showed twice, or skipped: the earlier or the later of the two times that it
    /// can be; or it is left out and counted [default: refuse]
    #[arg(long, value_name = "WHICH", value_parser = clap_clock_change())]
    pub(super) clock_change: Option<ClockChange>,
    /// Time of the first row, such as 2024-05-01T08:00:00Z [default: so that the last row is now]
    #[arg(long, value_name = "TIME", value_parser = time::parse_start)]
    pub(super) start: Option<i64>,
    /// Time between two rows, such as 1s or 100ms [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = time::parse_interval)]
    pub(super) interval: Option<Duration>,
    /// What stands between the cells of CSV files: one character, or tab [default: what the first line says]
    #[arg(long, value_name = "CHARACTER", value_parser = csv_file::parse_delimiter)]
    pub(super) delimiter: Option<u8>,
    /// What stands before decimal places in CSV files [default: . unless a cell looks otherwise, which is asked about]
    #[arg(long, value_enum, value_name = "MARK")]
    pub(super) decimal: Option<DecimalMark>,
    /// Takes times that no device may send
    #[arg(long)]
    pub(super) any_time: bool,
    /// Imports nothing unless everything can be stored as it is
    #[arg(long, conflicts_with = "lenient")]
    pub(super) strict: bool,
    /// Succeeds although something was left out; the report says what
    #[arg(long)]
    pub(super) lenient: bool,
    /// Prints the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Access token of the device, where there is no login: rows then go through the door for devices
    #[arg(long)]
    pub(super) token: Option<String>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) data: DataArgs,
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

/// Reads `--clock-change`.
fn clap_clock_change() -> impl TypedValueParser<Value = ClockChange> {
    PossibleValuesParser::new(["refuse", "earlier", "later"])
        .map(|name| name.parse().expect("BUG: a possible value is understood"))
}

impl ImportArgs {
    /// The zone of times without an offset, and the rule for local times at a change of the clocks.
    pub(super) fn zone(&self) -> Option<Zone> {
        let zone = self.timezone.clone()?;
        Some(zone.with_clock_change(self.clock_change.unwrap_or_default()))
    }

    /// What happens when something cannot be imported.
    pub(super) fn care(&self) -> Care {
        match (self.strict, self.lenient) {
            (true, _) => Care::Strict,
            (_, true) => Care::Lenient,
            _ => Care::Default,
        }
    }

    /// The form of CSV files.
    pub(super) fn dialect(&self) -> Dialect {
        Dialect { delimiter: self.delimiter, decimal: self.decimal }
    }
}
