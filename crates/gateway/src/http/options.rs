//! Options of the HTTP door for operators. Fixed bounds are in [`limits`].

use std::net::SocketAddr;

use model::limits::Portion;
use serde_json::{Map, Value};

use super::limits;

/// Options of the HTTP door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpOptions {
    /// Address for the listener. The caller of [`serve`](super::serve) binds it.
    pub listen: SocketAddr,
    /// Most bytes in the body of a telemetry request.
    pub body_bytes_max: usize,
    /// Whether clients may read devices and values of the default tenant without a login.
    pub public_read: bool,
    /// Most connections at once, WebSockets included.
    pub connections_max: usize,
    /// Most connections at once from one address.
    pub connections_per_address_max: usize,
    /// Open-file limit of the process; 0 if it is not known. `/readyz` warns when connections come near it.
    pub open_files_max: u64,
    /// Scales the fixed bounds in bytes to the memory of this machine.
    pub memory: Portion,
    /// The version in `/api/status`.
    pub version: &'static str,
    /// The settings in `/api/status` by their names in `config/tacho.toml`: those that `tacho tune` has rules for. They are
    /// visible without a login.
    pub settings: Map<String, Value>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            body_bytes_max: 4 * 1024 * 1024,
            public_read: false,
            connections_max: limits::CONNECTIONS_MAX,
            connections_per_address_max: limits::CONNECTIONS_MAX,
            open_files_max: 0,
            memory: Portion::ALL,
            version: env!("CARGO_PKG_VERSION"),
            settings: Map::new(),
        }
    }
}
