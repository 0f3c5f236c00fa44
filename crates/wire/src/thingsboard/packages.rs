//! Packages of firmware and software over MQTT (ThingsBoard, `MqttTopics`).
//!
//! A device asks on `v2/fw/request/<request>/chunk/<n>` and gets the chunk on `v2/fw/response/<request>/chunk/<n>`. The payload of a
//! request is the length of a chunk as decimal text; it may be empty after the first one, or for the package as a whole. What is wrong comes
//! as text on `v2/fw/error`. Software has `sw` instead of `fw`.

use std::fmt;

/// The topics of a kind of packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PackageTopics {
    /// `v2/fw/...`
    Firmware,
    /// `v2/sw/...`
    Software,
}

/// The topic of the request of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRequest {
    /// The kind of the package.
    pub kind: PackageTopics,
    /// The number of the request, which the device chooses. Chunks of one package have the same.
    pub request: u32,
    /// The number of the chunk, from 0.
    pub chunk: u32,
}

impl PackageTopics {
    const ALL: [Self; 2] = [Self::Firmware, Self::Software];

    fn prefix(self) -> &'static str {
        match self {
            Self::Firmware => "v2/fw/",
            Self::Software => "v2/sw/",
        }
    }

    /// The topic of errors.
    pub const fn error_topic(self) -> &'static str {
        match self {
            Self::Firmware => "v2/fw/error",
            Self::Software => "v2/sw/error",
        }
    }

    /// Whether the server sends something under topics that a filter selects. ThingsBoard's client subscribes to
    /// `v2/fw/response/+`, which selects no topic, and gets the chunks.
    pub fn serves(filter: &str) -> bool {
        Self::ALL.into_iter().any(|kind| {
            let responses =
                filter.strip_prefix(kind.prefix()).and_then(|rest| rest.strip_prefix("response/"));
            let is_served = |rest: &str| match rest.split_once('/') {
                None => matches!(rest, "+" | "#"),
                Some((request, chunk)) => {
                    (request == "+" || number(request).is_some()) && matches!(chunk, "chunk/+" | "#")
                }
            };
            filter == kind.error_topic() || responses.is_some_and(is_served)
        })
    }
}

impl ChunkRequest {
    /// Reads a topic; `None` if it is not the request of a chunk.
    pub fn parse(topic: &str) -> Option<Self> {
        let (kind, rest) = PackageTopics::ALL
            .into_iter()
            .find_map(|kind| Some((kind, topic.strip_prefix(kind.prefix())?.strip_prefix("request/")?)))?;
        let (request, chunk) = rest.split_once("/chunk/")?;
        Some(Self { kind, request: number(request)?, chunk: number(chunk)? })
    }

    /// Reads the payload: the length of a chunk, 0 if it is empty.
    pub fn chunk_bytes(payload: &[u8]) -> Result<usize, ChunkPayloadError> {
        if payload.is_empty() {
            return Ok(0);
        }
        let text = std::str::from_utf8(payload).ok().map(str::trim);
        text.and_then(|text| text.parse::<u32>().ok()).map(|bytes| bytes as usize).ok_or(ChunkPayloadError)
    }
}

impl fmt::Display for ChunkRequest {
    /// The topic of the chunk.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}response/{}/chunk/{}", self.kind.prefix(), self.request, self.chunk)
    }
}

/// A payload that is not a length of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload is not the length of a chunk in bytes, such as 4096, nor empty")]
pub struct ChunkPayloadError;

/// A number of a topic: digits only.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_kind_and_numbers_and_its_answer_has_the_same() {
        let request = ChunkRequest::parse("v2/sw/request/7/chunk/12").unwrap();
        assert_eq!(request, ChunkRequest { kind: PackageTopics::Software, request: 7, chunk: 12 });
        assert_eq!(request.to_string(), "v2/sw/response/7/chunk/12");
        for wrong in [
            "v2/fw/request/1/chunk/",
            "v2/fw/request//chunk/0",
            "v2/fw/request/1/chunk/-1",
            "v2/fw/request/+1/chunk/1",
            "v2/fw/request/1/chunk/4294967296",
            "v2/fw/response/1/chunk/1",
            "v2/fw/error",
        ] {
            assert_eq!(ChunkRequest::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_payload_is_a_length_or_empty() {
        assert_eq!(ChunkRequest::chunk_bytes(b"4096"), Ok(4_096));
        assert_eq!(ChunkRequest::chunk_bytes(b""), Ok(0));
        for wrong in [&b"-1"[..], b"4k", b"4294967296", b"\xff"] {
            assert_eq!(ChunkRequest::chunk_bytes(wrong), Err(ChunkPayloadError));
        }
    }

    #[test]
    fn filters_of_chunks_and_errors_are_served() {
        for filter in [
            "v2/fw/response/+",
            "v2/fw/response/#",
            "v2/sw/response/+/chunk/+",
            "v2/fw/response/3/#",
            "v2/sw/error",
        ] {
            assert!(PackageTopics::serves(filter), "{filter}");
        }
        for filter in ["v2/fw/#", "v2/fw/request/+", "v2/fw/response", "v2/fw/response/x/chunk/+", "v2/fw/+"]
        {
            assert!(!PackageTopics::serves(filter), "{filter}");
        }
    }
}
