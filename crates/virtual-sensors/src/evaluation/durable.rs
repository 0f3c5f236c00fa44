//! Appends and commits that wait for the stores, as long as the server does not stop.

use std::time::Duration;

use hub::ThreadEnd;
use kv::WriteBatch;
use model::Batch;
use store::{Blame, Durability, Outcome, StoreError, Ticket};

use crate::host::Host;
use crate::limits::{BUSY_PAUSE, DURABLE_PAUSE};

/// Appends rows when the store takes them. It is the way in of devices: live subscribers, alarm rules and other sensors get them.
///
/// # Errors
/// The inner error is one of these rows.
pub(super) fn append(host: &Host, batch: &Batch) -> Result<Result<Ticket, StoreError>, ThreadEnd> {
    loop {
        match host.hub.ingest(batch, Durability::Fsync) {
            Err(busy) if busy.blame() == Blame::Busy => pause(host, BUSY_PAUSE)?,
            Err(error) if error.blame() == Blame::Caller => return Ok(Err(error)),
            done => return done.map(Ok).map_err(ThreadEnd::failed),
        }
    }
}

/// Waits until the rows of a ticket are durable.
///
/// # Errors
/// The store does not keep them.
pub(super) fn wait_for(host: &Host, ticket: Ticket) -> Result<(), ThreadEnd> {
    loop {
        match host.store.outcome(ticket, Durability::Fsync) {
            Outcome::Kept => return Ok(()),
            Outcome::Failed(error) => return Err(ThreadEnd::failed(error)),
            Outcome::Pending => pause(host, DURABLE_PAUSE)?,
        }
    }
}

/// Commits keys when their store takes them.
pub(super) fn commit(host: &Host, batch: &WriteBatch) -> Result<(), ThreadEnd> {
    loop {
        match host.kv.commit(batch) {
            Err(busy) if busy.blame() == Blame::Busy => pause(host, BUSY_PAUSE)?,
            done => return done.map(drop).map_err(ThreadEnd::failed),
        }
    }
}

fn pause(host: &Host, pause: Duration) -> Result<(), ThreadEnd> {
    if host.sensors.tap.is_stopped() {
        return Err(ThreadEnd::Asked);
    }
    std::thread::sleep(pause);
    Ok(())
}
