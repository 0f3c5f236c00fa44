//! The counters of the broker as messages under `$SYS/broker/`. The server publishes them; no client can.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;

use super::broker::Broker;
use super::message::{Content, Delivery, Message};
use super::publishing::Target;
use super::session::Session;
use super::subscription::{Quality, SubscriptionOptions};
use super::system::{Sizes, Totals};
use model::topic::matches;

/// What all topics of the server begin with.
const SYSTEM: &str = "$SYS";

impl Broker {
    /// Publishes the counters, with QoS 0: a subscriber that misses some gets newer ones after the next interval. Subscribers of
    /// all tenants get the same numbers.
    pub fn publish_system(&self, sockets: u64, uptime: Duration) {
        let messages: Vec<Arc<Message>> = {
            let (sizes, totals) = (self.sizes(), self.totals(sockets));
            let mut report = self.system.lock();
            let topics = report.next(sizes, totals, uptime);
            report.messages = topics.iter().map(|(topic, value)| self.system_message(topic, value)).collect();
            report.messages.clone()
        };
        let indexes: Vec<_> = self.indexes.read().values().cloned().collect();
        for index in indexes.iter().filter(|index| index.read().has_level(SYSTEM)) {
            for message in &messages {
                let found = index.read().matches(&message.topic, Session::is_connected);
                for found in found {
                    let identifiers = found.options.identifier.map(u32::from).into_iter();
                    let identifiers = identifiers.chain(found.more_identifiers).collect();
                    let delivery = delivery(message, false, identifiers);
                    self.push(Target { session: found.session, delivery, number: None, shared: None }, 0);
                }
            }
        }
    }

    /// The last counters that a new subscription selects. They are like retained messages.
    pub(super) fn system_deliveries(&self, filter: &str, options: SubscriptionOptions) -> Vec<Delivery> {
        if !filter.starts_with(SYSTEM) {
            return Vec::new();
        }
        let report = self.system.lock();
        let selected = report.messages.iter().filter(|message| matches(filter, &message.topic));
        let identifiers: Vec<u32> = options.identifier.map(u32::from).into_iter().collect();
        selected.map(|message| delivery(message, true, identifiers.clone())).collect()
    }

    fn system_message(&self, topic: &str, value: &str) -> Arc<Message> {
        let topic = format!("{SYSTEM}/broker/{topic}");
        let content =
            Content { topic: &topic, payload: value.as_bytes(), properties: &[], expires_at_ms: None };
        // They are for all tenants.
        self.message(Uuid::nil(), content)
    }

    fn sizes(&self) -> Sizes {
        let connected = self.metrics.clients.get().max(0) as u64;
        let durable = self.sessions.lock().len();
        Sizes {
            connected,
            connected_max: self.metrics.clients_max.load(Ordering::Relaxed).max(connected),
            disconnected: durable.saturating_sub(self.durable_connected.load(Ordering::Relaxed)) as u64,
            subscriptions: self.subscriptions() as u64,
            retained: self.order.lock().topics(),
        }
    }

    fn totals(&self, sockets: u64) -> Totals {
        let metrics = &self.metrics;
        Totals {
            packets_received: metrics.packets_received.get(),
            packets_sent: metrics.packets_sent.get(),
            publishes_received: metrics.publishes_received.get(),
            publishes_sent: metrics.publishes_sent.get(),
            publishes_dropped: metrics.dropped_immediate.get()
                + metrics.dropped_queued.get()
                + metrics.dropped_shared.get(),
            bytes_received: metrics.bytes_received.get(),
            bytes_sent: metrics.bytes_sent.get(),
            sockets,
        }
    }
}

fn delivery(message: &Arc<Message>, retain: bool, identifiers: Vec<u32>) -> Delivery {
    Delivery {
        message: Arc::clone(message),
        qos: Quality::AtMostOnce,
        retain,
        identifiers,
        call: None,
        share: None,
    }
}
