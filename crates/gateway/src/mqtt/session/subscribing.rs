//! SUBSCRIBE and UNSUBSCRIBE.

use std::num::NonZeroU32;

use hub::broker::{Attached, BrokerError, Quality, Request, RetainHandling, SubscriptionOptions};
use wire::mqtt::{
    Filter, Packet, Properties, PropertiesBuilder, ProtocolVersion, QoS, ReasonCode, SubAck, Subscribe,
    UnsubAck, Unsubscribe,
};

use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd};
use super::topic_access::{is_of_device_api, lists};

/// The answer to one filter.
struct Answer {
    code: ReasonCode,
    why: Option<String>,
}

impl Connected {
    pub(super) fn on_subscribe(
        &mut self,
        subscribe: Subscribe<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        let identifier = subscribe.properties.subscription_identifiers().next().and_then(NonZeroU32::new);
        let mut answers = Vec::new();
        let mut requests = Vec::new();
        for filter in subscribe.filters() {
            let answer = self.answer(&filter, context);
            if answer.code.0 < 0x80 {
                requests.push(request(&filter, identifier, self.peer.is_bridge));
            }
            answers.push(answer);
        }
        let mut results = Vec::new();
        let sequence = match requests.is_empty() {
            true => None,
            false => {
                let attached = self.attached(context);
                context
                    .hub
                    .broker()
                    .subscribe(&attached.session, &requests, &mut results)
                    .map_err(broker_error)?
            }
        };
        let accepted = answers.iter_mut().filter(|answer| answer.code.0 < 0x80);
        for (answer, result) in accepted.zip(results) {
            if let Err(error) = result {
                *answer = Answer { code: ReasonCode::QUOTA_EXCEEDED, why: Some(error.to_string()) };
            }
        }
        let why = answers.iter_mut().find_map(|answer| answer.why.take());
        let codes: Vec<u8> = answers.iter().map(|answer| self.suback_code(answer.code)).collect();
        let packet_id = subscribe.packet_id;
        let packet = |properties| Packet::SubAck(SubAck { packet_id, properties, codes: &codes });
        let mut out = Vec::new();
        match &why {
            Some(why) => {
                context.hub.metrics().refused(hub::Door::Mqtt, "subscription");
                self.peer.write_explained(why, packet, &mut PropertiesBuilder::new(), &mut out);
            }
            None => self.peer.write(&[packet(Properties::NONE)], &mut out),
        }
        context.answer_when_durable(sequence, out);
        self.follow_subscriptions(context);
        *context.deliver = true;
        Ok(())
    }

    /// The answer to a filter before the limits of the broker are known.
    fn answer(&self, filter: &Filter<'_>, context: &Context<'_>) -> Answer {
        if self.may_subscribe(filter.topic, context.hub, context.options) {
            let code = match filter.qos() {
                QoS::AtMostOnce => ReasonCode::SUCCESS,
                QoS::AtLeastOnce => ReasonCode(1),
                QoS::ExactlyOnce => ReasonCode(2),
            };
            return Answer { code, why: None };
        }
        let why = match is_of_device_api(filter.topic) {
            true => format!(
                "the server sends nothing under {:?} to the device {:?}",
                filter.topic, self.device.name
            ),
            false => format!(
                "the device {:?} may not subscribe to {:?}; {} list what it may",
                self.device.name,
                filter.topic,
                lists("subscribe")
            ),
        };
        Answer { code: ReasonCode::NOT_AUTHORIZED, why: Some(why) }
    }

    /// The code of SUBACK. Before MQTT 5 there is one code for all failures [MQTT-3.9.3-2].
    fn suback_code(&self, code: ReasonCode) -> u8 {
        match self.peer.version {
            ProtocolVersion::V5 => code.0,
            ProtocolVersion::V31 | ProtocolVersion::V311 => code.0.min(0x80),
        }
    }

    pub(super) fn on_unsubscribe(
        &mut self,
        unsubscribe: Unsubscribe<'_>,
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        let mut existed = Vec::new();
        let mut sequence = None;
        match self.attached.get() {
            Some(attached) => {
                let broker = context.hub.broker();
                let filters: Vec<&str> = unsubscribe.filters().collect();
                sequence = broker
                    .unsubscribe(&attached.session, filters.iter().copied(), &mut existed)
                    .map_err(broker_error)?;
            }
            None => existed.resize(unsubscribe.filters().count(), false),
        }
        let code = |existed: &bool| match existed {
            true => ReasonCode::SUCCESS.0,
            false => ReasonCode::NO_SUBSCRIPTION_EXISTED.0,
        };
        let codes: Vec<u8> = existed.iter().map(code).collect();
        let packet_id = unsubscribe.packet_id;
        let ack = UnsubAck { packet_id, properties: Properties::NONE, codes: &codes };
        let mut out = Vec::new();
        self.peer.write(&[Packet::UnsubAck(ack)], &mut out);
        context.answer_when_durable(sequence, out);
        self.follow_subscriptions(context);
        Ok(())
    }

    /// The session of the client at the broker. Begins one for a client whose session ends with its connection.
    pub(super) fn attached(&self, context: &Context<'_>) -> &Attached {
        self.attached.get_or_init(|| {
            let client = self.attach_request(0, true, context);
            context.hub.broker().begin(&client)
        })
    }
}

/// A bridge does not get messages that it has sent itself, and gets retain flags as they were published.
fn request<'a>(filter: &Filter<'a>, identifier: Option<NonZeroU32>, is_bridge: bool) -> Request<'a> {
    let options = SubscriptionOptions {
        qos: quality(filter.qos()),
        no_local: is_bridge || filter.no_local(),
        retain_as_published: is_bridge || filter.retain_as_published(),
        identifier,
    };
    let retain_handling = match filter.retain_handling() {
        0 => RetainHandling::Always,
        1 => RetainHandling::IfNew,
        _ => RetainHandling::Never,
    };
    Request { filter: filter.topic, options, retain_handling }
}

/// The broker's word for a quality of service.
pub(super) fn quality(qos: QoS) -> Quality {
    match qos {
        QoS::AtMostOnce => Quality::AtMostOnce,
        QoS::AtLeastOnce => Quality::AtLeastOnce,
        QoS::ExactlyOnce => Quality::ExactlyOnce,
    }
}

/// The effect of an error of the broker on the session.
pub(super) fn broker_error(error: BrokerError) -> PacketError {
    if error.is_busy() {
        return PacketError::StoreBusy;
    }
    let reason = match error {
        BrokerError::Ended => ReasonCode::SESSION_TAKEN_OVER,
        _ => ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR,
    };
    PacketError::End(SessionEnd::refused(reason, "broker", error.to_string()))
}
