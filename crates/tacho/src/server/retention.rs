//! Drops rows whose time to live has ended, by the system clock.

use std::sync::Arc;

use hub::Hub;
use tokio::time::MissedTickBehavior;

use crate::limits::RETENTION_INTERVAL;

/// Drops expired rows at an interval, as long as the runtime lives.
pub(super) async fn run(hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(RETENTION_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let hub = Arc::clone(&hub);
        let dropped = tokio::task::spawn_blocking(move || hub.drop_expired()).await;
        match dropped {
            Ok(Ok(0)) => {}
            Ok(Ok(rows)) => tracing::info!(rows, "dropped days that are older than their tables keep them"),
            // The next interval tries again. A sealed store has logged its own error.
            Ok(Err(error)) => tracing::warn!(%error, "cannot drop old rows"),
            Err(error) => tracing::error!(%error, "BUG: dropping old rows panicked"),
        }
    }
}
