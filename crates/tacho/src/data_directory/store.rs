//! The embedded store of a data directory. No other file of the workspace opens a concrete store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hub::{Hub, MadeParts, Metrics, Progress, ProgressWatcher};
use store::{Store, StoreError};
use store_local::{Compacted, CompactionLimits, LocalStore, Observer, Options, RealDisk, RecoveryReport};

use super::layout::{create_directory, store_directory};
use super::lock::wait_for_ending_process;
use crate::config::{Config, StoreConfig};

/// Opens the store of a data directory for a command. Fails if a process has the directory.
pub(crate) fn open_store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    create_directory(&config.data)?;
    Ok(open(config, &Arc::new(Metrics::new()))?)
}

/// Opens the store of a data directory and logs what recovery found.
pub(crate) fn open(config: &Config, metrics: &Arc<Metrics>) -> Result<Arc<dyn Store>, StoreError> {
    let options = options(&config.store, Arc::new(StoreMetrics::new(metrics)));
    wait_for_ending_process(&config.data);
    let began = Instant::now();
    let (store, report) = LocalStore::open(Arc::new(RealDisk), &store_directory(&config.data), options)?;
    tell(&report, began.elapsed());
    Ok(Arc::new(store))
}

fn options(config: &StoreConfig, observer: Arc<dyn Observer>) -> Options {
    Options {
        commit_interval_us: config.commit_interval_us,
        memtable_bytes_max: config.memtable_bytes_max,
        memtable_flush_bytes: config.memtable_flush_bytes,
        segment_bytes: config.log_segment_bytes,
        latest_series_max: config.latest_series_max,
        latest_bytes_max: config.latest_bytes_max,
        array_cache_bytes_max: config.read_cache_bytes_max,
        row_group_bytes: config.part_row_group_bytes,
        merge_window_bytes: config.merge_window_bytes,
        series_batch_rows: config.read_batch_rows,
        compaction: CompactionLimits { inputs_max: config.merge_inputs_max, ..CompactionLimits::default() },
        zstd_level: config.zstd_level,
        ttl_default: config.ttl_default,
        observer: Some(observer),
        ..Options::default()
    }
}

fn tell(report: &RecoveryReport, duration: Duration) {
    let RecoveryReport { clean_shutdown, segments, frames, rows, parts, series, .. } = report;
    let duration_ms = duration.as_millis();
    tracing::info!(clean_shutdown, parts, series, rows, frames, segments, duration_ms, "store opened");
    if let Some(torn) = &report.torn_tail {
        let (path, offset, bytes) = (torn.path.display(), torn.offset, torn.bytes);
        tracing::warn!(%path, offset, bytes, "an interrupted write at the end of the log was cut off; nobody was told that it was kept");
    }
    for path in &report.orphans {
        tracing::info!(path = %path.display(), "removed what an interrupted flush left behind");
    }
    for damage in &report.damages {
        tracing::error!(%damage, "acknowledged rows are damaged on disk; they are refused when asked for, all others are served");
    }
}

/// Passes the store's measurements to the metrics and logs its events.
struct StoreMetrics {
    metrics: Arc<Metrics>,
    /// Days by which the clock was ahead when it was last logged.
    days_ahead: AtomicU64,
}

impl StoreMetrics {
    fn new(metrics: &Arc<Metrics>) -> Self {
        Self { metrics: Arc::clone(metrics), days_ahead: AtomicU64::new(0) }
    }
}

impl Observer for StoreMetrics {
    fn synced(&self, duration: Duration, bytes: u64, _rows: u64) {
        self.metrics.synced(duration, bytes);
    }

    fn flushed(&self, duration: Duration, parts: u64, rows: u64, bytes: u64) {
        self.metrics.flushed(&MadeParts { duration, parts, rows, bytes });
        let duration_ms = duration.as_millis();
        tracing::info!(parts, rows, bytes, duration_ms, "flushed memory to parts");
    }

    fn compacted(&self, compacted: &Compacted) {
        let Compacted { duration, inputs, outputs: parts, rows, bytes_read, bytes_written: bytes } =
            *compacted;
        self.metrics.compacted(&MadeParts { duration, parts, rows, bytes }, bytes_read);
        let duration_ms = duration.as_millis();
        tracing::info!(inputs, parts, rows, bytes_read, bytes, duration_ms, "merged parts");
    }

    fn damaged(&self, error: &StoreError) {
        self.metrics.damaged_part();
        tracing::error!(%error, "a part cannot be read and is left as it is; its rows are refused when asked for, all others are served");
    }

    fn merge_failed(&self, what: &str) {
        self.metrics.merge_panicked();
        tracing::error!("BUG: {what}. That part is not merged until the next start; all rows are served");
    }

    fn flush_held(&self, why: Option<&str>) {
        match why {
            Some(why) => {
                tracing::warn!("flushes wait for merges: {why}. Writes must wait once memory is full")
            }
            None => tracing::info!("flushes continue"),
        }
    }

    fn clock_ahead(&self, ahead: Duration) {
        let days = ahead.as_secs() / 86_400;
        // The store reports this each minute, and catches up by one day per hour.
        if self.days_ahead.swap(days, Ordering::Relaxed) != days {
            tracing::warn!(
                days,
                "the clock is further ahead than time can have passed; old rows are dropped by an earlier time. \
                 Nothing to do after a pause; otherwise set the clock right"
            );
        }
    }
}

/// Logs once when the store stops taking writes.
pub(crate) fn report_when_sealed(hub: &Arc<Hub>) {
    hub.watch(Arc::new(SealWatcher::default()));
}

#[derive(Debug, Default)]
struct SealWatcher {
    logged: AtomicBool,
}

impl ProgressWatcher for SealWatcher {
    fn progress(&self, progress: Progress) {
        if progress.sealed && !self.logged.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the store no longer accepts writes since one failed (/readyz has the cause); reads continue. Repair the cause and restart"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::{holder, lock};
    use super::*;
    use crate::config::{RawConfig, Sources};

    #[test]
    fn defaults_are_those_of_the_store() {
        let (raw, options) = (RawConfig::default().store, Options::default());
        assert_eq!(raw.commit_interval_us, options.commit_interval_us);
        assert_eq!(raw.memtable_bytes_max, options.memtable_bytes_max);
        assert_eq!(raw.memtable_flush_bytes, options.memtable_flush_bytes);
        assert_eq!(raw.log_segment_bytes, options.segment_bytes);
        assert_eq!(raw.latest_series_max, options.latest_series_max);
        assert_eq!(raw.latest_bytes_max, options.latest_bytes_max);
        assert_eq!(raw.read_cache_bytes_max, options.array_cache_bytes_max);
        assert_eq!(raw.zstd_level, options.zstd_level as usize);
        assert_eq!((raw.ttl_default.as_str(), options.ttl_default), ("0", None));
    }

    #[test]
    fn the_configuration_reaches_the_store() {
        let config = StoreConfig {
            commit_interval_us: 1,
            memtable_bytes_max: 2,
            memtable_flush_bytes: 3,
            log_segment_bytes: 4,
            latest_series_max: 5,
            latest_bytes_max: 9,
            part_row_group_bytes: 10,
            merge_window_bytes: 11,
            merge_inputs_max: 12,
            read_batch_rows: 13,
            read_cache_bytes_max: 6,
            zstd_level: 7,
            ttl_default: Some(Duration::from_secs(8)),
        };
        let options = options(&config, Arc::new(StoreMetrics::new(&Arc::new(Metrics::new()))));
        assert_eq!((options.commit_interval_us, options.memtable_bytes_max), (1, 2));
        assert_eq!((options.memtable_flush_bytes, options.segment_bytes), (3, 4));
        assert_eq!((options.latest_series_max, options.array_cache_bytes_max), (5, 6));
        assert_eq!(options.zstd_level, 7);
        assert_eq!((options.latest_bytes_max, options.row_group_bytes), (9, 10));
        assert_eq!((options.merge_window_bytes, options.compaction.inputs_max), (11, 12));
        assert_eq!(options.series_batch_rows, 13);
        assert_eq!(options.ttl_default, config.ttl_default);
    }

    #[test]
    fn a_merge_that_panicked_is_counted() {
        let metrics = Arc::new(Metrics::new());
        StoreMetrics::new(&metrics).merge_failed("a bug on purpose");
        let text = metrics.render(&store::StoreStatus::default(), &kv::KvStatus::default(), None);
        assert!(text.contains("tacho_merge_panics_total 1"), "{text}");
    }

    #[test]
    fn the_lock_is_the_one_that_an_open_store_holds() {
        let directory = tempfile::tempdir().unwrap();
        let sources = Sources { data: Some(directory.path().into()), ..Sources::default() };
        let config = sources.load().unwrap();
        let open = |config: &Config| open(config, &Arc::new(Metrics::new()));
        let store = open(&config).unwrap();
        assert!(matches!(lock(&config.data), Err(StoreError::InUse { .. })));
        assert_eq!(holder(&config.data), Some(std::process::id().to_string()));
        store.close().unwrap();
        assert_eq!(holder(&config.data), None);
        let held = lock(&config.data).unwrap();
        assert!(matches!(open(&config), Err(StoreError::InUse { .. })));
        drop(held);
        open(&config).unwrap().close().unwrap();
    }
}
