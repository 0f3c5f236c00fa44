//! The time that the registry stores.

use model::Timestamp;

use crate::clock::system_now;

/// The time to store: whole milliseconds, as the file keeps it.
pub(super) fn now_ms() -> Timestamp {
    Timestamp::from_millis(system_now().millis()).unwrap_or_default()
}
