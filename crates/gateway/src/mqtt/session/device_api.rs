//! ThingsBoard's device API over MQTT: attributes and calls. `docs/protocol/thingsboard-devices.md` lists the topics.

use std::borrow::Cow;
use std::sync::Arc;

use hub::AttributeError;
use hub::claims::ClaimError;
use hub::registry::Device;
use hub::rpc::{SessionLimits, answer_to_device};
use model::Value;
use payload_schema::{PayloadForm, PayloadKind};
use wire::mqtt::ReasonCode;
use wire::thingsboard::attributes::{Topic as AttributeTopic, read_publish, read_request, response};
use wire::thingsboard::claim::{self, ClaimRequest};
use wire::thingsboard::packages::ChunkRequest;
use wire::thingsboard::rpc::{self, DeviceCall, RpcKind};
use wire::thingsboard::{Names, protobuf};

use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd};
use super::payload_forms::{entries, form, read, sends_protobuf};
use super::refused_message::RefusedMessage;
use crate::attribute_pairs::pairs;

/// A message of the device API other than telemetry.
enum Message {
    Attributes(AttributeTopic),
    Rpc(rpc::Topic),
}

impl Connected {
    /// Handles a message of the device API other than telemetry. Returns the refusal if there is one, also for a topic that the
    /// device may not publish to.
    pub(super) fn on_device_message(
        &mut self,
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        if topic == claim::TOPIC {
            return self.offer_claim(payload, context);
        }
        if let Some(request) = ChunkRequest::parse(topic) {
            return self.send_chunk(request, payload, context);
        }
        let message = AttributeTopic::parse(topic).map(Message::Attributes);
        let Some(message) = message.or_else(|| rpc::Topic::parse(topic).map(Message::Rpc)) else {
            return Ok(Some(self.refused_topic(topic, context)));
        };
        match message {
            Message::Attributes(AttributeTopic::Attributes(names)) => {
                self.set_attributes(form(names), payload, context)
            }
            Message::Attributes(AttributeTopic::Request { names, id }) => {
                self.answer_request(names, id, payload, context)
            }
            Message::Attributes(AttributeTopic::Response { .. }) => Ok(Some(RefusedMessage::topic(
                &"the server sends attributes under this topic; it takes none",
            ))),
            Message::Rpc(rpc::Topic { kind: RpcKind::Response, names, id }) => {
                self.answer_call(names, id, payload, context)
            }
            Message::Rpc(rpc::Topic { kind: RpcKind::Request, names, id }) => {
                self.call_server(names, id, payload, context)
            }
        }
    }

    fn set_attributes(
        &mut self,
        form: PayloadForm,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let payload = match self.device.profile.payloads.json(PayloadKind::Attributes, form, payload) {
            Ok(payload) => payload,
            Err(reason) => return Ok(Some(RefusedMessage::payload(&reason))),
        };
        let entries = match read_publish(&payload, context.hub.limits().json_depth_max) {
            Ok(entries) => entries,
            Err(error) => return Ok(Some(RefusedMessage::payload(&error))),
        };
        let device = Arc::clone(&self.device);
        self.set_attributes_of(&device, &entries, context)
    }

    /// Sets client attributes of a device: of this one, or of one behind it.
    pub(super) fn set_attributes_of(
        &self,
        device: &Device,
        entries: &[(String, Value)],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        match context.hub.set_client_attributes(device, entries) {
            Ok(sequence) => {
                *context.kv_sequence = sequence.max(*context.kv_sequence);
                Ok(None)
            }
            Err(error) => attribute_error(&error),
        }
    }

    fn answer_request(
        &self,
        names: Names,
        id: i32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let payloads = &self.device.profile.payloads;
        let json = || read_request(payload).map_err(|error| RefusedMessage::payload(&error));
        let request = match read(payloads, form(names), || protobuf::read_request(payload), json) {
            Ok(request) => request,
            Err(unfit) => return Ok(Some(unfit)),
        };
        let (client, shared) = (request.client.as_deref(), request.shared.as_deref());
        match context.hub.attributes_for_device(&self.device, client, shared) {
            Ok(found) => {
                let answer = match sends_protobuf(names, payloads) {
                    true => protobuf::response(id, &request, entries(&found.client), entries(&found.shared)),
                    false => response(&pairs(&found.client), &pairs(&found.shared)),
                };
                let topic = AttributeTopic::Response { names, id }.to_string();
                self.send_to_client(&topic, &answer, context)?;
                Ok(None)
            }
            Err(error) => attribute_error(&error),
        }
    }

    fn answer_call(
        &self,
        names: Names,
        id: i32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        match self.device.profile.payloads.json(PayloadKind::Answer, form(names), payload) {
            Ok(answer) => self.answer_call_of(&self.device, id, &answer, context),
            Err(reason) => Ok(Some(RefusedMessage::payload(&reason))),
        }
    }

    /// Takes the answer to a call of a device: of this one, or of one behind it.
    pub(super) fn answer_call_of(
        &self,
        device: &Device,
        id: i32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        match context.hub.answer_call(device, id, payload.to_vec().into()) {
            Ok(_) => {
                // The answer to a stored call is in the engine before this sequence.
                let committed = context.hub.broker().progress().committed;
                *context.kv_sequence = committed.max(*context.kv_sequence);
                Ok(None)
            }
            Err(hub::Error::Kv(error)) if error.blame() == hub::Blame::Busy => Err(PacketError::StoreBusy),
            Err(error) => Err(failed(&error.to_string())),
        }
    }

    fn offer_claim(
        &self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let json = || ClaimRequest::parse(payload).map_err(|error| RefusedMessage::payload(&error));
        let protobuf = || protobuf::read_claim(payload);
        match read(&self.device.profile.payloads, PayloadForm::OfProfile, protobuf, json) {
            Ok(request) => self.offer_claim_of(&self.device, &request, context),
            Err(unfit) => Ok(Some(unfit)),
        }
    }

    /// Lets users of customers claim a device: this one, or one behind it.
    pub(super) fn offer_claim_of(
        &self,
        device: &Device,
        request: &ClaimRequest,
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        match context.hub.offer_claim(device, request.secret_key(), request.duration_ms()) {
            Ok(sequence) => {
                *context.kv_sequence = sequence.max(*context.kv_sequence);
                Ok(None)
            }
            Err(error) => claim_error(&error),
        }
    }

    fn call_server(
        &self,
        names: Names,
        id: i32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let payloads = &self.device.profile.payloads;
        let json = || match DeviceCall::parse(payload) {
            Ok(call) => Ok(call.method),
            Err(error) => Err(RefusedMessage::payload(&error)),
        };
        let protobuf = || protobuf::read_call(payload).map(Cow::Borrowed);
        let method = match read(payloads, form(names), protobuf, json) {
            Ok(method) => method,
            Err(unfit) => return Ok(Some(unfit)),
        };
        context.hub.metrics().rpc.from_devices.inc();
        let limits = SessionLimits {
            payload_bytes_max: context.options.packet_bytes_max,
            inflight_max: context.options.receive_maximum.into(),
            gateway: self.device.gateway,
        };
        let answer = answer_to_device(&method, limits);
        let answer = match sends_protobuf(names, payloads) {
            true => protobuf::answer_to_call(id, &answer),
            false => answer.into_bytes(),
        };
        let topic = rpc::Topic { kind: RpcKind::Response, names, id }.to_string();
        self.send_to_client(&topic, &answer, context)?;
        Ok(None)
    }
}

pub(super) fn attribute_error(error: &AttributeError) -> Result<Option<RefusedMessage>, PacketError> {
    match error.blame() {
        hub::Blame::Busy => Err(PacketError::StoreBusy),
        hub::Blame::Caller => Ok(Some(RefusedMessage::limit(error.label(), error))),
        hub::Blame::Operator => Err(failed(&error.to_string())),
    }
}

fn claim_error(error: &ClaimError) -> Result<Option<RefusedMessage>, PacketError> {
    match (error.blame(), error) {
        (hub::Blame::Busy, _) => Err(PacketError::StoreBusy),
        (hub::Blame::Caller, ClaimError::OverLimit { .. }) => Ok(Some(RefusedMessage::limit("claim", error))),
        (hub::Blame::Caller, _) => Ok(Some(RefusedMessage::labelled("claim", error))),
        (hub::Blame::Operator, _) => Err(failed(&error.to_string())),
    }
}

pub(super) fn failed(cause: &str) -> PacketError {
    SessionEnd::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause).into()
}
