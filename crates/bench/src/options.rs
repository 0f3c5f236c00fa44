//! Options that several scenarios share, and how their values are written. Each option is defined once: its name,
//! meaning and default stand at the field.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

const MQTT_PORT: u16 = 1883;
const HTTP_PORT: u16 = 8080;

/// What the command line knows and an option cannot.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The program that is started as `<program> serve --data DIR` when no target is given.
    pub server_binary: PathBuf,
    /// Arguments with which the same program makes a part of a load: `bench worker`.
    pub worker_arguments: Vec<String>,
    /// How this run was asked for; goes into the result.
    pub command_line: Vec<String>,
    /// The source commit of the program; goes into the result.
    pub commit: Option<String>,
}

/// The server under test.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
pub struct Target {
    /// MQTT address of a running server, such as mqtt://127.0.0.1:1883. Without it a server is started on a fresh
    /// directory and stopped afterwards.
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// HTTP address of that server, for provisioning and reading back [default: port 8080 of the target's host]
    #[arg(long, value_name = "URL")]
    pub http: Option<String>,
    /// User who may provision devices and read them.
    #[arg(long, default_value = crate::server::ADMIN)]
    pub user: String,
    /// Their password.
    #[arg(long, env = "TACHO_PASSWORD", hide_env_values = true)]
    #[serde(skip)]
    pub password: Option<String>,
    /// Do not create devices; the server knows them or accepts anybody.
    #[arg(long)]
    pub no_provision: bool,
    /// Do not read back what was stored.
    #[arg(long)]
    pub no_verify: bool,
    /// Process of the target, to sample its CPU time and memory.
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Data directory of a server started by this run; it is kept [default: a temporary one beside the result, removed
    /// afterwards]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

impl Target {
    /// The MQTT socket address of the target, if one is given.
    pub(crate) fn mqtt_address(&self) -> Result<Option<SocketAddr>> {
        let Some(url) = &self.target else { return Ok(None) };
        let bad = |what: &str| Error::Options(format!("--target {url}: {what}; write mqtt://host:port"));
        let host_port = match url.split_once("://") {
            Some(("mqtt" | "tcp", rest)) => rest.trim_end_matches('/'),
            Some(_) => return Err(bad("only mqtt:// is spoken")),
            None => url.as_str(),
        };
        resolve(host_port, MQTT_PORT).map(Some).ok_or_else(|| bad("no such address"))
    }

    /// The HTTP base address, given or derived from the MQTT one.
    pub(crate) fn http_base(&self, mqtt: SocketAddr) -> String {
        let derived = || format!("http://{}", SocketAddr::new(mqtt.ip(), HTTP_PORT));
        self.http.clone().unwrap_or_else(derived)
    }
}

fn resolve(host_port: &str, default_port: u16) -> Option<SocketAddr> {
    let with_port = host_port.to_socket_addrs().ok();
    let mut addresses = with_port.or_else(|| (host_port, default_port).to_socket_addrs().ok())?;
    addresses.next()
}

/// Reads `60s`, `500ms`, `2m`, `1h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> std::result::Result<Duration, String> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        other => return Err(format!("`{other}` is no unit of time; use ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is no duration; write it like 60s"))?;
    Duration::try_from_secs_f64(number * per_unit).map_err(|e| format!("`{text}`: {e}"))
}

/// Durations in results are seconds.
pub(crate) fn as_seconds<S: serde::Serializer>(
    duration: &Duration,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in
            [("60s", 60_000), ("60", 60_000), ("500ms", 500), ("1.5m", 90_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "60x", "-1s", "1.2.3s", "1e9h"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    fn target(url: &str) -> Target {
        Target {
            target: Some(url.to_owned()),
            http: None,
            user: String::new(),
            password: None,
            no_provision: false,
            no_verify: false,
            server_pid: None,
            data: None,
        }
    }

    #[test]
    fn targets_are_addresses_with_default_ports() {
        let address = |url| target(url).mqtt_address().unwrap().unwrap().to_string();
        assert_eq!(address("mqtt://127.0.0.1:1884"), "127.0.0.1:1884");
        assert_eq!(address("mqtt://127.0.0.1"), "127.0.0.1:1883");
        assert_eq!(address("127.0.0.1:99"), "127.0.0.1:99");
        assert!(target("http://127.0.0.1").mqtt_address().is_err());
        let base = target("mqtt://127.0.0.1:1884").http_base("127.0.0.1:1884".parse().unwrap());
        assert_eq!(base, "http://127.0.0.1:8080");
    }
}
