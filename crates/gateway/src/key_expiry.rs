//! The expiry of an API key while a connection with it is open.

use std::future::pending;
use std::time::Duration;

use hub::caller::Caller;
use hub::clock::system_now;
use hub::registry::Registry;
use tokio::time::sleep;

/// The clock of the system may be set, so a wait looks at it again after this time.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Returns when the API key of the caller has expired; never if the caller has none, or one without an end.
pub(crate) async fn key_expired(registry: &Registry, caller: &Caller) {
    let Some(end) = registry.key_expiry(caller) else { return pending().await };
    loop {
        let left_us = end.micros().saturating_sub(system_now().micros());
        let Ok(left_us) = u64::try_from(left_us) else { return };
        if left_us == 0 {
            return;
        }
        sleep(Duration::from_micros(left_us).min(LOOK_INTERVAL)).await;
    }
}
