//! Messages of the server to the device of a session: changes of shared attributes, and calls.
//!
//! They wait in an outbox of the hub until the worker takes them, and then in the queue of the session, like messages of other
//! clients.

use hub::broker::{Attached, BrokerError, Content, Quality, ToClient};
use hub::device_messages::{DeviceMessage, DeviceOutbox, Interests};
use hub::registry::Device;
use hub::rpc::Delivery;
use hub::{Door, Hub};
use payload_schema::PayloadSchemas;
use wire::thingsboard::attributes::{
    Topic as AttributeTopic, push_of_changed, push_of_changed_to_gateway, push_of_deleted,
    push_of_deleted_to_gateway,
};
use wire::thingsboard::gateway::Topic as GatewayTopic;
use wire::thingsboard::rpc::{self, RpcKind};
use wire::thingsboard::{Names, protobuf};

use super::super::limits;
use super::connected::Connected;
use super::context::Context;
use super::end::PacketError;
use super::gateway_devices::GatewayDevices;
use super::payload_forms::{entries, sends_protobuf};
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
            shared_attributes: filters.iter().any(|filter| attribute_names(filter).is_some()),
            rpc: filters.iter().any(|filter| call_names(filter).is_some()),
        };
        if let Some(behind) = &mut self.behind {
            let wants = |topic: GatewayTopic| filters.iter().any(|filter| **filter == *topic.name());
            let (shared_attributes, rpc) = (wants(GatewayTopic::Attributes), wants(GatewayTopic::Rpc));
            behind.set_interests(Interests { shared_attributes, rpc }, context.hub);
        }
        match &self.outbox {
            Some(outbox) => context.hub.set_interests(outbox, interests),
            None if interests.rpc || interests.shared_attributes => {
                self.outbox = Some(context.hub.open_outbox(&self.device, interests, (context.wake)()));
            }
            None => {}
        }
    }

    /// Moves the messages of the outboxes to the queue of the session. Returns whether further ones wait.
    pub(crate) fn take_from_outbox(&self, hub: &Hub) -> Result<bool, BrokerError> {
        let Some(attached) = self.attached.get() else { return Ok(false) };
        let own = match &self.outbox {
            Some(outbox) => self.move_messages(outbox, attached, hub)?,
            None => false,
        };
        let behind = match &self.behind {
            Some(behind) => move_messages_behind(behind, attached, hub)?,
            None => false,
        };
        Ok(own || behind)
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
                let Some(packet) = packet_of(message, filter, &self.device.profile.payloads) else {
                    continue;
                };
                match packet {
                    Ok((topic, payload)) => {
                        queue(message, (&topic, &payload), &self.device, attached, hub)?;
                    }
                    Err(reason) => refuse(message, &reason, &self.device, hub),
                }
                break;
            }
        }
        Ok(taken.len() == limits::OUTBOX_TAKE_MAX)
    }
}

/// Moves messages for devices behind a gateway to the queue of its session, from a bounded number of devices. Returns whether further
/// ones wait.
fn move_messages_behind(
    behind: &GatewayDevices,
    attached: &Attached,
    hub: &Hub,
) -> Result<bool, BrokerError> {
    for _ in 0..limits::OUTBOX_TAKE_MAX {
        let Some((slot, one)) = behind.next_waiting() else { return Ok(false) };
        let Some(outbox) = &one.outbox else { continue };
        let taken = outbox.take(limits::OUTBOX_TAKE_MAX);
        if taken.len() == limits::OUTBOX_TAKE_MAX {
            behind.waits_again(slot);
        }
        for message in &taken {
            let (topic, payload) = packet_behind(message, &one.device.name);
            queue(message, (topic.name(), &payload), &one.device, attached, hub)?;
        }
    }
    Ok(behind.is_waiting())
}

/// Adds a message for a device to the queue of a session: of its own, or of its gateway.
fn queue(
    message: &DeviceMessage,
    (topic, payload): (&str, &[u8]),
    device: &Device,
    attached: &Attached,
    hub: &Hub,
) -> Result<(), BrokerError> {
    let qos = hub.broker().subscribed_quality(&attached.session, topic);
    let qos = qos.unwrap_or(Quality::AtMostOnce);
    let call = match message {
        DeviceMessage::RpcRequest(call) if call.persistent => Some((device.id, call.id)),
        _ => None,
    };
    let content = Content { topic, payload, properties: &[], expires_at_ms: None };
    let is_queued = hub.broker().send(&attached.session, ToClient { content, qos, call })?;
    // A stored call that found no room stays queued, and is sent again after the next connect.
    if let Some((_, id)) = call.filter(|_| is_queued) {
        let delivery = match qos {
            Quality::AtMostOnce => Delivery::Delivered,
            _ => Delivery::Sent,
        };
        hub.call_delivery(device, id, delivery);
    }
    Ok(())
}

/// The topic and payload of a message for a device behind a gateway.
fn packet_behind(message: &DeviceMessage, device: &str) -> (GatewayTopic, Vec<u8>) {
    match message {
        DeviceMessage::AttributesChanged { entries } => {
            (GatewayTopic::Attributes, push_of_changed_to_gateway(device, &pairs(entries)))
        }
        DeviceMessage::AttributesDeleted { keys } => {
            let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
            (GatewayTopic::Attributes, push_of_deleted_to_gateway(device, &keys))
        }
        DeviceMessage::RpcRequest(call) => {
            let payload = rpc::gateway_call(device, call.id, &call.method, &call.params);
            (GatewayTopic::Rpc, payload.into_bytes())
        }
    }
}

/// The topic and payload of a message for a device that has subscribed to a filter; `None` if the filter does not select it.
///
/// # Errors
/// A call does not fit the schema of the device.
fn packet_of(
    message: &DeviceMessage,
    filter: &str,
    payloads: &PayloadSchemas,
) -> Option<Result<(String, Vec<u8>), String>> {
    let packet = match message {
        DeviceMessage::AttributesChanged { entries: changed } => {
            let payload = match sends_protobuf(attribute_names(filter)?, payloads) {
                true => protobuf::push_of_changed(entries(changed)),
                false => push_of_changed(&pairs(changed)),
            };
            Ok((filter.to_owned(), payload))
        }
        DeviceMessage::AttributesDeleted { keys } => {
            let keys: Vec<&str> = keys.iter().map(|key| &**key).collect();
            let payload = match sends_protobuf(attribute_names(filter)?, payloads) {
                true => protobuf::push_of_deleted(&keys),
                false => push_of_deleted(&keys),
            };
            Ok((filter.to_owned(), payload))
        }
        DeviceMessage::RpcRequest(call) => {
            let names = call_names(filter)?;
            let payload = match sends_protobuf(names, payloads) {
                true => payloads.call(call.id, &call.method, &call.params),
                false => Ok(rpc::call(&call.method, &call.params).into_bytes()),
            };
            let topic = rpc::Topic { names, kind: RpcKind::Request, id: call.id };
            payload.map(|payload| (topic.to_string(), payload))
        }
    };
    Some(packet)
}

/// Tells the caller that its call does not fit the schema of the device.
fn refuse(message: &DeviceMessage, reason: &str, device: &Device, hub: &Hub) {
    if let DeviceMessage::RpcRequest(call) = message {
        hub.metrics().refused(Door::Mqtt, "call");
        tracing::info!(device = device.name, call = call.id, reason, "a call is not sent");
        hub.refuse_call(device, call.id, reason);
    }
}

/// The names of a filter that selects changes of shared attributes of the device.
fn attribute_names(filter: &str) -> Option<Names> {
    match AttributeTopic::parse(filter) {
        Some(AttributeTopic::Attributes(names)) => Some(names),
        _ => None,
    }
}

/// The names of a filter that selects calls of the device.
fn call_names(filter: &str) -> Option<Names> {
    rpc::filter(filter).filter(|(_, kind)| *kind == RpcKind::Request).map(|(names, _)| names)
}
