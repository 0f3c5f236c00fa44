//! Limits of OpenTSDB's interface.

use std::time::Duration;

use wire::opentsdb::limits::LINE_BYTES_MAX;

/// Most bytes of a body, before and after it is unpacked.
pub(super) const PUT_BYTES_MAX: usize = 25_000_000;
/// Bytes of the refused points that an answer with `details` names. Further ones are only counted.
pub(super) const NAMED_BYTES_MAX: usize = 1024 * 1024;
/// Most bytes of a body that asks, before and after it is unpacked.
pub(super) const QUERY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one piece of a streamed answer.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Names that a suggestion gives unless the caller asks for another number.
pub(super) const SUGGESTED: usize = 25;
/// Series that a lookup gives unless the caller asks for another number.
pub(super) const LOOKED_UP: usize = 25;
/// Most names or series that a list gives.
pub(super) const LISTED_MAX: usize = 100_000;
/// Most bytes of a body with annotations, before and after it is unpacked.
pub(super) const ANNOTATIONS_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes that are read at once of a connection that speaks lines, and that it holds.
pub(super) const TELNET_INPUT_BYTES_MAX: usize = 64 * 1024;
/// Lines that become one batch.
pub(super) const TELNET_BATCH_LINES_MAX: u32 = 4_096;
/// Bytes of answers to refused lines that wait for a client that does not read. Further ones are dropped and counted.
pub(super) const TELNET_REPLIES_BYTES_MAX: usize = 64 * 1024;
/// A connection that speaks lines and sends nothing for this long is closed. Collectors report every few minutes.
pub(super) const TELNET_IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Refused logins, and refused commands without a login, after which a connection is closed.
pub(super) const TELNET_REFUSED_LOGINS_MAX: usize = 10;
/// Pause before a batch is offered again to a store that was busy for longer than
/// [`BUSY_TIMEOUT`](crate::http::limits::BUSY_TIMEOUT).
pub(super) const TELNET_RETRY_INTERVAL: Duration = Duration::from_millis(200);

const _: () = assert!(LINE_BYTES_MAX < TELNET_INPUT_BYTES_MAX, "a line fits into what is read");
