//! `tacho tls self-signed`.

use std::path::PathBuf;

use clap::Args;

use crate::output::say;
use crate::self_signed::SelfSigned;

/// Makes a certificate for tests and for networks of one's own
///
/// Writes three files: ca.pem (the authority that clients must trust), server.pem and server-key.pem (certificate and key
/// for `[tls]`). Only the current user can read the key. The key of the authority is not kept: it signs no other certificate. The
/// command replaces no file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho tls self-signed --out /etc/tacho/tls --name tacho.example.org --name 192.0.2.7
  tacho tls self-signed --out ./tls")]
pub(crate) struct SelfSignedArgs {
    /// Directory for the files; it is created
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name or IP address by which clients reach the server; may be repeated [default: localhost, 127.0.0.1, ::1]
    #[arg(long = "name", value_name = "HOST")]
    names: Vec<String>,
}

pub(super) fn run(args: &SelfSignedArgs) -> anyhow::Result<()> {
    let names = match args.names.as_slice() {
        [] => ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };
    say(usage(&names[0], &SelfSigned::make(&args.out, &names)?))
}

fn usage(host: &str, files: &SelfSigned) -> String {
    let (ca, certificate, key) = (files.ca.display(), files.certificate.display(), files.key.display());
    format!(
        "\
# Settings of the server:
[tls]
certificate = \"{certificate}\"
key = \"{key}\"
[mqtt]
tls_listen = \"0.0.0.0:8883\"
[http]
tls_listen = \"0.0.0.0:8443\"

# Clients, which need {ca}:
#   mosquitto_pub --cafile {ca} -h {host} -p 8883 -u TOKEN -q 1 -t v1/devices/me/telemetry -m '{{\"speed\": 52.5}}'
#   curl --cacert {ca} https://{host}:8443/healthz
#   psql \"host={host} user=USER dbname=tacho sslmode=verify-full sslrootcert={ca}\""
    )
}
