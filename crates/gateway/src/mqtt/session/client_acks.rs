//! Acks of the client for messages that the server has sent.

use wire::mqtt::{Ack, Packet, Properties, ReasonCode};

use hub::broker::PubrecEffect;

use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd};
use super::subscribing::broker_error;

impl Connected {
    pub(super) fn on_puback(&mut self, ack: Ack<'_>, context: &mut Context<'_>) -> Result<(), SessionEnd> {
        // A negative ack ends the exchange like a positive one [MQTT5 4.3.2].
        if let Some(attached) = self.attached.get() {
            context.hub.broker().on_puback(&attached.session, ack.packet_id, context.acknowledged);
            *context.deliver = true;
        }
        Ok(())
    }

    pub(super) fn on_pubrec(&mut self, ack: Ack<'_>, context: &mut Context<'_>) -> Result<(), PacketError> {
        let broker = context.hub.broker();
        let Some(attached) = self.attached.get() else { return self.release_unknown(ack.packet_id, context) };
        if ack.reason.0 >= 0x80 {
            broker.on_refusal(&attached.session, ack.packet_id, context.acknowledged);
            *context.deliver = true;
            return Ok(());
        }
        match broker
            .on_pubrec(&attached.session, ack.packet_id, context.acknowledged)
            .map_err(broker_error)?
        {
            PubrecEffect::Known => *context.deliver = true,
            PubrecEffect::Unknown => return self.release_unknown(ack.packet_id, context),
        }
        Ok(())
    }

    /// Answers PUBREC for an identifier that is not in use, so that the client can end the exchange [MQTT5 4.3.3].
    fn release_unknown(&self, packet_id: u16, context: &mut Context<'_>) -> Result<(), PacketError> {
        let reason = ReasonCode::PACKET_IDENTIFIER_NOT_FOUND;
        let release = Ack { packet_id, reason, properties: Properties::NONE };
        Ok(self.send(Packet::PubRel(release), context)?)
    }

    pub(super) fn on_pubcomp(&mut self, ack: Ack<'_>, context: &mut Context<'_>) -> Result<(), SessionEnd> {
        if let Some(attached) = self.attached.get() {
            context.hub.broker().on_pubcomp(&attached.session, ack.packet_id, context.acknowledged);
            *context.deliver = true;
        }
        Ok(())
    }
}
