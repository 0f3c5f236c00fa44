//! The will of a session that has ended.

use hub::Hub;

use super::connected::Connected;
use super::context::Context;
use super::end::PacketError;

impl Connected {
    /// Publishes the will of a session that has ended. Returns `false` if the store has no room now. Discards a will that the
    /// store accepts in no form.
    pub(crate) fn publish_will(&mut self, context: &mut Context<'_>) -> bool {
        let Some(will) = self.will.take() else { return true };
        match self.on_unanswered(&will.topic, &will.payload, context) {
            Ok(()) => {}
            Err(PacketError::End(end)) => self.discard_will(context.hub, &end.cause),
            // A will is not a request, so the limit of messages does not hold for it.
            Err(PacketError::StoreBusy | PacketError::TooManyRequests(_)) => {
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

    /// Bytes of the will and of the client identifier.
    pub(crate) fn will_bytes(&self) -> usize {
        let will = self.will.as_ref().map_or(0, |will| will.topic.len() + will.payload.len());
        self.client.bytes() + will
    }
}
