//! One socket with its unhandled input and its unsent output.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;
use wire::mqtt::{Packet, SentAliases, decode};
use wire::proxy::{self, Decoded};

use super::entry::Entry;
use super::limits;
use super::output::Output;
use super::session::{Context, PacketError, Session, SessionEnd, answer_malformed_connect};
use super::stream::ReadOutcome;
use super::traffic::Traffic;
use super::transport::Transport;

/// A connection of a worker.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) transport: Transport,
    pub(super) entry: Entry,
    /// The bytes so far of the header that a load balancer sends first; `None` after it.
    header: Option<Vec<u8>>,
    /// The client; until the header is complete, the load balancer.
    pub(crate) peer: SocketAddr,
    pub(crate) generation: u32,
    pub(crate) session: Session,
    /// Unhandled input: the beginning of a packet, or messages that wait for the store.
    partial: Vec<u8>,
    pub(crate) out: Output,
    /// The topic aliases that the client knows.
    pub(crate) aliases: SentAliases,
    /// What was received and is not in the metrics yet.
    received: Traffic,
    /// When the peer last sent something, in seconds since the door was opened.
    pub(crate) heard_at_s: u32,
    /// When the connection was opened, on the same clock.
    pub(crate) opened_at_s: u32,
    /// When the peer stopped taking output.
    pub(crate) unsent_since_s: Option<u32>,
    /// The transport may hold unread bytes.
    pub(crate) readable: bool,
    /// The peer has closed its side.
    pub(crate) peer_closed: bool,
    /// In the worker's list of paused connections: the next message waits for the store, and the worker does not read.
    pub(crate) paused: bool,
    /// Paused, and not in that list: the connection is woken when its next message can be handled.
    pub(crate) awaits: bool,
    /// In the worker's list of connections to read from.
    pub(crate) queued: bool,
    /// In the worker's list of connections to write to.
    pub(crate) dirty: bool,
    /// Messages wait until the peer has taken the output.
    pub(crate) starved: bool,
}

/// How many packets of the input were handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handled {
    /// All complete packets.
    All,
    /// The packets before a message for which the store has no room now.
    UpToMessage,
    /// The packets before a message that waits until the connection is woken.
    UpToAwaited,
    /// The packets before a message that the door takes after this time.
    UpToLaterMessage(Duration),
    /// The packets before a message that the limits of the tenant allow after this time.
    UpToHeldMessage(Duration),
}

impl Connection {
    pub(crate) fn new(
        transport: Transport,
        entry: Entry,
        (peer, is_proxied): (SocketAddr, bool),
        generation: u32,
        now_s: u32,
    ) -> Self {
        Self {
            transport,
            entry,
            header: is_proxied.then(Vec::new),
            peer,
            generation,
            session: Session::New,
            partial: Vec::new(),
            out: Output::default(),
            aliases: SentAliases::default(),
            received: Traffic::default(),
            heard_at_s: now_s,
            opened_at_s: now_s,
            unsent_since_s: None,
            readable: false,
            peer_closed: false,
            paused: false,
            awaits: false,
            queued: false,
            dirty: false,
            starved: false,
        }
    }

    /// Whether the worker may read from the peer: the peer takes its acks, and not too many acks wait for durability.
    pub(crate) fn may_read(&self, in_flight_max: u32) -> bool {
        let in_flight = match &self.session {
            Session::New | Session::Joining(_) | Session::Provisioning(_) => 0,
            Session::Connected(connected) => connected.in_flight,
        };
        in_flight < in_flight_max && !self.out.is_full()
    }

    /// The certificates of a client that has not sent CONNECT yet.
    pub(crate) fn certificates(&self) -> Vec<CertificateDer<'static>> {
        match self.session {
            Session::New => self.transport.peer_certificates(),
            Session::Joining(_) | Session::Connected(_) | Session::Provisioning(_) => Vec::new(),
        }
    }

    /// Bytes of unhandled input.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Reads once into `buffer`; returns the number of bytes.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, ReadOutcome)> {
        match &mut self.header {
            None => self.transport.read(buffer, self.peer_closed),
            Some(header) => {
                let outcome = read_header(self.transport.socket(), header)?;
                if let ReadOutcome::Announced(_) = outcome {
                    self.header = None;
                }
                Ok((0, outcome))
            }
        }
    }

    /// Whether there is something to send.
    pub(crate) fn has_output(&self) -> bool {
        !self.out.is_empty() || self.transport.wants_write()
    }

    /// Passes the complete packets of `input` to the session, up to a message that must wait, and keeps the rest. `begin` is where
    /// the input begins in the buffer of the worker.
    pub(crate) fn on_bytes(
        &mut self,
        input: &[u8],
        begin: usize,
        context: &mut Context<'_>,
    ) -> Result<Handled, SessionEnd> {
        if self.partial.is_empty() {
            let (consumed, handled) =
                consume(&mut self.session, input, Some(begin), &mut self.received, context)?;
            self.partial.extend_from_slice(&input[consumed..]);
            return Ok(handled);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(input);
        let (consumed, handled) = consume(&mut self.session, &partial, None, &mut self.received, context)?;
        if consumed < partial.len() {
            partial.drain(..consumed);
            if partial.capacity() > 4_096 && partial.capacity() / 4 > partial.len() {
                partial.shrink_to_fit();
            }
            // An empty buffer is freed: most connections are idle most of the time.
            self.partial = partial;
        }
        Ok(handled)
    }

    /// What was sent since the last call.
    pub(super) fn take_sent(&mut self) -> Traffic {
        self.out.take_traffic()
    }

    /// What was received and handled since the last call.
    pub(super) fn take_received(&mut self) -> Traffic {
        std::mem::take(&mut self.received)
    }

    /// Sends the output. `Ok(false)` if the peer does not take all of it now.
    pub(crate) fn flush(&mut self, now_s: u32) -> io::Result<bool> {
        let flushed = self.out.flush(&mut self.transport)?;
        if flushed.all {
            self.unsent_since_s = None;
        } else if flushed.progress || self.unsent_since_s.is_none() {
            self.unsent_since_s = Some(now_s);
        }
        Ok(flushed.all)
    }

    /// Sends the output as far as the peer takes it, and closes the sending side. Then discards unread input: closing a socket
    /// with unread bytes resets it (RFC 1122, 4.2.2.13), and the peer may lose the last packets.
    pub(crate) fn close_gracefully(&mut self, now_s: u32, buffer: &mut [u8]) {
        // Best effort: the peer may be gone.
        drop(self.flush(now_s));
        self.transport.end_output();
        for _ in 0..limits::CLOSE_READS_MAX {
            match self.transport.socket().read(buffer) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

/// Reads the header of the PROXY protocol and nothing after it.
fn read_header(socket: &mut TcpStream, header: &mut Vec<u8>) -> io::Result<ReadOutcome> {
    loop {
        let needs = match proxy::decode(header) {
            Ok(Decoded::Header { client, .. }) => return Ok(ReadOutcome::Announced(client)),
            Ok(Decoded::Incomplete { needs }) => needs,
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        let had = header.len();
        header.resize(had + needs, 0);
        let read = socket.read(&mut header[had..]);
        header.truncate(had + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(ReadOutcome::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(ReadOutcome::Drained),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn consume(
    session: &mut Session,
    input: &[u8],
    begin: Option<usize>,
    traffic: &mut Traffic,
    context: &mut Context<'_>,
) -> Result<(usize, Handled), SessionEnd> {
    let mut at = 0;
    while at < input.len() {
        let packet_bytes_max = session.packet_bytes_max(context.options);
        let decoded = decode(&input[at..], session.version(), packet_bytes_max);
        let Some(decoded) = decoded.map_err(|error| refused(error, session, context))? else { break };
        let is_publish = matches!(decoded.packet, Packet::Publish(_));
        context.packet_end = begin.map(|begin| begin + at + decoded.consumed);
        match session.on_packet(decoded.packet, context) {
            Ok(()) => at += decoded.consumed,
            // These packets come again.
            Err(PacketError::StoreBusy) => return Ok((at, Handled::UpToMessage)),
            Err(PacketError::Awaited) => return Ok((at, Handled::UpToAwaited)),
            Err(PacketError::TooManyRequests(wait)) => return Ok((at, Handled::UpToLaterMessage(wait))),
            Err(PacketError::TenantLimited(wait)) => return Ok((at, Handled::UpToHeldMessage(wait))),
            Err(PacketError::End(end)) => {
                traffic.add_packet(is_publish, decoded.consumed);
                return Err(end);
            }
        }
        traffic.add_packet(is_publish, decoded.consumed);
    }
    Ok((at, Handled::All))
}

fn refused(error: wire::mqtt::DecodeError, session: &Session, context: &mut Context<'_>) -> SessionEnd {
    if session.version().is_none() {
        answer_malformed_connect(&error, context.out);
    }
    SessionEnd::refused(error.reason_code(), "malformed", error.to_string())
}
