//! `tacho table`: the tables of a running server or of a data directory.

mod columns;
mod drop;
mod drop_column;
mod list;
mod set;
mod ttl;

use clap::Subcommand;

use columns::ColumnsArgs;
use drop::DropTableArgs;
use drop_column::DropColumnArgs;
use list::ListArgs;
use set::SetArgs;

/// The subcommands of `tacho table`.
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    List(ListArgs),
    Columns(ColumnsArgs),
    Drop(DropTableArgs),
    DropColumn(DropColumnArgs),
    Set(SetArgs),
}

pub(crate) fn run(command: &TableCommand) -> anyhow::Result<()> {
    match command {
        TableCommand::List(args) => list::run(args),
        TableCommand::Columns(args) => columns::run(args),
        TableCommand::Drop(args) => drop::run(args),
        TableCommand::DropColumn(args) => drop_column::run(args),
        TableCommand::Set(args) => set::run(args),
    }
}
