//! Bounds of the messages that wait for connections of devices.

/// Messages that wait for one connection. A device that takes none for a while needs only the newest state of its attributes.
pub const OUTBOX_MESSAGES_MAX: usize = 128;
/// Their bytes. Two requests with the longest parameters fit.
pub const OUTBOX_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that wait for all connections. A message that waits for several connections counts for each, and is in memory once.
pub const OUTBOXES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Parts of the map of connections, each with a lock of its own.
pub(super) const OUTBOX_SHARDS: usize = 64;
