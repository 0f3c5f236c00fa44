//! Counters of the broker.

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Counters of the broker.
#[derive(Debug, Default)]
pub struct BrokerMetrics {
    /// Messages that clients have published for subscribers.
    pub published: Counter,
    /// Messages that were sent to subscribers.
    pub delivered: Counter,
    /// Messages of QoS 0 that a slow subscriber did not get.
    pub dropped_immediate: Counter,
    /// Messages of QoS 1 and 2 that did not fit into the queue of a session.
    pub dropped_queued: Counter,
    /// Messages of shared subscriptions that another member has got after the session of the first one has ended.
    pub redistributed: Counter,
    /// Messages of shared subscriptions that nobody else may get after the session of a member has ended.
    pub dropped_shared: Counter,
    /// Packets of MQTT that clients have sent.
    pub packets_received: Counter,
    /// Packets of MQTT for clients.
    pub packets_sent: Counter,
    /// PUBLISH packets of clients.
    pub publishes_received: Counter,
    /// PUBLISH packets for clients.
    pub publishes_sent: Counter,
    /// Bytes of MQTT that clients have sent.
    pub bytes_received: Counter,
    /// Bytes of MQTT for clients.
    pub bytes_sent: Counter,
    /// Clients that are connected.
    pub(super) clients: Gauge,
    /// The most that were at the same time.
    pub(super) clients_max: AtomicU64,
    /// Sessions that outlive their connections.
    pub(super) sessions: Gauge,
    /// Subscriptions of all sessions.
    pub(super) subscriptions: Gauge,
    /// Retained topics.
    pub(super) retained: Gauge,
    /// Bytes of all messages in memory.
    pub(super) memory_bytes: Gauge,
}

impl BrokerMetrics {
    /// Registers the counters under their names.
    pub fn register(&self, registry: &mut Registry) {
        let counters = [
            ("broker_published", "Messages that clients have published for subscribers", &self.published),
            ("broker_delivered", "Messages sent to subscribers", &self.delivered),
            (
                "broker_dropped_immediate",
                "Messages of QoS 0 that a slow subscriber did not get",
                &self.dropped_immediate,
            ),
            (
                "broker_dropped_queued",
                "Messages of QoS 1 and 2 that did not fit into the queue of a session",
                &self.dropped_queued,
            ),
            (
                "broker_redistributed",
                "Messages of shared subscriptions that another member has got after the session of the first one has ended",
                &self.redistributed,
            ),
            (
                "broker_dropped_shared",
                "Messages of shared subscriptions that nobody else may get after the session of a member has ended",
                &self.dropped_shared,
            ),
            ("mqtt_packets_received", "Packets of MQTT from clients", &self.packets_received),
            ("mqtt_packets_sent", "Packets of MQTT for clients", &self.packets_sent),
            ("mqtt_publishes_received", "PUBLISH packets from clients", &self.publishes_received),
            ("mqtt_publishes_sent", "PUBLISH packets for clients", &self.publishes_sent),
            ("mqtt_bytes_received", "Bytes of MQTT from clients", &self.bytes_received),
            ("mqtt_bytes_sent", "Bytes of MQTT for clients", &self.bytes_sent),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        let gauges = [
            ("mqtt_clients", "Clients of MQTT that are connected", &self.clients),
            ("broker_sessions", "Sessions that outlive their connections", &self.sessions),
            ("broker_subscriptions", "Subscriptions of all sessions", &self.subscriptions),
            ("broker_retained", "Retained topics", &self.retained),
            ("broker_memory_bytes", "Bytes of the messages in memory", &self.memory_bytes),
        ];
        for (name, help, gauge) in gauges {
            registry.register(name, help, gauge.clone());
        }
    }
}
