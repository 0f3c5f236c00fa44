//! Bounds of claims.

use std::time::Duration;

/// How long a device can be claimed if it names no time (ThingsBoard's `security.claim.duration`).
pub const CLAIM_DURATION_DEFAULT: Duration = Duration::from_secs(86_400);
/// Longest time for which a device can be claimed.
pub const CLAIM_DURATION_MAX: Duration = Duration::from_secs(365 * 86_400);
/// Longest secret in bytes.
pub const CLAIM_SECRET_BYTES_MAX: usize = 255;
