//! The state of a session whose device is known.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use hub::broker::Attached;
use hub::device_messages::DeviceOutbox;
use hub::registry::{Credentials, Device};
use hub::tenant_loads::{TenantConnection, TenantLoad};
use hub::{DevicePresence, Durability, Hub};
use model::SeriesId;
use wire::mqtt::{QoS, ReasonCode};

use super::super::clients::{ClientKey, ConnectionRef};
use super::super::options::MqttOptions;
use super::super::qos2::SharedQos2;
use super::chunk_lengths::ChunkLengths;
use super::end::SessionEnd;
use super::gateway_devices::GatewayDevices;
use super::peer::Peer;
use super::topic_access::TopicAccess;

/// The state of a session after CONNECT. It holds a secret, so its `Debug` output shows only the device.
pub(crate) struct Connected {
    pub(crate) peer: Peer,
    pub(crate) device: Arc<Device>,
    /// Reports that the device is connected and heard; `None` after the end of the connection.
    pub(super) presence: Option<DevicePresence>,
    /// What the tenant of the device does, and its limits.
    pub(super) load: Arc<TenantLoad>,
    /// Counts the connection for the tenant; `None` after its end.
    pub(super) tenant_connection: Option<TenantConnection>,
    /// The credentials of the CONNECT.
    pub(super) credentials: Credentials,
    pub(super) client: ClientKey,
    /// The connection of the session.
    pub(super) connection: ConnectionRef,
    /// Seconds of silence after which the worker closes the connection; 0 for no bound.
    pub(crate) silence_max_s: u32,
    /// The series of the device; known after the first message.
    pub(super) series: Option<SeriesId>,
    /// Messages whose ack is not sent yet.
    pub(crate) in_flight: u32,
    /// Unreleased QoS 2 messages.
    pub(super) qos2: SharedQos2,
    /// Seconds that the session outlives the connection.
    pub(super) expiry_s: u32,
    /// The most messages that the client takes without an ack.
    pub(super) inflight_max: u16,
    /// The session at the broker, if the client has one.
    pub(crate) attached: OnceCell<Attached>,
    /// Messages of the server for the device, if the client has subscribed to some.
    pub(super) outbox: Option<DeviceOutbox>,
    /// The devices behind the device, if it is a gateway.
    pub(super) behind: Option<Box<GatewayDevices>>,
    /// Topics of the broker that the client may use.
    pub(super) topics: TopicAccess,
    /// Topics of the topic aliases, by alias.
    pub(super) aliases: Vec<Option<Arc<str>>>,
    pub(super) will: Option<Box<StoredWill>>,
    /// The lengths of chunks of packages that the client has named.
    pub(super) chunk_lengths: ChunkLengths,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").field("device", &self.device.name).finish_non_exhaustive()
    }
}

/// The will of a session.
#[derive(Debug)]
pub(super) struct StoredWill {
    pub(super) topic: Box<str>,
    pub(super) payload: Box<[u8]>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// Properties that subscribers get.
    pub(super) properties: Box<[u8]>,
    pub(super) expiry_s: Option<u32>,
    /// Seconds between the end of the connection and the will.
    pub(super) delay_s: u32,
}

impl Connected {
    /// The durability of the acks of this session. An ack to a gateway may stand for devices of several profiles, so it promises the
    /// most.
    pub(super) fn durability(&self) -> Durability {
        match self.behind {
            Some(_) => Durability::Fsync,
            None => self.device.profile.durability,
        }
    }

    /// Applies changes of the device in the registry. The session ends if the device was deleted or its credentials were
    /// replaced.
    pub(crate) fn follow(&mut self, hub: &Hub, options: &MqttOptions) -> Result<(), SessionEnd> {
        let registry = hub.registry();
        let device = registry.device_by_id(self.device.id);
        let credentials = registry.credentials_of(self.device.id);
        let (Some(device), Some(credentials)) = (device, credentials) else {
            return Err(SessionEnd::refused(
                ReasonCode::NOT_AUTHORIZED,
                "device_deleted",
                "the device was deleted",
            ));
        };
        if credentials != self.credentials {
            let cause = "the credentials of the device were replaced";
            return Err(SessionEnd::refused(ReasonCode::NOT_AUTHORIZED, "credentials_replaced", cause));
        }
        if device.gateway != self.device.gateway {
            let cause = "the device became a gateway, or is no longer one; connect again";
            return Err(SessionEnd::refused(ReasonCode::ADMINISTRATIVE_ACTION, "gateway_changed", cause));
        }
        if let Some(behind) = &mut self.behind {
            behind.follow(registry);
        }
        // Another name or another table means another series, and a caller can have deleted the series.
        self.series = None;
        self.device = device;
        self.follow_topics(hub, options);
        Ok(())
    }
}
