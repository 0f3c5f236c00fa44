//! Claiming: a device lets a user of a customer claim it (ThingsBoard, `JsonConverter`, `DeviceController`).
//!
//! A gateway sends an object of such payloads, whose members have the names of its devices ([`super::gateway::Topic::Claim`]).

use std::fmt;

use serde::Deserialize;

use super::provision::without_texts;

/// The topic of a device.
pub const TOPIC: &str = "v1/devices/me/claim";

/// The data that a device sends to be claimed, or a user to claim it.
#[derive(Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRequest {
    /// The secret that device and user share. Without one it is the empty text.
    pub(super) secret_key: Option<String>,
    /// For how long the device can be claimed, in milliseconds.
    pub(super) duration_ms: Option<i64>,
}

impl fmt::Debug for ClaimRequest {
    /// Leaves out the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimRequest").field("duration_ms", &self.duration_ms).finish_non_exhaustive()
    }
}

/// A payload that is not a request. The text is for the device, and quotes nothing of the payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(r#"the payload is not a claim such as {{"secretKey":"s","durationMs":60000}}: {reason}"#)]
pub struct ClaimPayloadError {
    reason: String,
}

impl ClaimRequest {
    /// Reads a payload; an empty one is a request without members. Members that are not of a request have no effect, as in
    /// ThingsBoard.
    pub fn parse(payload: &[u8]) -> Result<Self, ClaimPayloadError> {
        if payload.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_slice(payload).map_err(|error| ClaimPayloadError { reason: without_texts(&error) })
    }

    /// The secret.
    pub fn secret_key(&self) -> &str {
        self.secret_key.as_deref().unwrap_or_default()
    }

    /// For how long the device can be claimed; `None` if the request leaves it to the server. 0 and less do, as in ThingsBoard.
    pub fn duration_ms(&self) -> Option<u64> {
        let asked = self.duration_ms.and_then(|millis| u64::try_from(millis).ok());
        asked.filter(|millis| *millis > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_a_secret_and_a_duration_or_neither() {
        let read = |payload: &str| {
            let request = ClaimRequest::parse(payload.as_bytes()).unwrap();
            (request.secret_key().to_owned(), request.duration_ms())
        };
        assert_eq!(read(r#"{"secretKey":"s","durationMs":60000}"#), ("s".to_owned(), Some(60_000)));
        for without in ["", "{}", r#"{"secretKey":null,"durationMs":0,"other":[1]}"#, r#"{"durationMs":-1}"#]
        {
            assert_eq!(read(without), (String::new(), None), "{without}");
        }
    }

    #[test]
    fn a_refusal_quotes_nothing_of_the_payload() {
        for (payload, part) in [
            (&b"hidden"[..], "not a JSON object"),
            (b"[1]", "wrong type"),
            (br#"{"secretKey":7}"#, "wrong type"),
            (br#"{"secretKey":"hidden","durationMs":"hidden"}"#, "wrong type"),
        ] {
            let refused = ClaimRequest::parse(payload).unwrap_err().to_string();
            assert!(refused.contains(part) && !refused.contains("hidden"), "{refused}");
        }
        assert!(!format!("{:?}", ClaimRequest::parse(br#"{"secretKey":"hidden"}"#)).contains("hidden"));
    }
}
