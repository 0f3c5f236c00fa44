//! The command line: parses it and runs the command. The help texts of the commands are their documentation.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    bench, config, delete, demo, device, export, import, key, maintenance, sensor, serve, shell, sql, status,
    table, tenant, tls, tune, user,
};
use crate::{output, program};

/// Tachograph is a telemetry platform: it stores the data that a fleet of devices reports, and serves it live, by time and by SQL.
#[derive(Debug, Parser)]
#[command(name = "tacho", version = VERSION, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The version, with the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TACHO_COMMIT"));

const EXAMPLES: &str = "\
Examples:
  tacho demo                              runs a server with a simulated fleet
  tacho serve --data /var/lib/tacho       runs the server
  tacho device add \"truck 7\"              adds a device, and prints how it connects
  tacho user add bi@example.org           adds a login that can only read
  tacho sql \"SELECT count(*) FROM telemetry\"
  tacho import --device car drive1.csv    imports a recorded drive as data of a device
  tacho status                            shows whether a server runs here, and its state
  tacho check --data /var/lib/tacho       verifies all files on disk
  tacho backup /mnt/backup/tacho          makes a copy for `tacho restore`
  tacho tune host:                        shows what to change on this machine, and why

Exit codes: 0 success, 1 failure, 2 wrong command line or configuration.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Serve(serve::ServeArgs),
    Status(status::StatusArgs),
    /// Adds, shows, renames and deletes devices, and replaces their access tokens
    #[command(subcommand)]
    Device(device::DeviceCommand),
    /// Manages users with their roles and passwords, and the key of session tokens
    #[command(subcommand)]
    User(user::UserCommand),
    /// Adds, lists and deletes API keys, with which programs log in
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Adds, lists and deletes tenants, each with devices, users and tables of its own
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    Sql(sql::SqlArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Delete(delete::DeleteArgs),
    /// Lists tables and their columns, sets how long a table keeps its rows, and drops tables
    #[command(subcommand)]
    Table(table::TableCommand),
    Check(maintenance::CheckArgs),
    Backup(maintenance::BackupArgs),
    Restore(maintenance::RestoreArgs),
    Flush(maintenance::FlushArgs),
    Compact(maintenance::CompactArgs),
    /// Runs load tests, among them one that kills the server and looks for lost points
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Tune(tune::TuneArgs),
    /// Checks virtual sensors, shows how they are computed, runs them over CSV files, and lists those of a server
    #[command(subcommand)]
    Sensor(sensor::SensorCommand),
    /// Makes certificates for TLS
    #[command(subcommand)]
    Tls(tls::TlsCommand),
    Config(config::ConfigArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// Runs the command of this process.
pub(crate) fn run() -> ExitCode {
    let matches = runnable(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Status(args) => return status::run(&args),
        Command::Device(command) => device::run(&command),
        Command::User(command) => user::run(&command),
        Command::Key(command) => key::run(&command),
        Command::Tenant(command) => tenant::run(&command),
        Command::Sql(args) => sql::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Table(command) => table::run(&command),
        Command::Check(args) => maintenance::check(&args),
        Command::Backup(args) => maintenance::back_up(&args),
        Command::Restore(args) => maintenance::restore(&args),
        Command::Flush(args) => maintenance::flush(&args),
        Command::Compact(args) => maintenance::compact(&args),
        Command::Bench(command) => bench::run(&command),
        Command::Tune(args) => return tune::run(&args),
        Command::Sensor(command) => sensor::run(&command),
        Command::Tls(command) => tls::run(&command),
        Command::Config(args) => config::run(&args),
        Command::Completions(args) => shell::complete(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, Cli::command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error),
    }
}

/// The command with examples that can be typed unchanged.
fn runnable(command: clap::Command) -> clap::Command {
    let examples = command.get_after_help().map(|text| program::runnable_examples(&text.to_string()));
    let command = match examples {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    command.mut_subcommands(runnable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of a command and of those below it.
    fn examples(command: &clap::Command) -> Vec<String> {
        let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = own.lines().filter_map(program::example_of).map(str::to_owned).collect::<Vec<_>>();
        own.into_iter().chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn every_example_is_a_valid_command_line() {
        let all = examples(&Cli::command());
        assert!(all.len() > 30, "{all:?}");
        for example in all {
            let words = program::words(&example);
            if let Err(error) = Cli::command().try_get_matches_from(&words) {
                panic!("{example}\n{words:?}\n{error}");
            }
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
