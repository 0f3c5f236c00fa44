//! ThingsBoard's gateway API: a gateway speaks for the devices behind it. `docs/protocol/thingsboard-devices.md` lists the topics.
//!
//! A device behind a gateway is known to the connection after the first message that names it. A message that names devices
//! which the registry does not have waits, with all later ones of its connection, until the registry has added them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hub::gateways::CreationRefused;
use hub::gateways::limits::GATEWAY_CREATED_AT_ONCE_MAX;
use hub::registry::Device;
use wire::mqtt::ReasonCode;
use wire::thingsboard::attributes::{gateway_response, read_gateway_request, read_publish};
use wire::thingsboard::claim::ClaimRequest;
use wire::thingsboard::gateway::{Topic, read_device, read_parts};
use wire::thingsboard::rpc::GatewayAnswer;

use super::connected::Connected;
use super::context::Context;
use super::device_api::{attribute_error, failed};
use super::end::PacketError;
use super::parts::{Faults, quoted};
use super::refused_message::RefusedMessage;
use crate::attribute_pairs::pairs;

impl Connected {
    /// Handles a message of the gateway API other than telemetry. Returns the refusal if there is one, also for a device that is not a
    /// gateway.
    pub(super) fn on_gateway_message(
        &mut self,
        topic: Topic,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        if self.behind.is_none() {
            let device = self.device.name.clone();
            let refused = CreationRefused::NotAGateway { device };
            return Ok(Some(RefusedMessage::new(ReasonCode::NOT_AUTHORIZED, "topic", &refused)));
        }
        match topic {
            Topic::Connect => self.connect_behind(payload, context),
            Topic::Disconnect => self.disconnect_behind(payload),
            Topic::Attributes => self.set_attributes_behind(payload, context),
            Topic::AttributesRequest => self.answer_request_behind(payload, context),
            Topic::Rpc => self.answer_call_behind(payload, context),
            Topic::Claim => self.offer_claims_behind(payload, context),
            // Telemetry takes another way (`add_parts`).
            Topic::AttributesResponse | Topic::Telemetry => Ok(Some(RefusedMessage::topic(
                &"the server sends attributes under this topic; it takes none",
            ))),
        }
    }

    fn connect_behind(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let message = match read_device(payload) {
            Ok(message) => message,
            Err(error) => return Ok(Some(RefusedMessage::payload(&error))),
        };
        let name = message.device.as_str();
        if let Err(refused) = self.know([name], message.profile.as_deref(), context)? {
            return Ok(Some(refused));
        }
        let (gateway, hub) = (&self.device, context.hub);
        let behind = self.behind.as_mut().expect("BUG: only gateways get here");
        if let Some(fault) = behind.fault_of(name) {
            return Ok(Some(RefusedMessage::limit("gateway_device", &fault)));
        }
        // `know` has found the device a moment ago; if it was deleted since, the next message adds it again.
        if let Some(device) = hub.device_behind(gateway, name) {
            behind.attach(gateway, device, true, hub);
        }
        Ok(None)
    }

    fn disconnect_behind(&mut self, payload: &[u8]) -> Result<Option<RefusedMessage>, PacketError> {
        match read_device(payload) {
            Ok(message) => {
                self.behind.iter_mut().for_each(|behind| behind.detach(&message.device));
                Ok(None)
            }
            Err(error) => Ok(Some(RefusedMessage::payload(&error))),
        }
    }

    /// Makes the devices of these names known to the connection. Adds those to the registry that it does not have; meanwhile the
    /// message waits. Names that no device can have stay unknown, and so do devices above the limit of the connection.
    pub(super) fn know<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
        profile: Option<&str>,
        context: &Context<'_>,
    ) -> Result<Result<(), RefusedMessage>, PacketError> {
        let (gateway, hub) = (&self.device, context.hub);
        let behind = self.behind.as_mut().expect("BUG: only gateways get here");
        if let Some(creation) = behind.creation.take() {
            match creation.result() {
                None => {
                    behind.creation = Some(creation);
                    return Err(PacketError::Awaited);
                }
                Some(Ok(())) => {}
                Some(Err(error)) => match error.blame() {
                    hub::Blame::Busy => return Err(PacketError::StoreBusy),
                    hub::Blame::Caller => return Ok(Err(RefusedMessage::limit("gateway_device", error))),
                    hub::Blame::Operator => return Err(failed(&error.to_string())),
                },
            }
        }
        let room = GATEWAY_CREATED_AT_ONCE_MAX.min(behind.room());
        let mut missing = BTreeSet::new();
        for name in names {
            let is_attached = behind.find(name).is_some_and(|known| {
                known.presence.touch(context.now_ms());
                known.outbox.as_ref().is_some_and(|outbox| !outbox.is_moved())
            });
            if is_attached || behind.fault_of(name).is_some() {
                continue;
            }
            match hub.device_behind(gateway, name) {
                Some(device) => behind.attach(gateway, device, false, hub),
                // The others follow when these are there, as far as the limit allows.
                None if missing.len() < room => drop(missing.insert(name.to_owned())),
                None => {}
            }
        }
        if missing.is_empty() {
            return Ok(Ok(()));
        }
        let profile = profile.map(str::to_owned);
        match hub.add_devices_behind(gateway, missing.into_iter().collect(), profile, behind.wake()) {
            Ok(creation) => {
                behind.creation = Some(creation);
                Err(PacketError::Awaited)
            }
            Err(CreationRefused::Busy { .. }) => Err(PacketError::StoreBusy),
            Err(refused @ CreationRefused::NotAGateway { .. }) => {
                Ok(Err(RefusedMessage::limit("gateway_device", &refused)))
            }
        }
    }

    fn set_attributes_behind(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let json_depth_max = context.hub.limits().json_depth_max;
        self.for_each_part(payload, context, |session, device, json, context| {
            match read_publish(json, json_depth_max) {
                Ok(entries) => session.set_attributes_of(device, &entries, context),
                Err(error) => Ok(Some(RefusedMessage::payload(&error))),
            }
        })
    }

    fn offer_claims_behind(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        self.for_each_part(payload, context, |session, device, json, context| {
            match ClaimRequest::parse(json) {
                Ok(request) => session.offer_claim_of(device, &request, context),
                Err(error) => Ok(Some(RefusedMessage::payload(&error))),
            }
        })
    }

    /// Handles the parts of a message, each with its device. If the store is busy, the worker passes the message again, and all parts are
    /// handled again: so `handle` must have the same result the second time.
    fn for_each_part(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
        handle: impl Fn(&Self, &Device, &[u8], &mut Context<'_>) -> Result<Option<RefusedMessage>, PacketError>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let parts = match read_parts(payload, context.hub.limits().json_depth_max) {
            Ok(parts) => parts,
            Err(error) => return Ok(Some(RefusedMessage::payload(&error))),
        };
        let names = parts.iter().map(|part| part.device.as_str());
        if let Err(refused) = self.know(names, None, context)? {
            return Ok(Some(refused));
        }
        let mut faults = Faults::of(&parts);
        for part in &parts {
            let device = match self.device_of(part) {
                Ok(behind) => Arc::clone(&behind.device),
                Err(refused) => {
                    faults.add(part, refused);
                    continue;
                }
            };
            if let Some(unfit) = handle(&*self, &device, part.json.as_bytes(), context)? {
                faults.add(part, unfit);
            }
        }
        Ok(faults.unfit())
    }

    fn answer_request_behind(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let request = match read_gateway_request(payload) {
            Ok(request) => request,
            Err(error) => return Ok(Some(RefusedMessage::payload(&error))),
        };
        let Some(device) = context.hub.device_behind(&self.device, &request.device) else {
            return Ok(Some(unknown(&request.device)));
        };
        let keys = Some(request.keys.as_slice());
        let (client, shared) = if request.client { (keys, None) } else { (None, keys) };
        match context.hub.attributes_for_device(&device, client, shared) {
            Ok(found) => {
                let found = if request.client { found.client } else { found.shared };
                let answer =
                    gateway_response(request.id, &request.device, request.keys.len(), &pairs(&found));
                self.send_to_client(Topic::AttributesResponse.name(), &answer, context)?;
                Ok(None)
            }
            Err(error) => attribute_error(&error),
        }
    }

    fn answer_call_behind(
        &mut self,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let answer = match GatewayAnswer::parse(payload) {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(RefusedMessage::payload(&error))),
        };
        if let Some(known) = self.behind.as_mut().and_then(|behind| behind.find(&answer.device)) {
            known.presence.touch(context.now_ms());
        }
        match context.hub.device_behind(&self.device, &answer.device) {
            Some(device) => self.answer_call_of(&device, answer.id, answer.data.get().as_bytes(), context),
            None => Ok(Some(unknown(&answer.device))),
        }
    }
}

fn unknown(device: &str) -> RefusedMessage {
    let (device, connect) = (quoted(device), Topic::Connect.name());
    let text = format!("there is no device {device} behind this gateway; send {connect} first");
    RefusedMessage::payload(&text)
}
