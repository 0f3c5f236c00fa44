//! The limits on data and queries, with the reasons for their values.
//!
//! Constants do not depend on a protocol, and file formats rely on them. [`IngestLimits`] and [`QueryLimits`] are the limits that
//! an operator can set. The limits of a protocol (such as MQTT's largest remaining length) are in the `limits` module of that
//! protocol.

use std::time::Duration;

/// Longest key (field name) in bytes. Keys are column names; ThingsBoard allows 255 characters.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest name of a namespace in bytes.
pub const NAMESPACE_BYTES_MAX: usize = 64;
/// Longest table name in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;
/// Longest tag value (and so device name) in bytes.
pub const TAG_VALUE_BYTES_MAX: usize = 255;
/// Most tags of one series. OpenTSDB's default is 8, Influx users reach a few dozen.
pub const TAGS_PER_SERIES_MAX: usize = 64;
/// Most columns of one table, including sibling columns. It stops a device that invents a key per message.
pub const COLUMNS_PER_TABLE_MAX: usize = 20_000;
/// Most keys of one table that were dropped. The store never uses their numbers and names in files again, so each takes
/// about two hundred bytes forever.
pub const DROPPED_KEYS_PER_TABLE_MAX: usize = 100_000;
/// Most tables that were dropped. The store never uses their numbers again, so each takes a few hundred bytes forever.
pub const DROPPED_TABLES_MAX: usize = 100_000;
/// Most deletions of one table that hide rows in memory or files. A read of a table compares its rows with each of them. When
/// half of them are there, the store rewrites the files.
pub const DELETIONS_PER_TABLE_MAX: usize = 1024;
/// Most ranges of failed writes that a store remembers exactly. Each takes about a hundred bytes. Senders ask about a write as soon
/// as the store has passed it, so older ranges may become inexact.
pub const LATE_FAILURES_MAX: usize = 1024;
/// Devices whose new columns are counted in memory. Beyond it the server drops at least half of the counts, those with the
/// oldest windows ([`NEW_COLUMNS_WINDOW`]). A count takes about a hundred bytes, and most devices of a fleet add no columns.
pub const NEW_COLUMN_DEVICES_MAX: usize = 65_536;
/// The period over which new columns of a device are counted ([`IngestLimits::new_columns_per_minute_max`]).
pub const NEW_COLUMNS_WINDOW: Duration = Duration::from_secs(60);
/// Refused keys that the reason of a refusal names. The payload beside it has all keys.
pub const REFUSED_KEYS_NAMED_MAX: usize = 8;
/// Levels of an MQTT topic name or filter. Each level costs a step of every match.
pub const TOPIC_LEVELS_MAX: usize = 128;
/// Most tables of one store.
pub const TABLES_MAX: usize = 100_000;
/// Columns of all tables. Each takes some hundred bytes of memory.
pub const COLUMNS_MAX: usize = 2_000_000;
/// Most rows in one batch; a session splits larger input.
pub const BATCH_ROWS_MAX: usize = 65_536;
/// Most bytes of one batch's keys and text values together.
pub const BATCH_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Log bytes that are not yet durable. Above it `append` answers busy and sessions stop reading.
pub const LOG_PENDING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Size of a log segment file.
pub const LOG_SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Segment files that are kept for reuse. A flush frees several at once, and filling new files with zeros would double the
/// disk work of the log.
pub const LOG_SPARES_MAX: usize = 8;
/// Memtable bytes that are not yet flushed to parts. Above it `append` answers busy.
pub const MEMTABLE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Memtable bytes at which a flush to parts begins. It is well below the maximum, so that flushing and ingest overlap.
pub const MEMTABLE_FLUSH_BYTES: usize = 96 * 1024 * 1024;
/// Rows at which an open columnar buffer is frozen into a sorted chunk.
pub const CHUNK_ROWS: usize = 64 * 1024;
/// Series whose latest values are kept in memory. Beyond it the store evicts series that were not used lately.
pub const LATEST_SERIES_MAX: usize = 1_000_000;
/// Bytes of the latest values in memory. Beyond it the store evicts likewise.
pub const LATEST_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes of the cache of decoded columns.
pub const ARRAY_CACHE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of log at which a flush begins, also with few rows. It limits the time of a recovery.
pub const LOG_FLUSH_BYTES: u64 = 512 * 1024 * 1024;
/// Most parts that one flush makes of one table, and of all tables that share parts. Beyond it neighbouring days share a
/// part. It stops a device that spreads a batch over ten thousand days.
pub const FLUSH_PARTS_PER_TABLE_MAX: usize = 256;
/// Pending log bytes at which a commit begins before the interval ends.
pub const LOG_COMMIT_EAGER_BYTES: usize = 1024 * 1024;
/// A manifest is rewritten when it is larger than this and than twice its last rewrite.
pub const MANIFEST_REWRITE_BYTES: u64 = 4 * 1024 * 1024;
/// Rows of a row group in a part. A flush holds a row group as columns.
pub const PART_ROW_GROUP_ROWS: usize = 128 * 1024;
/// Bytes of values at which a row group ends, also with few rows: texts of some kilobytes would make gigabytes of
/// [`PART_ROW_GROUP_ROWS`]. It is half a kilobyte per row, so that rows of numbers do not reach it.
pub const PART_ROW_GROUP_BYTES: usize = 64 * 1024 * 1024;
/// Rows of a data page in a part. A read of one series decodes at least one page.
pub const PART_PAGE_ROWS: usize = 8 * 1024;
/// Level of zstd for parts. Higher levels take a multiple of the time and save one or two percent.
pub const PART_ZSTD_LEVEL: i32 = 1;
/// The highest level of zstd.
pub const PART_ZSTD_LEVEL_MAX: i32 = 22;
/// Most rows of a part that a merge decodes and holds in memory at a time.
pub const PART_WINDOW_ROWS: usize = 8 * 1024;
/// Unpacked bytes of a part that a merge decodes at a time, if they are fewer rows than [`PART_WINDOW_ROWS`]. A merge holds
/// this times [`COMPACTION_INPUTS_MAX`].
pub const PART_WINDOW_BYTES: usize = 4 * 1024 * 1024;
/// Bytes of a page of text in a part, and of a dictionary.
pub const PART_PAGE_BYTES_MAX: usize = 1024 * 1024;
/// The texts of the rows that a read decodes at once are one part of this many of a row group ([`PART_ROW_GROUP_BYTES`]), and at least
/// [`PART_PAGE_BYTES_MIN`]. With little memory this is less than [`PART_PAGE_BYTES_MAX`], and a page of text ends there too.
pub const PART_PAGES_PER_ROW_GROUP: usize = 16;
/// See [`PART_PAGES_PER_ROW_GROUP`].
pub const PART_PAGE_BYTES_MIN: usize = 64 * 1024;
/// Values of a text column that the writer adds to a page of [`PART_PAGE_BYTES_MAX`] between two checks of the page's size; fewer to a
/// smaller page. A page can exceed its limit by this many values, and a reader of one value decodes the whole page.
pub const PART_WRITE_BATCH_VALUES: usize = 64;
/// Most rows that a read copies out of the open chunk. With more rows the chunk is frozen and shared.
pub const READ_COPY_ROWS_MAX: usize = 4_096;
/// Decoded pages and chunks that a batch of rows in the order of series keeps in memory until it is returned.
pub const READ_BLOCKS_PER_BATCH_MAX: usize = 128;
/// Blocks of long texts after which a batch ends, however few rows it has: of a block perhaps one row is wanted.
pub const READ_BLOCKS_PER_BATCH: usize = 4;
/// The sources of a read keep the decoded columns of as many such batches, for their next rows. Beyond it they decode them again.
pub const READ_BATCHES_KEPT: usize = 8;
/// A read decodes a chunk of more than one part of this many of the cache of columns in pieces.
pub const CHUNK_PIECES_CACHE_SHARE: usize = 16;
/// Bytes of a column in a part that a read fetches ahead. Longer columns are fetched page by page.
pub const READ_AHEAD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a text, on average, from which on each text of a batch is copied into a buffer of its own.
pub const READ_LONG_TEXT_BYTES: usize = 4 * 1024;
/// Bytes from which on shorter texts of a batch are copied if they keep more than twice their bytes in memory.
pub const READ_SPARSE_BYTES_MIN: usize = 64 * 1024;
/// Most bytes of fields with which a read of a whole table copies the open chunk instead of freezing it.
pub const READ_COPY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of fields at which a chunk is frozen, also with few rows.
pub const CHUNK_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Part files whose footers are kept open between reads.
pub const PART_READERS_MAX: usize = 128;
/// Neighbouring parts of one size class that compaction merges. A larger number means fewer rewrites, and more parts for each
/// read.
pub const COMPACTION_FAN_IN: usize = 8;
/// Most parts that one merge reads. Each needs a window of rows in memory.
pub const COMPACTION_INPUTS_MAX: usize = 32;
/// Bytes of the smallest size class of parts. Each class is `COMPACTION_FAN_IN` times larger than the one before.
pub const COMPACTION_CLASS_BYTES: u64 = 16 * 1024;
/// Rows that the store takes after the newest row of a partition, before the partition counts as quiet and its last parts are
/// merged.
pub const COMPACTION_QUIET_ROWS: u64 = 4 * 1024 * 1024;
/// In a quiet partition a part is merged with newer parts if its size is at most this many times their sum.
pub const COMPACTION_QUIET_RATIO: u64 = 4;
/// Overlapping parts of one table, neither full nor damaged, at which flushes wait for merges. It is at least three times the
/// number that compaction leaves unmerged, so a table reaches it only while writes are faster than merges.
pub const COMPACTION_OVERLAP_MAX: usize = 128;
/// Most merges in one edit of the manifest.
pub const COMPACTION_MERGES_MAX: usize = 256;
/// Most bytes of the inputs of all merges in one edit of the manifest. Only the first merge may exceed it.
pub const COMPACTION_PLAN_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of the parts that compaction merges into one. A part of half this size is full: compaction does not merge it.
/// The limit bounds the time and the space of one merge.
pub const PART_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Most rows of the parts that compaction merges into one. A part with half as many is full.
pub const PART_ROWS_MAX: u64 = 32 * 1024 * 1024;
/// Damaged places that a check names in a file. It counts further ones.
pub const CHECK_FINDINGS_PER_FILE_MAX: usize = 8;
/// Longest list of a backup. Each part takes about 170 bytes.
pub const BACKUP_LIST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Rows that an export reads at a time.
pub const EXPORT_BATCH_ROWS: usize = 8 * 1024;
/// Rows of a row group in an exported Parquet file. An export holds a row group as columns.
pub const EXPORT_ROW_GROUP_ROWS: usize = 128 * 1024;
/// Speed limit, relative to the monotonic clock, of the time by which old rows are dropped: a day in an hour. After a pause it
/// catches up soon. With a wall clock that is wrong by years, the store drops a day of rows per hour and not all at once.
pub const RETENTION_PACE: u64 = 24;
/// Most series of one store. The index keeps their numbers in 31 bits.
pub const SERIES_MAX: usize = 1 << 31;
/// Most tables, columns, tags and series that recovery creates in place of lost ones: a lost log segment can define this many,
/// at 16 bytes each.
pub const LOST_DEFINITIONS_MAX: usize = LOG_SEGMENT_BYTES as usize / 16;
/// The limit of a read request that names none: values of each key, or rows in the form of columns.
pub const READ_ROWS_DEFAULT: usize = 100;
/// Most values of one device that a read request returns, over all its keys; most intervals of all its groups; and the largest
/// limit that it may name.
pub const READ_ROWS_MAX: usize = 1_000_000;
/// Bytes of text that a read holds as smallest or largest values of one device, or of all groups of a request.
pub const READ_TEXT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Longest SQL statement in bytes. Statements come from people and dashboards; a longer one is a mistake or an attack.
pub const SQL_BYTES_MAX: usize = 256 * 1024;
/// Longest SQL statement whose plan is kept for reuse.
pub const SQL_CACHED_BYTES_MAX: usize = 8 * 1024;
/// Plans that are kept for reuse. The least recently used are evicted.
pub const SQL_PLANS_CACHED_MAX: usize = 512;
/// Factor by which the number of rows or series may differ from the one for which the operators of a kept plan were chosen.
pub const SQL_OPERATORS_KEPT_GROWTH_MAX: u64 = 2;
/// Most parameters (`$1`, `$2`...) of a prepared statement: the PostgreSQL protocol counts them with 16 bits.
pub const SQL_PARAMETERS_MAX: usize = 65_535;
/// Bytes after which one job on the threads of readers ends, however few rows it has read; less if the statement may allocate little.
pub const QUERY_READ_AHEAD_BYTES: usize = 8 * 1024 * 1024;
/// Lower bound of it.
pub const QUERY_READ_AHEAD_BYTES_MIN: usize = 512 * 1024;
/// Rows that one job on the threads of readers reads before other jobs run.
pub const QUERY_READ_ROWS_PER_JOB: usize = 64 * 1024;
/// The same for jobs that also group what they read.
pub const QUERY_GROUPED_ROWS_PER_JOB: usize = 256 * 1024;
/// Most estimated rows with which a query that groups by series reads each series as a whole, if the scan has no order. For
/// this it holds some rows of each part.
pub const QUERY_WHOLE_SERIES_ROWS_MAX: u64 = 4 * 1024 * 1024;
/// Stack of a thread that plans or computes. Planning walks trees as deep as a statement may be. A statement that is too deep
/// is still a tree when it is refused, with a level for every two bytes of its text. Only the used stack takes memory, but all
/// of it counts for `RLIMIT_DATA` and `RLIMIT_AS`.
pub const QUERY_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Stack of a thread that runs a task of the query engine that is not SQL.
pub const QUERY_TASK_STACK_BYTES: usize = 8 * 1024 * 1024;
/// Batches of an answer that wait for the client. A query with a slow client pauses at this number.
pub const QUERY_BATCHES_WAITING_MAX: usize = 2;
/// Most selected series with which the store merges rows in the order of time. With more, the query sorts them.
pub const QUERY_TIME_ORDER_SERIES_MAX: u64 = 256;
/// Most fields with which a query reads only the last rows of each series. The store remembers for each field the series without
/// a value.
pub const QUERY_END_FIELDS_MAX: usize = 64;
/// Most buckets that gap filling makes for one group.
pub const QUERY_GAPFILL_BUCKETS_MAX: usize = 1_000_000;
/// Most bytes that a function such as `repeat` makes for one row.
pub const QUERY_FUNCTION_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most steps, of about a nanosecond, that a function such as `levenshtein` takes for one row. A query can end only between two
/// rows.
pub const QUERY_FUNCTION_WORK_MAX: u64 = 128 * 1024 * 1024;
/// Most bytes of a compiled regular expression: about ten thousand states. Compiling it takes milliseconds.
pub const QUERY_REGEX_BYTES_MAX: usize = 1024 * 1024;
/// Most states of a regular expression times bytes of a text that it is matched with: about a second at the worst.
pub const QUERY_REGEX_WORK_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of text after which a batch of an answer is cut: doors encode a batch before they send it.
pub const QUERY_PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// Most bytes of text of one row of an answer. A row cannot be cut, and doors hold it in memory.
pub const QUERY_ROW_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Rows of a batch of a query that repeats the text of one row in other rows.
pub const QUERY_REPEATED_BATCH_ROWS: usize = 1024;
/// Most bytes of one batch in which each row repeats one constant or the text of one row.
pub const QUERY_REPEATED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest access token of a device in bytes.
pub const ACCESS_TOKEN_BYTES_MAX: usize = 255;
/// Most devices that one bulk request creates, in one transaction and one answer.
pub const BULK_DEVICES_MAX: usize = 1_000_000;
/// Most devices on one page of a listing.
pub const PAGE_DEVICES_MAX: usize = 100_000;
/// Most tenants of an installation.
pub const TENANTS_MAX: usize = 10_000;
/// Most API keys of a user.
pub const API_KEYS_PER_USER_MAX: usize = 100;
/// Longest login name of a user in bytes.
pub const LOGIN_BYTES_MAX: usize = 255;
/// Shortest password in characters.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Longest password in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Wrong passwords that one address may send for one login before it must wait.
pub const LOGIN_FAILURES_FREE: u32 = 5;
/// Wrong passwords that one address may send for all logins before it must wait. Users behind one address share this number.
pub const LOGIN_FAILURES_FREE_PER_ADDRESS: u32 = 20;
/// The same for devices and their requests for credentials. It is larger because many devices share an address.
pub const DEVICE_LOGIN_FAILURES_FREE_PER_ADDRESS: u32 = 1_000;
/// Longest wait in seconds. The wait begins with one second and doubles.
pub const LOGIN_WAIT_S_MAX: u64 = 60;
/// Seconds without a wrong password after which the count of an address, or of a login from it, starts again.
pub const LOGIN_FAILURES_FORGOTTEN_S: u64 = 15 * 60;
/// Logins of one address that run or wait: three quarters of all, because a connection pool opens many connections at once.
pub const LOGINS_PER_ADDRESS_MAX: usize = PASSWORD_CHECKS_WAITING_MAX / 4 * 3;
/// Addresses, and logins from them, whose failures are remembered. Beyond it the server drops those whose count would start
/// again, and if that is not enough, the older half.
pub const LOGIN_SOURCES_MAX: usize = 65_536;
/// Computations of password hashes that run or wait. One runs at a time, because each takes 19 MiB, and tens of milliseconds
/// of a core that devices need too.
pub const PASSWORD_CHECKS_WAITING_MAX: usize = 32;

/// Percentage of the available memory in use above which no large work begins, and the store gives memory back.
pub const MEMORY_HIGH_PERCENT: u64 = 80;
/// The same above which the server also stops reading messages. What is left is for work that has begun, and for the pages of the
/// program's file.
pub const MEMORY_CRITICAL_PERCENT: u64 = 90;
/// Percentage of the available memory that statements, histories and bodies in progress may reserve together. The rest is for rows,
/// caches and connections.
pub const MEMORY_RESERVED_PERCENT: u64 = 40;
/// A history in progress reserves this many times its longest answer: the values, their text, and pages of files that are decoded;
/// but at most one part of [`HISTORY_SHARE_MAX`] of the memory.
pub const HISTORY_MEMORY_FACTOR: u64 = 3;
/// See [`HISTORY_MEMORY_FACTOR`].
pub const HISTORY_SHARE_MAX: u64 = 8;
/// A level of memory pressure ends this many percent below its watermark.
pub const MEMORY_HYSTERESIS_PERCENT: u64 = 5;
/// Work of this many bytes may begin up to the critical watermark: a message of a device, or a short answer.
pub const MEMORY_SMALL_WORK_BYTES: u64 = 64 * 1024;
/// Under memory pressure a flush begins at this part of [`MEMTABLE_FLUSH_BYTES`].
pub const RELIEF_FLUSH_RATIO: usize = 4;
/// Time between two samples of the memory.
pub const MEMORY_SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes in memory for each byte of a body: the body, and the rows that are made of it.
pub const BODY_MEMORY_FACTOR: u64 = 4;
/// Under critical memory pressure statements pause, and after this many samples those end that hold more than [`STATEMENT_KEPT_BYTES`].
pub const MEMORY_CRITICAL_SAMPLES_MAX: u32 = 20;
/// See [`MEMORY_CRITICAL_SAMPLES_MAX`].
pub const STATEMENT_KEPT_BYTES: u64 = 4 * 1024 * 1024;
/// How long the read of a history waits for memory before it is refused. A statement waits as long as for its turn.
pub const MEMORY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Bytes of updates that wait for the live subscribers of one connection. Beyond it the server closes the connection. Ten
/// numbers of each of ten thousand devices take a third of it, and a mailbox may hold twice its reduced size.
pub const LIVE_CONNECTION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The same for all connections of one login. Beyond it the server closes the connection with the most unread bytes.
pub const LIVE_LOGIN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The same for all connections. An update that waits for several connections counts for each, and is in memory once.
pub const LIVE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Devices whose refused messages are counted in memory. Beyond it the server drops at least half of them, those with the
/// oldest refusals. Each takes about half a kilobyte.
pub const REFUSED_DEVICES_MAX: usize = 65_536;
/// Longest reason of a refusal that is kept for a device, in bytes.
pub const REFUSAL_REASON_BYTES_MAX: usize = 300;
/// Seconds between two log lines about refused messages of one device.
pub const REFUSAL_LOG_WINDOW_S: i64 = 60;
/// Log lines about refused messages of all devices in [`REFUSAL_LOG_WINDOW_S`], as many about refused logins and access
/// tokens, and as many about connections that the server closed for an error of the peer. The next line has the number of
/// suppressed lines.
pub const REFUSAL_LOG_LINES_MAX: usize = 60;

const _: () =
    assert!(MEMTABLE_FLUSH_BYTES * 2 <= MEMTABLE_BYTES_MAX, "a flush needs room to overlap with ingest");
const _: () = assert!((LOG_PENDING_BYTES_MAX as u64) < LOG_SEGMENT_BYTES, "one commit fits into one segment");
const _: () =
    assert!(BATCH_TEXT_BYTES_MAX * 2 <= LOG_PENDING_BYTES_MAX, "the largest batch fits into the log buffer");

/// The limits on payloads that an operator can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestLimits {
    /// Most keys in one row.
    pub keys_per_row_max: usize,
    /// Most rows in one message.
    pub rows_per_message_max: usize,
    /// Longest string or JSON value in bytes.
    pub text_value_bytes_max: usize,
    /// Deepest nesting of a JSON value.
    pub json_depth_max: usize,
    /// Most columns that one device may add to its table after the start of the server: a twentieth of the columns of a table,
    /// so that others have columns too. Vehicles that send all signals of their buses have some hundreds.
    pub columns_per_device_max: usize,
    /// Most columns that one device may add in a minute. The first message of a device may have this many keys. A device that
    /// invents names reaches the limit above only after some minutes, in which an operator can notice it.
    pub new_columns_per_minute_max: usize,
    /// Most series of all tables. Each takes some hundred bytes of memory for as long as the server runs.
    pub series_max: u64,
    /// Seconds that a timestamp may be in the future.
    pub future_max_s: i64,
    /// Oldest accepted timestamp. Seconds that are read as milliseconds are in 1970, so the default is 1971-01-01.
    pub oldest: crate::Timestamp,
    /// Time to live of the rows' table. Older rows are refused, because they would be dropped at once. `None` keeps rows
    /// forever.
    pub ttl: Option<std::time::Duration>,
}

impl IngestLimits {
    /// The range of plausible times at `now`: other times usually have a wrong unit or come from a wrong clock. The time to live
    /// of a table does not matter here.
    pub fn plausible(&self, now: crate::Timestamp) -> crate::TimeRange {
        let newest = now.saturating_add_micros(self.future_max_s.saturating_mul(1_000_000));
        crate::TimeRange::new(self.oldest, newest.saturating_add_micros(1))
    }

    /// The oldest accepted timestamp of a payload that arrives at `received`.
    pub fn oldest_at(&self, received: crate::Timestamp) -> crate::Timestamp {
        let kept = self.ttl.map(|ttl| i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX));
        let kept = kept.map(|micros| received.saturating_add_micros(micros.saturating_neg()));
        kept.map_or(self.oldest, |kept| kept.max(self.oldest))
    }
}

impl Default for IngestLimits {
    fn default() -> Self {
        Self {
            keys_per_row_max: 10_000,
            rows_per_message_max: 10_000,
            text_value_bytes_max: 65_535,
            json_depth_max: 32,
            columns_per_device_max: 1_000,
            new_columns_per_minute_max: 300,
            series_max: SERIES_MAX as u64,
            future_max_s: 7 * 86_400,
            oldest: crate::Timestamp::from_micros(31_536_000_000_000),
            ttl: None,
        }
    }
}

/// The limits on SQL queries that an operator can set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// Longest time of a query, including its wait in the queue.
    pub timeout: Duration,
    /// Memory of one query for sorting, grouping and joining, in bytes.
    pub memory_bytes_max: usize,
    /// Memory of all queries together, in bytes.
    pub memory_bytes_total_max: usize,
    /// Queries that run at the same time. Others wait in the queue.
    pub running_max: usize,
    /// Length of the queue. Further queries are answered busy at once.
    pub waiting_max: usize,
    /// Longest wait in the queue before a query is answered busy.
    pub waiting_time_max: Duration,
    /// Threads that plan and compute, and the same number that read; zero means one of each per core.
    pub threads: usize,
    /// Most rows of one batch.
    pub batch_rows: usize,
    /// Bytes that reads may add to the cache of the store, if it has one. They count for the statement that reads.
    pub read_cache_bytes_max: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            memory_bytes_max: 256 * 1024 * 1024,
            memory_bytes_total_max: 512 * 1024 * 1024,
            running_max: 16,
            waiting_max: 1_000,
            waiting_time_max: Duration::from_secs(10),
            threads: 0,
            batch_rows: 8 * 1024,
            read_cache_bytes_max: 0,
        }
    }
}

/// The portion of a limit in bytes that the memory of this machine allows: all of it, or less on a small machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    thousandths: usize,
}

impl Portion {
    /// The whole limit.
    pub const ALL: Self = Self::thousandths(1_000);

    /// A number of thousandths, at least 1 and at most 1000.
    pub const fn thousandths(thousandths: usize) -> Self {
        let thousandths = if thousandths > 1_000 { 1_000 } else { thousandths };
        Self { thousandths: if thousandths == 0 { 1 } else { thousandths } }
    }

    /// This portion of a limit.
    pub const fn of(self, bytes: usize) -> usize {
        // A limit may be too large for the multiplication.
        bytes / 1_000 * self.thousandths + bytes % 1_000 * self.thousandths / 1_000
    }
}

impl Default for Portion {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_scales_any_limit() {
        assert_eq!(Portion::ALL.of(usize::MAX), usize::MAX);
        assert_eq!(Portion::thousandths(31).of(512 * 1024 * 1024), 16_642_998);
        assert_eq!((Portion::thousandths(5_000), Portion::thousandths(0).of(1_000)), (Portion::ALL, 1));
    }
}
