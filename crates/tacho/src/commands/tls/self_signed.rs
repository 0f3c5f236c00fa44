//! `tacho tls self-signed`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::certificates;
use crate::output::say;

/// Makes a certificate for tests and for networks of one's own
///
/// Writes three files: ca.pem (the authority that clients have to trust), server.pem and server-key.pem (certificate and key
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

/// Runs the command.
pub(super) fn run(args: &SelfSignedArgs) -> anyhow::Result<()> {
    let names = match args.names.as_slice() {
        [] => ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };
    say(usage(&names[0], &SelfSigned::make(&args.out, &names)?))
}

/// The files of an authority and a certificate that it signed.
#[derive(Debug)]
pub(crate) struct SelfSigned {
    /// The certificate of the authority, which clients trust.
    pub(crate) ca: PathBuf,
    /// The certificate of the server.
    pub(crate) certificate: PathBuf,
    /// The key of the server.
    pub(crate) key: PathBuf,
}

impl SelfSigned {
    fn in_directory(directory: &Path) -> Self {
        let [ca, certificate, key] =
            ["ca.pem", "server.pem", "server-key.pem"].map(|name| directory.join(name));
        Self { ca, certificate, key }
    }

    /// Makes the files for these names and addresses. It replaces none.
    fn make(directory: &Path, names: &[String]) -> anyhow::Result<Self> {
        let made = certificates::make(names).context("cannot make a certificate for these names")?;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        let directory =
            directory.canonicalize().with_context(|| format!("cannot read {}", directory.display()))?;
        let files = Self::in_directory(&directory);
        for (path, text, mode) in [
            (&files.ca, &made.ca, 0o644),
            (&files.certificate, &made.certificate, 0o644),
            (&files.key, &made.key, 0o600),
        ] {
            write_new(path, text, mode).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(files)
    }

    /// The files of the directory, or new ones if it has none.
    pub(crate) fn find_or_make(directory: &Path, names: &[String]) -> anyhow::Result<Self> {
        match directory.canonicalize() {
            Ok(found) if Self::in_directory(&found).certificate.exists() => Ok(Self::in_directory(&found)),
            _ => Self::make(directory, names),
        }
    }
}

fn write_new(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
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
