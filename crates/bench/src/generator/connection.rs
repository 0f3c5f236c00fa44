//! One device's connection: what waits, what is in flight, what is acknowledged. It does the socket calls of its
//! connection and nothing else; when to send is the worker's business.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use wire::mqtt::{Ack, Packet};

use super::codec::{self, Protocol, PublishTemplate};
use crate::limits::IN_FLIGHT_MAX;
use crate::recorder::Recorder;

/// Bytes rendered before they are handed to the kernel.
const SEND_BYTES: usize = 64 * 1024;

/// Where a connection is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// TCP connect under way, or CONNECT sent and no CONNACK yet.
    Handshake,
    /// CONNACK received with success.
    Open,
    /// Lost, refused or ended.
    Closed,
}

#[derive(Debug, Clone, Copy)]
struct InFlight {
    intended_ns: u64,
    sent_ns: u64,
    packet_id: u16,
}

/// What a device sent and what the server answered for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages handed to the kernel; their sequence numbers are 0..sent.
    pub sent: u64,
    /// Messages acknowledged with success.
    pub acked: u64,
    /// Timestamp of the newest message, milliseconds.
    pub last_ts_ms: u64,
}

/// What is the same for all connections of a worker.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) protocol: Protocol,
    pub(crate) publish: PublishTemplate,
    /// Milliseconds since the epoch at the start of the load.
    pub(crate) base_ts_ms: u64,
}

/// What reading brought.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answers {
    /// Messages answered, well or badly: room in the window.
    pub(crate) answered: usize,
    /// Among them, acknowledged with success.
    pub(crate) acked: u64,
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) device: u32,
    pub(crate) stream: TcpStream,
    pub(crate) phase: Phase,
    /// Already in the worker's list of connections to send on.
    pub(crate) dirty: bool,
    /// Registered for writability.
    pub(crate) wants_write: bool,
    pub(crate) tally: Tally,
    pub(crate) last_sent_ns: u64,
    window: usize,
    next_packet_id: u16,
    in_flight: VecDeque<InFlight>,
    /// Intended times of messages that are due but not sent yet.
    waiting: VecDeque<u64>,
    /// The unparsed beginning of a packet.
    inbound: Vec<u8>,
    /// What the kernel did not take.
    outbound: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(device: u32, stream: TcpStream) -> Self {
        Self {
            device,
            stream,
            phase: Phase::Handshake,
            dirty: false,
            wants_write: true,
            tally: Tally::default(),
            last_sent_ns: 0,
            window: IN_FLIGHT_MAX,
            next_packet_id: 1,
            in_flight: VecDeque::new(),
            waiting: VecDeque::new(),
            inbound: Vec::new(),
            outbound: Vec::new(),
        }
    }

    /// Accepted by the server, which takes at most `receive_max` unanswered messages.
    pub(crate) fn open(&mut self, receive_max: u16) {
        self.phase = Phase::Open;
        self.window = IN_FLIGHT_MAX.min(receive_max.into());
    }

    /// A message is due since `intended_ns`.
    pub(crate) fn enqueue(&mut self, intended_ns: u64) {
        self.waiting.push_back(intended_ns);
    }

    /// Messages due or sent and not answered.
    pub(crate) fn outstanding(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// Messages sent and not answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether bytes wait for the socket to become writable.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.outbound.is_empty()
    }

    /// Sends as much as is due, as the window allows and as the kernel takes. `scratch` is reused by all connections.
    pub(crate) fn pump(
        &mut self,
        wire: &Wire,
        now_ns: u64,
        recorder: &mut Recorder,
        scratch: &mut Vec<u8>,
    ) -> io::Result<()> {
        self.flush()?;
        while !self.is_blocked() && !self.waiting.is_empty() && self.in_flight.len() < self.window {
            scratch.clear();
            self.render_due(wire, now_ns, recorder, scratch);
            self.last_sent_ns = now_ns;
            self.send(scratch)?;
        }
        Ok(())
    }

    fn render_due(&mut self, wire: &Wire, now_ns: u64, recorder: &mut Recorder, scratch: &mut Vec<u8>) {
        while scratch.len() < SEND_BYTES && self.in_flight.len() < self.window {
            let Some(intended_ns) = self.waiting.pop_front() else { break };
            let packet_id = self.take_packet_id();
            let ts_ms = (wire.base_ts_ms + intended_ns / 1_000_000).max(self.tally.last_ts_ms + 1);
            wire.publish.render(scratch, packet_id, ts_ms, self.device, self.tally.sent);
            self.tally.last_ts_ms = ts_ms;
            self.tally.sent += 1;
            self.in_flight.push_back(InFlight { intended_ns, sent_ns: now_ns, packet_id });
            recorder.sent(intended_ns, now_ns);
        }
    }

    /// Sends bytes, keeping what the kernel does not take.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let taken = if self.is_blocked() { 0 } else { write_some(&self.stream, bytes)? };
        self.outbound.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Sends what was kept.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.is_blocked() {
            let taken = write_some(&self.stream, &self.outbound)?;
            self.outbound.drain(..taken);
        }
        Ok(())
    }

    /// Reads once and hands every complete packet to `on_packet`. `Ok(false)` means the server closed the connection.
    pub(crate) fn read(
        &mut self,
        buffer: &mut [u8],
        protocol: Protocol,
        mut on_packet: impl FnMut(&mut Self, Packet<'_>),
    ) -> io::Result<bool> {
        let count = match (&self.stream).read(buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(true),
            Err(e) => return Err(e),
        };
        if self.inbound.is_empty() {
            let used = self.decode_all(&buffer[..count], protocol, &mut on_packet)?;
            self.inbound.extend_from_slice(&buffer[used..count]);
            return Ok(true);
        }
        let mut joined = std::mem::take(&mut self.inbound);
        joined.extend_from_slice(&buffer[..count]);
        let used = self.decode_all(&joined, protocol, &mut on_packet)?;
        joined.drain(..used);
        self.inbound = joined;
        Ok(true)
    }

    fn decode_all(
        &mut self,
        bytes: &[u8],
        protocol: Protocol,
        on_packet: &mut impl FnMut(&mut Self, Packet<'_>),
    ) -> io::Result<usize> {
        let mut used = 0;
        while let Some((packet, length)) = codec::next_packet(&bytes[used..], protocol)
            .map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?
        {
            used += length;
            on_packet(self, packet);
        }
        Ok(used)
    }

    /// Books the answer to one message.
    pub(crate) fn answered(&mut self, ack: Ack<'_>, now_ns: u64, recorder: &mut Recorder) -> Answers {
        let Some(message) = self.take_in_flight(ack.packet_id) else {
            recorder.error("PUBACK for an unknown packet identifier", 1);
            return Answers::default();
        };
        if ack.reason.is_error() {
            recorder.error(&format!("PUBACK {}", ack.reason), 1);
            return Answers { answered: 1, acked: 0 };
        }
        self.tally.acked += 1;
        recorder.acked(message.intended_ns, message.sent_ns, now_ns);
        Answers { answered: 1, acked: 1 }
    }

    /// Servers answer in order; the search is for those that do not.
    fn take_in_flight(&mut self, packet_id: u16) -> Option<InFlight> {
        if self.in_flight.front().is_some_and(|m| m.packet_id == packet_id) {
            return self.in_flight.pop_front();
        }
        let index = self.in_flight.iter().position(|m| m.packet_id == packet_id)?;
        self.in_flight.remove(index)
    }

    fn take_packet_id(&mut self) -> u16 {
        let id = self.next_packet_id;
        self.next_packet_id = if id == u16::MAX { 1 } else { id + 1 };
        id
    }
}

fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Ok(count) => Ok(count),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        Err(e) => Err(e),
    }
}
