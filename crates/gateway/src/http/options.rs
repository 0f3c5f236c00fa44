//! Options of the HTTP door for operators. Fixed bounds are in [`limits`].

use std::net::SocketAddr;
use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use hub::caller::Role;
use model::limits::Portion;
use serde_json::{Map, Value};

use super::limits;
use super::page::Page;
use crate::door::{DoorLimits, Networks};
use crate::mqtt::MqttEntrance;

/// Options of the HTTP door.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The door: another port with the same interface counts its connections and refusals by itself.
    pub door: hub::Door,
    /// The role in the default tenant of callers without credentials who use the interfaces of InfluxDB, OpenTSDB, Prometheus and
    /// GSN. `None` refuses them.
    pub open: Option<Role>,
    /// Servers to which GSN's push may send elements, besides the client that registers.
    pub gsn_push_targets: Arc<AllowedTargets>,
    /// Address for the listener. The caller of [`serve`](crate::http_door::serve) binds it.
    pub listen: SocketAddr,
    /// Most bytes in the body of a telemetry request.
    pub body_bytes_max: usize,
    /// Whether clients may read devices and values of the default tenant without a login.
    pub public_read: bool,
    /// Limits of connections, WebSockets included, and of requests.
    pub limits: DoorLimits,
    /// The load balancers that send a header of the PROXY protocol.
    pub proxies: Networks,
    /// Open-file limit of the process; 0 if it is not known. `/readyz` warns when connections come near it.
    pub open_files_max: u64,
    /// The MQTT door, for MQTT over WebSocket; `None` if it is closed.
    pub mqtt: Option<MqttEntrance>,
    /// Scales the fixed bounds in bytes to the memory of this machine.
    pub memory: Portion,
    /// The version in `/api/status`.
    pub version: &'static str,
    /// The settings in `/api/status` by their names in `config/tacho.toml`: those that `tacho tune` has rules for. They are
    /// visible without a login.
    pub settings: Map<String, Value>,
    /// The files of the page at `/`.
    pub page: Page,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            door: hub::Door::Http,
            open: None,
            gsn_push_targets: Arc::default(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            body_bytes_max: 4 * 1024 * 1024,
            public_read: false,
            limits: DoorLimits::of_connections(limits::CONNECTIONS_MAX),
            proxies: Networks::default(),
            open_files_max: 0,
            mqtt: None,
            memory: Portion::ALL,
            version: env!("CARGO_PKG_VERSION"),
            settings: Map::new(),
            page: |_| None,
        }
    }
}
