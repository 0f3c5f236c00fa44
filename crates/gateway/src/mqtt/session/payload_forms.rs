//! Whether a payload of the device API is JSON or Protobuf, by the names of its topic and the profile of the device.

use hub::device_messages::Attribute;
use payload_schema::{PayloadForm, PayloadSchemas};
use wire::thingsboard::Names;
use wire::thingsboard::protobuf::{Entry, ProtobufError};

use super::refused_message::RefusedMessage;

/// The form of what a device sends.
pub(super) fn form(names: Names) -> PayloadForm {
    match names {
        Names::Long | Names::Short => PayloadForm::OfProfile,
        Names::ShortJson => PayloadForm::Json,
        Names::ShortProtobuf => PayloadForm::Protobuf,
    }
}

/// Whether the server sends Protobuf to a device.
pub(super) fn sends_protobuf(names: Names, payloads: &PayloadSchemas) -> bool {
    match names {
        Names::Long => payloads.sends_protobuf(),
        Names::Short | Names::ShortJson | Names::ShortProtobuf => payloads.is_protobuf(form(names)),
    }
}

/// Reads a payload whose Protobuf has the same schema for all devices.
pub(super) fn read<T>(
    payloads: &PayloadSchemas,
    form: PayloadForm,
    protobuf: impl FnOnce() -> Result<T, ProtobufError>,
    json: impl FnOnce() -> Result<T, RefusedMessage>,
) -> Result<T, RefusedMessage> {
    if !payloads.is_protobuf(form) {
        return json();
    }
    match protobuf() {
        Ok(read) => Ok(read),
        Err(_) if payloads.reads_json_too(form) => json(),
        Err(error) => Err(RefusedMessage::payload(&error)),
    }
}

/// Attributes of the hub in the form that the codec of Protobuf takes.
pub(super) fn entries(attributes: &[Attribute]) -> impl Iterator<Item = Entry<'_>> {
    attributes.iter().map(|attribute| Entry {
        key: &attribute.key,
        value: attribute.value.as_ref(),
        ts_ms: attribute.ts.millis(),
    })
}
