//! The load generator: worker threads, each an epoll loop over its own connections.
//!
//! A worker never waits for one connection and never sleeps past the next intended send time; its own lateness is
//! recorded as generator lag.

pub(crate) mod codec;
mod connection;
mod handshake;
mod poller;
mod running;
mod worker;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub use codec::Protocol;
pub use connection::Tally;

use crate::error::{Error, Result};
use crate::payload::Template;
use crate::recorder::{Recorder, Second, Window};
use crate::schedule::Arrivals;
use worker::{Start, Worker};

/// What the connections do once all are open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Send on a schedule, whatever the server does.
    Open {
        /// Messages per second over all connections.
        rate: f64,
        /// How they are spread.
        arrivals: Arrivals,
        /// Seed of the schedule.
        seed: u64,
    },
    /// Keep `window` messages in flight on every connection.
    Closed {
        /// Messages in flight per connection.
        window: usize,
    },
    /// Stay connected and send nothing but pings.
    Idle,
}

/// A run as the generator sees it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// MQTT listener.
    pub target: SocketAddr,
    /// Connections, one per device, devices 0..connections.
    pub connections: u32,
    /// Worker threads.
    pub threads: u32,
    /// Protocol version of all connections.
    pub protocol: Protocol,
    /// Device n authenticates with the user name `<token_prefix>n`.
    pub token_prefix: String,
    /// Keep-alive announced and kept.
    pub keep_alive_s: u16,
    /// Open loop: the workers look at sockets and schedule at most this often, microseconds; 0 for at once. What it
    /// adds to a latency is counted in it.
    pub tick_us: u32,
    /// What each message says.
    pub payload: Template,
    /// What the connections do.
    pub load: Load,
    /// Beginning of the load that is not measured.
    pub warmup: Duration,
    /// Measured part.
    pub duration: Duration,
    /// Longest wait for outstanding answers after the end of the load.
    pub drain: Duration,
    /// No timestamp lies before this one, milliseconds since the epoch.
    pub floor_ts_ms: u64,
}

impl Plan {
    /// The measured part, after the start of the load.
    pub fn window(&self) -> Window {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Window { from_ns: nanos(self.warmup), until_ns: nanos(self.warmup + self.duration) }
    }
}

/// What a run tells while it goes on, to a progress display and to whoever samples the server.
#[derive(Debug)]
pub enum Event {
    /// So many connections are open.
    Connecting(u64),
    /// All are open; the load starts now.
    Started {
        /// Start of the load.
        at: Instant,
    },
    /// A second of all workers together.
    Second(Box<Second>),
    /// Nothing happened for a moment; lets the receiver keep time.
    Tick,
}

/// Counters all threads see, for figures per message.
#[derive(Debug, Default)]
pub struct Shared {
    opened: AtomicU64,
    acked: AtomicU64,
}

impl Shared {
    /// Messages acknowledged so far.
    pub fn acked(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    pub(crate) fn add_acked(&self, count: u64) {
        self.acked.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a run brought.
#[derive(Debug)]
pub struct Outcome {
    /// Histograms and counters.
    pub recorder: Recorder,
    /// Per device, by index.
    pub tallies: Vec<Tally>,
    /// Time to open all connections.
    pub connect_time: Duration,
    /// First possible timestamp of this run, milliseconds.
    pub base_ts_ms: u64,
}

/// Opens the connections, runs the load, waits for outstanding answers, disconnects.
pub fn run(plan: &Plan, shared: &Shared, mut on_event: impl FnMut(Event)) -> Result<Outcome> {
    let shares = shares(plan.connections, plan.threads);
    let (to_main, from_workers) = mpsc::channel();
    thread::scope(|scope| {
        let mut starts = Vec::new();
        let mut handles = Vec::new();
        for (index, devices) in shares.iter().enumerate() {
            let (start, on_start) = mpsc::channel();
            let to_main = to_main.clone();
            let devices = devices.clone();
            starts.push(start);
            handles.push(
                scope.spawn(move || Worker::new(plan, index, devices, shared, to_main)?.run(&on_start)),
            );
        }
        drop(to_main);
        let opened = wait_for_open(plan, shares.len(), shared, &from_workers, &mut on_event);
        let (at, base_ts_ms) = (Instant::now(), now_ms().max(plan.floor_ts_ms));
        if opened.is_ok() {
            on_event(Event::Started { at });
            for start in &starts {
                // A worker that is gone has its reason in its result.
                let _ = start.send(Start { at, base_ts_ms });
            }
        }
        // Workers whose start channel closes without a start end at once.
        drop(starts);
        forward_seconds(shares.len(), &from_workers, &mut on_event);
        let mut outcome = Outcome {
            recorder: Recorder::new(plan.window()),
            tallies: Vec::new(),
            connect_time: opened?,
            base_ts_ms,
        };
        for handle in handles {
            let (recorder, tallies) = handle.join().expect("BUG: a worker panicked")?;
            outcome.recorder.merge(&recorder);
            outcome.tallies.extend(tallies);
        }
        Ok(outcome)
    })
}

/// From a worker to the main thread.
#[derive(Debug)]
pub(crate) enum FromWorker {
    Opened { failures: BTreeMap<String, u64> },
    Second(Second),
}

fn shares(connections: u32, threads: u32) -> Vec<std::ops::Range<u32>> {
    let threads = threads.clamp(1, connections.max(1));
    let at = |index: u32| (u64::from(connections) * u64::from(index) / u64::from(threads)) as u32;
    (0..threads).map(|index| at(index)..at(index + 1)).collect()
}

const TICK: Duration = Duration::from_millis(100);

fn wait_for_open(
    plan: &Plan,
    workers: usize,
    shared: &Shared,
    from_workers: &mpsc::Receiver<FromWorker>,
    on_event: &mut impl FnMut(Event),
) -> Result<Duration> {
    let began = Instant::now();
    let mut reported = 0;
    let mut failures = BTreeMap::new();
    while reported < workers {
        match from_workers.recv_timeout(TICK) {
            Ok(FromWorker::Opened { failures: some }) => {
                reported += 1;
                some.into_iter().for_each(|(what, count)| *failures.entry(what).or_insert(0) += count);
            }
            Ok(FromWorker::Second(_)) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => {
                on_event(Event::Connecting(shared.opened.load(Ordering::Relaxed)));
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    if failures.is_empty() {
        return Ok(began.elapsed());
    }
    let reasons: Vec<String> = failures.iter().map(|(what, count)| format!("{count} x {what}")).collect();
    Err(Error::Connect {
        target: plan.target.to_string(),
        opened: shared.opened.load(Ordering::Relaxed),
        wanted: plan.connections.into(),
        reasons: reasons.join("; "),
    })
}

/// Merges the seconds of all workers and hands them on in order, until the last worker hangs up.
fn forward_seconds(
    workers: usize,
    from_workers: &mpsc::Receiver<FromWorker>,
    on_event: &mut impl FnMut(Event),
) {
    let mut open: BTreeMap<u64, (usize, Second)> = BTreeMap::new();
    loop {
        match from_workers.recv_timeout(TICK) {
            Ok(FromWorker::Second(second)) => {
                let index = second.index;
                let entry = open.entry(index).or_insert_with(|| (0, Second { index, ..Second::default() }));
                entry.0 += 1;
                entry.1.merge(&second);
                if entry.0 == workers
                    && let Some((_, merged)) = open.remove(&index)
                {
                    on_event(Event::Second(Box::new(merged)));
                }
            }
            Ok(FromWorker::Opened { .. }) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Tick),
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_belongs_to_exactly_one_worker() {
        for (connections, threads) in [(1, 1), (1, 4), (10, 3), (19_900, 2), (7, 7)] {
            let shares = shares(connections, threads);
            let devices: Vec<u32> = shares.iter().cloned().flatten().collect();
            assert_eq!(devices, (0..connections).collect::<Vec<_>>());
            assert!(shares.iter().all(|s| !s.is_empty()));
        }
    }
}
