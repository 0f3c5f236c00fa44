//! Bounds of the broker: topics, subscriptions, queues and retained messages.

pub use model::limits::TOPIC_LEVELS_MAX;

/// Subscriptions of one session.
pub const SUBSCRIPTIONS_PER_SESSION_MAX: usize = 1_024;
/// Bytes of all filters of one session.
pub const SUBSCRIPTION_BYTES_PER_SESSION_MAX: usize = 64 * 1024;
/// Nodes of the index that a message of a tenant may visit. A subscription that would make a dearer message possible is refused.
pub const MATCH_STEPS_MAX: usize = 4_096;
/// Subscriptions of all sessions. The tenants share them.
pub const SUBSCRIPTIONS_MAX: usize = 2_000_000;
/// Subscriptions of all sessions of one device.
pub const SUBSCRIPTIONS_PER_DEVICE_MAX: usize = 16_384;
/// Those of them that make matches dear: filters with two or more `+`, or with more than [`WILDCARD_TAIL_LEVELS`] from a `+` on.
pub const WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX: usize = 256;
/// Levels of these filters, each from the first `+` on: one device cannot use up [`MATCH_STEPS_MAX`] of its tenant.
pub const WILDCARD_LEVELS_PER_DEVICE_MAX: usize = 1_024;
/// See [`WILDCARD_SUBSCRIPTIONS_PER_DEVICE_MAX`].
pub const WILDCARD_TAIL_LEVELS: usize = 8;
/// Sessions that outlive their connections. The tenants share them.
pub const SESSIONS_MAX: usize = 1_000_000;
/// Messages of QoS 1 and 2 that wait for one session, in memory or on disk.
pub const QUEUE_MESSAGES_MAX: u64 = kv::limits::RANGE_KEYS_MAX as u64;
/// Bytes of these messages.
pub const QUEUE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Messages of QoS 0 that wait for a connected client. Further ones are dropped.
pub const IMMEDIATE_MESSAGES_MAX: usize = 1_024;
/// Messages of QoS 1 and 2 that a session whose queue is on disk holds in memory too.
pub const WINDOW_MESSAGES: usize = 256;
/// Bytes that one load of such a session reads from the engine.
pub const WINDOW_BYTES: usize = 256 * 1024;
/// Bytes of all messages in memory, and of their places in queues. The tenants share them. Above it, and for a tenant above its share, sessions with a queue on disk read from there, and other sessions drop.
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Unacknowledged messages of QoS 1 and 2 that the server sends to a client without a Receive Maximum of its own.
pub const INFLIGHT_MAX: u16 = 1_024;
/// Bytes of one write to the key-value engine. A larger publication is divided between sessions.
pub const WRITE_BYTES: usize = 4 * 1024 * 1024;
/// Entries of the queue of an ended session that one step gives to other members of its groups, or deletes.
pub const ENDED_STEP_ENTRIES: usize = 256;
/// Bytes of these entries.
pub const ENDED_STEP_BYTES: usize = 256 * 1024;
/// Members of a group that are asked to take over a message.
pub const MEMBERS_ASKED_MAX: usize = 8;
/// Retained topics of one tenant.
pub const RETAINED_TOPICS_MAX: u64 = 1_000_000;
/// Bytes of the retained messages of one tenant.
pub const RETAINED_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Retained topics that one step of a new subscription compares with its filter.
pub const RETAINED_STEP_TOPICS: usize = 256;
/// Bytes of retained messages that one step reads.
pub const RETAINED_STEP_BYTES: usize = 256 * 1024;
/// Sessions of one device that outlive their connections: a device cannot take the room of the others with ever new client
/// identifiers.
pub const SESSIONS_PER_DEVICE_MAX: usize = 1_024;
/// Longest time that a session outlives its connection, in seconds: a week.
pub const SESSION_EXPIRY_MAX_S: u32 = 7 * 24 * 3_600;
/// Retained messages of a deleted tenant that one sweep deletes.
pub const FORGOTTEN_PER_SWEEP: usize = 10_000;
