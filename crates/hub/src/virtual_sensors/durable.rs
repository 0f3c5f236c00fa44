//! Appends and commits that wait for the stores, as long as the server does not stop.

use std::time::Duration;

use kv::WriteBatch;
use model::Batch;
use store::{Blame, Durability, Outcome, StoreError, Ticket};

use super::limits::{BUSY_PAUSE, DURABLE_PAUSE};
use crate::hub::Hub;
use crate::stopped::Stopped;

/// Appends rows when the store takes them. It is the way in of devices: live subscribers, alarm rules and other sensors get them.
///
/// # Errors
/// The inner error is one of these rows.
pub(super) fn append(hub: &Hub, batch: &Batch) -> Result<Result<Ticket, StoreError>, Stopped> {
    loop {
        match hub.ingest(batch, Durability::Fsync) {
            Err(busy) if busy.blame() == Blame::Busy => pause(hub, BUSY_PAUSE)?,
            Err(error) if error.blame() == Blame::Caller => return Ok(Err(error)),
            done => return done.map(Ok).map_err(Stopped::failed),
        }
    }
}

/// Waits until the rows of a ticket are durable.
///
/// # Errors
/// The store does not keep them.
pub(super) fn wait_for(hub: &Hub, ticket: Ticket) -> Result<(), Stopped> {
    loop {
        match hub.store.outcome(ticket, Durability::Fsync) {
            Outcome::Kept => return Ok(()),
            Outcome::Failed(error) => return Err(Stopped::failed(error)),
            Outcome::Pending => pause(hub, DURABLE_PAUSE)?,
        }
    }
}

/// Commits keys when their store takes them.
pub(super) fn commit(hub: &Hub, batch: &WriteBatch) -> Result<(), Stopped> {
    loop {
        match hub.kv.commit(batch) {
            Err(busy) if busy.blame() == Blame::Busy => pause(hub, BUSY_PAUSE)?,
            done => return done.map(drop).map_err(Stopped::failed),
        }
    }
}

fn pause(hub: &Hub, pause: Duration) -> Result<(), Stopped> {
    if hub.sensors.tap.is_stopped() {
        return Err(Stopped::Asked);
    }
    std::thread::sleep(pause);
    Ok(())
}
