//! `tacho device`: devices and their access tokens, of a running server or of a data directory.

mod add;
mod list;
mod manage;
mod offline;
mod open;
mod registrar;
mod running;

use clap::Subcommand;

use add::AddArgs;
use list::ListArgs;
use manage::{DeleteArgs, RenameArgs, ShowArgs, TokenArgs};

/// The subcommands of `tacho device`.
#[derive(Debug, Subcommand)]
pub(crate) enum DeviceCommand {
    Add(AddArgs),
    List(ListArgs),
    Show(ShowArgs),
    Rename(RenameArgs),
    Token(TokenArgs),
    Delete(DeleteArgs),
}

pub(crate) fn run(command: &DeviceCommand) -> anyhow::Result<()> {
    match command {
        DeviceCommand::Add(args) => add::run(args),
        DeviceCommand::List(args) => list::run(args),
        DeviceCommand::Show(args) => manage::show(args),
        DeviceCommand::Rename(args) => manage::rename(args),
        DeviceCommand::Token(args) => manage::token(args),
        DeviceCommand::Delete(args) => manage::delete(args),
    }
}
