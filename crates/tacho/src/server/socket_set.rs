//! The listening sockets of all doors.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use gateway::tls::{Listeners, Tls};

use super::listener::{bind, warn_if_exposed};
use crate::config::Config;

/// The listening sockets of all doors.
pub(super) struct SocketSet {
    pub(super) mqtt: Listeners<TcpListener>,
    pub(super) http: Listeners<TcpListener>,
    pub(super) postgres: Option<TcpListener>,
}

impl SocketSet {
    /// Opens them all, or none.
    pub(super) fn bind(config: &Config, tls: Option<&Arc<Tls>>) -> anyhow::Result<Self> {
        let encrypted = |door, option, address: Option<SocketAddr>| -> anyhow::Result<_> {
            let Some((address, tls)) = address.zip(tls) else { return Ok(None) };
            Ok(Some((bind(door, option, address)?, Arc::clone(tls))))
        };
        let (mqtt, http) = (&config.mqtt, &config.http);
        warn_if_exposed("MQTT", mqtt.listen);
        warn_if_exposed("HTTP", http.listen);
        let mqtt = Listeners {
            plain: bind("MQTT", "--mqtt", mqtt.listen)?,
            tls: encrypted("MQTT", "mqtt.tls_listen =", mqtt.tls_listen)?,
        };
        let http = Listeners {
            plain: bind("HTTP", "--http", http.listen)?,
            tls: encrypted("HTTP", "http.tls_listen =", http.tls_listen)?,
        };
        let postgres = config.postgres.as_ref().map(|postgres| {
            if !postgres.tls_required {
                warn_if_exposed("PostgreSQL", postgres.listen);
            }
            bind("PostgreSQL", "--postgres", postgres.listen)
        });
        Ok(Self { mqtt, http, postgres: postgres.transpose()? })
    }
}
