//! One device of the ledger: it writes numbered points at QoS 1 until its connection breaks, and records every answer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::engine::Shared;
use load::recorder::{Operation, Recorder};
use parking_lot::Mutex;
use wire::mqtt::client::{Event, Limits, Session};
use wire::mqtt::{Connect, Publish, QoS};

use super::points::PointLedger;
use crate::limits::PACKET_BYTES_MAX;
use crate::mqtt::{TELEMETRY_TOPIC, Version};

/// The longest wait for an answer before the stop flag is checked.
const READ_TIMEOUT: Duration = Duration::from_millis(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEP_ALIVE_S: u16 = 60;
/// The key of the numbers.
pub(super) const KEY: &str = "n";
/// Class of a message, from its send to its PUBACK.
pub(super) const PUBLISH: u16 = 0;
const UNANSWERED: &str = "messages in flight when the server was killed";

/// The recorder of the times, and their origin.
#[derive(Clone, Copy)]
pub struct Timing<'a> {
    /// Start of the load.
    pub at: Instant,
    /// The recorder of all writers, which lock it once for each write and each read.
    pub recorder: &'a Mutex<Recorder>,
    /// Counters of the run.
    pub shared: &'a Shared,
}

impl Timing<'_> {
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.at.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// An unanswered message.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    packet_id: u16,
    number: u64,
    sent_ns: u64,
}

/// The parameters that all writers share.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) target: SocketAddr,
    pub(super) version: Version,
    pub(super) token_prefix: String,
    pub(super) window: usize,
    /// The messages per second of one writer.
    pub(super) rate: f64,
}

/// A device, its ledger, and the messages in flight when its connection broke.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) device: u32,
    pub(super) points: PointLedger,
    in_flight: VecDeque<InFlight>,
    to_resend: VecDeque<u64>,
}

/// A connection of a device.
struct Link {
    stream: TcpStream,
    session: Session,
    /// Bytes of the server that are not a whole packet yet.
    input: Vec<u8>,
    out: Vec<u8>,
}

impl Writer {
    pub(super) fn new(device: u32, base_ts_ms: u64) -> Self {
        let points = PointLedger::new(device, base_ts_ms);
        Self { device, points, in_flight: VecDeque::new(), to_resend: VecDeque::new() }
    }

    /// Writes until the connection breaks or `stop` is set. With `resend`, messages that were in flight are sent again
    /// first, as a device with a persistent queue does; otherwise they are abandoned. A refusal by the server is an
    /// error; a broken connection is not.
    pub(super) fn run(
        &mut self,
        setup: &Setup,
        resend: bool,
        stop: &AtomicBool,
        timing: Timing<'_>,
    ) -> io::Result<()> {
        self.to_resend.clear();
        let unanswered = self.in_flight.drain(..).map(|message| message.number).filter(|_| resend);
        self.to_resend.extend(unanswered);
        let outcome = self.open(setup).and_then(|link| self.write(link, setup, stop, timing));
        timing.recorder.lock().extra(PUBLISH, UNANSWERED, self.in_flight.len() as u64);
        match outcome {
            Err(e) if is_gone(&e) => Ok(()),
            other => other,
        }
    }

    fn open(&self, setup: &Setup) -> io::Result<Link> {
        let stream = TcpStream::connect_timeout(&setup.target, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        let (id, token) =
            (format!("ledger-{}", self.device), format!("{}{}", setup.token_prefix, self.device));
        let version = setup.version.on_the_wire();
        let limits = Limits { packet_bytes_max: PACKET_BYTES_MAX, messages_max: setup.window };
        let session = Session::new(version, limits);
        let mut link = Link { stream, session, input: Vec::new(), out: Vec::new() };
        let connect =
            Connect { keep_alive_s: KEEP_ALIVE_S, username: Some(&token), ..Connect::new(version, &id) };
        link.session.connect(&connect, &mut link.out).map_err(io::Error::other)?;
        link.send()?;
        while !link.session.connection().is_open() {
            link.read_more()?;
            link.take(|event, _| match event {
                Event::Connected(_) => Ok(()),
                Event::Refused(connack) => Err(self.failed(&connack.refusal(version))),
                other => Err(self.failed(&format!("{other:?}"))),
            })?;
        }
        link.stream.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(link)
    }

    fn write(
        &mut self,
        mut link: Link,
        setup: &Setup,
        stop: &AtomicBool,
        timing: Timing<'_>,
    ) -> io::Result<()> {
        let (began, mut sent) = (Instant::now(), 0_u64);
        while !stop.load(Ordering::Relaxed) {
            let allowed = (began.elapsed().as_secs_f64() * setup.rate) as u64 + 1;
            let sent_ns = timing.now_ns();
            let sent_before = sent;
            while self.in_flight.len() < setup.window && sent < allowed {
                self.publish(sent_ns, &mut link)?;
                sent += 1;
            }
            timing.record_sent(sent_ns, sent - sent_before, link.out.len() as u64);
            link.send()?;
            if self.in_flight.is_empty() {
                std::thread::sleep(Duration::from_secs_f64(1.0 / setup.rate));
                continue;
            }
            match link.read_more() {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                other => other?,
            }
            self.record_answers(&mut link, timing)?;
        }
        Ok(())
    }

    fn publish(&mut self, sent_ns: u64, link: &mut Link) -> io::Result<()> {
        let number = self.to_resend.pop_front().unwrap_or_else(|| self.points.send());
        let (ts, value) = (self.points.ts_ms(number), self.points.value(number));
        let payload = format!("{{\"ts\":{ts},\"values\":{{\"{KEY}\":{value}}}}}");
        let message = Publish::new(TELEMETRY_TOPIC, QoS::AtLeastOnce, payload.as_bytes());
        let packet_id = link.session.publish(&message, &mut link.out).map_err(io::Error::other)?;
        let packet_id = packet_id.expect("BUG: a message of QoS 1 has an identifier");
        self.in_flight.push_back(InFlight { packet_id, number, sent_ns });
        Ok(())
    }

    fn record_answers(&mut self, link: &mut Link, timing: Timing<'_>) -> io::Result<()> {
        let now_ns = timing.now_ns();
        let mut recorder = timing.recorder.lock();
        link.take(|event, length| match event {
            Event::Acknowledged { packet_id, reason, .. } if !reason.is_error() => {
                let place = self.in_flight.iter().position(|sent| sent.packet_id == packet_id);
                let place = place.expect("BUG: the session checks that the answer is to one of its messages");
                if let Some(InFlight { number, sent_ns, .. }) = self.in_flight.remove(place) {
                    self.points.ack(number);
                    recorder.completed(&operation(sent_ns), now_ns, length as u64);
                    timing.shared.add_completed(1);
                }
                Ok(())
            }
            other => Err(self.failed(&format!("{other:?}"))),
        })
    }

    fn failed(&self, what: &str) -> io::Error {
        io::Error::other(format!("device {}: {what}", self.device))
    }
}

impl Link {
    fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            count => {
                self.input.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }

    /// Calls `on_event` with each event and its size in bytes.
    fn take(&mut self, mut on_event: impl FnMut(Event<'_>, usize) -> io::Result<()>) -> io::Result<()> {
        let mut used = 0;
        while let Some((event, length)) =
            self.session.next(&self.input[used..], &mut self.out).map_err(io::Error::other)?
        {
            used += length;
            on_event(event, length)?;
        }
        self.input.drain(..used);
        Ok(())
    }
}

impl Timing<'_> {
    /// Records messages that were sent together. The loop is closed, so each was due when it was sent.
    fn record_sent(&self, sent_ns: u64, count: u64, bytes: u64) {
        let mut recorder = self.recorder.lock();
        for _ in 0..count {
            recorder.planned(sent_ns);
            recorder.sent(&operation(sent_ns), bytes / count);
        }
    }
}

fn operation(sent_ns: u64) -> Operation {
    Operation { class: PUBLISH, intended_ns: sent_ns, sent_ns }
}

/// Whether an error is that of a killed server.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionRefused
            | ErrorKind::BrokenPipe
    )
}
