//! Derives limits that are not set from the available memory. docs/ops/limits.md shows the same table.
//!
//! With [`WHOLE_BYTES`] and more, the limits are the defaults. With [`SMALL_BYTES`] they are those of the smallest supported
//! machine. In between they are interpolated linearly. Their sum is below the memory at both ends, and so everywhere.

use std::collections::BTreeSet;

use model::limits::{self, Portion, QueryLimits};

use super::memory::Memory;
use super::raw::RawConfig;
use crate::limits::ALLOCATOR_ARENA_BYTES;

const MIB: usize = 1024 * 1024;
/// With at least this much memory the defaults apply: their sum is 3.9 GiB with one MQTT worker.
const WHOLE_BYTES: u64 = 4096 * MIB as u64;
/// Memory for each series of `ingest.series_max`. A definition takes about 250 bytes, so all of them take at most an eighth of the memory.
const MEMORY_PER_SERIES_BYTES: u64 = 2 * 1024;
/// The smallest supported memory.
const SMALL_BYTES: u64 = 256 * MIB as u64;
/// Smallest value of a limit in bytes.
const FLOOR_BYTES: usize = MIB;

/// The values of a limit at [`SMALL_BYTES`] and at [`WHOLE_BYTES`].
#[derive(Debug, Clone, Copy)]
struct Share {
    small: usize,
    whole: usize,
}

const MEMTABLE: Share = Share { small: 16 * MIB, whole: limits::MEMTABLE_BYTES_MAX };
const FLUSH: Share = Share { small: 7 * MIB, whole: limits::MEMTABLE_FLUSH_BYTES };
const LATEST: Share = Share { small: 8 * MIB, whole: limits::LATEST_BYTES_MAX };
const READ_CACHE: Share = Share { small: 8 * MIB, whole: limits::ARRAY_CACHE_BYTES_MAX };
/// Bytes of a row group, which is in memory beside its memtable.
const ROW_GROUP: Share = Share { small: 4 * MIB, whole: limits::PART_ROW_GROUP_BYTES };
const MERGE_WINDOW: Share = Share { small: MIB / 2, whole: limits::PART_WINDOW_BYTES };
const MERGE_INPUTS: Share = Share { small: limits::COMPACTION_FAN_IN, whole: limits::COMPACTION_INPUTS_MAX };
/// Thousandths of the doors' limits: answers, bodies, subscriptions, statements, partial packets, live updates.
const DOORS: Share = Share { small: 31, whole: 1_000 };
/// Rows of a batch of a read. Rows of some kilobytes make a large batch.
const SMALL_BATCH_ROWS: usize = 128;
/// Statements at once. They share [`SMALL_QUERIES_BYTES`].
const RUNNING: Share = Share { small: 2, whole: 16 };
const RUNNING_MIN: usize = 2;
const SMALL_QUERY_BYTES: usize = 16 * MIB;
const SMALL_QUERIES_BYTES: usize = 32 * MIB;

impl Share {
    /// The limit for an amount of memory.
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

    /// The same for a limit in bytes, which must not be zero.
    fn bytes_at(self, memory: u64) -> usize {
        self.at(memory).max(FLOOR_BYTES)
    }
}

/// The names of the settings in the file and the environment, such as `store.memtable_bytes_max`.
#[derive(Debug, Default)]
pub(super) struct ExplicitSettings(BTreeSet<String>);

impl ExplicitSettings {
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

/// The limits that the memory allows.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLimits {
    /// The available memory; `None` if it is unknown, and then the defaults apply.
    pub memory: Option<Memory>,
    /// All limits of the memory; the first is `memory`.
    pub bounds: Vec<Memory>,
    /// The settings that are not set and have smaller values than their defaults.
    pub derived: Vec<(&'static str, usize)>,
    /// The limits of the doors.
    pub doors: Portion,
    /// Rows of a batch of a read.
    pub batch_rows: usize,
    /// Bytes of a row group of a part.
    pub row_group_bytes: usize,
    /// Bytes of each input that a merge decodes at a time.
    pub merge_window_bytes: usize,
    /// Inputs of one merge.
    pub merge_inputs: usize,
    /// Bytes of rows in memory, queries, latest values and the read cache together.
    large_bytes: u64,
}

impl MemoryLimits {
    /// Fills in the settings that are not set. A related setting adapts to one that is set, if possible.
    pub(super) fn derive(memory: Option<Memory>, explicit: &ExplicitSettings, raw: &mut RawConfig) -> Self {
        let bytes = memory.as_ref().map_or(WHOLE_BYTES, |memory| memory.bytes);
        let query = QueryLimits::default();
        let (one, all) = (
            Share { small: SMALL_QUERY_BYTES, whole: query.memory_bytes_max }.bytes_at(bytes),
            Share { small: SMALL_QUERIES_BYTES, whole: query.memory_bytes_total_max }.bytes_at(bytes),
        );
        let mut derived = Vec::new();
        let mut fill = |key: &'static str, value: &mut usize, share: usize| {
            if !explicit.has(key) && share < *value {
                *value = share;
                derived.push((key, share));
            }
        };
        let (store, queries) = (&mut raw.store, &mut raw.query);
        // A setting that depends on one that is set adapts to it, up to its default.
        let at_least = |key, needed: usize| if explicit.has(key) { needed } else { 0 };
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
        let running = RUNNING.at(bytes).max(RUNNING_MIN);
        fill("query.concurrent_max", &mut queries.concurrent_max, running);
        let large = [
            store.memtable_bytes_max,
            store.latest_bytes_max,
            store.read_cache_bytes_max,
            // A statement may allocate twice the memory of its operators.
            queries.memory_bytes_total_max.saturating_mul(2),
        ];
        Self {
            memory,
            bounds: Vec::new(),
            derived,
            doors: Portion::thousandths(DOORS.at(bytes)),
            batch_rows: Share { small: SMALL_BATCH_ROWS, whole: query.batch_rows }.at(bytes).max(1),
            row_group_bytes: ROW_GROUP.bytes_at(bytes),
            merge_window_bytes: MERGE_WINDOW.at(bytes).max(FLOOR_BYTES / 4),
            merge_inputs: MERGE_INPUTS.at(bytes).max(MERGE_INPUTS.small),
            large_bytes: large.into_iter().fold(0, |sum: u64, bytes| sum.saturating_add(bytes as u64)),
        }
    }

    /// The most series: one for each [`MEMORY_PER_SERIES_BYTES`].
    pub(super) fn series_max(&self) -> u64 {
        let bytes = self.memory.as_ref().map_or(WHOLE_BYTES, |memory| memory.bytes);
        (bytes / MEMORY_PER_SERIES_BYTES).clamp(1, limits::SERIES_MAX as u64)
    }

    /// Whether limits are smaller than their defaults.
    pub(crate) fn is_small(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.bytes < WHOLE_BYTES)
    }

    /// The number of arenas that the allocator may have; `None` if the memory is ample.
    pub(crate) fn arenas(&self) -> Option<i32> {
        let memory = self.memory.as_ref().filter(|_| self.is_small() || self.has_resource_limit())?;
        Some(i32::try_from(memory.bytes / ALLOCATOR_ARENA_BYTES).unwrap_or(i32::MAX).max(1))
    }

    /// Whether a resource limit counts memory that is never touched.
    pub(crate) fn has_resource_limit(&self) -> bool {
        self.bounds.iter().any(|memory| memory.counts.is_resource_limit())
    }

    /// Checks that the limits of the memory leave enough for a server.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.bounds.iter().try_for_each(Memory::check)
    }

    /// Describes the memory and the derived limits in one line.
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

    /// Logs this line, and warns if the memory may be too small.
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
    use super::super::usage::Counted;
    use super::*;

    fn memory(bytes: u64) -> Memory {
        Memory { bytes, from: "a test".into(), counts: Counted::Resident, fixed: 0 }
    }

    fn derived(bytes: u64, explicit: &[&str], raw: &mut RawConfig) -> MemoryLimits {
        let explicit = ExplicitSettings(explicit.iter().map(|key| (*key).to_owned()).collect());
        MemoryLimits::derive(Some(memory(bytes)), &explicit, raw)
    }

    #[test]
    fn the_defaults_hold_with_ample_or_unknown_memory() {
        for memory in [Some(WHOLE_BYTES), Some(u64::MAX), None] {
            let mut raw = RawConfig::default();
            let result =
                MemoryLimits::derive(memory.map(self::memory), &ExplicitSettings::default(), &mut raw);
            assert_eq!(raw, RawConfig::default());
            assert_eq!((result.derived.len(), result.doors), (0, Portion::ALL));
            assert_eq!(result.batch_rows, QueryLimits::default().batch_rows);
            assert_eq!(result.row_group_bytes, limits::PART_ROW_GROUP_BYTES);
            assert_eq!(result.merge_window_bytes, limits::PART_WINDOW_BYTES);
            assert_eq!(result.merge_inputs, limits::COMPACTION_INPUTS_MAX);
        }
    }

    /// The program with empty queues, one password check included.
    const IDLE_BYTES: u64 = 48 * MIB as u64;
    /// The doors' bounds with one MQTT worker: `limits.rs` of the doors, and `LIVE_BYTES_MAX`.
    const DOORS_BYTES: usize = (512 + 256 + 128 + 128 + 64 + 128 + 64 + 256) * MIB;

    #[test]
    fn the_sum_is_below_the_memory() {
        for bytes in [SMALL_BYTES, 512 << 20, 1 << 30, 2 << 30, 3 << 30, WHOLE_BYTES] {
            let result = derived(bytes, &[], &mut RawConfig::default());
            let merge = result.merge_inputs * result.merge_window_bytes + 2 * result.row_group_bytes;
            let sum = IDLE_BYTES
                + result.large_bytes
                + (merge + limits::LOG_PENDING_BYTES_MAX + result.doors.of(DOORS_BYTES)) as u64;
            assert!(sum < bytes, "{sum} of {bytes}");
        }
    }

    #[test]
    fn little_memory_makes_all_limits_small_and_usable() {
        let mut raw = RawConfig::default();
        let result = derived(SMALL_BYTES, &[], &mut raw);
        assert_eq!(raw.store.memtable_bytes_max, 16 * MIB);
        assert_eq!((raw.query.memory_bytes_max, raw.query.memory_bytes_total_max), (16 * MIB, 32 * MIB));
        assert_eq!(raw.query.concurrent_max, 2);
        assert_eq!(result.derived.len(), 7);
        for bytes in [1, 1 << 20, 64 << 20, SMALL_BYTES - 1] {
            let mut raw = RawConfig::default();
            let result = derived(bytes, &[], &mut raw);
            super::super::resolve::resolve(raw, result).unwrap();
        }
    }

    #[test]
    fn configured_values_stay_and_dependent_ones_adapt() {
        let mut raw = RawConfig::default();
        raw.store.memtable_flush_bytes = 40 * MIB;
        raw.query.memory_bytes_max = 64 * MIB;
        let explicit = ["store.memtable_flush_bytes", "query.memory_bytes_max", "store.read_cache_bytes_max"];
        let result = derived(SMALL_BYTES, &explicit, &mut raw);
        assert_eq!((raw.store.memtable_flush_bytes, raw.store.memtable_bytes_max), (40 * MIB, 80 * MIB));
        assert_eq!((raw.query.memory_bytes_max, raw.query.memory_bytes_total_max), (64 * MIB, 64 * MIB));
        assert_eq!(raw.store.read_cache_bytes_max, limits::ARRAY_CACHE_BYTES_MAX);
        assert!(result.describe().starts_with(
            "memory: 268435456 bytes, from a test; derived from it: store.memtable_bytes_max = 83886080, "
        ));
        assert!(result.large_bytes > SMALL_BYTES, "and that is worth a warning");
        super::super::resolve::resolve(raw, result).unwrap();

        let mut raw = RawConfig::default();
        raw.store.memtable_bytes_max = 4 * MIB;
        derived(SMALL_BYTES, &["store.memtable_bytes_max"], &mut raw);
        assert_eq!(raw.store.memtable_flush_bytes, 2 * MIB);
    }
}
