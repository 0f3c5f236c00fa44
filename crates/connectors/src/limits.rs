//! Bounds of connectors.

use std::time::Duration;

/// Threads of all connectors that do not wait for files or answers.
pub const WORKERS: usize = 2;
/// Threads that wait for files and HTTP answers, for all connectors together.
pub const BLOCKING_THREADS_MAX: usize = 64;
/// How long the end of the server waits for these threads.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The first pause after a wrapper or an exporter has failed. It doubles with each failure that follows.
pub const RETRY_PAUSE_MIN: Duration = Duration::from_millis(500);
/// The longest pause between attempts of a wrapper to read its source.
pub const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);
/// The longest pause between attempts of an exporter to deliver rows.
pub const EXPORTER_PAUSE_MAX: Duration = Duration::from_secs(10);
/// Rows that an exporter writes at once.
pub const EXPORTER_ROWS_AT_ONCE: usize = 2_000;
/// How long an exporter waits for new rows before it looks for them. Other writers of the table do not wake it.
pub const EXPORTER_LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How long one attempt to append waits for a busy store before the state of the source says so. Then it tries again.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause while the tenant is over its limit of points.
pub const OVER_LIMIT_PAUSE: Duration = Duration::from_millis(50);
/// Elements that one append takes.
pub const ELEMENTS_PER_APPEND_MAX: usize = 5_000;
/// Refused elements of one append that are kept as dead letters. Further ones are counted.
pub const DEAD_LETTERS_PER_APPEND_MAX: usize = 100;
/// Bytes of a refused element that are kept.
pub const DEAD_LETTER_BYTES_MAX: usize = 64 * 1024;
/// Characters of an error that is shown.
pub const ERROR_CHARACTERS_MAX: usize = 500;

/// Bytes of a CSV file that are read at once.
pub const CSV_CHUNK_BYTES: usize = 512 * 1024;
/// Bytes of one line of a CSV file. A longer line is refused.
pub const CSV_LINE_BYTES_MAX: usize = 64 * 1024;
/// Bytes at the beginning of a CSV file by which it is known again.
pub const CSV_HEAD_BYTES_MAX: usize = 1_024;
/// Elements of one source with one time in milliseconds. They are a microsecond apart.
pub const ELEMENTS_OF_ONE_TIME_MAX: i64 = 1_000;
/// Time between two stored places of a file or a table that is read without a pause.
pub const PLACE_INTERVAL: Duration = Duration::from_secs(1);

/// Time from the connection to the end of an HTTP answer.
pub const HTTP_TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that a request of a wrapper follows, on the same server.
pub(crate) const REDIRECTS_MAX: usize = 5;
/// Bytes of an answer that is one element.
pub const HTTP_ELEMENT_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of text that the elements of one payload repeat. Each element has the text of the payload and its topic, if the queries read
/// them besides other fields.
pub const RAW_COPIES_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of an answer with rows of another server. A request has no last time, so a first answer that is larger never succeeds: then a
/// later `starting_time` or `start-time` helps.
pub const HTTP_ROWS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Time between two registrations at a server that pushes rows. A server that has forgotten the registration then starts again.
pub const PUSH_RENEW_INTERVAL: Duration = Duration::from_secs(10);

/// Bytes of one message of a broker. The connection ends at a longer one.
pub const MQTT_PACKET_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a connection that are read at once.
pub const MQTT_READ_BYTES: usize = 64 * 1024;
/// The longest silence that a broker is asked to allow. The client pings after half of it.
pub const MQTT_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Datagrams that wait for their append. Further ones are dropped and counted. Each has at most [`UDP_BYTES_MAX`] bytes:
/// together with as many that are being appended, 125 MiB.
pub const UDP_WAITING_MAX: usize = 1_000;
/// Bytes of a datagram.
pub const UDP_BYTES_MAX: usize = 65_535;

/// Rows that a replay reads at once.
pub const REPLAY_ROWS_AT_ONCE: usize = 1_000;
