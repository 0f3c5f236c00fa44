//! Finds the running server of a data directory and logs in.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clients::tls::{TlsConfig, TlsOptions, Trust};
use gateway::door::ListenAddress;
use serde::{Deserialize, Serialize};

use super::api::{Api, client_of};
use crate::config::Config;
use crate::limits::REQUEST_TIMEOUT;
use crate::program::{path_word, word};

/// A running server writes this file into its data directory and removes it at its end.
const RUNTIME_FILE: &str = "server.json";
/// The scheme of the door that commands use.
const HTTP: &str = "http";
/// The first start of a server writes this file (see `hub::registry::FirstStart`).
const PASSWORD_FILE: &str = hub::registry::ADMIN_PASSWORD_FILE;

/// The content of the runtime file, by which other processes of the same user find a running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RuntimeFile {
    /// The server's process id.
    pub pid: u32,
    /// The addresses of its doors by their schemes, such as `http` and `mqtts`.
    #[serde(flatten)]
    pub addresses: BTreeMap<String, SocketAddr>,
}

impl RuntimeFile {
    /// The content for a server in this process.
    pub(crate) fn of(addresses: impl Iterator<Item = ListenAddress>) -> Self {
        let addresses = addresses.map(|listens| (listens.scheme.to_owned(), listens.address)).collect();
        Self { pid: std::process::id(), addresses }
    }

    /// The path of the file in a data directory.
    pub(crate) fn path(data: &Path) -> PathBuf {
        data.join(RUNTIME_FILE)
    }

    /// Writes the file, readable by its owner only. A rename puts the complete file in place.
    pub(crate) fn write(&self, data: &Path) -> io::Result<()> {
        let path = Self::path(data);
        let unfinished = path.with_extension("tmp");
        if unfinished.exists() {
            std::fs::remove_file(&unfinished)?;
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        let text = serde_json::to_string(self).expect("BUG: numbers and addresses are JSON");
        file.write_all(text.as_bytes())?;
        std::fs::rename(&unfinished, &path)
    }

    /// Reads the file; `None` if it does not exist.
    pub(crate) fn read(data: &Path) -> anyhow::Result<Option<Self>> {
        let path = Self::path(data);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let found: Self = serde_json::from_str(&text)
                    .with_context(|| format!("{} is not what a server writes", path.display()))?;
                // Commands speak HTTP, which every server serves.
                ensure!(found.addresses.contains_key(HTTP), "{} has no HTTP address", path.display());
                Ok(Some(found))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The URL for clients on this machine: loopback if the server listens on all addresses.
    pub(crate) fn url(&self) -> String {
        let mut address = self.addresses[HTTP];
        if address.ip().is_unspecified() {
            let loopback =
                if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
            address.set_ip(loopback);
        }
        format!("http://{address}")
    }
}

/// The arguments that select a server and a login.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// HTTP address of the server, such as localhost:8080 or https://localhost:8443 [default: the server that runs on the data
    /// directory]
    #[arg(long, value_name = "URL", value_parser = with_scheme)]
    pub url: Option<String>,
    /// File of the authority that signed the certificate of an https server, such as ca.pem of `tacho tls self-signed`
    /// [default: the authorities of the system]
    #[arg(long, value_name = "FILE", requires = "url")]
    pub cafile: Option<PathBuf>,
    /// Takes any certificate of an https server. Somebody between can then read and change everything: only for tests
    #[arg(long, requires = "url", conflicts_with = "cafile")]
    pub insecure: bool,
    /// Login name
    #[arg(long, value_name = "LOGIN", default_value = hub::registry::ADMIN_LOGIN)]
    pub user: String,
    /// Password. Other users of the machine can see this option, so prefer the variable TACHO_PASSWORD [default: the file
    /// admin-password of the data directory]
    #[arg(long, env = "TACHO_PASSWORD", hide_env = true, hide_env_values = true)]
    pub password: Option<String>,
}

/// An address with its scheme: http unless it names another one.
fn with_scheme(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(if text.contains("://") { text.to_owned() } else { format!("http://{text}") })
}

impl ServerArgs {
    /// A client of the server of `--url`, or of the server that runs on the data directory. It is not logged in.
    pub(crate) fn find(&self, config: &Config) -> anyhow::Result<Api> {
        self.find_within(config, REQUEST_TIMEOUT)
    }

    /// The same with another limit of the time for a request.
    pub(crate) fn find_within(&self, config: &Config, timeout: Duration) -> anyhow::Result<Api> {
        if let Some(url) = &self.url {
            return Ok(client_of(url, timeout).with_tls(self.tls(url)?));
        }
        match RuntimeFile::read(&config.data)? {
            Some(runtime) => Ok(client_of(&runtime.url(), timeout)),
            None => bail!(
                "no server runs on {}; start one with `tacho serve --data {}` or name one with --url",
                config.data.display(),
                path_word(&config.data)
            ),
        }
    }

    /// TLS for an address; `None` for one without.
    fn tls(&self, url: &str) -> anyhow::Result<Option<TlsConfig>> {
        if url.starts_with("https://") {
            let trust = match &self.cafile {
                _ if self.insecure => Trust::Everything,
                Some(file) => Trust::File(file.clone()),
                None => Trust::System,
            };
            return Ok(Some(TlsConfig::load(&TlsOptions { trust, identity: None })?));
        }
        let not_for_http = |option: &str| format!("{option} is for https://, and --url {url} has no TLS");
        ensure!(
            url.starts_with("http://"),
            "--url {url}: only http:// and https:// addresses are spoken, such as http://127.0.0.1:8080"
        );
        ensure!(self.cafile.is_none(), not_for_http("--cafile"));
        ensure!(!self.insecure, not_for_http("--insecure"));
        Ok(None)
    }

    /// The options that select this server in another command, with a blank before each.
    pub(crate) fn words(&self) -> String {
        let Some(url) = &self.url else { return String::new() };
        let mut words = format!(" --url {}", word(url));
        if let Some(file) = &self.cafile {
            words += &format!(" --cafile {}", path_word(file));
        }
        if self.insecure {
            words += " --insecure";
        }
        words
    }

    /// Logs a client in.
    pub(crate) fn log_in(&self, api: &Api, config: &Config) -> anyhow::Result<()> {
        let password = match &self.password {
            Some(password) => password.clone(),
            None => self.kept_password(config)?,
        };
        api.log_in(&self.user, &password)
            .with_context(|| format!("cannot log in as {} at {}", self.user, api.base()))
    }

    fn kept_password(&self, config: &Config) -> anyhow::Result<String> {
        let path = config.data.join(PASSWORD_FILE);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("no password: {} cannot be read; set TACHO_PASSWORD (and --user)", path.display())
        })?;
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_runtime_file_is_found_and_private() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(RuntimeFile::read(directory.path()).unwrap(), None);
        let listens = |scheme, address: &str| ListenAddress { scheme, address: address.parse().unwrap() };
        let runtime =
            RuntimeFile::of([listens("http", "0.0.0.0:8080"), listens("mqtt", "[::1]:1883")].into_iter());
        for _ in 0..2 {
            runtime.write(directory.path()).unwrap();
        }
        assert_eq!(RuntimeFile::read(directory.path()).unwrap().as_ref(), Some(&runtime));
        let mode = RuntimeFile::path(directory.path()).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(runtime.url(), "http://127.0.0.1:8080");
    }

    #[test]
    fn an_address_without_a_scheme_is_one_of_http() {
        let cases = [
            ("localhost:8081", "http://localhost:8081"),
            ("http://h", "http://h"),
            ("https://h:1/x", "https://h:1/x"),
            ("ftp://h", "ftp://h"),
        ];
        for (given, expected) in cases {
            assert_eq!(with_scheme(given).unwrap(), expected);
        }
    }

    #[test]
    fn options_of_tls_are_for_https() {
        let args = |url: &str, cafile: Option<&str>, insecure| ServerArgs {
            url: Some(url.to_owned()),
            cafile: cafile.map(PathBuf::from),
            insecure,
            ..ServerArgs::default()
        };
        let tls = |args: &ServerArgs| args.tls(args.url.as_deref().unwrap());
        let error = |args: &ServerArgs| tls(args).unwrap_err().to_string();
        assert!(error(&args("http://h", Some("/ca.pem"), false)).contains("--cafile is for https://"));
        assert!(error(&args("http://h", None, true)).contains("--insecure is for https://"));
        assert!(error(&args("ftp://h", None, false)).contains("only http:// and https://"));
        assert!(error(&args("https://h", Some("/no/ca.pem"), false)).contains("cannot read /no/ca.pem"));
        let insecure = args("https://h", None, true);
        assert!(tls(&insecure).unwrap().is_some());
        assert!(tls(&args("http://h", None, false)).unwrap().is_none());
        assert_eq!(insecure.words(), " --url https://h --insecure");
        assert_eq!(
            args("https://h", Some("/c a.pem"), false).words(),
            " --url https://h --cafile '/c a.pem'"
        );
    }

    #[test]
    fn a_file_of_another_user_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(RuntimeFile::path(directory.path()), "{}").unwrap();
        let error = RuntimeFile::read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("server.json"), "{error}");
    }
}
