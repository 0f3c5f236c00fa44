//! `tacho tls`: certificates for TLS.

mod self_signed;

use clap::Subcommand;

use self_signed::SelfSignedArgs;

/// The subcommands of `tacho tls`.
#[derive(Debug, Subcommand)]
pub(crate) enum TlsCommand {
    SelfSigned(SelfSignedArgs),
}

pub(crate) fn run(command: &TlsCommand) -> anyhow::Result<()> {
    match command {
        TlsCommand::SelfSigned(args) => self_signed::run(args),
    }
}
