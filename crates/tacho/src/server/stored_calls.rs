//! Ends and deletes persistent calls of devices whose time is over, by the system clock.

use std::sync::Arc;

use hub::Hub;
use tokio::time::MissedTickBehavior;

use crate::limits::STORED_CALLS_INTERVAL;

/// Cleans the persistent calls at an interval, as long as the runtime lives.
pub(super) async fn run(hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(STORED_CALLS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let hub = Arc::clone(&hub);
        let cleaned = tokio::task::spawn_blocking(move || hub.clean_stored_calls()).await;
        match cleaned {
            Ok(Ok(0)) => {}
            Ok(Ok(calls)) => tracing::info!(calls, "ended or deleted persistent calls whose time was over"),
            // The next interval tries again.
            Ok(Err(error)) => tracing::warn!(%error, "cannot clean persistent calls"),
            Err(error) => tracing::error!(%error, "BUG: cleaning persistent calls panicked"),
        }
    }
}
