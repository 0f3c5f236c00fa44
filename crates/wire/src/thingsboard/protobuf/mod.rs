//! Messages of ThingsBoard's device API as Protobuf whose schema is the same for all devices (`TransportProtos`, `TransportApiProtos`).
//!
//! Fields with their default are left out, as in proto3, and fields that a message does not have are skipped. Telemetry, client
//! attributes, calls of devices and their answers have schemas of the device profile instead.

mod attributes;
mod calls;
mod claim;
mod fields;
mod provision;

pub use attributes::{Entry, push_of_changed, push_of_deleted, read_request, response};
pub use calls::{answer_to_call, read_call};
pub use claim::read_claim;
pub use provision::{provision_answer, read_provision_or_json};

use fields::{Field, next_field};

/// A payload that is not the message that its topic wants. The text is for the device, and quotes nothing of the payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not the message {message} of Protobuf: {reason}")]
pub struct ProtobufError {
    message: &'static str,
    reason: &'static str,
}

/// Gives the fields of a message to `take`, with their numbers.
fn read_fields<'a>(
    payload: &'a [u8],
    message: &'static str,
    mut take: impl FnMut(u64, Field<'a>) -> Result<(), &'static str>,
) -> Result<(), ProtobufError> {
    let mut rest = payload;
    let mut read = || -> Result<(), &'static str> {
        while let Some((number, field)) = next_field(&mut rest)? {
            take(number, field)?;
        }
        Ok(())
    };
    read().map_err(|reason| ProtobufError { message, reason })
}

/// The texts of the fields 1 and 2; empty ones if they are absent. The last of several counts.
fn two_texts<'a>(payload: &'a [u8], message: &'static str) -> Result<[&'a str; 2], ProtobufError> {
    let mut texts = [""; 2];
    read_fields(payload, message, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => texts[0] = text(bytes)?,
            (2, Field::Bytes(bytes)) => texts[1] = text(bytes)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok(texts)
}

fn text(bytes: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(bytes).map_err(|_| "a text is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_message_is_refused() {
        for (payload, reason) in [
            (&b"\x0a\x05ab"[..], "longer than the message"),
            (b"\x0a\x01\xff", "not UTF-8"),
            (b"{}", "unknown type"),
            (b"\x02\x00", "number 0"),
            (b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "more than ten bytes"),
            (b"\x0d\x00", "longer than the message"),
        ] {
            let refused = two_texts(payload, "RpcRequest").unwrap_err().to_string();
            assert!(refused.contains("the message RpcRequest of Protobuf"), "{refused}");
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn other_fields_are_skipped_and_the_last_of_several_counts() {
        let texts = two_texts(
            b"\x0a\x01a\x18\x07\x25\x00\x00\x00\x00\x29\x00\x00\x00\x00\x00\x00\x00\x00\x0a\x01b",
            "",
        );
        assert_eq!(texts, Ok(["b", ""]));
    }
}
