//! The thread engine: one thread per connection, for blocking clients.
//!
//! In an open loop the connections of a group share one schedule. Any free connection takes the next operation, so an
//! operation waits only while all connections are busy; that wait is part of its response time. The lag of the
//! generator counts from the moment at which an operation is due and a connection is free. In a closed loop every
//! connection sends as soon as it is free.

mod connections;
mod coordinator;
mod messages;
mod open_limiter;
mod sequential;
mod state;
mod worker;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use super::segments::each_segment;
use super::{Event, Load, Outcome, Plan, Shared};
use crate::engine::event::now_ms;
use crate::error::{Error, Result};
use crate::limits::{THREAD_STACK_BYTES, THREADS_MAX};
use crate::protocol::Blocking;
use crate::recorder::Latency;
use connections::Connections;
use coordinator::{SegmentCoordinator, TICK};
use messages::WorkerMessage;
use open_limiter::OpenLimiter;
use worker::Worker;

pub use sequential::run_in_turn;

/// Opens the connections, runs the segments with a drain after each, and closes the connections.
pub fn run<B: Blocking>(
    driver: &B,
    plan: &Plan,
    shared: &Shared,
    mut on_event: impl FnMut(Event),
) -> Result<Outcome<B::Session>> {
    check(plan)?;
    let (to_main, from_workers) = mpsc::channel();
    let numbers = numbers(plan);
    let here = numbers.iter().map(|group| group.len() as u32).sum();
    let connections = Connections::new(plan.connections());
    let open_limiter = OpenLimiter::new();
    thread::scope(|scope| {
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        for (group, numbers) in numbers.iter().enumerate() {
            for number in numbers.clone() {
                let (start, on_start) = mpsc::channel();
                let worker = Worker {
                    driver,
                    plan,
                    shared,
                    number,
                    group,
                    position: f64::from(number - numbers.start) / f64::from(numbers.end - numbers.start),
                    connections: &connections,
                    open_limiter: &open_limiter,
                    to_main: to_main.clone(),
                };
                let spawned = thread::Builder::new()
                    .stack_size(THREAD_STACK_BYTES)
                    .spawn_scoped(scope, move || worker.run(&on_start))
                    .map_err(Error::io(format!("starting thread {number} of {}", plan.connections())))?;
                starts.push(start);
                handles.push(spawned);
            }
        }
        drop(to_main);
        let began = Instant::now();
        let handshakes = wait_for_open(plan, here, shared, &from_workers, &mut on_event)?;
        let connect_time = began.elapsed();
        let (run_began, run_began_ms) = (Instant::now(), now_ms());
        let segments = each_segment(plan, shared, |index, slice| {
            let at = Instant::now();
            // The monotonic clock decides: a step of the wall clock does not move the times of messages.
            let wall_ms = run_began_ms + u64::try_from((at - run_began).as_millis()).unwrap_or(0);
            let coordinator = SegmentCoordinator::new(plan, shared, &numbers, (index, slice), at, wall_ms);
            on_event(Event::Started { segment: index, at });
            for start in &starts {
                // A worker that has ended has already reported it.
                let _ = start.send(Arc::clone(&coordinator.state));
            }
            coordinator.run(&from_workers, &connections, &mut on_event)
        });
        // Workers end when their start channel is closed.
        drop(starts);
        let sessions =
            handles.into_iter().filter_map(|h| h.join().expect("BUG: a worker panicked")).collect();
        Ok(Outcome { segments, sessions, connect_time, handshakes })
    })
}

/// The connection numbers of this process in each group.
fn numbers(plan: &Plan) -> Vec<Range<u32>> {
    let (part, parts) = plan.part;
    let mut first = 0;
    let of_group = |count: &u32| {
        let at = |index: u32| first + (u64::from(*count) * u64::from(index) / u64::from(parts.max(1))) as u32;
        let range = at(part)..at(part + 1);
        first += count;
        range
    };
    plan.groups.iter().map(of_group).collect()
}

fn check(plan: &Plan) -> Result<()> {
    let connections = plan.connections().div_ceil(plan.part.1.max(1));
    if connections > THREADS_MAX {
        return Err(Error::Options(format!(
            "{connections} connections are asked for; this driver has a thread for each and can have at most \
             {THREADS_MAX}. Share the load between processes (--workers)"
        )));
    }
    if plan.busy_poll_us > 0 {
        return Err(Error::Options(
            "busy_poll_us: this driver has a thread for each connection, and that many do not poll; leave it out".to_owned(),
        ));
    }
    for load in plan.segments.iter().flat_map(|segment| &segment.loads) {
        match load {
            Load::Closed { window, .. } if *window != 1 => {
                return Err(Error::Options(format!(
                    "a window of {window} is asked for; a connection of this driver carries out one operation at a time"
                )));
            }
            Load::Reopen { .. } => {
                return Err(Error::Options(
                    "this driver opens its connections once; let operations reconnect instead".to_owned(),
                ));
            }
            Load::Sample { .. } => {
                return Err(Error::Options(
                    "this driver asks every connection, not a sample of them".to_owned(),
                ));
            }
            Load::Closed { .. } | Load::Open { .. } | Load::Idle => {}
        }
    }
    Ok(())
}

fn wait_for_open(
    plan: &Plan,
    here: u32,
    shared: &Shared,
    from_workers: &mpsc::Receiver<WorkerMessage>,
    on_event: &mut impl FnMut(Event),
) -> Result<Latency> {
    let mut reported = 0;
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    let mut handshakes = Latency::new();
    while reported < here {
        match from_workers.recv_timeout(TICK) {
            Ok(WorkerMessage::Opened(Ok(took))) => {
                reported += 1;
                handshakes.record_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            }
            Ok(WorkerMessage::Opened(Err(why))) => {
                reported += 1;
                *failures.entry(why).or_default() += 1;
            }
            Ok(WorkerMessage::Done { .. }) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Connecting(shared.opened())),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    if shared.is_stopped() {
        return Err(Error::Stopped);
    }
    if failures.is_empty() {
        return Ok(handshakes);
    }
    let reasons: Vec<String> = failures.iter().map(|(what, count)| format!("{count} x {what}")).collect();
    Err(Error::Connect {
        target: plan.target.to_string(),
        opened: shared.opened(),
        wanted: here.into(),
        reasons: reasons.join("; "),
    })
}

#[cfg(test)]
mod tests;
