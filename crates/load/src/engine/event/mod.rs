//! The event engine: worker threads, each with an epoll loop over its own connections of a sans-I/O protocol.
//!
//! A worker never waits for a single connection and never sleeps past the next intended send time. It records its own
//! lateness as generator lag.

mod connection;
mod coordinator;
mod deferred_reads;
mod feed;
mod load;
mod messages;
mod opening;
#[cfg(test)]
mod poll_tests;
mod poller;
mod polling;
mod reading;
mod renewal;
mod seconds;
mod segment_clock;
mod shares;
mod socket;
mod timestamped_reader;
#[cfg(test)]
mod timing_tests;
mod waiting;
mod wall_clock;
mod worker;

pub use load::{NOT_OPENED_IN_TIME, NOT_SENT};
pub use opening::{CONNECTS_REPEATED, GIVEN_UP, SYNS_REPEATED};
pub use socket::{NO_PORT, REFUSED, RESET};
pub use wall_clock::now_ms;

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::{Event, Outcome, Plan, Shared};
use crate::error::Result;
use crate::protocol::Protocol;
use coordinator::Coordinator;
use shares::shares;
use worker::Worker;

/// Opens the connections, runs the segments with a drain after each, and closes the connections.
pub fn run<P: Protocol>(
    protocol: &P,
    plan: &Plan,
    shared: &Shared,
    mut on_event: impl FnMut(Event),
) -> Result<Outcome<P::Session>> {
    let shares = shares(plan);
    let (to_main, from_workers) = mpsc::channel();
    thread::scope(|scope| {
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        for (index, share) in shares.iter().enumerate() {
            let (start, on_start) = mpsc::channel();
            let to_main = to_main.clone();
            starts.push(start);
            handles.push(
                scope.spawn(move || {
                    Worker::new(protocol, plan, shared, index, share, to_main)?.run(&on_start)
                }),
            );
        }
        drop(to_main);
        let mut coordinator = Coordinator { plan, shared, from_workers, starts, began: Instant::now() };
        let coordinated = coordinator.run(&mut on_event);
        // Workers end when their start channel is closed.
        drop(coordinator);
        let mut sessions = Vec::new();
        let mut failed = None;
        for handle in handles {
            match handle.join().expect("BUG: a worker panicked") {
                Ok(some) => sessions.extend(some),
                Err(error) => failed = Some(error),
            }
        }
        let (connect_time, handshakes, segments) = match (coordinated, failed) {
            (_, Some(error)) | (Err(error), None) => return Err(error),
            (Ok(coordinated), None) => coordinated,
        };
        sessions.sort_by_key(|(number, _)| *number);
        let sessions = sessions.into_iter().map(|(_, session)| session).collect();
        Ok(Outcome { segments, sessions, connect_time, handshakes })
    })
}
