//! Drops rows whose time to live has ended, by the system clock, and what deleted tenants and databases have left.

use std::sync::Arc;

use hub::Hub;
use tokio::task::spawn_blocking;
use tokio::time::MissedTickBehavior;

use crate::limits::RETENTION_INTERVAL;

/// Drops expired rows at an interval, and the tables of deleted tenants and databases, as long as the runtime lives.
pub(super) async fn run(hub: Arc<Hub>) {
    let mut ticks = tokio::time::interval(RETENTION_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut deletions = hub.deletions();
    // What an earlier process has left.
    let mut are_tables_left = true;
    loop {
        tokio::select! {
            _ = ticks.tick() => drop_expired(Arc::clone(&hub)).await,
            changed = deletions.changed() => {
                changed.expect("BUG: the hub lives as long as this task");
                are_tables_left = true;
            }
        }
        if are_tables_left {
            are_tables_left = !drop_deleted_tables(Arc::clone(&hub)).await;
        }
    }
}

async fn drop_expired(hub: Arc<Hub>) {
    match spawn_blocking(move || hub.drop_expired()).await {
        Ok(Ok(0)) => {}
        Ok(Ok(rows)) => tracing::info!(rows, "dropped days that are older than their tables keep them"),
        // The next interval tries again. A sealed store has logged its own error.
        Ok(Err(error)) => tracing::warn!(%error, "cannot drop old rows"),
        Err(error) => tracing::error!(%error, "BUG: dropping old rows panicked"),
    }
}

/// Returns whether none are left. Otherwise the next interval tries again.
async fn drop_deleted_tables(hub: Arc<Hub>) -> bool {
    match spawn_blocking(move || hub.drop_deleted_tables()).await {
        Ok(Ok(0)) => true,
        Ok(Ok(tables)) => {
            tracing::info!(tables, "dropped the tables of deleted tenants and databases");
            true
        }
        Ok(Err(error)) => {
            tracing::warn!(%error, "tables of deleted tenants and databases are still on the disk");
            false
        }
        Err(error) => {
            tracing::error!(%error, "BUG: dropping tables of deleted tenants panicked");
            true
        }
    }
}
