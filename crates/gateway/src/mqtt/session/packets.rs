//! Packets of a connected client other than PUBLISH.

use wire::mqtt::{Ack, Disconnect, Packet, Properties, PropertyId, ReasonCode};

use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd, protocol_error};

impl Connected {
    /// Handles a packet other than PUBLISH.
    pub(super) fn on_packet(
        &mut self,
        packet: Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        match packet {
            Packet::PubRel(release) => Ok(self.on_release(release, context)?),
            Packet::PingReq => Ok(self.send(Packet::PingResp, context)?),
            Packet::Subscribe(subscribe) => self.on_subscribe(subscribe, context),
            Packet::Unsubscribe(unsubscribe) => self.on_unsubscribe(unsubscribe, context),
            Packet::Disconnect(disconnect) => Ok(self.on_disconnect(disconnect)?),
            Packet::Connect(_) => Err(protocol_error("a second CONNECT [MQTT-3.1.0-2]").into()),
            Packet::Auth(_) => {
                Err(protocol_error("AUTH without an authentication method [MQTT5 4.12.0-7]").into())
            }
            Packet::PubAck(ack) => Ok(self.on_puback(ack, context)?),
            Packet::PubRec(ack) => self.on_pubrec(ack, context),
            Packet::PubComp(ack) => Ok(self.on_pubcomp(ack, context)?),
            Packet::Publish(_) => Err(protocol_error("BUG: a message in the wrong place").into()),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                Err(protocol_error("a packet that only servers send").into())
            }
        }
    }

    /// PUBREL ends a QoS 2 exchange: the identifier may be used again [MQTT-4.3.3-11].
    fn on_release(&mut self, release: Ack<'_>, context: &mut Context<'_>) -> Result<(), SessionEnd> {
        let known = self.qos2.lock().remove(release.packet_id);
        let reason = if known { ReasonCode::SUCCESS } else { ReasonCode::PACKET_IDENTIFIER_NOT_FOUND };
        let complete = Ack { packet_id: release.packet_id, reason, properties: Properties::NONE };
        self.send(Packet::PubComp(complete), context)
    }

    fn on_disconnect(&mut self, disconnect: Disconnect<'_>) -> Result<(), SessionEnd> {
        // Reason code 0x04 requests the will in spite of the DISCONNECT [MQTT5 3.14.2.1].
        if disconnect.reason != ReasonCode::DISCONNECT_WITH_WILL {
            self.will = None;
        }
        if let Some(seconds) = disconnect.properties.number(PropertyId::SessionExpiryInterval) {
            if self.expiry_s == 0 && seconds > 0 {
                return Err(protocol_error(
                    "a session expiry in DISCONNECT after none in CONNECT [MQTT-3.14.2-2]",
                ));
            }
            self.expiry_s = seconds.min(hub::broker::limits::SESSION_EXPIRY_MAX_S);
        }
        Err(SessionEnd::normal("the client disconnected"))
    }

    pub(super) fn send(&self, packet: Packet<'_>, context: &mut Context<'_>) -> Result<(), SessionEnd> {
        self.peer.write(&[packet], context.out);
        Ok(())
    }
}
