//! Limits that follow from the memory there is, where nobody has set them. docs/ops/limits.md shows the same table.
//!
//! From [`WHOLE_BYTES`] on they are the defaults. At [`SMALL_BYTES`] they are those of a machine on which the server is slow
//! and serves; in between they lie on a line. The sum is below the memory at both ends, and so everywhere.

use std::collections::BTreeSet;

use model::limits::{self, Portion, QueryLimits};

use super::memory::Memory;
use super::raw::RawConfig;

const MIB: usize = 1024 * 1024;
/// From so much memory on the defaults hold: their sum is 3.9 GiB with one worker of MQTT.
const WHOLE_BYTES: u64 = 4096 * MIB as u64;
/// The least that the server is made for.
const SMALL_BYTES: u64 = 256 * MIB as u64;
/// Least value of a limit of bytes, however little memory there is.
const FLOOR_BYTES: usize = MIB;

/// A limit at [`SMALL_BYTES`] and from [`WHOLE_BYTES`] on.
#[derive(Debug, Clone, Copy)]
struct Share {
    small: usize,
    whole: usize,
}

const MEMTABLE: Share = Share { small: 24 * MIB, whole: limits::MEMTABLE_BYTES_MAX };
const FLUSH: Share = Share { small: 10 * MIB, whole: limits::MEMTABLE_FLUSH_BYTES };
const LATEST: Share = Share { small: 8 * MIB, whole: limits::LATEST_BYTES_MAX };
const READ_CACHE: Share = Share { small: 8 * MIB, whole: limits::ARRAY_CACHE_BYTES_MAX };
/// A row group that is written, beside the memtable that it comes from.
const ROW_GROUP: Share = Share { small: 4 * MIB, whole: limits::PART_ROW_GROUP_BYTES };
const MERGE_WINDOW: Share = Share { small: MIB / 2, whole: limits::PART_WINDOW_BYTES };
const MERGE_INPUTS: Share = Share { small: limits::COMPACTION_FAN_IN, whole: limits::COMPACTION_INPUTS_MAX };
/// Thousandths of the doors' bounds: answers, bodies, subscriptions, statements, half packets, live updates.
const DOORS: Share = Share { small: 31, whole: 1_000 };
/// Rows of a batch that is read: those of some kilobytes make it large.
const SMALL_BATCH_ROWS: usize = 512;
const SMALL_QUERY_BYTES: usize = 16 * MIB;
const SMALL_QUERIES_BYTES: usize = 20 * MIB;

impl Share {
    /// The limit with so much memory.
    fn at(self, memory: u64) -> usize {
        let Self { small, whole } = self;
        if memory >= WHOLE_BYTES {
            whole
        } else if memory >= SMALL_BYTES {
            let more = (whole - small) as u64 * (memory - SMALL_BYTES) / (WHOLE_BYTES - SMALL_BYTES);
            small + more as usize
        } else {
            (small as u64 * memory / SMALL_BYTES) as usize
        }
    }

    /// The same for bytes of which there must be some.
    fn bytes_at(self, memory: u64) -> usize {
        self.at(memory).max(FLOOR_BYTES)
    }
}

/// The settings that a file or the environment names, such as `store.memtable_bytes_max`.
#[derive(Debug, Default)]
pub(super) struct Said(BTreeSet<String>);

impl Said {
    pub(super) fn of(table: &toml::Table) -> Self {
        let sections = table.iter().filter_map(|(section, keys)| Some((section, keys.as_table()?)));
        Self(
            sections
                .flat_map(|(section, keys)| keys.keys().map(move |key| format!("{section}.{key}")))
                .collect(),
        )
    }

    fn has(&self, key: &str) -> bool {
        self.0.contains(key)
    }
}

/// What the memory allows.
#[derive(Debug, Clone)]
pub(crate) struct Allowed {
    /// How much there is; `None` where nothing says so, and then the defaults hold.
    pub memory: Option<Memory>,
    /// The settings that nobody has set and that are smaller than their defaults because of it.
    pub derived: Vec<(&'static str, usize)>,
    /// The doors' bounds.
    pub doors: Portion,
    /// Rows of a batch that is read.
    pub batch_rows: usize,
    /// Bytes at which a row group of a part ends.
    pub row_group_bytes: usize,
    /// Bytes of each input that a merge decodes at once.
    pub merge_window_bytes: usize,
    /// Parts that one merge reads.
    pub merge_inputs: usize,
    /// What rows in memory, queries, latest values and the read cache may take together.
    large_bytes: u64,
}

impl Allowed {
    /// Fills in what nobody has said. What somebody has said stays as it is; what belongs to it fits it if it can.
    pub(super) fn derive(memory: Option<Memory>, said: &Said, raw: &mut RawConfig) -> Self {
        let bytes = memory.as_ref().map_or(WHOLE_BYTES, |memory| memory.bytes);
        let query = QueryLimits::default();
        let (one, all) = (
            Share { small: SMALL_QUERY_BYTES, whole: query.memory_bytes_max }.bytes_at(bytes),
            Share { small: SMALL_QUERIES_BYTES, whole: query.memory_bytes_total_max }.bytes_at(bytes),
        );
        let mut derived = Vec::new();
        let mut fill = |key: &'static str, value: &mut usize, share: usize| {
            if !said.has(key) && share < *value {
                *value = share;
                derived.push((key, share));
            }
        };
        let (store, queries) = (&mut raw.store, &mut raw.query);
        // A setting that belongs to one that was set fits it, up to its default.
        let at_least = |key, needed: usize| if said.has(key) { needed } else { 0 };
        let memtable = at_least("store.memtable_flush_bytes", store.memtable_flush_bytes.saturating_mul(2));
        fill(
            "store.memtable_bytes_max",
            &mut store.memtable_bytes_max,
            MEMTABLE.at(bytes).max(2 * FLOOR_BYTES).max(memtable),
        );
        let flush = FLUSH.bytes_at(bytes).min((store.memtable_bytes_max / 2).max(FLOOR_BYTES));
        fill("store.memtable_flush_bytes", &mut store.memtable_flush_bytes, flush);
        fill("store.latest_bytes_max", &mut store.latest_bytes_max, LATEST.bytes_at(bytes));
        fill("store.read_cache_bytes_max", &mut store.read_cache_bytes_max, READ_CACHE.bytes_at(bytes));
        let all = all.max(at_least("query.memory_bytes_max", queries.memory_bytes_max));
        fill("query.memory_bytes_total_max", &mut queries.memory_bytes_total_max, all);
        let one = one.min(queries.memory_bytes_total_max);
        fill("query.memory_bytes_max", &mut queries.memory_bytes_max, one);
        let large = [
            store.memtable_bytes_max,
            store.latest_bytes_max,
            store.read_cache_bytes_max,
            // Statements may allocate twice what their operators may hold.
            queries.memory_bytes_total_max.saturating_mul(2),
        ];
        Self {
            memory,
            derived,
            doors: Portion::thousandths(DOORS.at(bytes)),
            batch_rows: Share { small: SMALL_BATCH_ROWS, whole: query.batch_rows }.at(bytes).max(1),
            row_group_bytes: ROW_GROUP.bytes_at(bytes),
            merge_window_bytes: MERGE_WINDOW.at(bytes).max(FLOOR_BYTES / 4),
            merge_inputs: MERGE_INPUTS.at(bytes).max(MERGE_INPUTS.small),
            large_bytes: large.into_iter().fold(0, |sum: u64, bytes| sum.saturating_add(bytes as u64)),
        }
    }

    /// Whether limits are smaller than their defaults because of it.
    pub(crate) fn is_small(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.bytes < WHOLE_BYTES)
    }

    /// What follows from the memory, in one line.
    pub(crate) fn describe(&self) -> String {
        let Some(memory) = &self.memory else {
            return "memory: unknown; limits are the defaults".to_owned();
        };
        if !self.is_small() {
            return format!("memory: {memory}; limits that are not set are the defaults");
        }
        let settings = self.derived.iter().map(|(key, value)| format!("{key} = {value}"));
        let settings = settings.chain([
            format!("rows of a batch = {}", self.batch_rows),
            format!("bounds of the doors = {} thousandths", self.doors.of(1_000)),
        ]);
        format!("memory: {memory}; derived from it: {}", settings.collect::<Vec<_>>().join(", "))
    }

    /// Puts that line into the log, and warns where memory may not be enough.
    pub(crate) fn tell(&self) {
        tracing::info!("{}", self.describe());
        let Some(memory) = &self.memory else { return };
        if memory.bytes < SMALL_BYTES {
            tracing::warn!(
                memory = memory.bytes,
                least = SMALL_BYTES,
                "there is less memory than the server is made for; it may be killed under load. Nothing acknowledged is lost then"
            );
        }
        if self.large_bytes > memory.bytes {
            tracing::warn!(
                limits = self.large_bytes,
                memory = memory.bytes,
                "store.memtable_bytes_max, store.latest_bytes_max, store.read_cache_bytes_max and twice query.memory_bytes_total_max \
                 are more than the memory; lower them, or leave them out so that they follow from it"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(bytes: u64, said: &[&str], raw: &mut RawConfig) -> Allowed {
        let said = Said(said.iter().map(|key| (*key).to_owned()).collect());
        Allowed::derive(Some(Memory { bytes, from: "a test".into() }), &said, raw)
    }

    #[test]
    fn where_memory_is_ample_or_unknown_the_defaults_hold() {
        for memory in [Some(WHOLE_BYTES), Some(u64::MAX), None] {
            let mut raw = RawConfig::default();
            let memory = memory.map(|bytes| Memory { bytes, from: "a test".into() });
            let allowed = Allowed::derive(memory, &Said::default(), &mut raw);
            assert_eq!(raw, RawConfig::default());
            assert_eq!((allowed.derived.len(), allowed.doors), (0, Portion::ALL));
            assert_eq!(allowed.batch_rows, QueryLimits::default().batch_rows);
            assert_eq!(allowed.row_group_bytes, limits::PART_ROW_GROUP_BYTES);
            assert_eq!(allowed.merge_window_bytes, limits::PART_WINDOW_BYTES);
            assert_eq!(allowed.merge_inputs, limits::COMPACTION_INPUTS_MAX);
        }
    }

    /// The program with empty queues, one password check included.
    const IDLE_BYTES: u64 = 48 * MIB as u64;
    /// The doors' bounds with one worker of MQTT: `limits.rs` of the doors, and `LIVE_BYTES_MAX`.
    const DOORS_BYTES: usize = (512 + 256 + 128 + 128 + 64 + 128 + 64 + 256) * MIB;

    #[test]
    fn the_sum_is_below_the_memory() {
        for bytes in [SMALL_BYTES, 512 << 20, 1 << 30, 2 << 30, 3 << 30, WHOLE_BYTES] {
            let allowed = derived(bytes, &[], &mut RawConfig::default());
            let merge = allowed.merge_inputs * allowed.merge_window_bytes + 2 * allowed.row_group_bytes;
            let sum = IDLE_BYTES
                + allowed.large_bytes
                + (merge + limits::LOG_PENDING_BYTES_MAX + allowed.doors.of(DOORS_BYTES)) as u64;
            assert!(sum < bytes, "{sum} of {bytes}");
        }
    }

    #[test]
    fn little_memory_makes_all_of_them_small_and_usable() {
        let mut raw = RawConfig::default();
        let allowed = derived(SMALL_BYTES, &[], &mut raw);
        assert_eq!(raw.store.memtable_bytes_max, 24 * MIB);
        assert_eq!((raw.query.memory_bytes_max, raw.query.memory_bytes_total_max), (16 * MIB, 20 * MIB));
        assert_eq!(allowed.derived.len(), 6);
        for bytes in [1, 1 << 20, 64 << 20, SMALL_BYTES - 1] {
            let mut raw = RawConfig::default();
            let allowed = derived(bytes, &[], &mut raw);
            super::super::resolve::resolve(raw, allowed).unwrap();
        }
    }

    #[test]
    fn what_was_set_stays_and_what_belongs_to_it_fits() {
        let mut raw = RawConfig::default();
        raw.store.memtable_flush_bytes = 40 * MIB;
        raw.query.memory_bytes_max = 64 * MIB;
        let said = ["store.memtable_flush_bytes", "query.memory_bytes_max", "store.read_cache_bytes_max"];
        let allowed = derived(SMALL_BYTES, &said, &mut raw);
        assert_eq!((raw.store.memtable_flush_bytes, raw.store.memtable_bytes_max), (40 * MIB, 80 * MIB));
        assert_eq!((raw.query.memory_bytes_max, raw.query.memory_bytes_total_max), (64 * MIB, 64 * MIB));
        assert_eq!(raw.store.read_cache_bytes_max, limits::ARRAY_CACHE_BYTES_MAX);
        assert!(allowed.describe().starts_with(
            "memory: 268435456 bytes, from a test; derived from it: store.memtable_bytes_max = 83886080, "
        ));
        assert!(allowed.large_bytes > SMALL_BYTES, "and that is worth a warning");
        super::super::resolve::resolve(raw, allowed).unwrap();

        let mut raw = RawConfig::default();
        raw.store.memtable_bytes_max = 4 * MIB;
        derived(SMALL_BYTES, &["store.memtable_bytes_max"], &mut raw);
        assert_eq!(raw.store.memtable_flush_bytes, 2 * MIB);
    }
}
