//! Bounds of the state of devices. The map has at most as many entries as the registry has devices.

use std::time::Duration;

/// Seconds of silence after which a device is inactive, unless the configuration or the device says something else.
pub const INACTIVITY_TIMEOUT_DEFAULT_S: u32 = 600;
/// Longest inactivity timeout: a hundred years. A longer one of a device counts as this one.
pub const INACTIVITY_TIMEOUT_MAX_MS: i64 = 100 * 366 * 86_400_000;
/// How far the stored `lastActivityTime` may be behind.
pub(super) const REPORT_INTERVAL_MS: i64 = 60_000;
/// Pause between two searches for silent devices.
pub(super) const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Devices whose `lastActivityTime` one search writes. The others follow in the next ones, so a fleet that connects at once does
/// not report at once.
pub(super) const REPORTS_PER_SWEEP_MAX: usize = 4_096;
/// Parts of the map, each with a lock.
pub(super) const SHARDS: usize = 64;
