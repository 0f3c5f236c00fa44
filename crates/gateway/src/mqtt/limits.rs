//! Bounds of the MQTT door. What an operator may set is in [`super::MqttOptions`]; these are fixed.

/// Bytes one connection may hand over in one turn of the event loop; the next connection gets its turn then.
pub(crate) const READ_BYTES_PER_TURN: usize = 64 * 1024;
/// Payload bytes read in one turn over all connections before the batch is appended.
pub(crate) const TURN_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes read at once from a connection while the store takes no messages; enough for a PINGREQ or a CONNECT, and
/// little when every connection of a worker holds as much.
pub(crate) const READ_BYTES_WHILE_STALLED: usize = 4 * 1024;
/// How long a worker waits at most before it asks a busy store again; the store announces room, but a wake-up that
/// comes a moment too early must not cost a second.
pub(crate) const STALLED_RETRY_MS: u64 = 50;
/// Largest packet that an operator may allow. A dead letter of it (as base64) fits into a batch beside a full turn.
pub const PACKET_BYTES_MAX: usize = model::limits::BATCH_TEXT_BYTES_MAX / 4;
/// Smallest such packet.
pub const PACKET_BYTES_MIN: usize = 128;
/// Largest CONNECT, which anybody may send: token, client identifier, and a will.
pub(crate) const CONNECT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of packets whose rest has not arrived, over all connections of a worker. A connection that passes it is
/// closed.
pub(crate) const PARTIAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// When connections are scarce the worker closes those that have sent no CONNECT after this time.
pub(crate) const SILENT_GRACE_S: u32 = 2;
/// Connections are scarce when fewer than the maximum divided by this are left.
pub(crate) const SPARE_CONNECTIONS_RATIO: usize = 16;
/// Smallest Maximum Packet Size of an MQTT 5 client that we can serve: the longest CONNACK fits.
pub(crate) const CLIENT_PACKET_BYTES_MIN: u32 = 128;
/// Bytes of acks that may wait for a peer that does not read. Above it we stop reading from that peer, and acks go
/// without reason strings.
pub(crate) const UNSENT_BYTES_MAX: usize = 32 * 1024;
/// Reads of [`READ_BYTES_PER_TURN`] that are thrown away when a connection is closed from our side.
pub(crate) const FAREWELL_READS_MAX: usize = 16;
/// A peer that takes none of its acks for this many seconds is closed.
pub(crate) const UNSENT_TIMEOUT_S: u32 = 60;
/// Turns of the event loop begin at least this far apart while messages come faster than that, so that one turn
/// serves several of them: waking up costs more than a small message does. A lone message never waits, and acks do not
/// wait for the pace. It is so much less than the default interval between two syncs that clients that wait for each ack
/// do not miss the next one.
pub(crate) const TURN_PACE_US: u64 = 600;
/// A turn that took this many messages is large enough; the next one begins at once.
pub(crate) const TURN_MESSAGES_ENOUGH: u64 = 64;
/// Events taken from the kernel at once.
pub(crate) const EVENTS_PER_POLL: usize = 1_024;
/// Connections accepted but not yet taken over by a worker.
pub(crate) const INBOX_MAX: usize = 4_096;
/// Batches appended but not yet durable, per worker and durability class; above it reading stops.
pub(crate) const GROUPS_IN_FLIGHT_MAX: usize = 1_024;
/// Bytes of wills that wait for their turn, or until the store takes messages again, per worker; above it wills are lost
/// and logged.
pub(crate) const LATE_WILLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What such a will counts besides its topic, payload and client identifier: the session it belongs to.
pub(crate) const LATE_WILL_BYTES: usize = 512;
/// Bytes of the topics that the aliases of one session stand for. The topics that devices use are short.
pub(crate) const TOPIC_ALIAS_BYTES_MAX: usize = 4 * 1024;
/// Topic aliases of one MQTT 5 session.
pub(crate) const TOPIC_ALIAS_MAX: u16 = 16;
/// Longest client identifier in bytes.
pub(crate) const CLIENT_ID_BYTES_MAX: usize = 1_024;
/// QoS 2 messages of one session that were taken and not released. MQTT 5 clients are bound by the receive maximum.
pub(crate) const UNRELEASED_MAX: usize = 4_096;
/// Identifiers of unfinished QoS 2 exchanges that are remembered for absent clients, over all of them.
pub(crate) const ABSENT_IDS_MAX: usize = 1_000_000;
/// How long they are remembered at most.
pub(crate) const ABSENT_SESSION_S: u32 = 3_600;
/// How long a stopping door waits for acks of what it has read.
pub(crate) const DRAIN_TIMEOUT_MS: u64 = 5_000;
/// Open files kept free for the log, the parts that are written and merged, the registry, and what else the process opens;
/// beside the connections of the other doors and the parts that are read.
pub const FILES_RESERVED: u64 = 256;
