//! The system clock, and the time that the registry stores.

use std::time::{SystemTime, UNIX_EPOCH};

use model::Timestamp;

/// The time to store: whole milliseconds, as the file keeps it.
pub(super) fn now_ms() -> Timestamp {
    Timestamp::from_millis(system_now().millis()).unwrap_or_default()
}

/// The system clock.
pub fn system_now() -> Timestamp {
    let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    };
    Timestamp::from_micros(micros)
}
