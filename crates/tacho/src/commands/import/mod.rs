//! `tacho import`: CSV, Parquet and line protocol files become rows of devices or of tables.
//!
//! The crate `import` reads the files; here are the options, and the choice of a server or a data directory.

mod args;
mod devices;
mod options;
mod progress;
mod tables;

use anyhow::anyhow;
use hub::bulk::ImportRules;
use hub::clock::system_now;
use import::tables::TableImport;
use import::{FileFormat, Precision};

pub(crate) use args::ImportArgs;
use options::Task;
use progress::progress;

use crate::config::Config;
use crate::data_directory::initialise;

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
        rules,
        progress: &progress,
    };
    tables::run(&import, args, config)
}
