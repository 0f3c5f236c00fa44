//! Every limit of the drivers, with the reason for its value.

use std::time::Duration;

/// The longest packet that a server may send. CONNACK, PUBACK, PINGRESP and DISCONNECT are small; v5 reason strings are
/// the only text in them.
pub(crate) const PACKET_BYTES_MAX: usize = 64 * 1024;
/// The largest number of devices behind one gateway. Each has a tally, and its points are counted when they are read back.
pub(crate) const GATEWAY_DEVICES_MAX: u32 = 100_000;
/// The largest message of a gateway: what Tachograph takes by default (`mqtt.packet_bytes_max`).
pub(crate) const GATEWAY_MESSAGE_BYTES_MAX: usize = 1024 * 1024;
/// The largest number of gaps in the numbers of one publisher that a subscriber remembers. A message of a further gap
/// counts as lost even if it comes late.
pub(crate) const SEQUENCE_GAPS_MAX: usize = 1_024;
/// The longest time until a new server prints `ready`.
pub(crate) const SERVER_READY_TIMEOUT_S: u64 = 60;
/// The longest time until a server ends after SIGTERM.
pub(crate) const SERVER_STOP_TIMEOUT_S: u64 = 60;
/// The lines of a started server's output to keep for an error message.
pub(crate) const SERVER_OUTPUT_LINES: usize = 40;
/// The rows per page when history is read back.
pub(crate) const READ_BACK_ROWS: usize = 100_000;
/// The HTTP connections for reading back and verification.
pub(crate) const VERIFY_THREADS: usize = 4;
/// The longest body of an HTTP answer: 100,000 rows of some 50 bytes, four keys, and a reserve.
pub(crate) const HTTP_BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The largest data of a key of the HTTP driver, which is generated for each request.
pub(crate) const HTTP_DATA_BYTES_MAX: usize = 1024 * 1024;
/// The largest size of the bodies of all requests that a group of connections may have in flight. They stay in memory
/// until the server accepts them.
pub(crate) const HTTP_BODIES_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The longest answer whose JSON the HTTP driver reads. Each connection keeps one at a time.
pub(crate) const HTTP_JSON_BYTES_MAX: usize = 1024 * 1024;
/// The largest number of variables that the operations of an HTTP scenario extract.
pub(crate) const HTTP_VARIABLES_MAX: usize = 32;
/// The longest value of a variable: a token, an identifier. Each connection keeps all variables.
pub(crate) const HTTP_VARIABLE_BYTES_MAX: usize = 4_096;
/// The largest number of set-up steps of a connection, which share the time of a handshake.
pub(crate) const HTTP_SETUP_STEPS_MAX: usize = 32;
/// The largest number of shards of an index: that of the servers themselves (`es.index.max_number_of_shards`).
pub(crate) const ES_SHARDS_MAX: u32 = 1_024;
/// The longest answer of Elasticsearch, in bytes. A bulk request of 100 MiB, the most that a server takes by default, has an
/// answer of about half of it.
pub(crate) const ES_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The longest force merge, and the longest wait for other merges after it, seconds. Hundreds of gigabytes take hours.
pub(crate) const ES_MERGE_TIMEOUT_S: u64 = 12 * 3_600;
/// The longest silence of a server with outstanding operations before the run is given up. It is longer than any pause
/// of a store that survives, such as a full garbage collection or a failover.
pub(crate) const SILENCE_TIMEOUT_S: u64 = 30;
/// The largest number of devices of a ledger. Each has a thread, and all their points are read back after each kill.
pub(crate) const LEDGER_DEVICES_MAX: u32 = 1_000;
/// The largest number of local addresses. With Linux's default ports they carry a hundred million connections.
pub(crate) const SOURCES_MAX: u32 = 4_096;
/// The number of attempts to connect to look at for sustained failures, and how many of them must have failed.
pub(crate) const SUSTAINED_LAST: u32 = 100;
/// See [`SUSTAINED_LAST`].
pub(crate) const SUSTAINED_FAILURES: u32 = 50;
/// The largest rate of requests to a sample of idle connections, so that the sample is not a load of its own.
pub(crate) const PROBES_PER_S_MAX: f64 = 1_000.0;
/// The longest answer of an HBase server. A scan returns up to 2 MiB and a row, a batch of gets as much as the server
/// allows (`hbase.server.scanner.max.result.size`, 100 MiB).
pub(crate) const HBASE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The longest answer of ZooKeeper: a znode has at most 1 MiB.
pub(crate) const ZOOKEEPER_ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The longest row of HBase's data set. The server's limit is 32,767.
pub(crate) const HBASE_ROW_BYTES_MAX: usize = 1_024;
/// The longest value. HBase's client refuses cells above 10 MiB; many connections hold a batch of values each.
pub(crate) const HBASE_VALUE_BYTES_MAX: usize = 1024 * 1024;
/// The largest number of regions of a new table.
pub(crate) const HBASE_REGIONS_MAX: u64 = 10_000;
/// The largest number of rows of one call, of a range and of a page.
pub(crate) const HBASE_BATCH_ROWS_MAX: u32 = 100_000;
/// The largest client buffer. Each connection fills one.
pub(crate) const HBASE_WRITE_BUFFER_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The largest number of attempts of one call, as in HBase's client (`hbase.client.retries.number` is 15).
pub(crate) const HBASE_ATTEMPTS_MAX: u32 = 16;
/// The longest time until the master has made or dropped a table.
pub(crate) const HBASE_PROCEDURE_TIMEOUT_S: u64 = 300;
/// The largest number of timelines of the time-series drivers.
pub(crate) const TIMESERIES_COUNT_MAX: u64 = 100_000_000;
/// The largest number of points of a request, as HiTSDB's documentation allows.
pub(crate) const TIMESERIES_POINTS_MAX: u64 = 50_000;
/// The largest number of tags of a timeline: OpenTSDB's default (`tsd.storage.max_tags`).
pub(crate) const TIMESERIES_TAGS_MAX: u32 = 8;
/// The longest answer to a write. It may name each point of a request with a reason.
pub(crate) const TIMESERIES_ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The requests without an acknowledgement that a client of a time-series driver keeps.
pub(crate) const TIMESERIES_UNKNOWN_MAX: usize = 100_000;
/// The seconds of a phase whose acknowledged requests are kept; later ones count as the last.
pub(crate) const TIMESERIES_SECONDS_MAX: usize = 24 * 3_600;
/// The longest history that driver `tsbs` writes, hours: ten years.
pub(crate) const TSBS_HOURS_MAX: u64 = 87_660;
/// The latest beginning of it, milliseconds since the epoch: the year 2100.
pub(crate) const TSBS_START_MS_MAX: i64 = 4_102_444_800_000;
/// The longest wait for an answer when data is read back. A count over a million timelines reads all of them.
pub(crate) const TIMESERIES_READ_TIMEOUT: Duration = Duration::from_secs(120);
/// The metrics in which all points are counted. Of more, as many are drawn at random.
pub(crate) const TIMESERIES_METRICS_COUNTED: u64 = 1_000;
/// The points of a sampled timeline that are compared one by one.
pub(crate) const TIMESERIES_COMPARED_MAX: u64 = 2_000;
/// The longest part of the body of an answer that a client with one request at a time keeps for its check.
pub(crate) const EXCHANGE_BODY_BYTES_MAX: usize = 64 * 1024;
/// The longest message of a WebSocket: a page of a hundred thousand entities with three values of some 120 bytes each.
pub(crate) const SOCKET_MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The largest number of devices that a socket follows: the largest page of a subscription of Tachograph and of ThingsBoard.
pub(crate) const SOCKET_DEVICES_MAX: u32 = 10_000;
/// The largest number of pairs of a socket and a device that it follows. Each takes 8 bytes for its newest value.
pub(crate) const SOCKET_FOLLOWS_MAX: u64 = 100_000_000;
/// The largest number of sockets that never read. Each is opened by itself before the load.
pub(crate) const SOCKETS_UNREAD_MAX: u32 = 10_000;
/// The receive buffer of a socket that never reads, so that the server soon feels it.
pub(crate) const SOCKET_UNREAD_RECEIVE_BYTES: usize = 4 * 1024;
/// What is read of such a socket at the end, to learn whether the server has closed it. It is more than buffers hold.
pub(crate) const SOCKET_UNREAD_DRAINED_BYTES: usize = 64 * 1024 * 1024;
/// The largest number of entities of a page: the servers' own limit.
pub(crate) const PAGE_ENTITIES_MAX: u32 = 100_000;
/// The largest number of device profiles with rules. Each is created by a request.
pub(crate) const RULE_PROFILES_MAX: u32 = 1_000;
/// The largest number of threads that look for alarms, each with an HTTP connection.
pub(crate) const WATCHERS_MAX: u32 = 64;
/// The shortest pause between two looks for an alarm, and the share of its age that the pause is: a late alarm needs no finer time.
pub(crate) const WATCH_PAUSE_MIN_US: u64 = 500;
/// See [`WATCH_PAUSE_MIN_US`].
pub(crate) const WATCH_PAUSE_SHARE: u64 = 20;
/// The alarms of a device that a look reads, the newest first. A device raises one at a time.
pub(crate) const WATCH_ALARMS_READ: u32 = 8;
/// The alarms of a page when all are read back.
pub(crate) const READ_BACK_ALARMS: u32 = 1_000;
/// The largest number of rows that a question of driver `gsn` asks for.
pub(crate) const GSN_ROWS_MAX: u64 = 10_000_000;
/// The largest number of questions of a phase.
pub(crate) const GSN_QUERIES_MAX: u64 = 10_000_000;
/// The answers of a phase whose figures are kept one by one, and the kinds of questions whose rows are compared with the server's.
pub(crate) const GSN_QUERIES_KEPT: usize = 100_000;
/// The longest answer: ten million rows of some 100 bytes. Each client holds one.
pub(crate) const GSN_ANSWER_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The longest time of a question. GSN 1.1 needs minutes for a million rows.
pub(crate) const GSN_ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// The largest number of sensors that a run writes.
pub(crate) const GSN_STREAMS_MAX: u64 = 10_000;
/// The largest number of their fields.
pub(crate) const GSN_FIELDS_MAX: u32 = 100;
/// The largest number of rows of an upload.
pub(crate) const GSN_UPLOAD_ROWS_MAX: u64 = 10_000;
/// The longest wait until a server that the run has started lists all sensors.
pub(crate) const GSN_SENSORS_TIMEOUT: Duration = Duration::from_secs(120);
