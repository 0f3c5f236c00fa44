//! One socket with what is read but not yet decoded and what is decided but not yet sent.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;
use wire::mqtt::decode;

use super::limits;
use super::session::{Close, Context, Session};

/// A connection of a worker.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) generation: u32,
    pub(crate) session: Session,
    /// The beginning of a packet whose rest has not arrived.
    partial: Vec<u8>,
    /// Bytes to send.
    pub(crate) out: Vec<u8>,
    /// When the peer was heard last, in seconds since the door was opened.
    pub(crate) heard_at_s: u32,
    /// The socket may hold unread bytes.
    pub(crate) readable: bool,
    /// In the worker's list of connections to read from.
    pub(crate) queued: bool,
    /// In the worker's list of connections to write to.
    pub(crate) dirty: bool,
}

/// What reading once led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// The socket is empty.
    Drained,
    /// There may be more.
    More,
    /// The peer closed its side.
    Closed,
}

impl Connection {
    pub(crate) fn new(socket: TcpStream, peer: SocketAddr, generation: u32, now_s: u32) -> Self {
        Self {
            socket,
            peer,
            generation,
            session: Session::New,
            partial: Vec::new(),
            out: Vec::new(),
            heard_at_s: now_s,
            readable: false,
            queued: false,
            dirty: false,
        }
    }

    /// Whether this peer may be read from: it takes its acks, and not too many wait for durability.
    pub(crate) fn may_read(&self, in_flight_max: u32) -> bool {
        let in_flight = match &self.session {
            Session::New => 0,
            Session::Connected(connected) => connected.in_flight,
        };
        in_flight < in_flight_max && self.out.len() < limits::UNSENT_BYTES_MAX
    }

    /// Whether a packet has begun and not ended.
    pub(crate) fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Reads once into `buffer`; `bytes` tells how many came.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, ReadOutcome)> {
        match self.socket.read(buffer) {
            Ok(0) => Ok((0, ReadOutcome::Closed)),
            // A short read empties the socket; the next event announces new bytes (epoll(7), edge-triggered).
            Ok(bytes) if bytes < buffer.len() => Ok((bytes, ReadOutcome::Drained)),
            Ok(bytes) => Ok((bytes, ReadOutcome::More)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok((0, ReadOutcome::Drained)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok((0, ReadOutcome::More)),
            Err(error) => Err(error),
        }
    }

    /// Hands all whole packets of `input` to the session and keeps the rest.
    pub(crate) fn on_bytes(&mut self, input: &[u8], context: &mut Context<'_>) -> Result<(), Close> {
        if self.partial.is_empty() {
            let consumed = consume(&mut self.session, input, context)?;
            self.partial.extend_from_slice(&input[consumed..]);
            return Ok(());
        }
        self.partial.extend_from_slice(input);
        let mut partial = std::mem::take(&mut self.partial);
        let consumed = consume(&mut self.session, &partial, context)?;
        partial.drain(..consumed);
        if !partial.is_empty() {
            // An emptied buffer is given back: most connections are idle most of the time.
            self.partial = partial;
        }
        Ok(())
    }

    /// Sends what waits. `Ok(false)` when the peer does not take it all now.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.socket.write(&self.out[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if sent < self.out.len() {
            self.out.drain(..sent);
            return Ok(false);
        }
        self.out.clear();
        if self.out.capacity() > 4_096 {
            self.out = Vec::new();
        }
        Ok(true)
    }
}

fn consume(session: &mut Session, input: &[u8], context: &mut Context<'_>) -> Result<usize, Close> {
    let mut at = 0;
    while at < input.len() {
        let decoded = decode(&input[at..], session.version(), context.options.packet_bytes_max);
        let Some(decoded) = decoded.map_err(|error| refused(error, session, context))? else { break };
        session.on_packet(decoded.packet, context)?;
        at += decoded.consumed;
    }
    Ok(at)
}

fn refused(error: wire::mqtt::DecodeError, session: &Session, context: &mut Context<'_>) -> Close {
    if session.version().is_none() {
        super::session::answer_malformed_connect(&error, context.out);
    }
    Close::refused(error.reason_code(), "malformed", error.to_string())
}
