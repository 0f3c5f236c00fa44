//! All limits of this crate, with the reasons for their values.

use std::time::Duration;

/// Threads of the HTTP door. Devices usually use MQTT; HTTP serves readers and must not occupy all cores.
pub(crate) const HTTP_WORKERS: usize = 2;
/// Threads of the HTTP door for blocking work under a resource limit, where each stack counts.
pub(crate) const LIMITED_BLOCKING_THREADS: usize = 24;
/// Bytes that the stacks of all other threads count for resource limits: about forty threads with 2 MiB, those of
/// [`LIMITED_BLOCKING_THREADS`], and four tasks of queries with 8 MiB.
pub(crate) const OTHER_STACK_BYTES: u64 = 160 * 1024 * 1024;
/// Least memory for data that a resource limit must leave. The process would end when it exceeds the limit.
pub(crate) const MEMORY_BYTES_MIN: u64 = 192 * 1024 * 1024;
/// On a machine with little memory: bytes for each arena of the allocator, and bytes of blocks that it returns to the system as soon as they are freed.
pub(crate) const ALLOCATOR_ARENA_BYTES: u64 = 512 * 1024 * 1024;
pub(crate) const ALLOCATOR_LARGE_BYTES: i32 = 256 * 1024;
/// On other machines: bytes of blocks that the allocator always returns when they are freed, which is what glibc's own threshold rises
/// to, and free bytes at the end of an arena. glibc would keep 64 MiB there.
pub(crate) const ALLOCATOR_MAPPED_BYTES: i32 = 32 * 1024 * 1024;
pub(crate) const ALLOCATOR_END_BYTES: i32 = 8 * 1024 * 1024;
/// Free bytes that the allocator may keep: a sixteenth of the memory, within these bounds, or this part of what is in use.
pub(crate) const TRIM_RETAINED_BYTES_MIN: u64 = 8 * 1024 * 1024;
pub(crate) const TRIM_RETAINED_BYTES: u64 = 64 * 1024 * 1024;
pub(crate) const TRIM_RATIO: u64 = 4;
/// Shortest time between two trims. Under memory pressure it is a quarter of it.
pub(crate) const TRIM_INTERVAL: Duration = Duration::from_secs(4);
/// The pages of the program's file count as in use, up to one part of this many of a control group's memory.
pub(crate) const PROGRAM_SHARE_MAX: u64 = 4;
/// Under memory pressure: shortest time between two requests to the store to give memory back.
pub(crate) const MEMORY_RELIEF_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest time between two lines of the log about memory pressure.
pub(crate) const MEMORY_REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Most threads of the MQTT door. More threads only wait for each other.
pub(crate) const MQTT_WORKERS_MAX: usize = 256;
/// Largest configurable number of HTTP connections: each can hold a body and an answer.
pub(crate) const HTTP_CONNECTIONS_MAX: usize = 65_536;
/// Largest configurable number of PostgreSQL connections: each can hold a message of a few megabytes.
pub(crate) const POSTGRES_CONNECTIONS_MAX: usize = 10_000;
/// Most threads for queries. More threads only wait for each other.
pub(crate) const QUERY_THREADS_MAX: usize = 256;
/// Connections that the kernel completes before the server accepts them. A fleet that reconnects at once has more than the
/// usual 128. The kernel lowers this to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 4_096;

/// Days for which the authority of `tacho tls self-signed` is valid.
pub(crate) const CA_VALIDITY_DAYS: i64 = 3_650;
/// Days for which its certificate is valid. Apple's systems refuse more than 825.
pub(crate) const CERTIFICATE_VALIDITY_DAYS: i64 = 820;

/// Longest time to live of a table: a thousand years, so that all times are representable.
pub(crate) const TTL_S_MAX: u64 = 1_000 * 366 * 86_400;
/// Interval at which the server looks for rows whose time to live has ended. It drops whole days, and looking is cheap.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// Longest silence after which a device is inactive: ten years.
pub(crate) const INACTIVITY_TIMEOUT_S_MAX: usize = 10 * 366 * 86_400;

/// Interval at which the server ends and deletes persistent calls and claims whose time is over, and what unfinished uploads have left. Readers see the right status at once.
pub(crate) const CLEANING_INTERVAL: Duration = Duration::from_secs(60);

/// How long a start waits for a process that has the data directory and is ending, for example after SIGKILL.
pub(crate) const ENDING_PROCESS_WAIT: Duration = Duration::from_secs(10);
/// The pause between two looks at such a process.
pub(crate) const ENDING_PROCESS_PAUSE: Duration = Duration::from_millis(10);

/// How old the newest file of a virtual sensor is before `tacho sensor list` asks: the server looks at them every second.
pub(crate) const SENSOR_FILES_AGE: Duration = Duration::from_millis(1_500);
/// How long `tacho sensor list` waits for a server that has not loaded a file yet.
pub(crate) const SENSOR_FILES_WAIT: Duration = Duration::from_secs(5);
/// The pause between two of its questions.
pub(crate) const SENSOR_FILES_PAUSE: Duration = Duration::from_millis(50);

/// Longest time of one HTTP request of a command.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time of a request of `tacho status`: a healthy server answers earlier.
pub(crate) const STATUS_TIMEOUT: Duration = Duration::from_secs(5);
/// The time during which `tacho status` counts points.
pub(crate) const STATUS_RATE_SPAN: Duration = Duration::from_secs(1);
/// Largest HTTP answer that a command reads at once: a page of a hundred thousand devices or points.
pub(crate) const ANSWER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Commands that take longer than this show their progress.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(1);
/// Pause between two lines of progress where there is no terminal.
pub(crate) const PROGRESS_LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which a waiting command shows its progress.
pub(crate) const PROGRESS_TICK: Duration = Duration::from_millis(100);
/// Devices per page when a command reads all devices of a server.
pub(crate) const PAGE_DEVICES: usize = 1_000;

/// Bytes of an answer that is shown as a table, because its layout needs all rows. Other formats have no limit.
pub(crate) const TABLE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines of the history of queries that are kept.
pub(crate) const HISTORY_LINES_MAX: usize = 5_000;
/// Names of tables and columns that the prompt completes.
pub(crate) const COMPLETIONS_MAX: usize = 100_000;

/// Open files of a demo besides the connections of the fleet: the server's files, readers, the dashboard.
pub(crate) const DEMO_OTHER_FILES: u64 = 300;
/// Readiness events that the simulated fleet takes per poll.
pub(crate) const FLEET_EVENTS_PER_POLL: usize = 1_024;
/// New connections of the fleet per [`FLEET_CONNECT_INTERVAL`]. More would overrun the accept backlog.
pub(crate) const FLEET_CONNECTS: usize = 64;
/// How often the fleet looks for vehicles that want to connect.
pub(crate) const FLEET_CONNECT_INTERVAL: Duration = Duration::from_millis(20);
/// Longest sleep of the fleet's loop. A retry is late by at most this time.
pub(crate) const FLEET_SLEEP_MAX: Duration = Duration::from_millis(100);
/// Longest wait of a stopping fleet for its last acks.
pub(crate) const FLEET_DRAIN_MAX: Duration = Duration::from_secs(2);
/// Reports of a vehicle without an ack, sent or waiting for a connection.
pub(crate) const FLEET_UNACKED_MAX: usize = 16;
/// Largest packet that a vehicle accepts. Acks with a reason string are the largest packets.
pub(crate) const FLEET_PACKET_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a vehicle reads from its socket at a time.
pub(crate) const FLEET_READ_BYTES: usize = 4 * 1024;
/// Pause before a vehicle's first reconnect. It doubles with each attempt.
pub(crate) const FLEET_RETRY_FIRST: Duration = Duration::from_millis(500);
/// Longest pause before a reconnect.
pub(crate) const FLEET_RETRY_MAX: Duration = Duration::from_secs(10);
