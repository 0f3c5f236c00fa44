//! Dead letters: payloads that the server refused and keeps.

pub use crate::registry::DEAD_LETTER_TABLE;

/// The keys of its rows.
pub(crate) const DEAD_LETTER_KEYS: [&str; 5] = ["door", "topic", "reason", "payload", "payload_base64"];

/// A refused payload for [`DEAD_LETTER_TABLE`].
#[derive(Debug, Clone, Copy)]
pub struct DeadLetter<'a> {
    /// Name of the door that received it.
    pub door: &'static str,
    /// The topic or path of the message.
    pub topic: &'a str,
    /// The reason, in words for the sender.
    pub reason: &'a str,
    /// The payload, byte for byte.
    pub payload: &'a [u8],
}
