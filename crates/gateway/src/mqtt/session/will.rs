//! The will of a session that has ended.

use std::sync::Arc;

use hub::Hub;

use super::super::clients::{Clients, WillOutcome};
use super::connected::Connected;
use super::context::Context;
use super::end::PacketError;
use super::publish::Incoming;

impl Connected {
    /// Publishes the will of a session that has ended. Returns `false` if the store has no room now. Discards a will that the
    /// store accepts in no form.
    pub(crate) fn publish_will(&mut self, context: &mut Context<'_>) -> bool {
        let Some(will) = self.will.take() else { return true };
        let incoming = Incoming {
            topic: &will.topic,
            payload: &will.payload,
            qos: will.qos,
            retain: will.retain,
            properties: &will.properties,
            expiry_s: will.expiry_s,
        };
        match self.on_unanswered(incoming, context) {
            Ok(()) => {}
            Err(PacketError::End(end)) => self.discard_will(context.hub, &end.cause),
            // A will is not a request, so the limits of messages do not hold for it.
            Err(
                PacketError::StoreBusy
                | PacketError::Awaited
                | PacketError::TooManyRequests(_)
                | PacketError::TenantLimited(_),
            ) => {
                self.will = Some(will);
                return false;
            }
        }
        true
    }

    /// Counts and logs that the will is not stored.
    pub(crate) fn discard_will(&self, hub: &Hub, cause: &str) {
        hub.metrics().refused(hub::Door::Mqtt, "will");
        tracing::warn!(device = %self.device.name, cause, "a will could not be stored");
    }

    /// Seconds between the end of the connection and the will: it does not wait longer than the session lives [MQTT5 3.1.3.2.2].
    pub(crate) fn will_delay_s(&self) -> u32 {
        self.will.as_ref().map_or(0, |will| will.delay_s.min(self.expiry_s))
    }

    /// The outcome of the will, which waits for its delay.
    pub(crate) fn await_will(&self, clients: &Clients) -> Arc<WillOutcome> {
        clients.await_will(&self.client, self.connection)
    }

    /// The will does not wait any more.
    pub(crate) fn forget_will(&self, clients: &Clients, outcome: &Arc<WillOutcome>) {
        clients.forget_will(&self.client, outcome);
    }

    /// Bytes of the will and of the client identifier.
    pub(crate) fn will_bytes(&self) -> usize {
        let will = self.will.as_ref().map_or(0, |will| will.topic.len() + will.payload.len());
        self.client.bytes() + will
    }
}
