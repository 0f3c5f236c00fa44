//! Watches the memory of the process: reports the pressure to those who begin large work, and gives memory back.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hub::Hub;
use model::limits::MEMORY_SAMPLE_INTERVAL;
use model::{MemoryLevel, PanicEndsProcess};

use super::allocator;
use crate::config::{Counted, Memory, file_bytes, group_bytes, own_bytes};
use crate::limits::{
    MEMORY_RELIEF_INTERVAL, MEMORY_REPORT_INTERVAL, PROGRAM_SHARE_MAX, TRIM_INTERVAL, TRIM_RATIO,
    TRIM_RETAINED_BYTES, TRIM_RETAINED_BYTES_MIN,
};

/// The thread that watches the memory. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct MemoryGuard {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryGuard {
    /// Starts to watch the limits.
    pub(super) fn start(hub: &Arc<Hub>, limits: Vec<Memory>) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let hub = Arc::downgrade(hub);
        let thread = std::thread::Builder::new().name("memory".to_owned()).spawn(move || {
            let _guard = PanicEndsProcess::begin();
            Watch::new(limits).run(&hub, &stopped);
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there ends the process.
            let _ = thread.join();
        }
    }
}

/// What the thread remembers.
struct Watch {
    limits: Vec<Memory>,
    trims: Trims,
    relieved: Option<Instant>,
    reported: Option<Instant>,
}

impl Watch {
    fn new(limits: Vec<Memory>) -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let limits: Vec<_> =
            limits.into_iter().map(|limit| without_program(limit, file_bytes(&statm))).collect();
        let available = limits.first().map_or(u64::MAX, |least| least.bytes);
        Self { limits, trims: Trims::new(available), relieved: None, reported: None }
    }

    fn run(mut self, hub: &Weak<Hub>, stopped: &Receiver<()>) {
        while stopped.recv_timeout(MEMORY_SAMPLE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let Some(hub) = hub.upgrade() else { return };
            self.sample(&hub);
        }
    }

    fn sample(&mut self, hub: &Hub) {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let (resident, allocated) =
            (own_bytes(&statm, Counted::Resident).unwrap_or(0), query::allocated_bytes());
        let now = Instant::now();
        let Some((used, limit)) = most_used(&self.limits, &statm) else { return };
        let (before, level) = hub.memory_pressure().report(used, limit.bytes);
        let reserved = hub.memory_pressure().reserved();
        tracing::trace!(used, resident, allocated, reserved, level = level.name(), "a sample of the memory");
        if level > MemoryLevel::Normal && is_due(self.relieved, MEMORY_RELIEF_INTERVAL, now) {
            self.relieved = Some(now);
            hub.relieve_memory();
        }
        if level > before && is_due(self.reported, MEMORY_REPORT_INTERVAL, now) {
            self.reported = Some(now);
            tracing::warn!(
                used,
                allocated,
                limit = limit.bytes,
                from = limit.from,
                level = level.name(),
                "memory pressure: large requests and statements wait or are refused until memory is free"
            );
        }
        if self.trims.is_worth_it(resident, allocated, level, now) {
            allocator::trim();
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            let left = own_bytes(&statm, Counted::Resident).unwrap_or(0);
            let took = now.elapsed();
            tracing::debug!(resident, left, allocated, ?took, "gave free memory back to the system");
            self.trims.done(left, query::allocated_bytes(), Instant::now());
        }
    }
}

/// What a control group leaves for data besides the program that runs. The kernel can drop the pages of its file, but they are read
/// again at once; without room for them the process gets slow before it is killed.
fn without_program(limit: Memory, file_bytes: u64) -> Memory {
    let fixed = match limit.counts {
        Counted::Group => file_bytes.min(limit.bytes / PROGRAM_SHARE_MAX),
        _ => return limit,
    };
    Memory { bytes: limit.bytes - fixed, fixed, ..limit }
}

/// The limit of which the largest part is used, and its used bytes.
fn most_used<'a>(limits: &'a [Memory], statm: &str) -> Option<(u64, &'a Memory)> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let used = |limit: &Memory| {
        let own = own_bytes(statm, limit.counts)?;
        let used = match limit.counts {
            // The group of another version may not tell its usage.
            Counted::Group => group_bytes(&limit.from, read).unwrap_or(own).max(own),
            _ => own.saturating_sub(limit.fixed),
        };
        Some(used)
    };
    let of_all = limits.iter().filter_map(|limit| Some((used(limit)?, limit)));
    of_all.max_by_key(|(used, limit)| u128::from(*used) * 1_000 / u128::from(limit.bytes.max(1)))
}

fn is_due(last: Option<Instant>, interval: Duration, now: Instant) -> bool {
    last.is_none_or(|last| now.saturating_duration_since(last) >= interval)
}

/// Decides when the allocator gives free memory back to the system. It keeps what is freed between blocks that are in use, and does
/// not give it back by itself.
#[derive(Debug)]
struct Trims {
    /// Free bytes that the allocator may keep.
    kept_max: u64,
    last: Option<Instant>,
    /// Free bytes that the last trim has left: they are in pages that also have blocks in use.
    left: u64,
}

impl Trims {
    fn new(available: u64) -> Self {
        let kept_max = (available / 16).clamp(TRIM_RETAINED_BYTES_MIN, TRIM_RETAINED_BYTES);
        Self { kept_max, last: None, left: 0 }
    }

    /// Whether a trim probably gives much back.
    fn is_worth_it(&self, resident: u64, allocated: u64, level: MemoryLevel, now: Instant) -> bool {
        let kept = resident.saturating_sub(allocated);
        let (kept_max, interval) = match level {
            MemoryLevel::Normal => (self.kept_max.max(allocated / TRIM_RATIO), TRIM_INTERVAL),
            // The memory is short: less is worth a trim.
            MemoryLevel::High | MemoryLevel::Critical => (self.kept_max / 2, TRIM_INTERVAL / 4),
        };
        kept > self.left + kept_max && is_due(self.last, interval, now)
    }

    fn done(&mut self, resident: u64, allocated: u64, now: Instant) {
        self.left = resident.saturating_sub(allocated);
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn memory_is_given_back_after_a_peak_and_not_while_it_is_in_use() {
        let mut trims = Trims::new(u64::MAX);
        let (normal, now) = (MemoryLevel::Normal, Instant::now());
        assert!(!trims.is_worth_it(900 * MIB, 850 * MIB, normal, now), "it is in use");
        assert!(trims.is_worth_it(900 * MIB, 100 * MIB, normal, now));
        trims.done(160 * MIB, 100 * MIB, now);
        assert!(!trims.is_worth_it(900 * MIB, 100 * MIB, normal, now), "the last trim was just now");
        let later = now + TRIM_INTERVAL;
        assert!(!trims.is_worth_it(190 * MIB, 100 * MIB, normal, later), "the last trim has left as much");
        assert!(trims.is_worth_it(300 * MIB, 100 * MIB, normal, later));
    }

    #[test]
    fn little_memory_is_given_back_earlier() {
        let trims = Trims::new(256 * MIB);
        let now = Instant::now();
        assert!(trims.is_worth_it(117 * MIB, 100 * MIB, MemoryLevel::High, now));
        assert!(!trims.is_worth_it(117 * MIB, 100 * MIB, MemoryLevel::Normal, now));
        assert!(trims.is_worth_it(130 * MIB, 100 * MIB, MemoryLevel::Normal, now));
    }

    #[test]
    fn the_limit_that_is_used_most_counts() {
        let limit = |bytes, counts, fixed| Memory { bytes, from: String::new(), counts, fixed };
        let page = own_bytes("1 0 0 0 0 0 0", Counted::AddressSpace).unwrap();
        let statm = "100 50 10 0 0 60 0";
        let limits = [
            limit(1_000 * page, Counted::Resident, 0),
            limit(100 * page, Counted::Data, 10 * page),
            limit(300 * page, Counted::AddressSpace, 40 * page),
        ];
        let (used, most) = most_used(&limits, statm).unwrap();
        assert_eq!((used, most.counts), (50 * page, Counted::Data));
        assert_eq!(most_used(&limits[..1], statm).unwrap().0, 40 * page);
        assert!(most_used(&limits, "").is_none());
        assert!(most_used(&[], statm).is_none());
    }

    #[test]
    fn a_group_has_room_for_the_program() {
        let limit = |counts| Memory { bytes: 256 * MIB, from: String::new(), counts, fixed: 0 };
        let left = |counts, file| without_program(limit(counts), file * MIB).bytes / MIB;
        assert_eq!((left(Counted::Group, 40), left(Counted::Group, 400)), (216, 192));
        assert_eq!(left(Counted::Resident, 40), 256);
    }
}
