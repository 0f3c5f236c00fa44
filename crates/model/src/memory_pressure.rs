//! Memory pressure: how much of the available memory the process uses, and what may still begin.
//!
//! Someone samples the memory and reports it. Large work reserves its bytes before it begins, so that works which begin between two
//! samples know of each other. What cannot be reserved waits or is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::limits::{
    MEMORY_CRITICAL_PERCENT, MEMORY_CRITICAL_SAMPLES_MAX, MEMORY_HIGH_PERCENT, MEMORY_HYSTERESIS_PERCENT,
    MEMORY_RESERVED_PERCENT, MEMORY_SMALL_WORK_BYTES,
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
            used > part(available, percent)
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

/// A percentage of bytes.
fn part(bytes: u64, percent: u64) -> u64 {
    bytes / 100 * percent + bytes % 100 * percent / 100
}

/// Large work may not begin, because the memory is nearly used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server uses {used} of {available} bytes of memory, requests that run may take {reserved}, and this one takes {wanted}; try \
     again in a second"
)]
pub struct MemoryShortage {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that the process may use.
    pub available: u64,
    /// Bytes that work in progress has reserved.
    pub reserved: u64,
    /// Bytes that the work takes.
    pub wanted: u64,
}

/// The memory pressure of the process. Without a report there is none.
#[derive(Debug, Default)]
pub struct MemoryPressure {
    level: AtomicU8,
    /// Successive reports above the critical watermark.
    critical: AtomicU32,
    /// Bytes in use at the last report.
    used: AtomicU64,
    /// Zero before the first report.
    available: AtomicU64,
    /// Bytes of all [`MemoryReservation`]s.
    reserved: AtomicU64,
}

/// Bytes that large work may take, until this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    pressure: Arc<MemoryPressure>,
    bytes: u64,
}

impl MemoryPressure {
    /// Takes a sample. Returns the level before and now.
    pub fn report(&self, used: u64, available: u64) -> (MemoryLevel, MemoryLevel) {
        let before = self.level();
        let level = MemoryLevel::of(used, available, before);
        self.used.store(used, Ordering::Relaxed);
        self.available.store(available, Ordering::Relaxed);
        self.level.store(level as u8, Ordering::Relaxed);
        match level {
            MemoryLevel::Critical => {
                self.critical.fetch_add(1, Ordering::Relaxed);
            }
            _ => self.critical.store(0, Ordering::Relaxed),
        }
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

    /// Whether the memory has been above the critical watermark for so long that it will not be free again by itself.
    pub fn is_critical_for_long(&self) -> bool {
        self.critical.load(Ordering::Relaxed) >= MEMORY_CRITICAL_SAMPLES_MAX
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that the process may use; 0 before the first report.
    pub fn available(&self) -> u64 {
        self.available.load(Ordering::Relaxed)
    }

    /// Bytes that work in progress has reserved.
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// The error for work that takes `wanted` bytes.
    pub fn shortage(&self, wanted: u64) -> MemoryShortage {
        let (used, available, reserved) = (self.used(), self.available(), self.reserved());
        MemoryShortage { used, available, reserved, wanted }
    }

    /// Reserves memory for work that takes `bytes`.
    ///
    /// # Errors
    /// See [`MemoryReservation::grow`].
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Result<MemoryReservation, MemoryShortage> {
        let mut reservation = MemoryReservation { pressure: Arc::clone(self), bytes: 0 };
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    fn add(&self, held: u64, bytes: u64) -> Result<(), MemoryShortage> {
        let available = self.available();
        if available == 0 {
            self.reserved.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        // Work of a few kilobytes may begin up to the critical watermark, so that small messages pass while large ones wait.
        let is_small = held.saturating_add(bytes) <= MEMORY_SMALL_WORK_BYTES;
        let last = if is_small { MemoryLevel::High } else { MemoryLevel::Normal };
        let max = part(available, MEMORY_RESERVED_PERCENT);
        let add = |reserved: u64| {
            let sum = reserved.saturating_add(bytes);
            // Work that takes more than all may have runs alone.
            (is_small || sum <= max || reserved == held).then_some(sum)
        };
        let fits = self.level() <= last
            && self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok();
        if fits { Ok(()) } else { Err(self.shortage(bytes)) }
    }
}

impl MemoryReservation {
    /// Reserves more for the same work.
    ///
    /// # Errors
    /// The memory is above the high watermark (for small work: above the critical one), or all reservations would be more than their
    /// part of the memory. Then this one keeps what it has.
    pub fn grow(&mut self, bytes: u64) -> Result<(), MemoryShortage> {
        self.pressure.add(self.bytes, bytes)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.pressure.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn a_level_begins_at_its_watermark_and_ends_below_it() {
        use MemoryLevel::{Critical, High, Normal};
        let of = |used, before| MemoryLevel::of(used, 100, before);
        assert_eq!([80, 81, 90].map(|used| of(used, Normal)), [Normal, High, High]);
        assert_eq!([91, 200].map(|used| of(used, Normal)), [Critical, Critical]);
        assert_eq!([75, 76, 91].map(|used| of(used, High)), [Normal, High, Critical]);
        assert_eq!([75, 80, 85, 86].map(|used| of(used, Critical)), [Normal, High, High, Critical]);
        assert_eq!(MemoryLevel::of(u64::MAX, u64::MAX, Normal), Critical, "no overflow");
        assert_eq!(Critical.name(), "critical");
    }

    #[test]
    fn works_that_begin_at_once_share_a_part_of_the_memory() {
        let pressure = Arc::new(MemoryPressure::default());
        assert!(pressure.reserve(u64::MAX / 2).is_ok(), "nothing is known about the memory");
        pressure.report(30 * MIB, 100 * MIB);
        let mut first = pressure.reserve(30 * MIB).unwrap();
        let refused = pressure.reserve(11 * MIB).unwrap_err();
        let (used, available, reserved) = (30 * MIB, 100 * MIB, 30 * MIB);
        assert_eq!(refused, MemoryShortage { used, available, reserved, wanted: 11 * MIB });
        assert!(refused.to_string().contains("31457280 of 104857600 bytes"), "{refused}");
        let second = pressure.reserve(10 * MIB).unwrap();
        assert!(first.grow(1).is_err());
        assert!(pressure.reserve(1_000).is_ok(), "small work passes");
        drop(second);
        first.grow(70 * MIB).unwrap();
        assert_eq!(pressure.reserved(), 100 * MIB, "large work runs alone");
        drop(first);
        assert_eq!(pressure.reserved(), 0);
    }

    #[test]
    fn no_large_work_begins_above_the_high_watermark() {
        let pressure = Arc::new(MemoryPressure::default());
        pressure.report(85 * MIB, 100 * MIB);
        assert!(pressure.reserve(1_000).is_ok() && pressure.reserve(MIB).is_err());
        let mut body = pressure.reserve(MEMORY_SMALL_WORK_BYTES).unwrap();
        assert!(body.grow(1).is_err(), "a small body does not become a large one");
        assert_eq!(pressure.report(95 * MIB, 100 * MIB), (MemoryLevel::High, MemoryLevel::Critical));
        assert!(pressure.reserve(1_000).is_err() && !pressure.is_critical_for_long());
        for _ in 1..MEMORY_CRITICAL_SAMPLES_MAX {
            pressure.report(95 * MIB, 100 * MIB);
        }
        assert!(pressure.is_critical_for_long());
        pressure.report(80 * MIB, 100 * MIB);
        assert!(!pressure.is_critical_for_long());
    }
}
