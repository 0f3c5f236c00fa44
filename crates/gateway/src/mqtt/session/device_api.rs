//! ThingsBoard's device API over MQTT: attributes and calls. `docs/protocol/thingsboard-devices.md` lists the topics.

use std::sync::Arc;

use hub::AttributeError;
use hub::claims::ClaimError;
use hub::protobuf::{PayloadForm, PayloadKind};
use hub::registry::Device;
use hub::rpc::{SessionLimits, answer_to_device};
use model::Value;
use wire::mqtt::ReasonCode;
use wire::thingsboard::attributes::{Names, Topic as AttributeTopic, read_publish, read_request, response};
use wire::thingsboard::claim::{self, ClaimRequest};
use wire::thingsboard::packages::ChunkRequest;
use wire::thingsboard::rpc::{self, DeviceCall, Kind};

use super::connected::Connected;
use super::context::Context;
use super::end::{PacketError, SessionEnd};
use super::topics::PROTOBUF_ATTRIBUTES_TOPIC;
use super::unfit::Unfit;
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
    ) -> Result<Option<Unfit>, PacketError> {
        if topic == PROTOBUF_ATTRIBUTES_TOPIC {
            return self.set_attributes(PayloadForm::Protobuf, payload, context);
        }
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
                let form = match names {
                    Names::ShortJson => PayloadForm::Json,
                    Names::Long | Names::Short => PayloadForm::OfProfile,
                };
                self.set_attributes(form, payload, context)
            }
            Message::Attributes(AttributeTopic::Request { names, id }) => {
                let topic = AttributeTopic::Response { names, id }.to_string();
                self.answer_request(&topic, payload, context)
            }
            Message::Attributes(AttributeTopic::Response { .. }) => {
                Ok(Some(Unfit::topic(&"the server sends attributes under this topic; it takes none")))
            }
            Message::Rpc(rpc::Topic { kind: Kind::Response, id, .. }) => {
                self.answer_call_of(&self.device, id, payload, context)
            }
            Message::Rpc(topic) => {
                let answer = rpc::Topic { kind: Kind::Response, ..topic }.to_string();
                self.call_server(&answer, payload, context)
            }
        }
    }

    fn set_attributes(
        &mut self,
        form: PayloadForm,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, PacketError> {
        let payload = match self.device.profile.payloads.json(PayloadKind::Attributes, form, payload) {
            Ok(payload) => payload,
            Err(reason) => return Ok(Some(Unfit::payload(&reason))),
        };
        let entries = match read_publish(&payload, context.hub.limits().json_depth_max) {
            Ok(entries) => entries,
            Err(error) => return Ok(Some(Unfit::payload(&error))),
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
    ) -> Result<Option<Unfit>, PacketError> {
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
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, PacketError> {
        let request = match read_request(payload) {
            Ok(request) => request,
            Err(error) => return Ok(Some(Unfit::payload(&error))),
        };
        let (client, shared) = (request.client.as_deref(), request.shared.as_deref());
        match context.hub.attributes_for_device(&self.device, client, shared) {
            Ok(found) => {
                let answer = response(&pairs(&found.client), &pairs(&found.shared));
                self.send_to_client(topic, &answer, context)?;
                Ok(None)
            }
            Err(error) => attribute_error(&error),
        }
    }

    /// Takes the answer to a call of a device: of this one, or of one behind it.
    pub(super) fn answer_call_of(
        &self,
        device: &Device,
        id: i32,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, PacketError> {
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

    fn offer_claim(&self, payload: &[u8], context: &mut Context<'_>) -> Result<Option<Unfit>, PacketError> {
        match ClaimRequest::parse(payload) {
            Ok(request) => self.offer_claim_of(&self.device, &request, context),
            Err(error) => Ok(Some(Unfit::payload(&error))),
        }
    }

    /// Lets users of customers claim a device: this one, or one behind it.
    pub(super) fn offer_claim_of(
        &self,
        device: &Device,
        request: &ClaimRequest,
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, PacketError> {
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
        topic: &str,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<Unfit>, PacketError> {
        let call = match DeviceCall::parse(payload) {
            Ok(call) => call,
            Err(error) => return Ok(Some(Unfit::payload(&error))),
        };
        context.hub.metrics().rpc.from_devices.inc();
        let limits = SessionLimits {
            payload_bytes_max: context.options.packet_bytes_max,
            inflight_max: context.options.receive_maximum.into(),
            gateway: self.device.gateway,
        };
        self.send_to_client(topic, answer_to_device(&call.method, limits).as_bytes(), context)?;
        Ok(None)
    }
}

pub(super) fn attribute_error(error: &AttributeError) -> Result<Option<Unfit>, PacketError> {
    match error.blame() {
        hub::Blame::Busy => Err(PacketError::StoreBusy),
        hub::Blame::Caller => Ok(Some(Unfit::limit(error.label(), error))),
        hub::Blame::Operator => Err(failed(&error.to_string())),
    }
}

fn claim_error(error: &ClaimError) -> Result<Option<Unfit>, PacketError> {
    match (error.blame(), error) {
        (hub::Blame::Busy, _) => Err(PacketError::StoreBusy),
        (hub::Blame::Caller, ClaimError::OverLimit { .. }) => Ok(Some(Unfit::limit("claim", error))),
        (hub::Blame::Caller, _) => Ok(Some(Unfit::labelled("claim", error))),
        (hub::Blame::Operator, _) => Err(failed(&error.to_string())),
    }
}

pub(super) fn failed(cause: &str) -> PacketError {
    SessionEnd::refused(ReasonCode::IMPLEMENTATION_SPECIFIC_ERROR, "store", cause).into()
}
