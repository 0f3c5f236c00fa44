//! One device of the ledger: it writes numbered points at QoS 1 until its connection breaks, and records every answer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use wire::mqtt::{ConnectReturnCode, Packet, ProtocolVersion, QoS, encode_publish};

use super::points::PointLedger;
use crate::engine::Shared;
use crate::recorder::{Operation, Recorder};
use crate::target::mqtt::Version as Protocol;
use crate::target::mqtt::codec::{TELEMETRY_TOPIC, connect, next_packet};

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
    pub(super) protocol: Protocol,
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
    next_packet_id: u16,
}

impl Writer {
    pub(super) fn new(device: u32, base_ts_ms: u64) -> Self {
        let points = PointLedger::new(device, base_ts_ms);
        Self { device, points, in_flight: VecDeque::new(), to_resend: VecDeque::new(), next_packet_id: 1 }
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
        let mut input = Vec::new();
        let outcome = self
            .open(setup, &mut input)
            .and_then(|stream| self.write(stream, setup, &mut input, stop, timing));
        timing.recorder.lock().extra(PUBLISH, UNANSWERED, self.in_flight.len() as u64);
        match outcome {
            Err(e) if is_gone(&e) => Ok(()),
            other => other,
        }
    }

    fn open(&self, setup: &Setup, input: &mut Vec<u8>) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&setup.target, CONNECT_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
        let (id, token) =
            (format!("ledger-{}", self.device), format!("{}{}", setup.token_prefix, self.device));
        let mut packet = Vec::new();
        connect(&mut packet, setup.protocol, &id, &token, KEEP_ALIVE_S);
        stream.write_all(&packet)?;
        loop {
            read_more(&mut stream, input)?;
            let Some((packet, used)) = next_packet(input, setup.protocol).map_err(io::Error::other)? else {
                continue;
            };
            match packet {
                Packet::ConnAck(connack) if connack.code == ConnectReturnCode::ACCEPTED => {}
                other => return Err(io::Error::other(format!("device {}: {other:?}", self.device))),
            }
            input.drain(..used);
            stream.set_read_timeout(Some(READ_TIMEOUT))?;
            return Ok(stream);
        }
    }

    fn write(
        &mut self,
        mut stream: TcpStream,
        setup: &Setup,
        input: &mut Vec<u8>,
        stop: &AtomicBool,
        timing: Timing<'_>,
    ) -> io::Result<()> {
        let (began, mut sent) = (Instant::now(), 0_u64);
        let mut out = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let allowed = (began.elapsed().as_secs_f64() * setup.rate) as u64 + 1;
            out.clear();
            let sent_ns = timing.now_ns();
            let sent_before = sent;
            while self.in_flight.len() < setup.window && sent < allowed {
                self.render(setup.protocol, sent_ns, &mut out);
                sent += 1;
            }
            timing.record_sent(sent_ns, sent - sent_before, out.len() as u64);
            stream.write_all(&out)?;
            if self.in_flight.is_empty() {
                std::thread::sleep(Duration::from_secs_f64(1.0 / setup.rate));
                continue;
            }
            match read_more(&mut stream, input) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                other => other?,
            }
            self.record_answers(setup.protocol, input, timing)?;
        }
        Ok(())
    }

    fn render(&mut self, protocol: Protocol, sent_ns: u64, out: &mut Vec<u8>) {
        let number = self.to_resend.pop_front().unwrap_or_else(|| self.points.send());
        let (ts, value) = (self.points.ts_ms(number), self.points.value(number));
        let payload = format!("{{\"ts\":{ts},\"values\":{{\"{KEY}\":{value}}}}}");
        let packet_id = self.next_packet_id;
        self.next_packet_id = packet_id.checked_add(1).unwrap_or(1);
        let version = if protocol == Protocol::V5 { ProtocolVersion::V5 } else { ProtocolVersion::V311 };
        encode_publish(TELEMETRY_TOPIC, QoS::AtLeastOnce, packet_id, payload.as_bytes(), version, out)
            .expect("BUG: topic and payload are within MQTT's limits");
        self.in_flight.push_back(InFlight { packet_id, number, sent_ns });
    }

    fn record_answers(
        &mut self,
        protocol: Protocol,
        input: &mut Vec<u8>,
        timing: Timing<'_>,
    ) -> io::Result<()> {
        let now_ns = timing.now_ns();
        let mut recorder = timing.recorder.lock();
        let mut used = 0;
        while let Some((packet, length)) = next_packet(&input[used..], protocol).map_err(io::Error::other)? {
            used += length;
            match packet {
                Packet::PubAck(ack) if !ack.reason.is_error() => {
                    let place = self.in_flight.iter().position(|sent| sent.packet_id == ack.packet_id);
                    let place =
                        place.ok_or_else(|| io::Error::other(format!("an answer to nothing: {ack:?}")))?;
                    if let Some(InFlight { number, sent_ns, .. }) = self.in_flight.remove(place) {
                        self.points.ack(number);
                        recorder.completed(&operation(sent_ns), now_ns, length as u64);
                        timing.shared.add_completed(1);
                    }
                }
                other => return Err(io::Error::other(format!("device {}: {other:?}", self.device))),
            }
        }
        input.drain(..used);
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

fn read_more(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        count => {
            input.extend_from_slice(&buffer[..count]);
            Ok(())
        }
    }
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
