//! `tacho serve`: the server.

use clap::Args;

use crate::data_args::DataArgs;
use crate::listen_args::ListenArgs;
use crate::logging;
use crate::output::Audience;
use crate::server::Server;

/// Runs the server
///
/// Devices write over MQTT 3.1.1 and 5 and over HTTP. By default the server acknowledges data when it is on the disk.
/// Readers use HTTP, WebSocket, SQL and, if it is enabled, PostgreSQL's protocol. The server prints a line for each address
/// on which it listens, then `ready`.
///
/// The first start creates the data directory and an administrator. It prints the administrator's random password once and
/// keeps it in the file admin-password of the data directory. SIGTERM (or Ctrl-C) stops the server cleanly: it sends the last
/// acknowledgements and syncs. A second signal stops it at once. Acknowledged data is safe in both cases.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho serve
  tacho serve --data /var/lib/tacho --config /etc/tacho.toml
  TACHO_MQTT_LISTEN=0.0.0.0:1883 tacho serve --data /var/lib/tacho
  TACHO_LOG=debug tacho serve
  tacho serve --http 127.0.0.1:0 --mqtt 127.0.0.1:0 --json    for scripts: prints the ports in use")]
pub(crate) struct ServeArgs {
    /// Prints one JSON line when the server is ready: addresses, data directory, login and the file with its password.
    /// All other lines go to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// Runs the command until a signal ends it.
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<()> {
    let mut config = args.data.load()?;
    args.listen.apply(&mut config);
    logging::start(&config)?;
    let mut server = Server::start(&config, Audience::of(args.json))?;
    server.announce(&[]);
    server.wait_for_signal()?;
    server.stop()
}
