//! The data that a device sends to be claimed.

use super::super::claim::ClaimRequest;
use super::fields::Field;
use super::{ProtobufError, read_fields, text};

/// Reads what a device sends to be claimed: `ClaimDevice`.
///
/// # Errors
/// The payload is not such a message.
pub fn read_claim(payload: &[u8]) -> Result<ClaimRequest, ProtobufError> {
    let (mut secret_key, mut duration_ms) = (None, None);
    read_fields(payload, "ClaimDevice", |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => secret_key = Some(text(bytes)?.to_owned()),
            (2, Field::Number(number)) => duration_ms = Some(number.cast_signed()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(ClaimRequest { secret_key, duration_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_a_secret_and_a_duration_or_neither() {
        let claim = read_claim(b"\x0a\x01s\x10\xe0\xd4\x03").unwrap();
        assert_eq!((claim.secret_key(), claim.duration_ms()), ("s", Some(60_000)));
        assert_eq!(read_claim(b""), Ok(ClaimRequest::default()));
    }
}
