//! Bounds of the MQTT door. What an operator may set is in [`super::MqttOptions`]; these are fixed.

/// Bytes one connection may hand over in one turn of the event loop; the next connection gets its turn then.
pub(crate) const READ_BYTES_PER_TURN: usize = 64 * 1024;
/// Payload bytes read in one turn over all connections before the batch is appended.
pub(crate) const TURN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of acks that may wait for a peer that does not read; above it we stop reading from that peer.
pub(crate) const UNSENT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of unsent acks at which a peer that keeps not reading is closed.
pub(crate) const UNSENT_BYTES_CLOSE: usize = 4 * UNSENT_BYTES_MAX;
/// Turns of the event loop begin at least this far apart while messages come faster than that, so that one turn
/// serves several of them: waking up costs more than a small message does. A lone message never waits.
pub(crate) const TURN_PACE_US: u64 = 200;
/// A turn that took this many messages is large enough; the next one begins at once.
pub(crate) const TURN_MESSAGES_ENOUGH: u64 = 64;
/// Events taken from the kernel at once.
pub(crate) const EVENTS_PER_POLL: usize = 1_024;
/// Connections accepted but not yet taken over by a worker.
pub(crate) const INBOX_MAX: usize = 4_096;
/// Batches appended but not yet durable, per worker and durability class; above it reading stops.
pub(crate) const GROUPS_IN_FLIGHT_MAX: usize = 1_024;
/// A packet whose rest does not arrive within this many seconds closes the connection.
pub(crate) const PARTIAL_PACKET_TIMEOUT_S: u32 = 30;
/// Topic aliases of one MQTT 5 session.
pub(crate) const TOPIC_ALIAS_MAX: u16 = 16;
/// Longest client identifier in bytes.
pub(crate) const CLIENT_ID_BYTES_MAX: usize = 1_024;
/// Sessions of absent clients whose unfinished QoS 2 exchanges are remembered.
pub(crate) const ABSENT_SESSIONS_MAX: usize = 100_000;
/// How long they are remembered at most.
pub(crate) const ABSENT_SESSION_S: u32 = 3_600;
/// How long a stopping door waits for acks of what it has read.
pub(crate) const DRAIN_TIMEOUT_MS: u64 = 5_000;
/// Open files kept free for the log, the parts, the registry and HTTP.
pub const FILES_RESERVED: u64 = 80;
