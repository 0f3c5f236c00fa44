//! Bounds of the HTTP door. What an operator may set is in [`super::HttpOptions`]; these are fixed.

use std::time::Duration;

use crate::budget::{Limit, Limits};

/// Connections at once when the operator names no other number. Further ones are answered with 503 and closed.
pub const CONNECTIONS_MAX: usize = 1_024;
/// Connections beyond the others that may ask how the server is, so that who watches it gets an answer when all seats are
/// taken.
pub(crate) const PROBES_MAX: usize = 64;
/// Such connections of one address.
pub(crate) const PROBES_PER_ADDRESS_MAX: usize = 4;
/// From such a connection to the end of its answer.
pub(crate) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// A client that takes nothing of its answer for this long is closed.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of a request's head (request line and headers). Larger ones are answered with 431.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Headers of one request.
pub(crate) const HEADERS_MAX: usize = 64;
/// A head that is not complete after this time closes the connection; so does a connection that asks for nothing.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest body of a device that an operator may allow. A dead letter of it (as base64) fits into a batch.
pub const BODY_BYTES_MAX: usize = model::limits::BATCH_TEXT_BYTES_MAX / 2;
/// A body that is not complete after this time is refused with 408.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of request bodies that are held at once, over all senders that said who they are; above it requests get 429.
pub(crate) const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The least that [`BODIES_BYTES_MAX`] is on a machine with little memory: the pieces of `tacho import` are 8 MiB.
pub(crate) const BODIES_BYTES_MIN: usize = 12 * 1024 * 1024;
/// The same of one device, so that a few devices do not shut the others out.
pub(crate) const DEVICE_BODIES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The same of one user: an import's largest piece.
pub(crate) const USER_BODIES_BYTES_MAX: usize = IMPORT_BODY_BYTES_MAX;
/// The same of all who have not said who they are, which they do in a login.
pub(crate) const ANONYMOUS_BODIES_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a login, or of what else is sent without one.
pub(crate) const LOGIN_BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a refused body that are read and thrown away, so that its sender gets to see the answer.
pub(crate) const DISCARDED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a JSON request of the REST interface (logins, devices, ids of devices to read).
pub(crate) const REST_BODY_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a request with a query. The query itself has its own, smaller bound; this is for the parameters.
pub(crate) const SQL_BODY_BYTES_MAX: usize = 1024 * 1024;
/// How long a write waits for a busy store before it is answered with 429.
pub(crate) const BUSY_PATIENCE: Duration = Duration::from_secs(5);
/// What `Retry-After` says when the store or a queue is busy, in seconds.
pub(crate) const RETRY_BUSY_S: u32 = 1;
/// What `Retry-After` says when somebody has to repair something first, in seconds.
pub(crate) const RETRY_OPERATOR_S: u32 = 30;
/// Reads of the store at once; each holds a thread and its result in memory.
pub(crate) const READS_AT_ONCE: usize = 4;
/// Reads that wait for their turn; above it they get 429.
pub(crate) const READS_WAITING_MAX: usize = 512;
/// Logins at once. The registry checks one password at a time.
pub(crate) const LOGINS_AT_ONCE: usize = 1;
/// Logins that wait for their turn; above it they get 429.
pub(crate) const LOGINS_WAITING_MAX: usize = 32;
/// Changes of the registry at once. It has one writer.
pub(crate) const CHANGES_AT_ONCE: usize = 1;
/// Changes of the registry that wait for their turn; above it they get 429.
pub(crate) const CHANGES_WAITING_MAX: usize = 128;
/// Checks, backups and exports at once; each reads all files and keeps parts from being removed.
pub(crate) const MAINTENANCE_AT_ONCE: usize = 1;
/// Bytes of an earlier backup's list: about 170 for each part.
pub(crate) const MAINTENANCE_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of one piece of an import.
pub(crate) const IMPORT_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Unpacked bytes that are held at once of it: some kilobytes of Parquet can be gigabytes.
pub(crate) const IMPORT_HELD_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The least that this is on a machine with little memory: such a piece, unpacked.
pub(crate) const IMPORT_HELD_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// Rows of one piece of an import: some bytes of Parquet can be a thousand million.
pub(crate) const IMPORT_ROWS_MAX: u64 = 16 * 1024 * 1024;
/// Bytes of one piece of a streamed answer.
pub(crate) const STREAM_PIECE_BYTES: usize = 256 * 1024;
/// Pieces of a streamed answer that wait to be sent; above it the work waits.
pub(crate) const STREAM_PIECES: usize = 4;
/// A client that takes nothing of a streamed answer for this long is given up.
pub(crate) const STREAM_SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// Devices that one request may read.
pub(crate) const DEVICES_PER_READ_MAX: usize = 10_000;
/// Keys that one request may name.
pub(crate) const KEYS_PER_REQUEST_MAX: usize = 10_000;
/// Bytes of one answer with values. The store bounds the number of values, this bounds their length.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of answers that are in memory as a whole until their clients have taken them: of all answers to one login, and of
/// all together. One answer of the longest kind has room.
pub(crate) const ANSWERS_LOGIN_BYTES_MAX: usize = ANSWER_BYTES_MAX;
pub(crate) const ANSWERS_BYTES_MAX: usize = 2 * ANSWER_BYTES_MAX;
/// Shorter answers are not counted: a connection's buffers hold as much.
pub(crate) const ANSWER_COUNTED_BYTES_MIN: usize = 64 * 1024;
/// Bytes of a long answer that are handed over at once.
pub(crate) const ANSWER_PIECE_BYTES: usize = 64 * 1024;
/// The bounds of these bytes.
pub(crate) const ANSWER_BUDGET: Limits = Limits {
    what: "answers that wait to be read",
    share: Limit { name: "ANSWER_BYTES_MAX", bytes: ANSWER_BYTES_MAX },
    login: Limit { name: "ANSWERS_LOGIN_BYTES_MAX", bytes: ANSWERS_LOGIN_BYTES_MAX },
    total: Limit { name: "ANSWERS_BYTES_MAX", bytes: ANSWERS_BYTES_MAX },
};
/// Devices on a page when a listing has to be sorted by something else than the name: all of them are looked at.
pub(crate) const SORTED_DEVICES_MAX: usize = model::limits::PAGE_DEVICES_MAX;
/// Devices with refused messages that are listed at once.
pub(crate) const REFUSALS_LISTED_MAX: usize = 1_000;
/// Bytes of an answer that is compressed where the client takes it: shorter ones fit into a packet as they are, longer
/// ones are streams.
pub(crate) const COMPRESSED_BYTES_MIN: u64 = 1_024;
/// The most that is compressed in one go.
pub(crate) const COMPRESSED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of one message from a WebSocket client. A thousand subscriptions are about 150 KB.
pub(crate) const SOCKET_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// Commands of one message from a WebSocket client.
pub(crate) const SOCKET_COMMANDS_MAX: usize = 10_000;
/// Messages read from a WebSocket client but not worked on; above it reading stops.
pub(crate) const SOCKET_MESSAGES_WAITING_MAX: usize = 4;
/// Subscriptions of one WebSocket session.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Bytes that subscriptions and watches may take with the keys that they name and remember: of one WebSocket session, of all
/// sessions of a login, and of all together. Ten thousand subscriptions with twenty keys each take 50 MB.
pub(crate) const SUBSCRIPTIONS_SESSION_BYTES_MAX: usize = 64 * 1024 * 1024;
pub(crate) const SUBSCRIPTIONS_LOGIN_BYTES_MAX: usize = 128 * 1024 * 1024;
pub(crate) const SUBSCRIPTIONS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// What a subscription takes besides its keys, here and where updates come from; so does each device of a watch.
pub(crate) const SUBSCRIPTION_BYTES: usize = 512;
/// What a key takes besides its text that a subscription names or remembers.
pub(crate) const REMEMBERED_KEY_BYTES: usize = 96;
/// The bounds of these bytes.
pub(crate) const SUBSCRIPTION_BUDGET: Limits = Limits {
    what: "subscriptions and watches",
    share: Limit { name: "SUBSCRIPTIONS_SESSION_BYTES_MAX", bytes: SUBSCRIPTIONS_SESSION_BYTES_MAX },
    login: Limit { name: "SUBSCRIPTIONS_LOGIN_BYTES_MAX", bytes: SUBSCRIPTIONS_LOGIN_BYTES_MAX },
    total: Limit { name: "SUBSCRIPTIONS_BYTES_MAX", bytes: SUBSCRIPTIONS_BYTES_MAX },
};
/// Bytes of live values after which the next ones go into a message of their own. Clients have bounds too.
pub(crate) const UPDATE_BYTES_MAX: usize = 256 * 1024;
/// Watches of one WebSocket session: what a page shows in a few places.
pub(crate) const WATCHES_MAX: usize = 8;
/// Devices of one watch.
pub(crate) const WATCH_DEVICES_MAX: usize = 10_000;
/// Times that a watch takes what waits for it, a part of very much each, before it is another command's turn: as much as
/// may wait.
pub(crate) const WATCH_TAKES_MAX: usize =
    model::limits::LIVE_CONNECTION_BYTES_MAX / hub::live::MAILBOX_REDUCE_BYTES;
/// Keys that one watch may name.
pub(crate) const WATCH_KEYS_MAX: usize = 1_000;
/// Time between two messages of a watch: when it names none, and the shortest and longest that it may name.
pub(crate) const WATCH_INTERVAL_DEFAULT: Duration = Duration::from_secs(1);
pub(crate) const WATCH_INTERVAL_MIN: Duration = Duration::from_millis(200);
pub(crate) const WATCH_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// A client that takes nothing for this long while we have something for it is closed.
pub(crate) const SOCKET_SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a WebSocket client is pinged and its session token looked at again.
pub(crate) const SOCKET_PING_INTERVAL: Duration = Duration::from_secs(25);
/// A WebSocket client from which nothing came for this long, not even a pong, is closed.
pub(crate) const SOCKET_SILENCE_MAX: Duration = Duration::from_secs(80);
/// How long the closing handshake of a WebSocket may take.
pub(crate) const SOCKET_CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a stopping door waits for requests in flight and for WebSockets to close.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause after the system refused to accept a connection (no file descriptors left).
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
