//! PUBLISH: into the batch, or into the dead-letter table.

use hub::{DeadLetter, Door};
use model::SeriesId;
use wire::mqtt::{PropertyId, ProtocolVersion, Publish, QoS, ReasonCode};

use super::super::acks::{AckKind, Refusal};
use super::super::limits;
use super::{Close, Connected, Context, protocol_error};

/// Where devices send telemetry (ThingsBoard's device API).
const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

impl Connected {
    pub(super) fn on_publish(
        &mut self,
        publish: &Publish<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Close> {
        if publish.qos != QoS::AtMostOnce && self.in_flight >= u32::from(context.options.receive_maximum) {
            // A 3.1.1 client knows no receive maximum: the worker stops reading from it before this is met.
            if self.version == ProtocolVersion::V5 {
                let cause = format!("more than {} messages without an ack", context.options.receive_maximum);
                return Err(Close::refused(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, "receive_maximum", cause));
            }
        }
        if publish.properties.get(PropertyId::SubscriptionIdentifier).is_some() {
            return Err(protocol_error("a subscription identifier in a client's PUBLISH [MQTT-3.3.4-6]"));
        }
        let aliased = self.resolve_alias(publish)?;
        let topic = aliased.as_deref().unwrap_or(publish.topic);
        match (publish.qos, publish.packet_id) {
            (QoS::ExactlyOnce, Some(packet_id)) if self.received.lock().contains(&packet_id) => {
                // Taken before, not yet released: answered again, not stored again [MQTT-4.3.3-10].
                self.push_ack(packet_id, AckKind::PubRec, None, context);
            }
            (QoS::ExactlyOnce, Some(packet_id)) => {
                let refusal = self.take_message(topic, publish.payload, context)?;
                // A PUBREC that says no ends the exchange, in MQTT 5 only.
                if refusal.is_none() || self.version == ProtocolVersion::V311 {
                    self.received.lock().insert(packet_id);
                }
                self.answer(packet_id, AckKind::PubRec, refusal, context);
            }
            (QoS::AtLeastOnce, Some(packet_id)) => {
                let refusal = self.take_message(topic, publish.payload, context)?;
                self.answer(packet_id, AckKind::PubAck, refusal, context);
            }
            _ => {
                self.take_message(topic, publish.payload, context)?;
                self.push_ack(0, AckKind::None, None, context);
            }
        }
        Ok(())
    }

    /// A refusal reaches MQTT 5 peers; 3.1.1 has no word for it, so there the dead letter's ack is a plain one.
    fn answer(&mut self, packet_id: u16, kind: AckKind, refusal: Option<Refusal>, context: &mut Context<'_>) {
        let told = refusal.filter(|_| self.version == ProtocolVersion::V5).map(Box::new);
        self.push_ack(packet_id, kind, told, context);
    }

    /// Adds a message to the turn's batch: as rows, or as a dead letter with the reason that is returned. A message
    /// that can be neither is not taken: the session ends without an ack, and the client still has the message.
    pub(super) fn take_message(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Refusal>, Close> {
        let class = self.device.profile.durability as usize;
        context.turn[class].messages += 1;
        context.turn[class].bytes += payload.len() as u64;
        let refusal = match self.decode_message(topic, payload, context) {
            Ok(()) => return Ok(None),
            Err(refusal) => refusal,
        };
        let letter = DeadLetter { door: Door::Mqtt.name(), topic, reason: &refusal.text, payload };
        match context.hub.add_dead_letter(&self.device, letter, &mut context.turn[class].batch) {
            Ok(()) => Ok(Some(refusal)),
            Err(error) => {
                let cause = format!("{}; and it cannot be kept as a dead letter: {error}", refusal.text);
                Err(Close::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause))
            }
        }
    }

    fn decode_message(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        if topic != TELEMETRY_TOPIC {
            context.hub.metrics().refused(Door::Mqtt, "topic");
            let text = format!("nothing is served under this topic; publish to {TELEMETRY_TOPIC}");
            return Err(Refusal { reason: ReasonCode::TOPIC_NAME_INVALID, text });
        }
        let series = self.series(context).map_err(|error| Refusal {
            reason: ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR,
            text: error.to_string(),
        })?;
        let received = context.hub.receipt_time_at(context.now);
        let batch = &mut context.turn[self.device.profile.durability as usize].batch;
        wire::telemetry::decode(payload, series, received, context.hub.limits(), batch).map_err(|error| {
            context.hub.metrics().refused(Door::Mqtt, error.label());
            Refusal { reason: ReasonCode::PAYLOAD_FORMAT_INVALID, text: error.to_string() }
        })
    }

    fn series(&mut self, context: &Context<'_>) -> Result<SeriesId, hub::IngestError> {
        if let Some(series) = self.series {
            return Ok(series);
        }
        let series = context.hub.series_of(&self.device)?;
        self.series = Some(series);
        Ok(series)
    }

    /// The topic that an alias stands for, if the message uses one; remembers new ones [MQTT5 3.3.2.3.4].
    fn resolve_alias(&mut self, publish: &Publish<'_>) -> Result<Option<String>, Close> {
        let Some(alias) = publish.properties.number(PropertyId::TopicAlias) else { return Ok(None) };
        if alias > u32::from(limits::TOPIC_ALIAS_MAX) {
            let cause = format!(
                "topic alias {alias} is above the maximum of {} [MQTT-3.3.2-9]",
                limits::TOPIC_ALIAS_MAX
            );
            return Err(Close::refused(ReasonCode::TOPIC_ALIAS_INVALID, "topic_alias", cause));
        }
        self.aliases.resize_with(usize::from(limits::TOPIC_ALIAS_MAX) + 1, || None);
        let slot = &mut self.aliases[alias as usize];
        if !publish.topic.is_empty() {
            *slot = Some(publish.topic.into());
            return Ok(None);
        }
        match slot {
            Some(topic) => Ok(Some(topic.to_string())),
            None => Err(protocol_error("a topic alias that was never set [MQTT5 3.3.4]")),
        }
    }
}
