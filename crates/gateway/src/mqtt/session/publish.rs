//! PUBLISH: into the batch, or into the dead-letter table.

use std::cell::Cell;
use std::sync::Arc;

use hub::{Blame, DeadLetter, Door};
use model::SeriesId;
use wire::mqtt::{PropertyId, ProtocolVersion, Publish, QoS, ReasonCode};
use wire::telemetry::Receipt;

use super::super::acks::{AckKind, Answer, PendingAck, Refusal};
use super::super::limits;
use super::super::received::{Phase, Turn};
use super::{Close, Connected, Context, Halt, protocol_error};
use crate::refusals;

/// Where devices send telemetry (ThingsBoard's device API).
pub(crate) const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

/// Why a message does not become rows.
struct Unfit {
    refusal: Refusal,
    /// For metrics.
    label: &'static str,
}

impl Connected {
    pub(super) fn on_publish(
        &mut self,
        publish: &Publish<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), Halt> {
        if !context.takes_messages {
            return Err(Halt::NotNow);
        }
        self.check_terms(publish, context)?;
        let aliased = self.resolve_alias(publish)?;
        let topic = aliased.as_deref().unwrap_or(publish.topic);
        match (publish.qos, publish.packet_id) {
            (QoS::ExactlyOnce, Some(packet_id)) => {
                self.on_exactly_once(topic, packet_id, publish.payload, context)
            }
            (QoS::AtLeastOnce, Some(packet_id)) => {
                let unfit = self.take_message(topic, publish.payload, context)?;
                self.submit((packet_id, AckKind::PubAck), unfit, None, publish.payload, context);
                Ok(())
            }
            _ => self.on_unanswered(topic, publish.payload, context),
        }
    }

    /// A message that nobody waits for: QoS 0, or a will.
    pub(super) fn on_unanswered(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let refusal = self.take_message(topic, payload, context)?;
        self.submit((0, AckKind::None), refusal, None, payload, context);
        Ok(())
    }

    fn check_terms(&self, publish: &Publish<'_>, context: &Context<'_>) -> Result<(), Close> {
        let most = context.options.receive_maximum;
        // An older client knows no receive maximum: the worker stops reading from it instead.
        let counts = publish.qos != QoS::AtMostOnce && self.peer.version == ProtocolVersion::V5;
        if counts && self.in_flight >= u32::from(most) {
            let cause = format!("more than {most} messages without an ack");
            return Err(Close::refused(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, "receive_maximum", cause));
        }
        if publish.properties.get(PropertyId::SubscriptionIdentifier).is_some() {
            return Err(protocol_error("a subscription identifier in a client's PUBLISH [MQTT-3.3.4-6]"));
        }
        Ok(())
    }

    fn on_exactly_once(
        &mut self,
        topic: &str,
        packet_id: u16,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), Halt> {
        let turn = self.turn(context);
        let (phase, unreleased) = {
            let received = self.received.lock();
            (received.phase(packet_id), received.len())
        };
        match phase {
            // Kept, or in the very batch that this answer waits for; not yet released. Answered again, not stored
            // again [MQTT-4.3.3-10].
            Some(Phase::Taken) => self.repeat(packet_id, context),
            Some(Phase::Submitted(submitted)) if submitted == turn => self.repeat(packet_id, context),
            // A former connection's worker holds it; what becomes of it is not known yet.
            Some(Phase::Submitted(_)) => return Err(Halt::NotNow),
            None => {
                self.check_unreleased(unreleased, context)?;
                let unfit = self.take_message(topic, payload, context)?;
                self.submit((packet_id, AckKind::PubRec), unfit, Some(turn), payload, context);
            }
        }
        Ok(())
    }

    /// A PUBREC that says yes leaves the message within the receive maximum until PUBCOMP [MQTT5 4.9].
    fn check_unreleased(&self, unreleased: usize, context: &Context<'_>) -> Result<(), Close> {
        let most = match self.peer.version {
            ProtocolVersion::V5 => limits::UNRELEASED_MAX.min(context.options.receive_maximum.into()),
            ProtocolVersion::V31 | ProtocolVersion::V311 => limits::UNRELEASED_MAX,
        };
        if unreleased < most {
            return Ok(());
        }
        let cause = format!("{unreleased} messages of QoS 2 wait for their PUBREL, the limit is {most}");
        Err(Close::refused(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, "unreleased", cause))
    }

    fn turn(&self, context: &Context<'_>) -> Turn {
        Turn { worker: context.place.worker as u16, class: self.device.profile.durability }
    }

    fn repeat(&mut self, packet_id: u16, context: &mut Context<'_>) {
        let ack = self.ack((packet_id, AckKind::PubRec), Answer::Yes, context);
        context.turn[self.device.profile.durability as usize].push(&self.device, ack, &[]);
    }

    /// Completes a message whose rows are in the turn's batch. `exchange` is set for the first half of QoS 2.
    fn submit(
        &mut self,
        (packet_id, kind): (u16, AckKind),
        refusal: Option<Refusal>,
        exchange: Option<Turn>,
        payload: &[u8],
        context: &mut Context<'_>,
    ) {
        let is_letter = refusal.is_some();
        // A refusal reaches MQTT 5 peers; before it there is no word for it, so the dead letter's ack is a plain one.
        let told = refusal.filter(|_| self.peer.version == ProtocolVersion::V5);
        let answer = match (told, exchange) {
            // A PUBREC that says no ends the exchange.
            (Some(refusal), _) => Answer::No(Box::new(refusal)),
            (None, Some(turn)) => {
                self.received.lock().submit(packet_id, turn);
                Answer::First(Arc::clone(&self.received))
            }
            (None, None) => Answer::Yes,
        };
        let ack = self.ack((packet_id, kind), answer, context);
        let turn = &mut context.turn[self.device.profile.durability as usize];
        turn.messages += 1;
        turn.bytes += payload.len() as u64;
        turn.push(&self.device, ack, if is_letter { &[] } else { payload });
    }

    fn ack(
        &mut self,
        (packet_id, kind): (u16, AckKind),
        answer: Answer,
        context: &Context<'_>,
    ) -> PendingAck {
        self.in_flight += u32::from(kind != AckKind::None);
        PendingAck { connection: context.place.connection, packet_id, kind, answer }
    }

    /// Adds a message to the turn's batch: as rows, or as a dead letter with the reason that is returned. A message
    /// that can be neither is not taken: the session ends without an ack, and the client still has the message.
    fn take_message(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Refusal>, Halt> {
        let Some(Unfit { refusal, label }) = self.decode_message(topic, payload, context)? else {
            return Ok(None);
        };
        let batch = &mut context.turn[self.device.profile.durability as usize].batch;
        let letter = DeadLetter { door: Door::Mqtt.name(), topic, reason: &refusal.text, payload };
        context.hub.add_dead_letter(&self.device, letter, batch).map_err(|error| store_halt(&error))?;
        let peer = Some(context.peer);
        refusals::message(context.hub, Door::Mqtt, peer, &self.device, label, &refusal.text);
        Ok(Some(refusal))
    }

    fn decode_message(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, Halt> {
        if topic != TELEMETRY_TOPIC {
            let text = format!("nothing is served under this topic; publish to {TELEMETRY_TOPIC}");
            let refusal = Refusal { reason: ReasonCode::TOPIC_NAME_INVALID, text };
            return Ok(Some(Unfit { refusal, label: "topic" }));
        }
        let series = match self.series(context) {
            Ok(series) => series,
            Err(error) if error.blame() == Blame::Caller => {
                let refusal = Refusal { reason: ReasonCode::QUOTA_EXCEEDED, text: error.to_string() };
                return Ok(Some(Unfit { refusal, label: "store_limit" }));
            }
            Err(error) => return Err(store_halt(&error)),
        };
        // The first row has the time that was given out already, if one was; all others come after it.
        let given_out = Cell::new(context.received);
        let hub = context.hub;
        let next = || given_out.take().unwrap_or_else(|| hub.receipt_time());
        let receipt = Receipt { now: context.now, next: &next };
        let limits = hub.limits_of(&self.device);
        let batch = &mut context.turn[self.device.profile.durability as usize].batch;
        let decoded = wire::telemetry::decode(payload, series, receipt, &limits, batch);
        Ok(decoded.err().map(|error| Unfit {
            refusal: Refusal { reason: ReasonCode::PAYLOAD_FORMAT_INVALID, text: error.to_string() },
            label: error.label(),
        }))
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
    fn resolve_alias(&mut self, publish: &Publish<'_>) -> Result<Option<Arc<str>>, Close> {
        let Some(alias) = publish.properties.number(PropertyId::TopicAlias) else { return Ok(None) };
        if alias > u32::from(limits::TOPIC_ALIAS_MAX) {
            let cause = format!(
                "topic alias {alias} is above the maximum of {} [MQTT-3.3.2-9]",
                limits::TOPIC_ALIAS_MAX
            );
            return Err(Close::refused(ReasonCode::TOPIC_ALIAS_INVALID, "topic_alias", cause));
        }
        self.aliases.resize_with(usize::from(limits::TOPIC_ALIAS_MAX) + 1, || None);
        if !publish.topic.is_empty() {
            if self.aliases[alias as usize].as_deref() != Some(publish.topic) {
                self.aliases[alias as usize] = None;
                let held: usize = self.aliases.iter().flatten().map(|topic| topic.len()).sum();
                check_alias_bytes(held + publish.topic.len())?;
                self.aliases[alias as usize] = Some(publish.topic.into());
            }
            return Ok(None);
        }
        let slot = &self.aliases[alias as usize];
        match slot {
            Some(topic) => Ok(Some(Arc::clone(topic))),
            None => Err(protocol_error("a topic alias that was never set [MQTT5 3.3.4]")),
        }
    }
}

fn check_alias_bytes(bytes: usize) -> Result<(), Close> {
    let limit = limits::TOPIC_ALIAS_BYTES_MAX;
    if bytes <= limit {
        return Ok(());
    }
    let cause = format!("the topics of this session's aliases take {bytes} bytes, the limit is {limit}");
    Err(Close::refused(ReasonCode::QUOTA_EXCEEDED, "topic_alias", cause))
}

/// What a message that the store cannot take does to its session.
fn store_halt(error: &hub::IngestError) -> Halt {
    match error.blame() {
        Blame::Busy => Halt::NotNow,
        Blame::Caller | Blame::Operator => {
            let cause = error.to_string();
            Halt::Close(Close::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause))
        }
    }
}
