//! Memory pressure: how much of the available memory the process uses, and what may still begin.
//!
//! Someone samples the memory and reports it. Who is about to begin large work asks first, and refuses it or lets it wait.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::limits::{
    MEMORY_CRITICAL_PERCENT, MEMORY_HIGH_PERCENT, MEMORY_HYSTERESIS_PERCENT, MEMORY_SMALL_WORK_BYTES,
};

/// A level of memory pressure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum MemoryLevel {
    /// There is room.
    #[default]
    Normal,
    /// Above the high watermark: no large work begins, and the store gives memory back.
    High,
    /// Above the critical watermark: the server also stops reading messages.
    Critical,
}

impl MemoryLevel {
    /// The level with `used` of `available` bytes in use. A level ends only some percent below its watermark, so it does not change
    /// with each sample.
    pub fn of(used: u64, available: u64, before: Self) -> Self {
        let is_above = |level: Self, watermark: u64| {
            let percent = if before >= level { watermark - MEMORY_HYSTERESIS_PERCENT } else { watermark };
            u128::from(used) * 100 > u128::from(available) * u128::from(percent)
        };
        if is_above(Self::Critical, MEMORY_CRITICAL_PERCENT) {
            Self::Critical
        } else if is_above(Self::High, MEMORY_HIGH_PERCENT) {
            Self::High
        } else {
            Self::Normal
        }
    }

    /// The name in metrics and the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Large work may not begin, because the memory is nearly used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server uses {used} of {available} bytes of memory and begins no work of {wanted} bytes now; try again in a second"
)]
pub struct MemoryShortage {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that the process may use.
    pub available: u64,
    /// Bytes that the work takes.
    pub wanted: u64,
}

/// The memory pressure of the process. Without a report there is none.
#[derive(Debug, Default)]
pub struct MemoryPressure {
    level: AtomicU8,
    /// Bytes in use at the last report, and those of work that began since.
    used: AtomicU64,
    /// Zero before the first report.
    available: AtomicU64,
}

impl MemoryPressure {
    /// Takes a sample. Returns the level before and now.
    pub fn report(&self, used: u64, available: u64) -> (MemoryLevel, MemoryLevel) {
        let before = self.level();
        let level = MemoryLevel::of(used, available, before);
        self.used.store(used, Ordering::Relaxed);
        self.available.store(available, Ordering::Relaxed);
        self.level.store(level as u8, Ordering::Relaxed);
        (before, level)
    }

    /// The level.
    pub fn level(&self) -> MemoryLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => MemoryLevel::Normal,
            1 => MemoryLevel::High,
            _ => MemoryLevel::Critical,
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that the process may use; 0 before the first report.
    pub fn available(&self) -> u64 {
        self.available.load(Ordering::Relaxed)
    }

    /// Whether work that takes `bytes` may begin. Its bytes count from now on. Work of a few kilobytes may begin up to the critical
    /// watermark, so that small messages pass while large ones wait.
    ///
    /// # Errors
    /// The memory would be above the watermark.
    pub fn admit(&self, bytes: u64) -> Result<(), MemoryShortage> {
        self.grow(0, bytes)
    }

    /// Whether work that has taken `held` bytes may take `bytes` more.
    ///
    /// # Errors
    /// The memory would be above the watermark.
    pub fn grow(&self, held: u64, bytes: u64) -> Result<(), MemoryShortage> {
        let available = self.available();
        if available == 0 {
            return Ok(());
        }
        let (last, percent) = match held.saturating_add(bytes) <= MEMORY_SMALL_WORK_BYTES {
            true => (MemoryLevel::High, MEMORY_CRITICAL_PERCENT),
            false => (MemoryLevel::Normal, MEMORY_HIGH_PERCENT),
        };
        let used = self.used();
        let sum = used.saturating_add(bytes);
        if self.level() > last || u128::from(sum) * 100 > u128::from(available) * u128::from(percent) {
            return Err(MemoryShortage { used, available, wanted: bytes });
        }
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_begins_at_its_watermark_and_ends_below_it() {
        use MemoryLevel::{Critical, High, Normal};
        let of = |used, before| MemoryLevel::of(used, 100, before);
        assert_eq!(
            [80, 81, 90, 91, 200].map(|used| of(used, Normal)),
            [Normal, High, High, Critical, Critical]
        );
        assert_eq!([75, 76, 91].map(|used| of(used, High)), [Normal, High, Critical]);
        assert_eq!([75, 80, 85, 86].map(|used| of(used, Critical)), [Normal, High, High, Critical]);
        assert_eq!(MemoryLevel::of(u64::MAX, u64::MAX, Normal), Critical, "no overflow");
    }

    #[test]
    fn work_begins_while_there_is_room_for_it() {
        const MIB: u64 = 1024 * 1024;
        let pressure = MemoryPressure::default();
        assert_eq!(pressure.admit(u64::MAX), Ok(()), "nothing is known about the memory");
        pressure.report(60 * MIB, 100 * MIB);
        assert_eq!(pressure.admit(15 * MIB), Ok(()));
        let refused = pressure.admit(15 * MIB).unwrap_err();
        assert_eq!(refused, MemoryShortage { used: 75 * MIB, available: 100 * MIB, wanted: 15 * MIB });
        assert!(refused.to_string().contains("78643200 of 104857600 bytes"), "{refused}");
        assert_eq!(pressure.admit(5 * MIB), Ok(()));
        // A new sample counts what really is in use.
        pressure.report(60 * MIB, 100 * MIB);
        assert_eq!(pressure.admit(15 * MIB), Ok(()));
        assert_eq!(pressure.report(85 * MIB, 100 * MIB), (MemoryLevel::Normal, MemoryLevel::High));
        assert_eq!((pressure.admit(1_000), pressure.admit(MIB).is_err()), (Ok(()), true));
        assert!(pressure.grow(MIB, 1_000).is_err(), "a large body does not become larger");
        assert_eq!(pressure.report(95 * MIB, 100 * MIB).1, MemoryLevel::Critical);
        assert!(pressure.admit(1_000).is_err());
        assert_eq!((pressure.level().name(), pressure.used()), ("critical", 95 * MIB));
    }
}
