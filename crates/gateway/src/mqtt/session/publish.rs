//! PUBLISH: adds a message to the batch, as rows or as a dead letter.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use hub::broker::{Content, Publication, is_too_deep};
use hub::{Blame, DeadLetter, Door};
use model::SeriesId;
use payload_schema::{PayloadForm, PayloadKind};
use wire::mqtt::{PropertyId, ProtocolVersion, Publish, QoS, ReasonCode};
use wire::telemetry::Receipt;
use wire::thingsboard::gateway::Topic as GatewayTopic;

use super::super::acks::{AckKind, Answer, PendingAck, Refusal};
use super::super::ingest_batch::{IngestBatch, Source};
use super::super::limits;
use super::super::qos2::{BatchRef, Phase};
use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd, protocol_error};
use super::outgoing::forwarded;
use super::refused_message::RefusedMessage;
use super::subscribing::quality;
use super::topic_access::{is_of_device_api, lists};
use super::topics::{TELEMETRY_TOPIC, telemetry_topic};
use crate::refusals;

/// A message that came, or a will.
#[derive(Clone, Copy)]
pub(super) struct Incoming<'a> {
    pub(super) topic: &'a str,
    pub(super) payload: &'a [u8],
    pub(super) qos: QoS,
    pub(super) retain: bool,
    /// Properties that subscribers get, in the layout of a packet.
    pub(super) properties: &'a [u8],
    pub(super) expiry_s: Option<u32>,
}

/// What a message is after it was added to the batch of the worker.
enum Added {
    /// Rows of telemetry, which came under this topic.
    Telemetry(&'static str),
    /// A dead letter.
    Refused(Refusal),
    /// Something else, or the message that comes after its parts.
    Other,
}

impl Connected {
    pub(super) fn on_publish(
        &mut self,
        publish: &Publish<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        if !context.takes_messages {
            return Err(PacketError::StoreBusy);
        }
        context.gate.take_request().map_err(PacketError::TooManyRequests)?;
        if let Err(above) = self.load.take_message(Instant::now()) {
            context.gate.give_back_request();
            return Err(PacketError::TenantLimited(above.wait));
        }
        let taken = self.take_message(publish, context);
        if let Err(PacketError::StoreBusy | PacketError::Awaited) = taken {
            // The worker passes the message again.
            context.gate.give_back_request();
            self.load.give_back_message();
        }
        taken
    }

    fn take_message(&mut self, publish: &Publish<'_>, context: &mut Context<'_>) -> Result<(), PacketError> {
        self.check_terms(publish, context)?;
        let aliased = self.resolve_alias(publish)?;
        let properties = forwarded(publish.properties);
        let incoming = Incoming {
            topic: aliased.as_deref().unwrap_or(publish.topic),
            payload: publish.payload,
            qos: publish.qos,
            retain: publish.retain,
            properties: properties.as_properties().as_bytes(),
            expiry_s: publish.properties.message_expiry_interval(),
        };
        match (publish.qos, publish.packet_id) {
            (QoS::ExactlyOnce, Some(packet_id)) => self.on_exactly_once(packet_id, incoming, context),
            (QoS::AtLeastOnce, Some(packet_id)) => {
                let added = self.add_message(incoming, context)?;
                self.submit((packet_id, AckKind::PubAck), added, None, publish.payload, context);
                Ok(())
            }
            _ => self.on_unanswered(incoming, context),
        }
    }

    /// A message without an ack: QoS 0, or a will.
    pub(super) fn on_unanswered(
        &mut self,
        incoming: Incoming<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        let added = self.add_message(incoming, context)?;
        self.submit((0, AckKind::None), added, None, incoming.payload, context);
        Ok(())
    }

    fn check_terms(&self, publish: &Publish<'_>, context: &Context<'_>) -> Result<(), SessionEnd> {
        let most = context.options.receive_maximum;
        // Before MQTT 5 there is no receive maximum; the worker stops reading from the client instead.
        let counts = publish.qos != QoS::AtMostOnce && self.peer.version == ProtocolVersion::V5;
        if counts && self.in_flight >= u32::from(most) {
            let cause = format!("more than {most} messages without an ack");
            return Err(SessionEnd::refused(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, "receive_maximum", cause));
        }
        if publish.properties.get(PropertyId::SubscriptionIdentifier).is_some() {
            return Err(protocol_error("a subscription identifier in a client's PUBLISH [MQTT-3.3.4-6]"));
        }
        Ok(())
    }

    fn on_exactly_once(
        &mut self,
        packet_id: u16,
        incoming: Incoming<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        let batch = self.batch_ref(context);
        let (phase, unreleased) = {
            let qos2 = self.qos2.lock();
            (qos2.phase(packet_id), qos2.len())
        };
        match phase {
            // The message is stored, or in the batch that this ack waits for, and not released yet. The session answers it
            // again and does not store it again [MQTT-4.3.3-10].
            Some(Phase::Stored) => self.repeat(packet_id, context),
            Some(Phase::Submitted(submitted)) if submitted == batch => self.repeat(packet_id, context),
            // The worker of the former connection has it in a batch; the result is not known yet.
            Some(Phase::Submitted(_)) => return Err(PacketError::StoreBusy),
            None => {
                self.check_unreleased(unreleased, context)?;
                let added = self.add_message(incoming, context)?;
                self.submit((packet_id, AckKind::PubRec), added, Some(batch), incoming.payload, context);
            }
        }
        Ok(())
    }

    /// After a successful PUBREC the message counts for the receive maximum until PUBCOMP [MQTT5 4.9].
    fn check_unreleased(&self, unreleased: usize, context: &Context<'_>) -> Result<(), SessionEnd> {
        let most = match self.peer.version {
            ProtocolVersion::V5 => limits::UNRELEASED_MAX.min(context.options.receive_maximum.into()),
            ProtocolVersion::V31 | ProtocolVersion::V311 => limits::UNRELEASED_MAX,
        };
        if unreleased < most {
            return Ok(());
        }
        let cause = format!("{unreleased} messages of QoS 2 wait for their PUBREL, the limit is {most}");
        Err(SessionEnd::refused(ReasonCode::RECEIVE_MAXIMUM_EXCEEDED, "unreleased", cause))
    }

    /// The batch that the messages of this session enter.
    fn batch_ref(&self, context: &Context<'_>) -> BatchRef {
        BatchRef { worker: context.connection.worker as u16, class: self.durability() }
    }

    fn repeat(&mut self, packet_id: u16, context: &mut Context<'_>) {
        let ack = self.ack((packet_id, AckKind::PubRec), Answer::Accepted, context);
        context.batches[self.durability()].push(&self.device, ack, Source::DeadLetters, None);
    }

    /// Completes a message whose rows are in the batch. `exchange` is set for the first half of a QoS 2 exchange.
    fn submit(
        &mut self,
        (packet_id, kind): (u16, AckKind),
        added: Added,
        exchange: Option<BatchRef>,
        payload: &[u8],
        context: &mut Context<'_>,
    ) {
        let class = self.durability();
        let (source, refusal) = match added {
            Added::Telemetry(topic) => {
                (Source::Telemetry { topic, payload: context.payload_ref(payload, class) }, None)
            }
            Added::Refused(refusal) => (Source::DeadLetters, Some(refusal)),
            Added::Other => (Source::DeadLetters, None),
        };
        // Only MQTT 5 has negative acks. Before it, a dead letter gets a plain ack.
        let told = refusal.filter(|_| self.peer.version == ProtocolVersion::V5);
        let answer = match (told, exchange) {
            // A negative PUBREC ends the exchange.
            (Some(refusal), _) => Answer::Refused(Box::new(refusal)),
            (None, Some(batch)) => {
                self.qos2.lock().submit(packet_id, batch);
                Answer::AcceptedQos2(Arc::clone(&self.qos2))
            }
            (None, None) => Answer::Accepted,
        };
        let ack = self.ack((packet_id, kind), answer, context);
        context.batches[class].push(&self.device, ack, source, Some(payload.len()));
    }

    fn ack(
        &mut self,
        (packet_id, kind): (u16, AckKind),
        answer: Answer,
        context: &Context<'_>,
    ) -> PendingAck {
        self.in_flight += u32::from(kind != AckKind::None);
        PendingAck::new(context.connection.key, packet_id, kind, answer)
    }

    /// Adds a message to the batch: as rows, or as a dead letter. If neither is possible, the session ends without an ack, and the
    /// client still has the message.
    fn add_message(
        &mut self,
        incoming: Incoming<'_>,
        context: &mut Context<'_>,
    ) -> Result<Added, PacketError> {
        let Incoming { topic, payload, .. } = incoming;
        let of_gateway = GatewayTopic::parse(topic);
        if of_gateway == Some(GatewayTopic::Telemetry) && self.behind.is_some() {
            return Ok(self.add_parts(incoming, context)?.map_or(Added::Other, Added::Refused));
        }
        let of_telemetry = telemetry_topic(topic);
        let unfit = if let Some((_, form)) = of_telemetry {
            self.decode_telemetry(form, payload, context)?
        } else if self.may_publish(topic, context) && !is_too_deep(topic) {
            self.add_publication(incoming, context);
            None
        } else if let Some(topic) = of_gateway {
            self.on_gateway_message(topic, payload, context)?
        } else {
            self.on_device_message(topic, payload, context)?
        };
        match (unfit, of_telemetry) {
            (Some(unfit), _) => self.add_dead_letter(topic, payload, unfit, context).map(Added::Refused),
            (None, Some((topic, _))) => Ok(Added::Telemetry(topic)),
            (None, None) => Ok(Added::Other),
        }
    }

    /// The refusal of a topic that is not of the device API.
    pub(super) fn refused_topic(&self, topic: &str, context: &Context<'_>) -> RefusedMessage {
        if self.may_publish(topic, context) {
            let limit = hub::broker::limits::TOPIC_LEVELS_MAX;
            return RefusedMessage::topic(&format!(
                "the topic has more than {limit} levels (TOPIC_LEVELS_MAX)"
            ));
        }
        let text = format!(
            "the device may not publish to this topic; it may to {TELEMETRY_TOPIC}, and {} list more",
            lists("publish")
        );
        match is_of_device_api(topic) {
            true => RefusedMessage::topic(&text),
            false => RefusedMessage::new(ReasonCode::NOT_AUTHORIZED, "topic", &text),
        }
    }

    /// Adds a refused message, or its refused part, to the batch as a dead letter. Returns the refusal for its ack.
    pub(super) fn add_dead_letter(
        &self,
        topic: &str,
        payload: &[u8],
        unfit: RefusedMessage,
        context: &mut Context<'_>,
    ) -> Result<Refusal, PacketError> {
        let RefusedMessage { refusal, label, payload: part } = unfit;
        let payload = part.as_deref().unwrap_or(payload);
        let dead_letter = DeadLetter { door: Door::Mqtt.name(), topic, reason: &refusal.text, payload };
        let (hub, peer) = (context.hub, Some(context.peer));
        let batch = &mut self.batch(context).batch;
        hub.add_dead_letter(&self.device, dead_letter, batch).map_err(|error| store_error(&error))?;
        refusals::message(hub, Door::Mqtt, peer, &self.device, label, &refusal.text);
        Ok(refusal)
    }

    /// The batch that the messages of this session enter.
    pub(super) fn batch<'a>(&self, context: &'a mut Context<'_>) -> &'a mut IngestBatch {
        &mut context.batches[self.durability()]
    }

    /// Adds a message for subscribers. The worker publishes it at the end of the pass.
    fn add_publication(&self, incoming: Incoming<'_>, context: &mut Context<'_>) {
        let Incoming { topic, payload, qos, retain, properties, expiry_s } = incoming;
        let expires_at_ms = expiry_s.map(|seconds| context.now_ms() + 1_000 * i64::from(seconds));
        let content = Content { topic, payload, properties, expires_at_ms };
        context.publications.push(Publication {
            message: context.hub.broker().message(self.device.tenant, content),
            qos: quality(qos),
            retain,
            tenant: self.device.tenant,
            publisher: self.attached.get().map(|attached| attached.session.id()),
        });
    }

    fn decode_telemetry(
        &mut self,
        form: PayloadForm,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let series = match self.series(context) {
            Ok(series) => series,
            Err(error) if error.blame() == Blame::Caller => {
                return Ok(Some(RefusedMessage::limit("store_limit", &error)));
            }
            Err(error) => return Err(store_error(&error)),
        };
        let payload = match self.device.profile.payloads.json(PayloadKind::Telemetry, form, payload) {
            Ok(payload) => payload,
            Err(reason) => return Ok(Some(RefusedMessage::payload(&reason))),
        };
        // The first row gets the receipt time that was assigned earlier, if any. All other rows get later times.
        let assigned = Cell::new(context.received);
        let hub = context.hub;
        let next = || assigned.take().unwrap_or_else(|| hub.receipt_time());
        let receipt = Receipt { now: context.now, next: &next };
        let limits = hub.limits_of(&self.device);
        let batch = &mut context.batches[self.durability()].batch;
        let before = batch.points();
        let decoded = wire::telemetry::decode(&payload, series, receipt, &limits, batch);
        self.load.add_points(batch.points() - before, Instant::now());
        Ok(decoded
            .err()
            .map(|error| RefusedMessage { label: error.label(), ..RefusedMessage::payload(&error) }))
    }

    fn series(&mut self, context: &Context<'_>) -> Result<SeriesId, hub::IngestError> {
        if let Some(series) = self.series {
            return Ok(series);
        }
        let series = context.hub.series_of(&self.device)?;
        self.series = Some(series);
        Ok(series)
    }

    /// The topic of a topic alias, if the message uses one. Records new aliases [MQTT5 3.3.2.3.4].
    fn resolve_alias(&mut self, publish: &Publish<'_>) -> Result<Option<Arc<str>>, SessionEnd> {
        let Some(alias) = publish.properties.number(PropertyId::TopicAlias) else { return Ok(None) };
        if alias > u32::from(limits::TOPIC_ALIAS_MAX) {
            let cause = format!(
                "topic alias {alias} is above the maximum of {} [MQTT-3.3.2-9]",
                limits::TOPIC_ALIAS_MAX
            );
            return Err(SessionEnd::refused(ReasonCode::TOPIC_ALIAS_INVALID, "topic_alias", cause));
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

fn check_alias_bytes(bytes: usize) -> Result<(), SessionEnd> {
    let limit = limits::TOPIC_ALIAS_BYTES_MAX;
    if bytes <= limit {
        return Ok(());
    }
    let cause = format!("the topics of this session's aliases take {bytes} bytes, the limit is {limit}");
    Err(SessionEnd::refused(ReasonCode::QUOTA_EXCEEDED, "topic_alias", cause))
}

/// The effect of a store error on the session.
pub(super) fn store_error(error: &hub::IngestError) -> PacketError {
    match error.blame() {
        Blame::Busy => PacketError::StoreBusy,
        Blame::Caller | Blame::Operator => {
            let cause = error.to_string();
            PacketError::End(SessionEnd::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause))
        }
    }
}
