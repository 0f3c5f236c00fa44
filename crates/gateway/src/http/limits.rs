//! Fixed bounds of the HTTP door. Options for operators are in [`super::HttpOptions`].

use std::time::Duration;

use crate::budget::{Limit, Limits};

/// Connections at once, by default. The door answers further ones with 503 and closes them.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Connections above the bound that may check the server's health, so monitoring gets an answer when all others are in use.
pub(crate) const PROBES_MAX: usize = 64;
/// The same with TLS. Each costs a handshake, so fewer may be under way at once; the door closes further ones without an answer.
pub(crate) const TLS_PROBES_MAX: usize = 16;
/// Connections above the bound from one address.
pub(crate) const PROBES_PER_ADDRESS_MAX: usize = 4;
/// From the opening of a connection above the bound to the end of its answer.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// The door closes a client that takes nothing of its answer for this long.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head (request line and headers). A larger head gets 431.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of one request.
pub(crate) const HEADERS_MAX: usize = 64;
/// The door closes a connection whose request head is not complete after this time, and an idle connection.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest body of a device that an operator may allow. Its dead letter (as base64) fits into a batch.
pub const BODY_BYTES_MAX: usize = model::limits::BATCH_TEXT_BYTES_MAX / 2;
/// A body that is not complete after this time gets 408.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of request bodies in memory, over all authenticated senders. Above it requests get 429. A tenant may have half of what the
/// others leave.
pub(crate) const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lower bound of [`BODIES_BYTES_MAX`] on a machine with little memory: two pieces of `tacho import`, which have
/// 8 MiB.
pub(crate) const BODIES_BYTES_MIN: usize = 16 * 1024 * 1024;
/// Bytes of request bodies of one device, so a few devices cannot block the others.
pub(crate) const DEVICE_BODIES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of request bodies of one user: the largest piece of an import.
pub(crate) const USER_BODIES_BYTES_MAX: usize = IMPORT_BODY_BYTES_MAX;
/// Bytes of request bodies of all anonymous senders, such as those that log in.
pub(crate) const ANONYMOUS_BODIES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a request of a device for credentials, which may have a certificate.
pub(crate) const PROVISION_BODY_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a text in a form.
pub(crate) const FORM_TEXT_BYTES_MAX: usize = 1024;
/// Bytes of an offer or a claim of a device.
pub(crate) const CLAIM_BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the body of a login, or of any other anonymous request.
pub(crate) const LOGIN_BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a refused body that the door reads and discards, so the client can read the answer: more than any endpoint accepts.
pub(crate) const DISCARDED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a JSON request of the REST interface (logins, devices, ids of devices to read).
pub(crate) const REST_BODY_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a request with a query. The query has its own, smaller bound; this one is for the parameters.
pub(crate) const SQL_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a call of a procedure of a device: its parameters and its other members.
pub(crate) const RPC_BODY_BYTES_MAX: usize = hub::rpc::limits::RPC_PARAMS_BYTES_MAX + 16 * 1024;
/// Stored calls on one page of a listing.
pub(crate) const RPC_PAGE_MAX: usize = hub::rpc::limits::RPC_STORED_PER_DEVICE_MAX;
/// Entries of a page of a listing.
pub(crate) const PAGE_ENTITIES_MAX: usize = model::limits::PAGE_DEVICES_MAX;
/// Alarms, or comments of an alarm, on one page of a listing. ThingsBoard's widgets without pages ask for 1,024.
pub(crate) const ALARM_PAGE_MAX: usize = 1_024;
/// Entities whose alarms one query searches.
pub(crate) const ALARM_QUERY_ENTITIES_MAX: usize = model::limits::PAGE_DEVICES_MAX;
/// How long a device that polls waits for a message if it names no time (ThingsBoard's `transport.http.request_timeout`).
pub(crate) const POLL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// Requests of devices that wait for changes of attributes. Above it they get 429. Each takes some kilobytes.
pub(crate) const POLLS_MAX: usize = 10_000;
/// Such requests of one device.
pub(crate) const POLLS_PER_DEVICE_MAX: usize = 8;
/// Reads and writes of attributes at once. A write of a user waits for the disk.
pub(crate) const ATTRIBUTES_AT_ONCE: usize = 16;
/// Reads and writes of attributes that wait. Above it they get 429.
pub(crate) const ATTRIBUTES_WAITING_MAX: usize = 1_024;
/// Longest wait of a device that polls (ThingsBoard's `transport.http.max_request_timeout`).
pub(crate) const POLL_TIMEOUT_MAX: Duration = Duration::from_secs(300);
/// How long a write waits for a busy store before it gets 429.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads of the store at once. Each uses a thread, and its result is in memory.
pub(crate) const READS_AT_ONCE: usize = 4;
/// Reads that wait. Above it reads get 429.
pub(crate) const READS_WAITING_MAX: usize = 512;
/// Logins at once. The registry checks one password at a time.
pub(crate) const LOGINS_AT_ONCE: usize = 1;
/// Logins that wait. Above it logins get 429.
pub(crate) const LOGINS_WAITING_MAX: usize = 32;
/// Changes of the registry at once. It has one writer.
pub(crate) const CHANGES_AT_ONCE: usize = 1;
/// Changes of the registry that wait. Above it changes get 429.
pub(crate) const CHANGES_WAITING_MAX: usize = 128;
/// Single devices that are added at once. They share a transaction of the registry, and so a sync of the disk.
pub(crate) const CREATIONS_AT_ONCE: usize = 64;
/// Single devices that wait to be added. Above it requests get 429.
pub(crate) const CREATIONS_WAITING_MAX: usize = 1_024;
/// Checks, backups and exports at once. Each reads all files and keeps parts from being removed.
pub(crate) const MAINTENANCE_AT_ONCE: usize = 1;
/// Bytes of the list of an earlier backup: about 170 for each part.
pub(crate) const MAINTENANCE_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of one piece of an import.
pub(crate) const IMPORT_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Unpacked bytes of one piece in memory: some kilobytes of Parquet can unpack to gigabytes.
pub(crate) const IMPORT_HELD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Lower bound of it on a machine with little memory: one piece of `tacho import`, unpacked.
pub(crate) const IMPORT_HELD_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// Rows of one piece of an import: some bytes of Parquet can be a thousand million rows.
pub(crate) const IMPORT_ROWS_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of one piece of a streamed answer.
pub(crate) const STREAM_PIECE_BYTES: usize = 256 * 1024;
/// Pieces of a streamed answer that wait to be sent. Above it the producer waits.
pub(crate) const STREAM_PIECES: usize = 4;
/// The door gives up a streamed answer if the client takes nothing of it for this long.
pub(crate) const STREAM_SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Devices that one request may read.
pub(crate) const DEVICES_PER_READ_MAX: usize = 10_000;
/// Keys that one request may name.
pub(crate) const KEYS_PER_REQUEST_MAX: usize = 10_000;
/// Bytes of one answer with values. The store bounds the number of values; this bounds their length.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of answers in memory that clients have not taken yet: of all answers to one login, and in total. One answer of the
/// largest size fits.
pub(crate) const ANSWERS_LOGIN_BYTES_MAX: usize = ANSWER_BYTES_MAX;
pub(crate) const ANSWERS_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;
/// Shorter answers are not counted: the buffers of a connection hold as much.
pub(crate) const ANSWER_COUNTED_BYTES_MIN: usize = 64 * 1024;
/// Bytes of a long answer that are passed to the socket at once.
pub(crate) const ANSWER_PIECE_BYTES: usize = 64 * 1024;
/// The bounds of these bytes.
pub(crate) const ANSWER_BUDGET: Limits = Limits {
    what: "answers that wait to be read",
    share: Limit { name: "ANSWER_BYTES_MAX", bytes: ANSWER_BYTES_MAX },
    login: Limit { name: "ANSWERS_LOGIN_BYTES_MAX", bytes: ANSWERS_LOGIN_BYTES_MAX },
    total: Limit { name: "ANSWERS_BYTES_MAX", bytes: ANSWERS_BYTES_MAX },
};
/// Devices in a list of devices with refused messages.
pub(crate) const REFUSALS_LISTED_MAX: usize = 1_000;
/// Shortest answer, or first piece of a stream, that is compressed. Shorter ones fit into a packet.
pub(crate) const COMPRESSED_BYTES_MIN: u64 = 1_024;
/// Longest answer in memory that is compressed.
pub(crate) const COMPRESSED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of one message from a WebSocket client. A thousand subscriptions are about 150 KB.
pub(crate) const SOCKET_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Commands of one message from a WebSocket client.
pub(crate) const SOCKET_COMMANDS_MAX: usize = 10_000;
/// Messages of a WebSocket client that wait to be handled. Above it the session stops reading.
pub(crate) const SOCKET_MESSAGES_WAITING_MAX: usize = 4;
/// Subscriptions of one WebSocket session.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Subscriptions by queries of one WebSocket session.
pub(crate) const QUERIES_MAX: usize = 1_000;
/// Entities of one subscription by a query (ThingsBoard's `max_entities_per_data_subscription`). A larger page is cut.
pub(crate) const ENTITIES_PER_SUBSCRIPTION_MAX: usize = 10_000;
/// Aggregates that one command may name.
pub(crate) const AGGREGATES_PER_COMMAND_MAX: usize = 100;
/// How often the query of a subscription runs again.
pub(crate) const QUERY_REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// How often the query of a subscription of alarms runs again at most, while alarms change.
pub(crate) const ALARM_REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// A query runs again after this many times of its duration at the earliest.
pub(crate) const QUERY_REFRESH_FACTOR: u32 = 20;
/// How long a client of `/api/ws` may take for its first message with a token.
pub(crate) const SOCKET_LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of subscriptions and watches with the keys that they name and remember: of one WebSocket session, of all sessions
/// of a login, and in total. Ten thousand subscriptions with twenty keys each take 50 MB.
pub(crate) const SUBSCRIPTIONS_SESSION_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const SUBSCRIPTIONS_LOGIN_BYTES_MAX: usize = 128 * 1024 * 1024;
pub(crate) const SUBSCRIPTIONS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of a subscription besides its keys, here and in the hub. A device of a watch takes the same.
pub(crate) const SUBSCRIPTION_BYTES: usize = 512;
/// Bytes of a key of a subscription besides its text.
pub(crate) const REMEMBERED_KEY_BYTES: usize = 96;
/// Bytes of a value of a reply that a session remembers until updates have passed it.
pub(crate) const REMEMBERED_POINT_BYTES: usize = 40;
/// The bounds of these bytes.
pub(crate) const SUBSCRIPTION_BUDGET: Limits = Limits {
    what: "subscriptions and watches",
    share: Limit { name: "SUBSCRIPTIONS_SESSION_BYTES_MAX", bytes: SUBSCRIPTIONS_SESSION_BYTES_MAX },
    login: Limit { name: "SUBSCRIPTIONS_LOGIN_BYTES_MAX", bytes: SUBSCRIPTIONS_LOGIN_BYTES_MAX },
    total: Limit { name: "SUBSCRIPTIONS_BYTES_MAX", bytes: SUBSCRIPTIONS_BYTES_MAX },
};
/// Bytes of live values in one message; further ones go into the next message. Clients have bounds too.
pub(crate) const UPDATE_BYTES_MAX: usize = 256 * 1024;
/// Watches of one WebSocket session: enough for a page.
pub(crate) const WATCHES_MAX: usize = 8;
/// Devices of one watch.
pub(crate) const WATCH_DEVICES_MAX: usize = 10_000;
/// How often a watch takes waiting updates before the session handles another event: enough for all that may wait.
pub(crate) const WATCH_TAKES_MAX: usize =
    model::limits::LIVE_CONNECTION_BYTES_MAX / hub::live::MAILBOX_REDUCE_BYTES;
/// Keys that one watch may name.
pub(crate) const WATCH_KEYS_MAX: usize = 1_000;
/// Time between two messages of a watch: the default, the shortest and the longest.
pub(crate) const WATCH_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
pub(crate) const WATCH_INTERVAL_MIN: Duration = Duration::from_millis(200);
pub(crate) const WATCH_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Before it sends live values, a WebSocket session looks whether the registry has changed, but not more often than this.
pub(crate) const REGISTRY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two looks of a WebSocket session for the series of devices that have not reported yet.
pub(crate) const SERIES_BIND_INTERVAL: Duration = Duration::from_millis(200);
/// The session closes a client that does not read output for this long.
pub(crate) const SOCKET_SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the session pings its client and checks its token.
pub(crate) const SOCKET_PING_INTERVAL: Duration = Duration::from_secs(25);
/// The session closes a client that sends nothing for this long, not even a pong.
pub(crate) const SOCKET_SILENCE_MAX: Duration = Duration::from_secs(80);
/// How long the closing handshake of a WebSocket may take.
pub(crate) const SOCKET_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a stopping door waits for running requests and WebSockets.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause after the system failed to accept a connection (no file descriptors left).
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

const _: () = assert!(
    model::limits::SQL_BYTES_MAX * 2 <= SQL_BODY_BYTES_MAX,
    "the longest statement fits into a request, escaped as it may be"
);
const _: () = assert!(
    WATCH_DEVICES_MAX <= hub::live::SERIES_PER_SUBSCRIBER_MAX,
    "a watch of as many devices as it may have finds room"
);
const _: () = assert!(
    model::limits::READ_ROWS_DEFAULT <= model::limits::READ_ROWS_MAX,
    "a request without a limit is answered"
);
const _: () = assert!(
    DEVICES_PER_READ_MAX * r#""00000000-0000-0000-0000-000000000000", "#.len() <= REST_BODY_BYTES_MAX,
    "as many devices as may be read at once can be named"
);
/// Right passwords in memory of users who send them with each request. When there are more, all are forgotten and checked again.
pub const PASSWORDS_REMEMBERED_MAX: usize = 10_000;
/// Bytes of a body of rows that the event loop reads itself: it takes some tenths of a millisecond. A blocking thread reads a longer one.
pub const INLINE_BODY_BYTES_MAX: usize = 256 * 1024;
/// How often a request with points is read if its series are deleted meanwhile, or the store is too busy to make them.
pub const READINGS_MAX: usize = 3;
