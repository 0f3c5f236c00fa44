//! Messages of the broker as packets for the client.

use hub::broker::{Message, Outgoing, Quality, Sent};
use wire::mqtt::{
    Ack, Packet, Properties, PropertiesBuilder, Property, PropertyId, ProtocolVersion, Publish, QoS,
    SentAliases, TopicForm, encode_publish_head,
};

use super::super::output::Output;
use super::peer::Peer;

impl Peer {
    /// Writes a packet of the broker, unless the output is full or the packet too large for the client.
    pub(crate) fn write_outgoing(
        &self,
        packet: &Outgoing<'_>,
        aliases: &mut SentAliases,
        now_ms: i64,
        out: &mut Output,
    ) -> Sent {
        if out.is_full() {
            return Sent::NoRoom;
        }
        match packet {
            Outgoing::Release { packet_id } => {
                self.write(&[Packet::PubRel(Ack::success(*packet_id))], out.tail());
                Sent::Yes
            }
            Outgoing::Publish { message, qos, retain, duplicate, packet_id, identifiers } => {
                let properties = self.properties(message, identifiers, now_ms);
                let publish = Publish {
                    dup: *duplicate && *qos != Quality::AtMostOnce,
                    qos: qos_of(*qos),
                    retain: *retain,
                    topic: &message.topic,
                    packet_id: *packet_id,
                    properties: Properties::NONE,
                    payload: &message.payload,
                };
                let head = out.tail().len();
                let sent = self.write_head(publish, properties, aliases, out.tail());
                if sent == Sent::Yes {
                    out.append_payload(head, message);
                }
                sent
            }
        }
    }

    /// Writes a message without its payload, under the alias of its topic if the client accepts aliases. A client may have no room
    /// for a new alias in a packet that is as large as it accepts.
    fn write_head(
        &self,
        publish: Publish<'_>,
        properties: Option<PropertiesBuilder>,
        aliases: &mut SentAliases,
        out: &mut Vec<u8>,
    ) -> Sent {
        let form = aliases.form(publish.topic, self.topic_alias_max);
        let (topic, alias) = match form {
            TopicForm::Plain => return self.write_with(publish, properties.as_ref(), out),
            TopicForm::Define(alias) => (publish.topic, alias),
            TopicForm::Alias(alias) => ("", alias),
        };
        let mut with_alias = properties.clone().unwrap_or_default();
        if with_alias.push(Property::TwoBytes(PropertyId::TopicAlias, alias)).is_err() {
            return self.write_with(publish, properties.as_ref(), out);
        }
        match self.write_with(Publish { topic, ..publish }, Some(&with_alias), out) {
            Sent::TooLarge => self.write_with(publish, properties.as_ref(), out),
            sent => {
                aliases.sent(publish.topic, form);
                sent
            }
        }
    }

    fn write_with(
        &self,
        publish: Publish<'_>,
        properties: Option<&PropertiesBuilder>,
        out: &mut Vec<u8>,
    ) -> Sent {
        let properties = properties.map_or(Properties::NONE, PropertiesBuilder::as_properties);
        self.write_publish(&Publish { properties, ..publish }, out)
    }

    fn write_publish(&self, publish: &Publish<'_>, out: &mut Vec<u8>) -> Sent {
        let start = out.len();
        match encode_publish_head(publish, self.version, out) {
            Ok(()) if out.len() - start + publish.payload.len() <= self.packet_bytes_max => return Sent::Yes,
            Ok(()) => {}
            Err(error) => tracing::error!(%error, topic = publish.topic, "BUG: a message has no encoding"),
        }
        out.truncate(start);
        Sent::TooLarge
    }

    /// The properties of a message; `None` if it has none or the client knows none.
    fn properties(&self, message: &Message, identifiers: &[u32], now_ms: i64) -> Option<PropertiesBuilder> {
        let has_none =
            message.properties.is_empty() && identifiers.is_empty() && message.expires_at_ms.is_none();
        if self.version != ProtocolVersion::V5 || has_none {
            return None;
        }
        // The session has checked the properties when the message came.
        let mut builder = PropertiesBuilder::of_publish(&message.properties).unwrap_or_default();
        let remaining_s = message.expires_at_ms.map(|at| (at - now_ms).max(0) / 1_000);
        // The client gets the rest of the expiry [MQTT-3.3.2-6].
        let expiry = remaining_s.map(|seconds| {
            Property::FourBytes(PropertyId::MessageExpiryInterval, u32::try_from(seconds).unwrap_or(u32::MAX))
        });
        let identifiers =
            identifiers.iter().map(|id| Property::VariableInt(PropertyId::SubscriptionIdentifier, *id));
        for property in expiry.into_iter().chain(identifiers) {
            builder.push(property).expect("BUG: a subscription identifier was checked when it came");
        }
        Some(builder)
    }
}

fn qos_of(quality: Quality) -> QoS {
    match quality {
        Quality::AtMostOnce => QoS::AtMostOnce,
        Quality::AtLeastOnce => QoS::AtLeastOnce,
        Quality::ExactlyOnce => QoS::ExactlyOnce,
    }
}

/// The properties of a PUBLISH that receivers get unchanged: all but expiry, topic alias and subscription identifiers
/// [MQTT5 3.3.2.3].
pub(super) fn forwarded(properties: Properties<'_>) -> PropertiesBuilder {
    let mut builder = PropertiesBuilder::new();
    for property in properties.iter() {
        let is_forwarded = matches!(
            property.id(),
            PropertyId::PayloadFormatIndicator
                | PropertyId::ContentType
                | PropertyId::ResponseTopic
                | PropertyId::CorrelationData
                | PropertyId::UserProperty
        );
        if is_forwarded {
            builder.push(property).expect("BUG: the decoder has checked the property");
        }
    }
    builder
}
