//! Chunks of firmware and software for the device of a session. `docs/protocol/thingsboard-devices.md` has the topics.

use hub::Blame;
use hub::ota::{OtaError, PackageRequest};
use hub::registry::PackageKind;
use wire::thingsboard::packages::{ChunkRequest, PackageTopics};

use super::connected::Connected;
use super::context::Context;
use super::device_api::failed;
use super::end::PacketError;
use super::refused_message::RefusedMessage;

impl Connected {
    /// Sends a chunk of the package that the device has. The client gets what is wrong as text too.
    pub(super) fn send_chunk(
        &mut self,
        topic: ChunkRequest,
        payload: &[u8],
        context: &mut Context<'_>,
    ) -> Result<Option<RefusedMessage>, PacketError> {
        let named = match ChunkRequest::chunk_bytes(payload) {
            Ok(bytes) => bytes,
            Err(error) => {
                return self.send_fault(topic.kind, RefusedMessage::payload(&error), context).map(Some);
            }
        };
        let chunk_bytes = self.chunk_lengths.of(topic, named);
        let request = PackageRequest { kind: kind_of(topic.kind), chunk_bytes, chunk: topic.chunk.into() };
        let error = match context.hub.package_chunk(&self.device, request) {
            Ok(chunk) => {
                self.send_to_client(&topic.to_string(), &chunk, context)?;
                return Ok(None);
            }
            Err(error) => error,
        };
        match (error.blame(), &error) {
            (Blame::Busy, _) => Err(PacketError::StoreBusy),
            (Blame::Operator, _) => Err(failed(&error.to_string())),
            (Blame::Caller, OtaError::OverLimit { .. }) => {
                self.send_fault(topic.kind, RefusedMessage::limit("package", &error), context).map(Some)
            }
            (Blame::Caller, _) => {
                self.send_fault(topic.kind, RefusedMessage::labelled("package", &error), context).map(Some)
            }
        }
    }

    fn send_fault(
        &self,
        kind: PackageTopics,
        unfit: RefusedMessage,
        context: &mut Context<'_>,
    ) -> Result<RefusedMessage, PacketError> {
        self.send_to_client(kind.error_topic(), unfit.refusal.text.as_bytes(), context)?;
        Ok(unfit)
    }
}

fn kind_of(kind: PackageTopics) -> PackageKind {
    match kind {
        PackageTopics::Firmware => PackageKind::Firmware,
        PackageTopics::Software => PackageKind::Software,
    }
}
