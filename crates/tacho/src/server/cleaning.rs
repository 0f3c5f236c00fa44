//! Ends and deletes what devices no longer need, by the system clock.

use std::sync::Arc;

use hub::Hub;
use tokio::time::MissedTickBehavior;

use crate::limits::CLEANING_INTERVAL;

/// What is cleaned, in words, and the operation that returns the number of the ended or deleted ones.
type Cleaning = (&'static str, fn(&Hub) -> Result<usize, hub::Error>);

const CLEANINGS: [Cleaning; 2] = [
    ("persistent calls whose time is over", Hub::clean_stored_calls),
    ("uploads of packages that did not end", Hub::clean_packages),
];

/// Cleans at an interval, as long as the runtime lives.
pub(super) async fn run(hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(CLEANING_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for (what, clean) in CLEANINGS {
            let hub = Arc::clone(&hub);
            match tokio::task::spawn_blocking(move || clean(&hub)).await {
                Ok(Ok(0)) => {}
                Ok(Ok(count)) => tracing::info!(count, what, "ended or deleted what is over"),
                // The next interval tries again.
                Ok(Err(error)) => tracing::warn!(%error, what, "cannot clean"),
                Err(error) => tracing::error!(%error, what, "BUG: a cleaning panicked"),
            }
        }
    }
}
