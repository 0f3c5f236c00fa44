//! The options of `tacho import`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use hub::bulk::{ClockChange, Zone};
use import::{DecimalMark, Dialect, FileFormat, Precision, SkipPolicy, TimeFormat};

use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::tenant_arg::TenantArg;

/// Imports CSV files as data of devices, or CSV, Parquet and line protocol files into tables
///
/// DATA OF DEVICES: with --device, or with --device-column if a column names the device of each row, the first line of a CSV
/// file names the columns, and each column becomes a key. The import removes blanks around a name, a unit in parentheses at
/// its end and an empty `()`: `ENGINE_RPM ()` becomes the key ENGINE_RPM, `SPEED (km/h)` the key SPEED. A column without a
/// name is skipped.
///
/// Without --ts-column rows have no time of their own. The first row then has the time of --start, and each further row is
/// one --interval later, across all files in order. Without --start the last row has the present time.
///
/// --create creates the data directory and the devices if they are missing. Without --device each file then belongs to a
/// device with the name of the file. The import needs no server: it uses the server that runs on the data directory, or writes
/// into the directory itself. It reads the stored values back, and prints a command that shows them.
///
/// TABLES: with --table the columns of --tag are tags, the column of --ts-column (or `ts`) has the times, and all other
/// columns are fields. A field has the narrowest type that fits all its cells. Parquet files of `tacho export` need no further
/// options. In Parquet, tags and fields can have any type with an exact text form (docs/ops/import.md).
///
/// LINES: with --format lines (or files *.lp) the files are in InfluxDB's line protocol. Each measurement is a table.
///
/// CELLS: a cell is a number or text. `00123` is text, and so is a whole number beyond 64 bits. NaN and inf among numbers are
/// skipped. The first line determines the delimiter. If a cell could be a number with a decimal comma, the command asks for
/// --decimal.
///
/// TIMES have microseconds. A time without an offset from UTC needs --timezone. A local time that came twice or never, at a
/// change of the clocks, is skipped unless --clock-change chooses its meaning. A time that no device may send (by default
/// before 1971, or more than a week ahead) is skipped, because it usually has another unit.
///
/// The report counts and names everything that is skipped. The command then imports the rest and fails. With --strict it
/// imports nothing in this case, with --lenient it succeeds. The report counts rows that are on the disk.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho import drive.csv --create --data ./data       as a new device `drive`
  tacho import --device car drive1.csv
  tacho import --device car --start 2024-05-01T08:00:00Z --interval 1s drive1.csv drive2.csv
  tacho import --device car --ts-column time --ts-format ms log.csv
  tacho import --device car --ts-column Date --ts-format \"%d.%m.%Y %H:%M:%S%.f\" --timezone Europe/Berlin log.csv
  tacho import --device-column car --create --ts-column time --delimiter ';' --decimal , fleet.csv
  tacho import --table telemetry telemetry.parquet
  tacho import --table weather --tag site --tag sensor --ts-column time weather.csv
  tacho import --format lines --precision s export.lp")]
pub(crate) struct ImportArgs {
    /// Name of the device
    #[arg(long, value_name = "NAME", conflicts_with_all = ["table", "device_column"])]
    pub(super) device: Option<String>,
    /// Column with the name of the device of each row
    #[arg(long, value_name = "COLUMN", conflicts_with = "table")]
    pub(super) device_column: Option<String>,
    /// Table for the rows
    #[arg(long, value_name = "NAME")]
    pub(super) table: Option<String>,
    /// Creates the data directory and the devices if they are missing
    #[arg(long)]
    pub(super) create: bool,
    /// Format of the files [default: by extension: .parquet, .lp for lines, otherwise csv]
    #[arg(long, value_enum)]
    pub(super) format: Option<FileFormat>,
    /// Unit of the times in line protocol [default: ns]
    #[arg(long, value_enum)]
    pub(super) precision: Option<Precision>,
    /// Column that is a tag of the table; can be repeated
    #[arg(long = "tag", value_name = "COLUMN")]
    pub(super) tags: Vec<String>,
    /// Column with the time of each row
    #[arg(long, value_name = "COLUMN")]
    pub(super) ts_column: Option<String>,
    /// Format of the times: rfc3339; s, ms, us or ns since 1970; or a pattern such as "%d.%m.%Y %H:%M:%S%.f"
    /// [default: rfc3339]
    #[arg(long, value_name = "FORMAT")]
    pub(super) ts_format: Option<TimeFormat>,
    /// Time zone of times without an offset: UTC, +02:00, Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    pub(super) timezone: Option<Zone>,
    /// Meaning of a local time that came twice or never at a change of the clocks: the earlier or the later of its two
    /// possible times, or refuse, which skips it [default: refuse]
    #[arg(long, value_name = "WHICH", value_parser = clap_clock_change())]
    pub(super) clock_change: Option<ClockChange>,
    /// Time of the first row, such as 2024-05-01T08:00:00Z [default: the time that puts the last row at the present]
    #[arg(long, value_name = "TIME", value_parser = import::parse_start)]
    pub(super) start: Option<i64>,
    /// Time between two rows, such as 1s or 100ms [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = import::parse_interval)]
    pub(super) interval: Option<Duration>,
    /// Character between the CSV cells files, or tab [default: found in the first line]
    #[arg(long, value_name = "CHARACTER", value_parser = import::parse_delimiter)]
    pub(super) delimiter: Option<u8>,
    /// Decimal mark in CSV files [default: . but a cell with a decimal comma is an error]
    #[arg(long, value_enum, value_name = "MARK")]
    pub(super) decimal: Option<DecimalMark>,
    /// Accepts times that no device may send
    #[arg(long)]
    pub(super) any_time: bool,
    /// Imports nothing unless everything can be stored as it is
    #[arg(long, conflicts_with = "lenient")]
    pub(super) strict: bool,
    /// Succeeds also if something is skipped, which the report names
    #[arg(long)]
    pub(super) lenient: bool,
    /// Prints the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Access token of the device. With it the import needs no login, and sends the rows to the device API
    #[arg(long)]
    pub(super) token: Option<String>,
    #[command(flatten)]
    pub(super) tenant: TenantArg,
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
    pub(super) fn skip_policy(&self) -> SkipPolicy {
        match (self.strict, self.lenient) {
            (true, _) => SkipPolicy::Strict,
            (_, true) => SkipPolicy::Lenient,
            _ => SkipPolicy::Default,
        }
    }

    /// The CSV form files.
    pub(super) fn dialect(&self) -> Dialect {
        Dialect { delimiter: self.delimiter, decimal: self.decimal }
    }
}
