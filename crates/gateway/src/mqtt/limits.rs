//! Fixed bounds of the MQTT door. Options for operators are in [`super::MqttOptions`].

use std::time::Duration;

/// Bytes that the worker reads from one connection in one pass of the event loop.
pub(crate) const READ_BYTES_PER_PASS: usize = 64 * 1024;
/// Bytes that the worker reads from all connections in one pass before it appends the batch.
pub(crate) const PASS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that the worker reads at once from a connection while the store has no room: enough for a PINGREQ or a CONNECT, and
/// bounded in sum over all connections.
pub(crate) const READ_BYTES_WHILE_STALLED: usize = 4 * 1024;
/// Longest wait before a worker tries a busy store again. The store announces room, but a wake-up that comes slightly too
/// early must not cost a second.
pub(crate) const STALLED_RETRY_MS: u64 = 50;
/// Largest packet that an operator may allow. Its dead letter (as base64) fits into a batch beside the rows of a full pass.
pub const PACKET_BYTES_MAX: usize = model::limits::BATCH_TEXT_BYTES_MAX / 4;
/// Smallest value of the largest packet.
pub const PACKET_BYTES_MIN: usize = 128;
/// Largest CONNECT, which any peer may send: token, client identifier, and a will.
pub(crate) const CONNECT_BYTES_MAX: usize = 16 * 1024;
/// Largest packet of a client that asks for credentials: a request with a certificate.
pub(crate) const PROVISION_PACKET_BYTES_MAX: usize = 32 * 1024;
/// Seconds after the opening of its connection in which such a client may ask.
pub(crate) const PROVISION_SESSION_S: u32 = 60;
/// Requests for credentials that are answered at once. Those at the same time share one transaction of the registry.
pub(crate) const PROVISIONS_AT_ONCE: usize = 64;
/// Requests for credentials that wait for their turn.
pub(crate) const PROVISIONS_WAITING_MAX: usize = 4_096;
/// Bytes of unfinished packets, over all connections of a worker. Above it the worker closes the connection that holds most.
pub(crate) const PARTIAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of output in one WebSocket frame: as many as wait for a socket that takes none.
pub(crate) const WEBSOCKET_FRAME_BYTES: usize = 16 * 1024;
/// Connections above a limit that the workers keep until CONNECT, to answer it. Further ones are closed without an answer.
pub(crate) const REFUSING_MAX: usize = 64;
/// How long such a connection may take to send its CONNECT.
pub(crate) const REFUSING_TIMEOUT_S: u32 = 2;
/// Shortest pause when messages come faster than the limit of the door: one pass then serves several messages.
pub(crate) const THROTTLE_PAUSE: Duration = Duration::from_millis(5);
/// Shortest time after which a connection above a limit of its tenant is tried again. The limits have a second in store.
pub(crate) const HELD_PAUSE: Duration = Duration::from_millis(50);
/// More time for each such connection of a worker.
pub(crate) const HELD_PAUSE_PER_CONNECTION: Duration = Duration::from_micros(50);
/// When connections are scarce, the worker closes connections without CONNECT after this time.
pub(crate) const SILENT_GRACE_S: u32 = 2;
/// Connections are scarce when fewer than the maximum divided by this are left.
pub(crate) const SPARE_CONNECTIONS_RATIO: usize = 16;
/// Bytes of acks that wait for a peer that does not read. Above it the worker stops reading from the peer, and acks have no
/// reason strings.
pub(crate) const UNSENT_BYTES_MAX: usize = 32 * 1024;
/// Payloads of this size or more are not copied for each receiver.
pub(crate) const SHARED_PAYLOAD_BYTES_MIN: usize = 8 * 1024;
/// Bytes that the kernel takes for a connection beyond those that are on their way.
pub(crate) const KERNEL_UNSENT_BYTES_MAX: u32 = 128 * 1024;
/// Reads of [`READ_BYTES_PER_PASS`] that the worker discards when it closes a connection.
pub(crate) const CLOSE_READS_MAX: usize = 16;
/// Messages that the worker takes from the outbox of a device at once.
pub(crate) const OUTBOX_TAKE_MAX: usize = 64;
/// Rows of one message of a gateway, over all of its devices. A full pass has room for them.
pub(crate) const GATEWAY_ROWS_MAX: usize = model::limits::BATCH_ROWS_MAX / 2;
/// Devices that the refusal of a message of a gateway names. The dead letter has the parts of all.
pub(crate) const FAULTS_NAMED_MAX: usize = 8;
/// Appends of one batch in one pass. After each refusal the worker replaces what the store has refused, and a store that names all
/// rows needs few. A batch that it still refuses waits for the next pass.
pub(crate) const APPENDS_PER_PASS_MAX: usize = 8;
/// Longest time between two reports of the broker's counters, in seconds.
pub const SYS_INTERVAL_MAX_S: u16 = 3_600;
/// Longest time of a pass for what follows the ends of sessions of the broker.
pub(crate) const ENDED_SESSIONS_PACE: Duration = Duration::from_millis(2);
/// Pause of that after an error.
pub(crate) const ENDED_SESSIONS_PAUSE: Duration = Duration::from_secs(1);
/// Seconds between two looks for sessions of the broker that have expired.
pub(crate) const SWEEP_INTERVAL_S: u32 = 10;
/// Seconds after which the worker closes a peer that takes none of its acks.
pub(crate) const UNSENT_TIMEOUT_S: u32 = 60;
/// Shortest time between two passes while messages come faster than that, so one pass serves several messages: a wake-up
/// costs more than a small message. A lone message never waits, and acks do not wait for the pace. The time is well below the
/// default interval between two syncs, so a client that waits for each ack does not miss the next sync.
pub(crate) const PASS_PACE_US: u64 = 600;
/// After a pass with this many messages the next pass begins at once.
pub(crate) const PASS_MESSAGES_ENOUGH: u64 = 64;
/// Events taken from the kernel at once.
pub(crate) const EVENTS_PER_POLL: usize = 1_024;
/// Accepted connections that wait for a worker.
pub(crate) const WORKER_CONNECTIONS_WAITING_MAX: usize = 4_096;
/// Appended batches that are not durable yet, per worker and durability class. Above it the worker stops reading messages.
pub(crate) const GROUPS_IN_FLIGHT_MAX: usize = 1_024;
/// Bytes of wills that wait for the next pass or for room in the store, per worker. Above it the worker discards and logs
/// wills.
pub(crate) const LATE_WILLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes that a waiting will counts for its session, besides topic, payload and client identifier.
pub(crate) const LATE_WILL_BYTES: usize = 512;
/// Bytes of the topics of one session's topic aliases. Topics of devices are short.
pub(crate) const TOPIC_ALIAS_BYTES_MAX: usize = 4 * 1024;
/// Topic aliases of one MQTT 5 session.
pub(crate) const TOPIC_ALIAS_MAX: u16 = 16;
/// Longest client identifier in bytes.
pub(crate) const CLIENT_ID_BYTES_MAX: usize = 1_024;
/// Unreleased QoS 2 messages of one session. The receive maximum binds MQTT 5 clients too.
pub(crate) const UNRELEASED_MAX: usize = 4_096;
/// Identifiers of unfinished QoS 2 exchanges of absent clients, over all clients.
pub(crate) const ABSENT_IDS_MAX: usize = 1_000_000;
/// Longest time that they are kept.
pub(crate) const ABSENT_SESSION_S: u32 = 3_600;
/// How long a stopping door waits for the durability of received messages.
pub(crate) const DRAIN_TIMEOUT_MS: u64 = 5_000;
/// Bytes of the buffer for output that a connection keeps when all is sent. It holds some acks, so a device that sends one message
/// after the other needs no new buffer for each.
pub(crate) const IDLE_OUTPUT_BYTES_MAX: usize = 128;
/// File descriptors reserved for the log, for parts that are written and merged, for the registry and so on. Connections of
/// other doors and parts that are read count separately.
pub const FILES_RESERVED: u64 = 256;
