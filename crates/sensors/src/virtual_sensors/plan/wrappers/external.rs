//! The wrappers of what is outside of this server's store.

use super::csv_file::CsvFile;
use super::jdbc::JdbcWrapper;
use super::predicates::Predicates;
use super::remote::Remote;
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::plan::broker::{self, BrokerAddress, BrokerTls};
use crate::virtual_sensors::plan::secret::{Secret, shown_url};

/// Least milliseconds between two readings of a clock, a counter or an address.
const PERIOD_MS_MIN: u64 = 10;
/// The fields of `memory-usage`.
const MEMORY_FIELDS: &[&str] = &["heap", "non_heap", "pending_finalization_count"];
const DISK_FIELDS: &[&str] = &["free_space"];
const MULTIFORMAT_FIELDS: &[&str] = &["packet_type", "temperature", "light"];
const CLOCK_FIELDS: &[&str] = &["clock"];

/// A wrapper that reads outside of the store of this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExternalWrapper {
    /// Lines of a file.
    Csv(CsvFile),
    /// The answers of an address.
    HttpGet {
        /// The address. Its user and its query may be secrets.
        url: Secret,
        /// Milliseconds between two requests.
        rate_ms: u64,
        /// A PEM file with the authorities that may sign the certificate of the server; those of the system without it.
        cafile: Option<String>,
    },
    /// Messages of an MQTT broker.
    Mqtt(MqttTopic),
    /// Datagrams that come to a port.
    Udp { port: u16 },
    /// The clock of the machine.
    SystemTime {
        /// Milliseconds between two elements.
        period_ms: u64,
    },
    /// The memory of this process.
    MemoryUsage {
        /// Milliseconds between two elements.
        period_ms: u64,
    },
    /// The free space of the root file system.
    FreeDiskSpace {
        /// Milliseconds between two elements.
        period_ms: u64,
    },
    /// Random readings of a temperature and a light.
    Multiformat {
        /// Milliseconds between two elements.
        period_ms: u64,
    },
    /// The rows of a device or a sensor of this server, again and as fast as they came.
    Replay {
        /// The name of the device, which is that of the sensor whose output it has.
        device: String,
        /// How many times faster.
        speed: u32,
    },
    /// A virtual sensor of another server.
    Remote(Remote),
    /// Rows of a database.
    Jdbc(JdbcWrapper),
}

/// Messages of an MQTT broker.
#[derive(Clone, PartialEq, Eq)]
pub struct MqttTopic {
    /// The name or the address of the broker.
    pub host: String,
    pub port: u16,
    /// The certificates of an encrypted connection; `None` if it is not encrypted.
    pub tls: Option<BrokerTls>,
    /// The name of the session at the broker.
    pub client_id: String,
    /// The filter of topics.
    pub topic: String,
    /// The quality of service: 0, 1 or 2.
    pub qos: u8,
    /// The user, if the broker asks for one.
    pub username: Option<String>,
    /// The password of the user.
    pub password: Option<String>,
}

impl std::fmt::Debug for MqttTopic {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port, topic, .. } = self;
        f.debug_struct("MqttTopic")
            .field("host", host)
            .field("port", port)
            .field("topic", topic)
            .finish_non_exhaustive()
    }
}

impl ExternalWrapper {
    /// The name of the wrapper.
    pub fn wrapper(&self) -> &'static str {
        match self {
            Self::Csv(_) => "csv",
            Self::HttpGet { .. } => "http-get",
            Self::Mqtt(_) => "mqtt",
            Self::Udp { .. } => "udp",
            Self::SystemTime { .. } => "system-time",
            Self::MemoryUsage { .. } => "memory-usage",
            Self::FreeDiskSpace { .. } => "free-disk-space",
            Self::Multiformat { .. } => "multiformat",
            Self::Replay { .. } => "replay",
            Self::Remote(_) => "remote",
            Self::Jdbc(_) => "jdbc",
        }
    }

    /// What is outside, in words without secrets.
    pub fn describe(&self) -> String {
        match self {
            Self::Csv(file) => format!("CSV file {:?}", file.file),
            Self::HttpGet { url, rate_ms, .. } => format!("{}, every {rate_ms} ms", shown_url(url.reveal())),
            Self::Mqtt(mqtt) => {
                let how = if mqtt.tls.is_some() { " over TLS" } else { "" };
                format!("topic {:?} of the broker {}:{}{how}", mqtt.topic, mqtt.host, mqtt.port)
            }
            Self::Udp { port } => format!("datagrams to port {port}"),
            Self::SystemTime { period_ms } => format!("the clock, every {period_ms} ms"),
            Self::MemoryUsage { period_ms } => format!("the memory of the server, every {period_ms} ms"),
            Self::FreeDiskSpace { period_ms } => format!("the free disk space, every {period_ms} ms"),
            Self::Multiformat { period_ms } => format!("random readings, every {period_ms} ms"),
            Self::Replay { device, speed } => format!("the rows of {device:?} again, {speed} times as fast"),
            Self::Remote(remote) => {
                format!("virtual sensor {:?} of {}", remote.sensor, shown_url(&remote.url))
            }
            Self::Jdbc(jdbc) => jdbc.describe(),
        }
    }

    /// The fields of its elements, if they are always the same ones.
    pub(super) fn fixed_fields(&self) -> Option<&'static [&'static str]> {
        match self {
            Self::SystemTime { .. } => Some(CLOCK_FIELDS),
            Self::MemoryUsage { .. } => Some(MEMORY_FIELDS),
            Self::FreeDiskSpace { .. } => Some(DISK_FIELDS),
            Self::Multiformat { .. } => Some(MULTIFORMAT_FIELDS),
            Self::Csv(_)
            | Self::HttpGet { .. }
            | Self::Mqtt(_)
            | Self::Udp { .. }
            | Self::Replay { .. }
            | Self::Remote(_)
            | Self::Jdbc(_) => None,
        }
    }
}

/// The wrapper of a name; `None` if it has no such wrapper.
pub(super) fn parse(
    name: &str,
    predicates: &mut Predicates<'_>,
    notes: &mut Vec<Note>,
) -> Result<Option<ExternalWrapper>, Fault> {
    let external = match name {
        "csv" => ExternalWrapper::Csv(CsvFile::parse(predicates, notes)?),
        "http-get" => {
            let url = predicates.needed("url")?;
            predicates.check_url(&url, "url")?;
            let rate_ms = predicates.period("rate", 2_000, PERIOD_MS_MIN)?;
            let cafile = predicates.cafile(&url)?;
            ExternalWrapper::HttpGet { url: Secret::new(url), rate_ms, cafile }
        }
        "mqtt" => ExternalWrapper::Mqtt(mqtt(predicates)?),
        "udp" => {
            predicates.needed("port")?;
            let port = predicates.integer("port", 1, i64::from(u16::MAX))?;
            ExternalWrapper::Udp { port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or_default() }
        }
        "system-time" => {
            predicates.note("max-delay", "elements come at their time", notes);
            ExternalWrapper::SystemTime {
                period_ms: predicates.period("clock-period", 1_000, PERIOD_MS_MIN)?,
            }
        }
        "memory-usage" => ExternalWrapper::MemoryUsage {
            period_ms: predicates.period("sampling-rate", 1_000, PERIOD_MS_MIN)?,
        },
        "free-disk-space" => ExternalWrapper::FreeDiskSpace {
            period_ms: predicates.period("sampling-rate", 1_000, PERIOD_MS_MIN)?,
        },
        "multiformat" => {
            ExternalWrapper::Multiformat { period_ms: predicates.period("rate", 1_000, PERIOD_MS_MIN)? }
        }
        "replay" => {
            let device = predicates.needed("dbname")?;
            let speed = predicates.integer("speed", 1, 1_000_000)?.unwrap_or(1);
            ExternalWrapper::Replay { device, speed: u32::try_from(speed).unwrap_or(1) }
        }
        "remote-api" => ExternalWrapper::Remote(Remote::of_rest(predicates)?),
        "jdbc" => ExternalWrapper::Jdbc(JdbcWrapper::parse(predicates, notes)?),
        "remote" | "remote-rest" | "remote-push" => {
            ExternalWrapper::Remote(Remote::of_multidata(name, predicates, notes)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(external))
}

/// Schemes of connections over WebSocket.
const ABSENT_SCHEMES: [&str; 2] = ["ws://", "wss://"];

fn mqtt(predicates: &mut Predicates<'_>) -> Result<MqttTopic, Fault> {
    // The address may hold a password, so no message has it.
    let uri = predicates.needed("uri")?;
    if let Some(scheme) = ABSENT_SCHEMES.iter().find(|scheme| uri.starts_with(**scheme)) {
        let reason = format!(
            "uri begins with {scheme}; brokers are not reached over WebSocket here, use tcp://HOST:PORT or mqtts://HOST:PORT"
        );
        let place = predicates.invalid("uri", String::new()).place;
        return Err(Fault::unsupported(place, reason));
    }
    let address = broker::address(&uri).ok_or_else(|| {
        let reason =
            "uri is not tcp://HOST:PORT or mqtts://HOST:PORT; the predicates username and password have the login";
        predicates.invalid("uri", reason.to_owned())
    })?;
    let tls = address.tls(["cafile", "certfile", "keyfile"].map(|key| predicates.take(key)))?;
    let BrokerAddress { host, port, .. } = address;
    let client_id = predicates.needed("client_id")?;
    let topic = predicates.needed("topic")?;
    let qos = predicates.integer("qos", 0, 2)?.and_then(|qos| u8::try_from(qos).ok()).unwrap_or(0);
    // MQTT 3.1.1 has no password without a user.
    predicates.check_needs("password", "username")?;
    let (username, password) = (predicates.optional("username"), predicates.optional("password"));
    Ok(MqttTopic { host, port, tls, client_id, topic, qos, username, password })
}
