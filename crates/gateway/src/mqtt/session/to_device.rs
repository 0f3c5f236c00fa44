//! Messages of the server to the device of a session: changes of shared attributes, and calls.
//!
//! They wait in an outbox of the hub until the worker takes them, and then in the queue of the session, like messages of other
//! clients.

use hub::Hub;
use hub::broker::{Attached, BrokerError, Content, Quality, ToClient};
use hub::device_messages::{DeviceMessage, DeviceOutbox, Interests};
use hub::rpc::Delivery;
use wire::thingsboard::attributes::{Topic as AttributeTopic, push_of_changed, push_of_deleted};
use wire::thingsboard::rpc::{self, Kind};

use super::super::limits;
use super::connected::Connected;
use super::context::Context;
use super::end::PacketError;
use super::subscribing::broker_error;
use crate::attribute_pairs::pairs;

impl Connected {
    /// Sends a message to this client only, with the QoS of the subscription that selects its topic.
    pub(super) fn send_to_client(
        &self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<(), PacketError> {
        let attached = self.attached(context);
        let qos = context.hub.broker().subscribed_quality(&attached.session, topic);
        let content = Content { topic, payload, properties: &[], expires_at_ms: None };
        let message = ToClient { content, qos: qos.unwrap_or(Quality::AtMostOnce), call: None };
        context.hub.broker().send(&attached.session, message).map_err(broker_error)?;
        *context.deliver = true;
        Ok(())
    }

    /// Follows the subscriptions of the session to topics of the device API.
    pub(super) fn follow_subscriptions(&mut self, context: &Context<'_>) {
        let Some(attached) = self.attached.get() else { return };
        let filters = context.hub.broker().filters(&attached.session, "v");
        let interests = Interests {
            shared_attributes: filters
                .iter()
                .any(|filter| matches!(AttributeTopic::parse(filter), Some(AttributeTopic::Attributes(_)))),
            rpc: filters.iter().any(|filter| call_names(filter).is_some()),
        };
        match &self.outbox {
            Some(outbox) => context.hub.set_interests(outbox, interests),
            None if interests.rpc || interests.shared_attributes => {
                self.outbox = Some(context.hub.open_outbox(&self.device, interests, (context.wake)()));
            }
            None => {}
        }
    }

    /// Moves the messages of the outbox to the queue of the session. Returns whether further ones wait.
    pub(crate) fn take_from_outbox(&self, hub: &Hub) -> Result<bool, BrokerError> {
        let (Some(outbox), Some(attached)) = (&self.outbox, self.attached.get()) else { return Ok(false) };
        self.move_messages(outbox, attached, hub)
    }

    fn move_messages(
        &self,
        outbox: &DeviceOutbox,
        attached: &Attached,
        hub: &Hub,
    ) -> Result<bool, BrokerError> {
        let taken = outbox.take(limits::OUTBOX_TAKE_MAX);
        let filters = hub.broker().filters(&attached.session, "v");
        for message in &taken {
            for filter in &filters {
                let Some((topic, payload)) = packet_of(message, filter) else { continue };
                let qos = hub.broker().subscribed_quality(&attached.session, &topic);
                let qos = qos.unwrap_or(Quality::AtMostOnce);
                let call = match &**message {
                    DeviceMessage::RpcRequest(call) if call.persistent => Some(call.id),
                    _ => None,
                };
                let content =
                    Content { topic: &topic, payload: &payload, properties: &[], expires_at_ms: None };
                let is_queued = hub.broker().send(&attached.session, ToClient { content, qos, call })?;
                // A stored call that found no room stays queued, and is sent again after the next connect.
                if let Some(id) = call.filter(|_| is_queued) {
                    let delivery = match qos {
                        Quality::AtMostOnce => Delivery::Delivered,
                        _ => Delivery::Sent,
                    };
                    hub.call_delivery(&self.device, id, delivery);
                }
                break;
            }
        }
        Ok(taken.len() == limits::OUTBOX_TAKE_MAX)
    }
}

/// The topic and payload of a message for a device that has subscribed to a filter; `None` if the filter does not select it.
fn packet_of(message: &DeviceMessage, filter: &str) -> Option<(String, Vec<u8>)> {
    match message {
        DeviceMessage::AttributesChanged { entries } => {
            is_attributes(filter).then(|| (filter.to_owned(), push_of_changed(&pairs(entries))))
        }
        DeviceMessage::AttributesDeleted { keys } => is_attributes(filter).then(|| {
            let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
            (filter.to_owned(), push_of_deleted(&keys))
        }),
        DeviceMessage::RpcRequest(call) => {
            let topic = rpc::Topic { names: call_names(filter)?, kind: Kind::Request, id: call.id };
            Some((topic.to_string(), rpc::call(&call.method, &call.params).into_bytes()))
        }
    }
}

fn is_attributes(filter: &str) -> bool {
    matches!(AttributeTopic::parse(filter), Some(AttributeTopic::Attributes(_)))
}

/// The names of a filter that selects calls of the device.
fn call_names(filter: &str) -> Option<rpc::Names> {
    rpc::filter(filter).filter(|(_, kind)| *kind == Kind::Request).map(|(names, _)| names)
}
