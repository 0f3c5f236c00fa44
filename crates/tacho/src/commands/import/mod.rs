//! `tacho import`: CSV, Parquet and line protocol files become rows of devices or of tables.
//!
//! CSV files are read twice. The first pass finds the types of the columns and everything that cannot be imported; the
//! second pass stores the rows. A row is identified by its tags and time, so importing it again changes nothing.

mod args;
mod cell;
mod csv_counts;
mod csv_file;
mod devices;
mod file_format;
mod options;
mod outcome;
mod read_ahead;
mod repeated;
mod sink;
mod table_rows;
mod tables;
mod time;

use anyhow::anyhow;
use hub::bulk::ImportRules;
use hub::clock::system_now;

pub(crate) use args::ImportArgs;
use file_format::{FileFormat, Precision};
use options::Task;
use tables::TableImport;

use crate::config::Config;
use crate::data_directory::initialise;

/// Runs the command.
pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    let task = options::task(args).map_err(|reason| anyhow!(reason))?;
    options::check_files(&args.files).map_err(|reason| anyhow!(reason))?;
    let config = args.data.load()?;
    let rules = ImportRules::of(&config.ingest, system_now(), args.any_time);
    match task {
        Task::Devices(of) => devices::run(args, &of, rules, &config),
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
        initialise(&config.data)?;
    }
    let import = TableImport {
        table,
        format,
        precision: args.precision.unwrap_or(Precision::Ns),
        tags: &args.tags,
        ts: args.ts_column.as_deref(),
        ts_format: args.ts_format.as_ref(),
        zone: args.zone(),
        dialect: args.dialect(),
        files: &args.files,
        skip_policy: args.skip_policy(),
        rules,
        any_time: args.any_time,
        json: args.json,
    };
    tables::run(&import, (&args.server, &args.tenant), config)
}
