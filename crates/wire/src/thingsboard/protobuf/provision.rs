//! A request for credentials, and its answer.

use super::super::provision::{Answer, ProvisionPayloadError, ProvisionRequest};
use super::fields::{Field, put_number, put_text};
use super::{ProtobufError, read_fields, text};

/// ThingsBoard's kinds of credentials by their numbers (`CredentialsType`).
const KINDS: [&str; 4] = ["ACCESS_TOKEN", "X509_CERTIFICATE", "MQTT_BASIC", "LWM2M_CREDENTIALS"];

/// Reads a request for credentials. Returns also whether it is Protobuf: what is not JSON, as in ThingsBoard.
///
/// # Errors
/// The payload is not a request.
pub fn read_provision_or_json(payload: &[u8]) -> Result<(ProvisionRequest, bool), ProvisionPayloadError> {
    let error = match ProvisionRequest::parse(payload) {
        Ok(read) => return Ok((read, false)),
        Err(error) => error,
    };
    match read_provision(payload) {
        Ok(read) if !payload.is_empty() => Ok((read.checked()?, true)),
        _ => Err(error),
    }
}

/// Reads a `ProvisionDeviceRequestMsg`. Its key and its secret may be absent.
fn read_provision(payload: &[u8]) -> Result<ProvisionRequest, ProtobufError> {
    let mut request = ProvisionRequest::default();
    read(payload, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => request.device_name = owned(bytes)?,
            (2, Field::Number(kind)) => {
                let kind = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
                request.credentials_type = Some((*kind.ok_or("credentialsType is unknown")?).to_owned());
            }
            (3, Field::Bytes(bytes)) => read_profile(bytes, &mut request)?,
            (4, Field::Bytes(bytes)) => read_credentials(bytes, &mut request)?,
            _ => {}
        }
        Ok(())
    })
    .map(|()| request)
}

/// The answer to a request for credentials: `ProvisionDeviceResponseMsg`, which has no text for the reason of a refusal.
pub fn provision_answer(answer: &Answer) -> Vec<u8> {
    let mut out = Vec::new();
    match answer {
        Answer::Accepted { kind, value } => {
            put_number(&mut out, 1, 1);
            let number = KINDS.iter().position(|known| known == kind).unwrap_or_default();
            put_number(&mut out, 2, number as u64);
            match value.as_str() {
                Some(text) => put_text(&mut out, 3, text),
                None => put_text(&mut out, 3, &value.to_string()),
            }
        }
        Answer::NotFound => put_number(&mut out, 1, 2),
        Answer::Failed(_) => put_number(&mut out, 1, 3),
    }
    out
}

/// `ProvisionDeviceCredentialsMsg`.
fn read_profile(payload: &[u8], request: &mut ProvisionRequest) -> Result<(), &'static str> {
    read(payload, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => request.provision_device_key = owned(bytes)?,
            (2, Field::Bytes(bytes)) => request.provision_device_secret = owned(bytes)?,
            _ => {}
        }
        Ok(())
    })
    .map_err(|error| error.reason)
}

/// `CredentialsDataProto`: a message for each kind of credentials.
fn read_credentials(payload: &[u8], request: &mut ProvisionRequest) -> Result<(), &'static str> {
    read(payload, |kind, field| {
        let Field::Bytes(bytes) = field else { return Ok(()) };
        read(bytes, |number, field| {
            let Field::Bytes(bytes) = field else { return Ok(()) };
            match (kind, number) {
                (1, 1) => request.token = owned(bytes)?,
                (2, 1) => request.hash = owned(bytes)?,
                (3, 1) => request.client_id = owned(bytes)?,
                (3, 2) => request.username = owned(bytes)?,
                (3, 3) => request.password = owned(bytes)?,
                _ => {}
            }
            Ok(())
        })
        .map_err(|error| error.reason)
    })
    .map_err(|error| error.reason)
}

fn read<'a>(
    payload: &'a [u8],
    take: impl FnMut(u64, Field<'a>) -> Result<(), &'static str>,
) -> Result<(), ProtobufError> {
    read_fields(payload, "ProvisionDeviceRequestMsg", take)
}

fn owned(bytes: &[u8]) -> Result<Option<String>, &'static str> {
    text(bytes).map(|text| Some(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_has_a_name_a_profile_and_credentials() {
        let payload =
            b"\x0a\x01d\x10\x02\x1a\x06\x0a\x01k\x12\x01s\x22\x0b\x1a\x09\x0a\x01c\x12\x01u\x1a\x01p";
        let text = |text: &str| Some(text.to_owned());
        let expected = ProvisionRequest {
            device_name: text("d"),
            credentials_type: text("MQTT_BASIC"),
            provision_device_key: text("k"),
            provision_device_secret: text("s"),
            client_id: text("c"),
            username: text("u"),
            password: text("p"),
            ..ProvisionRequest::default()
        };
        assert_eq!(read_provision(payload), Ok(expected));
        assert!(read_provision(b"\x10\x04").is_err() && read_provision(b"{}").is_err());
    }

    #[test]
    fn an_answer_has_a_status_and_credentials() {
        let accepted = |kind: &'static str, value| provision_answer(&Answer::Accepted { kind, value });
        assert_eq!(accepted("ACCESS_TOKEN", json!("T")), b"\x08\x01\x1a\x01T");
        assert_eq!(accepted("MQTT_BASIC", json!({})), b"\x08\x01\x10\x02\x1a\x02{}");
        assert_eq!(provision_answer(&Answer::NotFound), b"\x08\x02");
        assert_eq!(provision_answer(&Answer::Failed("x".to_owned())), b"\x08\x03");
    }

    #[test]
    fn a_request_is_json_or_protobuf() {
        let payload = b"\x1a\x06\x0a\x01k\x12\x01s";
        let (request, is_protobuf) = read_provision_or_json(payload).unwrap();
        assert_eq!((request.provision_device_key.as_deref(), is_protobuf), (Some("k"), true));
        let json = br#"{"provisionDeviceKey":"k","provisionDeviceSecret":"s"}"#;
        assert_eq!(read_provision_or_json(json), Ok((request, false)));
        for (payload, part) in [
            (&b"\x0a\x01d"[..], "provisionDeviceKey is missing"),
            (b"", "not a JSON object"),
            (b"x", "not a JSON object"),
        ] {
            let refused = read_provision_or_json(payload).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }
}
