//! Every limit that data meets on its way, in one place, with the reason for its value.
//!
//! Constants are protocol-independent bounds that the file formats rely on; [`IngestLimits`] holds what an operator
//! may set. A limit that only a wire protocol knows (such as MQTT's largest remaining length) is named in that
//! protocol's own `limits` module.

use std::time::Duration;

/// Longest key (field name) in bytes. Keys are column names; ThingsBoard allows 255 characters.
pub const KEY_BYTES_MAX: usize = 255;
/// Longest table name in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;
/// Longest tag value (and so device name) in bytes.
pub const TAG_VALUE_BYTES_MAX: usize = 255;
/// Most tags of one series. OpenTSDB's default is 8, Influx users reach a few dozen.
pub const TAGS_PER_SERIES_MAX: usize = 64;
/// Most columns of one table, sibling columns included. A device that invents a key per message meets this, not OOM.
pub const COLUMNS_PER_TABLE_MAX: usize = 20_000;
/// Most keys of one table that were dropped. Their numbers and names in files are never used again, so each takes about
/// two hundred bytes for good.
pub const DROPPED_KEYS_PER_TABLE_MAX: usize = 100_000;
/// Devices whose new columns are counted in memory; beyond it those that brought none for longest are forgotten. Each
/// takes about a hundred bytes, and most devices of a fleet bring no column that an earlier one did not bring.
pub const NEW_COLUMN_DEVICES_MAX: usize = 65_536;
/// The time for which new columns of a device are counted together ([`IngestLimits::new_columns_per_minute_max`]).
pub const NEW_COLUMNS_WINDOW: Duration = Duration::from_secs(60);
/// Refused keys that the reason of a refusal names; the payload beside it has all of them.
pub const REFUSED_KEYS_NAMED_MAX: usize = 8;
/// Most tables of one store.
pub const TABLES_MAX: usize = 100_000;
/// Most rows in one batch; a session splits larger input.
pub const BATCH_ROWS_MAX: usize = 65_536;
/// Most bytes of one batch's keys and text values together.
pub const BATCH_TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Log bytes that are not yet durable; above it `append` answers busy and sessions stop reading.
pub const LOG_PENDING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Size of a log segment file.
pub const LOG_SEGMENT_BYTES: u64 = 64 * 1024 * 1024;
/// Segment files kept for reuse; a flush frees several at once, and filling new ones with zeros would double the log's
/// share of the disk.
pub const LOG_SPARES_MAX: usize = 8;
/// Memtable bytes not yet flushed to parts; above it `append` answers busy.
pub const MEMTABLE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Memtable bytes at which a flush to parts begins; well under the maximum so that flushing and ingest overlap.
pub const MEMTABLE_FLUSH_BYTES: usize = 96 * 1024 * 1024;
/// Rows of an open columnar buffer; when reached it is frozen into a sorted chunk.
pub const CHUNK_ROWS: usize = 64 * 1024;
/// Series whose latest values are kept in memory.
pub const LATEST_SERIES_MAX: usize = 1_000_000;
/// Bytes that the latest values of all active series may take in memory; beyond it the longest unused are dropped.
pub const LATEST_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Bytes that decoded columns take in memory so that repeated reads need not decode them again.
pub const ARRAY_CACHE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of log at which a flush begins, however few rows it holds; bounds the time a recovery takes.
pub const LOG_FLUSH_BYTES: u64 = 512 * 1024 * 1024;
/// Most parts that one flush makes of one table. A device that spreads a batch over ten thousand days meets this.
pub const FLUSH_PARTS_PER_TABLE_MAX: usize = 256;
/// Pending log bytes at which a commit begins without keeping the interval.
pub const LOG_COMMIT_EAGER_BYTES: usize = 1024 * 1024;
/// A manifest larger than this, and than twice its last rewrite, is rewritten.
pub const MANIFEST_REWRITE_BYTES: u64 = 4 * 1024 * 1024;
/// Rows of a row group in a part: what a flush holds as columns at once.
pub const PART_ROW_GROUP_ROWS: usize = 128 * 1024;
/// Bytes of values at which a row group ends, however few rows it has: texts of some kilobytes would make gigabytes of
/// [`PART_ROW_GROUP_ROWS`]. Half a kilobyte for each row, so that rows of numbers do not meet it.
pub const PART_ROW_GROUP_BYTES: usize = 64 * 1024 * 1024;
/// Rows of a data page in a part: what a read of one series decodes at least.
pub const PART_PAGE_ROWS: usize = 8 * 1024;
/// Level of zstd for parts. Higher ones cost a multiple of time for one or two parts in a hundred.
pub const PART_ZSTD_LEVEL: i32 = 1;
/// The highest that zstd has.
pub const PART_ZSTD_LEVEL_MAX: i32 = 22;
/// Most rows of a part that a merge decodes, and holds in memory, at once.
pub const PART_WINDOW_ROWS: usize = 8 * 1024;
/// Bytes of a part, unpacked, that a merge decodes at once, if they are fewer rows than [`PART_WINDOW_ROWS`]: times
/// [`COMPACTION_INPUTS_MAX`] this is what a merge holds.
pub const PART_WINDOW_BYTES: usize = 4 * 1024 * 1024;
/// Values of a text column that the writer adds to a page before it checks the page's size again. A page can exceed its 1 MiB by
/// this many values, and a reader of one value decodes the whole page.
pub const PART_WRITE_BATCH_VALUES: usize = 64;
/// Rows that a read copies out of the open chunk; if there are more the chunk is frozen and shared.
pub const READ_COPY_ROWS_MAX: usize = 4_096;
/// Decoded pages and chunks that a batch of rows in the order of series keeps in memory until it is given, however few rows it has.
pub const READ_BLOCKS_PER_BATCH_MAX: usize = 128;
/// Bytes of fields up to which a read of a whole table copies the open chunk instead of freezing it.
pub const READ_COPY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of fields after which a chunk is frozen, however few rows it has.
pub const CHUNK_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Part files whose footers are kept open between reads.
pub const PART_READERS_MAX: usize = 128;
/// Neighbouring parts of one size class that compaction makes one of. More means fewer rewrites and more parts that a
/// read has to look into.
pub const COMPACTION_FAN_IN: usize = 8;
/// Most parts that one merge reads; each takes a window of rows in memory.
pub const COMPACTION_INPUTS_MAX: usize = 32;
/// Bytes of the smallest size class of parts; each class is `COMPACTION_FAN_IN` times larger than the one before.
pub const COMPACTION_CLASS_BYTES: u64 = 16 * 1024;
/// Rows that the store takes elsewhere until a partition counts as quiet and its last parts are merged.
pub const COMPACTION_QUIET_ROWS: u64 = 4 * 1024 * 1024;
/// In a quiet partition a part is merged with newer ones if it has at most so many times their bytes.
pub const COMPACTION_QUIET_RATIO: u64 = 4;
/// Parts of one table that overlap and can be merged at which flushes wait for merges. Three times as many as there are
/// when nothing is left to merge, so that it is met only by writes that merges do not keep up with.
pub const COMPACTION_OVERLAP_MAX: usize = 128;
/// Most merges that one edit of the manifest makes effective.
pub const COMPACTION_MERGES_MAX: usize = 256;
/// Bytes of inputs above which a compaction takes no further merge into its edit.
pub const COMPACTION_PLAN_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of parts that compaction makes one of; a part of half of that stays as it is. Bounds how long one merge
/// takes and how much space it needs.
pub const PART_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Most rows of parts that compaction makes one of; a part with half of them stays as it is.
pub const PART_ROWS_MAX: u64 = 32 * 1024 * 1024;
/// Damaged places that a check names one by one in a file; the others are counted.
pub const CHECK_FINDINGS_PER_FILE_MAX: usize = 8;
/// Longest list of a backup; each part takes about 170 bytes of it.
pub const BACKUP_LIST_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Rows that an export reads at once.
pub const EXPORT_BATCH_ROWS: usize = 8 * 1024;
/// Rows of a row group in an exported Parquet file: what an export holds as columns at once.
pub const EXPORT_ROW_GROUP_ROWS: usize = 128 * 1024;
/// How many times faster than the monotonic clock the time by which old rows are dropped may go: a day in an hour. After
/// a pause it catches up soon; a wall clock that is wrong by years takes a day of rows each hour and not all at once.
pub const RETENTION_PACE: u64 = 24;
/// Most series of one store. The index keeps their numbers in 31 bits.
pub const SERIES_MAX: usize = 1 << 31;
/// Most tables, columns, tags and series that recovery makes up in place of lost ones: what a lost log segment can have
/// defined, at 16 bytes each.
pub const LOST_DEFINITIONS_MAX: usize = LOG_SEGMENT_BYTES as usize / 16;
/// Rows one read request may return when it names no limit.
pub const READ_ROWS_DEFAULT: usize = 100;
/// Rows one read request may return at most.
pub const READ_ROWS_MAX: usize = 1_000_000;
/// Bytes of text that the smallest or largest values of one device, or of all groups of a read request, may have before
/// they are written.
pub const READ_TEXT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Longest SQL statement in bytes. Statements come from people and dashboards; a longer one is a mistake or an attack.
pub const SQL_BYTES_MAX: usize = 256 * 1024;
/// Longest SQL statement whose plan is kept for reuse.
pub const SQL_CACHED_BYTES_MAX: usize = 8 * 1024;
/// Plans kept for reuse; the ones unused for longest are dropped.
pub const SQL_PLANS_CACHED_MAX: usize = 512;
/// How many times more or less rows or series there may be than when the operators of a kept plan were chosen.
pub const SQL_OPERATORS_KEPT_GROWTH_MAX: u64 = 2;
/// Most parameters (`$1`, `$2`...) of a prepared statement: the PostgreSQL protocol counts them with 16 bits.
pub const SQL_PARAMETERS_MAX: usize = 65_535;
/// Rows that one job on the query readers' threads reads before others have their turn.
pub const QUERY_READ_ROWS_PER_JOB: usize = 64 * 1024;
/// The same for jobs that also group what they read.
pub const QUERY_GROUPED_ROWS_PER_JOB: usize = 256 * 1024;
/// Estimated rows up to which a query that groups by series reads one series after the other: what it may hold for that of
/// parts that begin at other times, some of each.
pub const QUERY_WHOLE_SERIES_ROWS_MAX: u64 = 4 * 1024 * 1024;
/// Stack of a thread that plans or computes. Planning walks trees as deep as a statement may be; a statement that may not is
/// still a tree when it is given up, with a level for every two bytes of its text. Only what is used takes memory, but
/// all of it counts for `RLIMIT_DATA` and `RLIMIT_AS`.
pub const QUERY_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Batches of an answer that wait for their reader; a query whose reader is slow stands still beyond it.
pub const QUERY_BATCHES_WAITING_MAX: usize = 2;
/// Selected series up to which rows in the order of time are merged by the store rather than sorted by the query.
pub const QUERY_TIME_ORDER_SERIES_MAX: u64 = 256;
/// Fields up to which a query reads one end of each series only; the store notes for each of them which series have no value so far.
pub const QUERY_END_FIELDS_MAX: usize = 64;
/// Most buckets that gap filling may give for one group.
pub const QUERY_GAPFILL_BUCKETS_MAX: usize = 1_000_000;
/// Most bytes that a function such as `repeat` may make for one row.
pub const QUERY_FUNCTION_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most steps, of about a nanosecond, that a function such as `levenshtein` may take for one row: a query can end between two rows
/// only.
pub const QUERY_FUNCTION_WORK_MAX: u64 = 128 * 1024 * 1024;
/// Most bytes of a compiled regular expression: about ten thousand states. Compiling it takes milliseconds.
pub const QUERY_REGEX_BYTES_MAX: usize = 1024 * 1024;
/// Most states of a regular expression times bytes of a text that it is matched with: about a second at the worst.
pub const QUERY_REGEX_WORK_MAX: u64 = 512 * 1024 * 1024;
/// Bytes of text after which a batch of an answer is cut: doors write it out before they send it.
pub const QUERY_PIECE_BYTES: u64 = 4 * 1024 * 1024;
/// Most bytes of text of one row of an answer: it cannot be cut, and doors hold it whole.
pub const QUERY_ROW_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Rows of a batch of a query that repeats the text of one row for others.
pub const QUERY_REPEATED_BATCH_ROWS: usize = 1024;
/// Most bytes of one batch that may come from writing out one constant, or one row's text, for each of its rows.
pub const QUERY_REPEATED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Longest access token of a device in bytes.
pub const ACCESS_TOKEN_BYTES_MAX: usize = 255;
/// Most devices that one bulk request creates; they are one transaction and one answer.
pub const BULK_DEVICES_MAX: usize = 1_000_000;
/// Most devices on one page of a listing.
pub const PAGE_DEVICES_MAX: usize = 100_000;
/// Longest login name of a user in bytes.
pub const LOGIN_BYTES_MAX: usize = 255;
/// Shortest password in characters.
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Longest password in bytes.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Wrong passwords that one address may send for one login before it has to wait.
pub const LOGIN_FAILURES_FREE: u32 = 5;
/// Wrong passwords that one address may send for any logins before it has to wait: people behind one address share them.
pub const LOGIN_FAILURES_FREE_PER_ADDRESS: u32 = 20;
/// The longest such wait in seconds; it begins with one second and doubles.
pub const LOGIN_WAIT_S_MAX: u64 = 60;
/// After so many seconds without a wrong password an address starts anew.
pub const LOGIN_FAILURES_FORGOTTEN_S: u64 = 15 * 60;
/// Logins of one address that are checked or wait for their turn at once: three quarters of all, because a pool of
/// connections opens many at once.
pub const LOGINS_PER_ADDRESS_MAX: usize = PASSWORD_CHECKS_WAITING_MAX / 4 * 3;
/// Addresses, and logins tried from them, whose failures are remembered; beyond it the oldest half is forgotten.
pub const LOGIN_SOURCES_MAX: usize = 65_536;
/// Password checks that wait for their turn. One runs at a time, because each takes 19 MiB and tens of milliseconds
/// of a core that devices need too.
pub const PASSWORD_CHECKS_WAITING_MAX: usize = 32;

/// Bytes of updates that may wait for one connection's live subscribers before it is given up: ten numbers of each of ten
/// thousand devices take a third of it, and a mailbox may hold twice what it is reduced to.
pub const LIVE_CONNECTION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The same for all connections of one login; the one that leaves most unread is given up.
pub const LIVE_LOGIN_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The same for all connections. An update that waits for several counts for each, but is in memory once.
pub const LIVE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Devices whose refused messages are counted in memory; beyond it those refused longest ago are forgotten. Each takes
/// about half a kilobyte.
pub const REFUSED_DEVICES_MAX: usize = 65_536;
/// Longest reason of a refusal that is kept for a device, in bytes.
pub const REFUSAL_REASON_BYTES_MAX: usize = 300;
/// A device gets one line in the log for its refused messages in this many seconds.
pub const REFUSAL_LOG_WINDOW_S: i64 = 60;
/// Lines in the log about refused messages over all devices in that time, and as many about refused logins and access
/// tokens. The next line says how many were left out.
pub const REFUSAL_LOG_LINES_MAX: usize = 60;

const _: () =
    assert!(MEMTABLE_FLUSH_BYTES * 2 <= MEMTABLE_BYTES_MAX, "a flush needs room to overlap with ingest");
const _: () = assert!((LOG_PENDING_BYTES_MAX as u64) < LOG_SEGMENT_BYTES, "one commit fits into one segment");
const _: () =
    assert!(BATCH_TEXT_BYTES_MAX * 2 <= LOG_PENDING_BYTES_MAX, "the largest batch fits into the log buffer");

/// What an operator may set about incoming payloads.
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
    /// Most columns that one device may add to its table: a twentieth of what the table may have, so that no device uses it
    /// up for the others. Vehicles that send all signals of their buses have some hundreds.
    pub columns_per_device_max: usize,
    /// Most columns that one device may add in a minute. A device's first message may have that many keys; one that
    /// invents names does not reach the bound above before somebody can see it.
    pub new_columns_per_minute_max: usize,
    /// How far a timestamp may lie in the future, in seconds.
    pub future_max_s: i64,
    /// Oldest accepted timestamp. Seconds mistaken for milliseconds land in 1970, so the default is 1971-01-01.
    pub oldest: crate::Timestamp,
    /// How long the table that the rows go to keeps them: older ones are refused, because nobody would find them. For
    /// good when `None`.
    pub ttl: Option<std::time::Duration>,
}

impl IngestLimits {
    /// The times that are plausible at `now`: others are those of a wrong unit or a wrong clock more often than not.
    /// How long a table keeps rows is another question.
    pub fn plausible(&self, now: crate::Timestamp) -> crate::TimeRange {
        let newest = now.saturating_add_micros(self.future_max_s.saturating_mul(1_000_000));
        crate::TimeRange::new(self.oldest, newest.saturating_add_micros(1))
    }

    /// The oldest timestamp that is accepted of what is received at `received`.
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
            future_max_s: 7 * 86_400,
            oldest: crate::Timestamp::from_micros(31_536_000_000_000),
            ttl: None,
        }
    }
}

/// What an operator may set about SQL queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryLimits {
    /// How long a query may take, waiting for its turn included.
    pub timeout: Duration,
    /// Memory that one query may hold for sorting, grouping and joining, in bytes.
    pub memory_bytes_max: usize,
    /// Memory that all queries may hold together, in bytes.
    pub memory_bytes_total_max: usize,
    /// Queries that run at the same time; others wait.
    pub running_max: usize,
    /// Queries that wait for their turn; others are answered busy at once.
    pub waiting_max: usize,
    /// How long a query waits for its turn before it is answered busy.
    pub waiting_time_max: Duration,
    /// Threads that plan and compute, and as many that read; as many as there are cores when zero.
    pub threads: usize,
    /// Most rows of one batch.
    pub batch_rows: usize,
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
        }
    }
}

/// The part that this machine's memory allows of a bound in bytes: all of it, or less on a small machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    thousandths: usize,
}

impl Portion {
    /// All of it.
    pub const ALL: Self = Self::thousandths(1_000);

    /// So many thousandths; at most all, and at least one.
    pub const fn thousandths(thousandths: usize) -> Self {
        let thousandths = if thousandths > 1_000 { 1_000 } else { thousandths };
        Self { thousandths: if thousandths == 0 { 1 } else { thousandths } }
    }

    /// This portion of a bound.
    pub const fn of(self, bytes: usize) -> usize {
        // Bounds may be too large to be multiplied.
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
    fn a_portion_is_a_part_of_any_bound() {
        assert_eq!(Portion::ALL.of(usize::MAX), usize::MAX);
        assert_eq!(Portion::thousandths(31).of(512 * 1024 * 1024), 16_642_998);
        assert_eq!((Portion::thousandths(5_000), Portion::thousandths(0).of(1_000)), (Portion::ALL, 1));
    }
}
