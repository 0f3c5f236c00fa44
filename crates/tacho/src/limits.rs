//! Every bound of this crate, with the reason for its value.

use std::time::Duration;

/// Threads of the HTTP door. Devices speak MQTT; HTTP serves readers and must not take the devices' cores.
pub(crate) const HTTP_WORKERS: usize = 2;
/// Most threads of the MQTT door; more of them only wait for each other.
pub(crate) const MQTT_WORKERS_MAX: usize = 256;
/// Most connections of the HTTP door that may be configured: each may hold a body and an answer.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 65_536;
/// Most connections of the PostgreSQL door that may be configured: each may hold a few megabytes of a message.
pub(crate) const POSTGRES_CONNECTIONS_MAX: usize = 10_000;
/// Most threads for queries; more of them only wait for each other.
pub(crate) const QUERY_THREADS_MAX: usize = 256;
/// Connections that the kernel completes before we accept them. A fleet that reconnects at once is larger than the
/// usual 128; the kernel lowers this to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 4_096;

/// Longest time to live of a table that can be set: a thousand years, so that times of day stay representable.
pub(crate) const TTL_S_MAX: u64 = 1_000 * 366 * 86_400;
/// Pause between two looks for rows that are older than their tables keep them. Rows go by the day, and looking costs
/// nothing.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// Longest time of one HTTP request of a command.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time of a request of `tacho status`: a server that answers later than that is not well.
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// Over this time `tacho status` counts what comes in.
pub(crate) const STATUS_RATE_SPAN: Duration = Duration::from_secs(1);
/// Largest HTTP answer that a command reads: a page of a hundred thousand devices or points.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Longest part of an answer that an error quotes.
pub(crate) const QUOTE_CHARS: usize = 300;
/// How long a streamed answer may take to begin: a server flushes before it sends a backup.
pub(crate) const STREAM_BEGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// Commands that take longer than this show their progress.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// Pause between two lines of progress where there is no terminal.
pub(crate) const PROGRESS_LINE_INTERVAL: Duration = Duration::from_secs(10);
/// How often a command that waits looks whether there is progress to show.
pub(crate) const PROGRESS_TICK: Duration = Duration::from_millis(100);
/// Devices per page when a running server is asked for all.
pub(crate) const PAGE_DEVICES: usize = 1_000;

/// Bytes of an answer that is shown as a table: it is laid out as a whole. Other formats have no bound.
pub(crate) const TABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines of the history of queries that are kept.
pub(crate) const HISTORY_LINES_MAX: usize = 5_000;
/// Names that the prompt of queries completes.
pub(crate) const COMPLETIONS_MAX: usize = 100_000;

/// Bytes at the beginning of a CSV file in which its first line is looked at.
pub(crate) const CSV_HEAD_BYTES: u64 = 64 * 1024;
/// Longest row of a CSV file. A quote that is never closed would take the file into memory; a cell has 64 KiB by default.
pub(crate) const CSV_ROW_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rows of one file that are remembered to find those with the same tags and time: 16 bytes each at most.
pub(crate) const IMPORT_SEEN_MAX: usize = 8 * 1024 * 1024;
/// Devices that one import may name.
pub(crate) const IMPORT_DEVICES_MAX: usize = 100_000;

/// Rows of one request of an import.
pub(crate) const IMPORT_ROWS: usize = 500;
/// Bytes of one request of an import, well under what a server takes by default.
pub(crate) const IMPORT_BYTES: usize = 512 * 1024;
/// Rows of an import into a table that are made durable at once.
pub(crate) const IMPORT_PIECE_ROWS: usize = 64 * 1024;
/// Pieces that are read ahead of the one that is being made durable.
pub(crate) const IMPORT_PIECES_AHEAD: usize = 2;
/// Bytes of a piece of such an import; well under what the bulk door takes.
pub(crate) const IMPORT_PIECE_BYTES: usize = 8 * 1024 * 1024;
/// Cells of a piece of lines: few bytes of them may name a new field, whose column has a cell for each row.
pub(crate) const IMPORT_CELLS_MAX: usize = 8 * 1024 * 1024;
/// Unpacked bytes that are held at once of a Parquet file: some kilobytes can be gigabytes.
pub(crate) const IMPORT_HELD_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How often a request of an import is sent when the server is busy or does not answer.
pub(crate) const IMPORT_ATTEMPTS_MAX: u32 = 20;
/// Pause before a request is repeated when the server names none.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause that a server may ask for.
pub(crate) const RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Files of a demo that are no connection of the fleet: the server's own, readers, the page.
pub(crate) const DEMO_OTHER_FILES: u64 = 300;
/// Readiness events that the simulated fleet takes per poll.
pub(crate) const FLEET_EVENTS_PER_POLL: usize = 1_024;
/// New connections of the fleet per [`FLEET_CONNECT_INTERVAL`], so that it does not overrun the accept backlog.
pub(crate) const FLEET_CONNECTS: usize = 64;
/// How often the fleet looks for vehicles that want to connect.
pub(crate) const FLEET_CONNECT_INTERVAL: Duration = Duration::from_millis(20);
/// Longest sleep of the fleet's loop; bounds how late a retry is noticed.
pub(crate) const FLEET_SLEEP_MAX: Duration = Duration::from_millis(100);
/// How long a stopping fleet waits for its last acks.
pub(crate) const FLEET_DRAIN_MAX: Duration = Duration::from_secs(2);
/// Reports of a vehicle that may wait for their ack, on the way or in the vehicle while it is not connected.
pub(crate) const FLEET_UNACKED_MAX: usize = 16;
/// Largest packet a server may send a vehicle; acks with a reason string are the largest.
pub(crate) const FLEET_PACKET_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a vehicle reads from its socket at once.
pub(crate) const FLEET_READ_BYTES: usize = 4 * 1024;
/// Pause before a vehicle's first reconnect; it doubles with each.
pub(crate) const FLEET_RETRY_FIRST: Duration = Duration::from_millis(500);
/// Longest pause before a reconnect.
pub(crate) const FLEET_RETRY_MAX: Duration = Duration::from_secs(10);

const _: () = assert!(IMPORT_ROWS <= model::limits::BATCH_ROWS_MAX, "a request of an import is one batch");
