//! The event engine: worker threads, each an epoll loop over its own connections of a sans-I/O protocol.
//!
//! A worker never waits for one connection and never sleeps past the next intended send time; its own lateness is
//! recorded as generator lag.

mod arrival;
#[cfg(test)]
mod between;
#[cfg(test)]
mod clocked;
mod connection;
mod feed;
mod holding;
mod opening;
mod poller;
mod polling;
mod reading;
mod renewal;
mod running;
mod socket;
mod worker;

pub(crate) use opening::{CONNECTS_REPEATED, GIVEN_UP, SYNS_REPEATED};
pub(crate) use running::{NOT_OPENED_IN_TIME, NOT_SENT};
pub(crate) use socket::{NO_PORT, REFUSED, RESET};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::turns::each_segment;
use super::{Ended, Event, Outcome, Plan, SegmentOutcome, Shared};
use crate::driver::Protocol;
use crate::error::{Error, Result};
use crate::recorder::{Latency, Recorder, Second, Window};
use worker::{Start, Worker};

/// From a worker to the main thread.
#[derive(Debug)]
enum FromWorker {
    Opened { failures: BTreeMap<String, u64>, handshakes: Latency },
    Second { worker: usize, second: Second },
    Segment { worker: usize, done: Box<Done> },
}

/// What one worker measured in one segment.
#[derive(Debug)]
struct Done {
    recorder: Recorder,
    /// Length of the measured part as it was.
    measured: Duration,
    ended: Ended,
    first_loss_ns: Option<u64>,
}

/// Opens the connections, runs the segments, waits for outstanding answers after each, closes the connections.
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
        let mut conductor = Conductor { plan, shared, from_workers, starts, began: Instant::now() };
        let conducted = conductor.conduct(&mut on_event);
        // Workers whose start channel is closed end at once.
        drop(conductor);
        let mut sessions = Vec::new();
        let mut failed = None;
        for handle in handles {
            match handle.join().expect("BUG: a worker panicked") {
                Ok(some) => sessions.extend(some),
                Err(error) => failed = Some(error),
            }
        }
        let (connect_time, handshakes, segments) = match (conducted, failed) {
            (_, Some(error)) | (Err(error), None) => return Err(error),
            (Ok(conducted), None) => conducted,
        };
        sessions.sort_by_key(|(number, _)| *number);
        let sessions = sessions.into_iter().map(|(_, session)| session).collect();
        Ok(Outcome { segments, sessions, connect_time, handshakes })
    })
}

/// Connection numbers of one worker, by group.
type Share = Vec<Range<u32>>;

/// Splits every group evenly over the workers of all processes, which have as many each. There is no worker without a
/// connection, and no process without one where there are as many connections as processes.
fn shares(plan: &Plan) -> Vec<Share> {
    let largest = plan.groups.iter().copied().max().unwrap_or(0);
    let (part, parts) = plan.part;
    let each = plan.threads.min(largest / parts).max(1);
    let threads = each * parts;
    let share_of = |worker: u32| -> Share {
        let mut first = 0;
        let share = plan.groups.iter().map(|&count| {
            let at = |index: u32| first + (u64::from(count) * u64::from(index) / u64::from(threads)) as u32;
            let range = at(worker)..at(worker + 1);
            first += count;
            range
        });
        share.collect()
    };
    let own = part * each..(part + 1) * each;
    own.map(share_of).filter(|share| share.iter().any(|range| !range.is_empty())).collect()
}

const TICK: Duration = Duration::from_millis(100);

/// Leads the workers through the run.
struct Conductor<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    from_workers: mpsc::Receiver<FromWorker>,
    starts: Vec<mpsc::Sender<Start>>,
    began: Instant,
}

type Conducted = (Duration, Latency, Vec<SegmentOutcome>);

impl Conductor<'_> {
    fn conduct(&mut self, on_event: &mut impl FnMut(Event)) -> Result<Conducted> {
        let handshakes = self.wait_for_open(on_event)?;
        let connect_time = self.began.elapsed();
        let (run_began, run_began_ms) = (Instant::now(), now_ms());
        let segments = each_segment(self.plan, self.shared, |segment, turn| {
            let at = Instant::now();
            // By the monotonic clock: a step of the wall clock does not turn back the times of messages.
            let wall_ms = run_began_ms + u64::try_from((at - run_began).as_millis()).unwrap_or(0);
            on_event(Event::Started { segment, at });
            for start in &self.starts {
                // A worker that is gone has its reason in its result.
                let _ = start.send(Start { segment, turn, at, wall_ms });
            }
            self.collect(self.plan.segments[segment].in_turn(turn).window(), wall_ms, on_event)
        });
        Ok((connect_time, handshakes, segments))
    }

    fn wait_for_open(&self, on_event: &mut impl FnMut(Event)) -> Result<Latency> {
        let mut reported = 0;
        let mut failures = BTreeMap::new();
        let mut all = Latency::new();
        while reported < self.starts.len() {
            match self.from_workers.recv_timeout(TICK) {
                Ok(FromWorker::Opened { failures: some, handshakes }) => {
                    reported += 1;
                    all.merge(&handshakes);
                    some.into_iter().for_each(|(what, count)| *failures.entry(what).or_insert(0) += count);
                }
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Connecting(self.shared.opened())),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        if self.shared.is_stopped() {
            return Err(Error::Stopped);
        }
        if failures.is_empty() {
            return Ok(all);
        }
        let reasons: Vec<String> = failures.iter().map(|(what, count)| format!("{count} x {what}")).collect();
        Err(Error::Connect {
            target: self.plan.target.to_string(),
            opened: self.shared.opened(),
            wanted: shares(self.plan).iter().flatten().map(|range| range.len() as u64).sum(),
            reasons: reasons.join("; "),
        })
    }

    /// Merges what the workers measure, hands on their seconds in order, until the last worker is done.
    fn collect(&self, window: Window, started_ms: u64, on_event: &mut impl FnMut(Event)) -> SegmentOutcome {
        let workers = self.starts.len();
        let classes = self.plan.classes.len();
        let mut seconds = Seconds::new(workers, classes);
        let mut outcome = SegmentOutcome {
            recorder: Recorder::new(window, classes),
            started_ms,
            measured: Duration::ZERO,
            ended: Ended::Finished,
            first_loss_s: None,
        };
        let mut done = 0;
        while done < workers {
            match self.from_workers.recv_timeout(TICK) {
                Ok(FromWorker::Second { worker, second }) => seconds.add(worker, second),
                Ok(FromWorker::Segment { worker, done: part }) => {
                    done += 1;
                    seconds.end(worker);
                    outcome.add(&part);
                }
                Ok(FromWorker::Opened { .. }) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => on_event(Event::Tick),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            while let Some(second) = seconds.next_complete() {
                on_event(Event::Second(Box::new(second)));
            }
        }
        outcome
    }
}

impl SegmentOutcome {
    fn add(&mut self, part: &Done) {
        self.recorder.merge(&part.recorder);
        self.measured = self.measured.max(part.measured);
        self.ended = self.ended.max(part.ended);
        let loss_s = part.first_loss_ns.map(|ns| ns as f64 / 1e9);
        self.first_loss_s = match (self.first_loss_s, loss_s) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// Seconds of several workers, merged and in order. A worker that is done counts as having ended every second.
struct Seconds {
    classes: usize,
    open: BTreeMap<u64, Second>,
    /// Per worker, seconds ended.
    ended: Vec<u64>,
    next: u64,
}

impl Seconds {
    fn new(workers: usize, classes: usize) -> Self {
        Self { classes, open: BTreeMap::new(), ended: vec![0; workers], next: 0 }
    }

    fn add(&mut self, worker: usize, second: Second) {
        self.ended[worker] = second.index + 1;
        match self.open.get_mut(&second.index) {
            Some(open) => open.merge(&second),
            None => _ = self.open.insert(second.index, second),
        }
    }

    fn end(&mut self, worker: usize) {
        self.ended[worker] = u64::MAX;
    }

    fn next_complete(&mut self) -> Option<Second> {
        let (&last, _) = self.open.last_key_value()?;
        let complete = self.ended.iter().copied().min().unwrap_or(0);
        if self.next >= complete || self.next > last {
            return None;
        }
        let index = self.next;
        self.next += 1;
        Some(self.open.remove(&index).unwrap_or_else(|| Second::new(index, self.classes)))
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Connect;
    use super::*;

    fn plan(groups: &[u32], threads: u32) -> Plan {
        Plan {
            target: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
            sources: Vec::new(),
            groups: groups.to_vec(),
            classes: vec!["one".to_owned()],
            threads,
            part: (0, 1),
            open_rate: None,
            connect: Connect::default(),
            tick_us: 0,
            busy_poll_us: 0,
            silence: Duration::from_secs(1),
            segments: Vec::new(),
        }
    }

    #[test]
    fn every_connection_belongs_to_exactly_one_worker() {
        let cases: [(&[u32], u32); 6] =
            [(&[1], 1), (&[1], 4), (&[10], 3), (&[19_900], 2), (&[7], 7), (&[600, 2_100, 300], 2)];
        for (groups, threads) in cases {
            let plan = plan(groups, threads);
            let shares = shares(&plan);
            let mut numbers: Vec<u32> = shares.iter().flatten().cloned().flatten().collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..plan.connections()).collect::<Vec<_>>());
            assert!(shares.iter().all(|share| share.iter().any(|range| !range.is_empty())));
            for share in &shares {
                let mut first = 0;
                for (range, count) in share.iter().zip(groups) {
                    assert!(range.start >= first && range.end <= first + count, "{share:?} of {groups:?}");
                    first += count;
                }
            }
        }
    }

    #[test]
    fn parts_of_several_processes_make_up_the_whole() {
        for (connections, threads, parts) in
            [(10, 1, 3), (10, 2, 3), (2, 1, 4), (1_000, 4, 2), (100, 4, 51), (51, 2, 51)]
        {
            let mut numbers = Vec::new();
            for part in 0..parts {
                let plan = Plan { part: (part, parts), ..plan(&[connections], threads) };
                let own: Vec<u32> = shares(&plan).into_iter().flatten().flatten().collect();
                assert!(
                    !own.is_empty() || connections < parts,
                    "process {part} of {parts} has something to do"
                );
                numbers.extend(own);
            }
            assert_eq!(numbers, (0..connections).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seconds_come_in_order_and_a_worker_that_is_done_holds_none_back() {
        let mut seconds = Seconds::new(2, 1);
        seconds.add(0, Second::new(0, 1));
        seconds.add(0, Second::new(1, 1));
        assert!(seconds.next_complete().is_none(), "the other worker has not ended second 0");
        seconds.add(1, Second::new(0, 1));
        assert_eq!(seconds.next_complete().map(|s| s.index), Some(0));
        assert!(seconds.next_complete().is_none());
        seconds.end(1);
        assert_eq!(seconds.next_complete().map(|s| s.index), Some(1));
        assert!(seconds.next_complete().is_none());
    }
}
