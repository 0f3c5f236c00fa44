//! Packets of a connected client other than PUBLISH.

use wire::mqtt::{
    Ack, Disconnect, Packet, Properties, PropertiesBuilder, PropertyId, ProtocolVersion, ReasonCode, SubAck,
    UnsubAck,
};

use super::connected::Connected;
use super::context::Context;
use super::end::{SessionEnd, protocol_error};

impl Connected {
    /// Handles a packet other than PUBLISH.
    pub(super) fn on_packet(
        &mut self,
        packet: Packet<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), SessionEnd> {
        match packet {
            Packet::PubRel(release) => self.on_release(release, context),
            Packet::PingReq => self.send(Packet::PingResp, context),
            Packet::Subscribe(subscribe) => self.on_subscribe(subscribe, context),
            Packet::Unsubscribe(unsubscribe) => {
                let codes = vec![ReasonCode::NO_SUBSCRIPTION_EXISTED.0; unsubscribe.filters().count()];
                let ack = UnsubAck {
                    packet_id: unsubscribe.packet_id,
                    properties: Properties::NONE,
                    codes: &codes,
                };
                self.send(Packet::UnsubAck(ack), context)
            }
            Packet::Disconnect(disconnect) => self.on_disconnect(disconnect),
            Packet::Connect(_) => Err(protocol_error("a second CONNECT [MQTT-3.1.0-2]")),
            Packet::Auth(_) => Err(protocol_error("AUTH without an authentication method [MQTT5 4.12.0-7]")),
            // The server publishes no messages to devices yet, so it expects no acks.
            Packet::PubAck(_) | Packet::PubRec(_) | Packet::PubComp(_) => {
                Err(protocol_error("an ack for a message that was never sent"))
            }
            Packet::Publish(_) => Err(protocol_error("BUG: a message in the wrong place")),
            Packet::ConnAck(_) | Packet::SubAck(_) | Packet::UnsubAck(_) | Packet::PingResp => {
                Err(protocol_error("a packet that only servers send"))
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

    /// Refuses a subscription: the door does not support subscriptions yet.
    fn on_subscribe(
        &mut self,
        subscribe: wire::mqtt::Subscribe<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), SessionEnd> {
        let code = match self.peer.version {
            ProtocolVersion::V5 => ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR.0,
            ProtocolVersion::V31 | ProtocolVersion::V311 => 0x80,
        };
        context.hub.metrics().refused(hub::Door::Mqtt, "subscription");
        let codes = vec![code; subscribe.filters().count()];
        let text = "subscriptions by MQTT are not served; use the WebSocket door";
        let packet_id = subscribe.packet_id;
        let packet = |properties| Packet::SubAck(SubAck { packet_id, properties, codes: &codes });
        self.peer.write_explained(text, packet, &mut PropertiesBuilder::new(), context.out);
        Ok(())
    }

    fn on_disconnect(&mut self, disconnect: Disconnect<'_>) -> Result<(), SessionEnd> {
        // Reason code 0x04 requests the will in spite of the DISCONNECT [MQTT5 3.14.2.1].
        if disconnect.reason != ReasonCode::DISCONNECT_WITH_WILL {
            self.will = None;
        }
        if let Some(seconds) = disconnect.properties.number(PropertyId::SessionExpiryInterval) {
            self.keep_qos2_s = seconds;
        }
        Err(SessionEnd::normal("the client disconnected"))
    }

    fn send(&self, packet: Packet<'_>, context: &mut Context<'_>) -> Result<(), SessionEnd> {
        self.peer.write(&[packet], context.out);
        Ok(())
    }
}
