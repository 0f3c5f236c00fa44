//! Simulates a fleet: one MQTT session per vehicle over real sockets, all on one thread.
//!
//! Vehicles report with QoS 1 and keep a report until it is acknowledged. After a lost connection a vehicle reconnects and
//! sends its reports again, with their own times, as real devices do. Even vehicles speak MQTT 5, odd ones 3.1.1.

mod credentials;
mod session;
mod summary;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clients::tls::TlsClient;
use mio::{Events, Poll, Token, Waker};

use crate::fleet::Vehicle;
use crate::limits::{
    FLEET_CONNECT_INTERVAL, FLEET_CONNECTS, FLEET_DRAIN_MAX, FLEET_EVENTS_PER_POLL, FLEET_SLEEP_MAX,
};
pub(crate) use credentials::Credentials;
use session::Session;
use summary::Summary;

const WAKER: Token = Token(usize::MAX);

/// A fleet to simulate.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The address of the MQTT door.
    pub address: SocketAddr,
    /// TLS of the connections; `None` without TLS.
    pub tls: Option<TlsClient>,
    /// Each vehicle with its device's name and access token.
    pub vehicles: Vec<(Vehicle, Credentials)>,
    /// Time between two reports of one vehicle.
    pub period: Duration,
}

/// A running fleet.
#[derive(Debug)]
pub(crate) struct Simulator {
    stop: Arc<AtomicBool>,
    waker: Arc<Waker>,
    thread: JoinHandle<Summary>,
}

impl Simulator {
    /// Starts the thread that connects the fleet and lets it drive.
    pub(crate) fn start(plan: Plan) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let stop = Arc::new(AtomicBool::new(false));
        let mut runner = Runner::new(poll, plan, Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("fleet".into()).spawn(move || runner.run())?;
        Ok(Self { stop, waker, thread })
    }

    /// Waits a moment for the last acks, disconnects, and returns the counts.
    pub(crate) fn stop(self) -> Summary {
        self.stop.store(true, Ordering::Release);
        if let Err(error) = self.waker.wake() {
            tracing::debug!(%error, "the fleet notices the stop at its next pass");
        }
        self.thread.join().unwrap_or_default()
    }
}

struct Runner {
    poll: Poll,
    stop: Arc<AtomicBool>,
    fleet: Vec<(Vehicle, Session)>,
    period: Duration,
    /// Time and vehicle of the next report. Vehicles report one after the other within a period.
    next_at: Instant,
    next_vehicle: usize,
    /// Time of the next look for vehicles that want to connect.
    connect_at: Instant,
    summary: Summary,
}

impl Runner {
    fn new(poll: Poll, plan: Plan, stop: Arc<AtomicBool>) -> Self {
        let session = |(index, (vehicle, credentials))| {
            let target = (plan.address, plan.tls.clone());
            (vehicle, Session::new(index, target, credentials, plan.period))
        };
        let fleet = plan.vehicles.into_iter().enumerate().map(session).collect();
        let next_at = Instant::now() + plan.period.min(Duration::from_secs(1));
        Self {
            poll,
            stop,
            fleet,
            period: plan.period,
            next_at,
            next_vehicle: 0,
            connect_at: Instant::now(),
            summary: Summary::default(),
        }
    }

    fn run(&mut self) -> Summary {
        let mut events = Events::with_capacity(FLEET_EVENTS_PER_POLL);
        while !self.stop.load(Ordering::Acquire) {
            self.connect();
            self.report();
            let sleep = self.next_at.saturating_duration_since(Instant::now()).min(FLEET_SLEEP_MAX);
            self.poll_once(&mut events, sleep);
        }
        self.drain(&mut events);
        self.summary
    }

    /// Waits at most for `sleep` and handles the events of the sockets.
    fn poll_once(&mut self, events: &mut Events, sleep: Duration) {
        match self.poll.poll(events, Some(sleep)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                tracing::error!(%error, "the fleet cannot wait for its sockets and stops");
                self.stop.store(true, Ordering::Release);
            }
            _ => {}
        }
        for event in events.iter().filter(|event| event.token() != WAKER) {
            if let Some((_, session)) = self.fleet.get_mut(event.token().0) {
                session.ready(self.poll.registry(), &mut self.summary);
            }
        }
    }

    fn connect(&mut self) {
        let now = Instant::now();
        if now < self.connect_at {
            return;
        }
        self.connect_at = now + FLEET_CONNECT_INTERVAL;
        let waiting = self.fleet.iter_mut().filter(|(_, session)| session.wants_to_connect(now));
        for (_, session) in waiting.take(FLEET_CONNECTS) {
            session.connect(self.poll.registry(), &mut self.summary);
        }
    }

    /// Sends the reports that are due.
    fn report(&mut self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.next_at) > self.period {
            // The machine slept or is overloaded. Missed reports are skipped.
            self.next_at = now;
        }
        let gap = self.period / self.fleet.len().max(1) as u32;
        while self.next_at <= now && !self.fleet.is_empty() {
            let (vehicle, session) = &mut self.fleet[self.next_vehicle];
            vehicle.step(self.period.as_secs_f64());
            session.report(&vehicle.report(), self.poll.registry(), &mut self.summary);
            self.next_vehicle = (self.next_vehicle + 1) % self.fleet.len();
            self.next_at += gap;
        }
    }

    fn drain(&mut self, events: &mut Events) {
        let end = Instant::now() + FLEET_DRAIN_MAX;
        while Instant::now() < end && self.fleet.iter().any(|(_, session)| session.waits_for_acks()) {
            self.poll_once(events, Duration::from_millis(20));
        }
        for (_, session) in &mut self.fleet {
            session.disconnect(self.poll.registry());
        }
    }
}
