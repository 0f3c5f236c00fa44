//! Bounds that the protocol itself sets.

/// Largest remaining length: four bytes of seven bits [MQTT5 1.5.5].
pub const REMAINING_LENGTH_MAX: usize = 268_435_455;
/// Longest string or binary field: its length is two bytes [MQTT5 1.5.4].
pub const STRING_BYTES_MAX: usize = 65_535;
/// Longest fixed header: one type byte and four length bytes.
pub const FIXED_HEADER_BYTES_MAX: usize = 5;
/// Topic aliases that a sender uses on one connection, if the receiver takes as many. Each message is compared with all of them.
pub const SENT_ALIASES_MAX: u16 = 32;
/// Bytes of a topic with such an alias.
pub const SENT_ALIAS_TOPIC_BYTES_MAX: usize = 256;
