//! Counters of messages to devices.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counters of messages to devices.
#[derive(Debug, Default)]
pub struct DeviceMessageMetrics {
    /// Connections with an outbox.
    pub outboxes: Gauge,
    /// Bytes that wait in outboxes.
    pub waiting_bytes: Gauge,
    /// Changes of attributes that were merged with waiting ones, for lack of room.
    pub coalesced: Counter,
    /// Messages without room in an outbox.
    pub refused: Counter,
}

impl DeviceMessageMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let outboxes = "Connections of devices that can get messages";
        registry.register("device_outboxes", outboxes, self.outboxes.clone());
        let waiting = "Bytes of messages that wait for connections of devices";
        registry.register("device_messages_waiting_bytes", waiting, self.waiting_bytes.clone());
        let coalesced =
            "Changes of attributes that were merged with waiting ones because the outbox was full";
        registry.register("device_messages_coalesced", coalesced, self.coalesced.clone());
        let refused = "Messages to devices that were refused because the outbox was full";
        registry.register("device_messages_refused", refused, self.refused.clone());
    }
}
