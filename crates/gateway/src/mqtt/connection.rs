//! One socket with what is read but not yet decoded and what is decided but not yet sent.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};

use mio::net::TcpStream;
use wire::mqtt::decode;

use super::limits;
use super::session::{Close, Context, Halt, Session};

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
    /// When the connection was opened, on the same clock.
    pub(crate) opened_at_s: u32,
    /// Since when the peer takes nothing of what waits for it.
    pub(crate) unsent_since_s: Option<u32>,
    /// The socket may hold unread bytes.
    pub(crate) readable: bool,
    /// The peer has sent all it will.
    pub(crate) peer_closed: bool,
    /// In the worker's list of connections whose next message waits for the store; not read from until then.
    pub(crate) held: bool,
    /// In the worker's list of connections to read from.
    pub(crate) queued: bool,
    /// In the worker's list of connections to write to.
    pub(crate) dirty: bool,
}

/// How far the packets of a connection were handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handled {
    /// All that came whole.
    All,
    /// Up to a message that the store cannot take now.
    UpToMessage,
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
            opened_at_s: now_s,
            unsent_since_s: None,
            readable: false,
            peer_closed: false,
            held: false,
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

    /// Bytes that came and are not handled: the beginning of a packet, or messages that wait for the store.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial.len()
    }

    /// Reads once into `buffer`; `bytes` tells how many came.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, ReadOutcome)> {
        match self.socket.read(buffer) {
            Ok(0) => Ok((0, ReadOutcome::Closed)),
            // A short read empties the socket; the next event announces new bytes (epoll(7), edge-triggered). The end
            // was announced with the last bytes, if it came with them.
            Ok(bytes) if bytes < buffer.len() && !self.peer_closed => Ok((bytes, ReadOutcome::Drained)),
            Ok(bytes) => Ok((bytes, ReadOutcome::More)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok((0, ReadOutcome::Drained)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok((0, ReadOutcome::More)),
            Err(error) => Err(error),
        }
    }

    /// Hands the whole packets of `input` to the session, up to a message that cannot be taken now, and keeps the rest.
    pub(crate) fn on_bytes(&mut self, input: &[u8], context: &mut Context<'_>) -> Result<Handled, Close> {
        if self.partial.is_empty() {
            let (consumed, handled) = consume(&mut self.session, input, context)?;
            self.partial.extend_from_slice(&input[consumed..]);
            return Ok(handled);
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(input);
        let (consumed, handled) = consume(&mut self.session, &partial, context)?;
        if consumed < partial.len() {
            partial.drain(..consumed);
            if partial.capacity() > 4_096 && partial.capacity() / 4 > partial.len() {
                partial.shrink_to_fit();
            }
            // An emptied buffer is given back: most connections are idle most of the time.
            self.partial = partial;
        }
        Ok(handled)
    }

    /// Sends what waits. `Ok(false)` when the peer does not take it all now.
    pub(crate) fn flush(&mut self, now_s: u32) -> io::Result<bool> {
        let mut sent = 0;
        while sent < self.out.len() {
            match self.socket.write(&self.out[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if sent < self.out.len() {
            self.out.drain(..sent);
            if sent > 0 || self.unsent_since_s.is_none() {
                self.unsent_since_s = Some(now_s);
            }
            return Ok(false);
        }
        self.unsent_since_s = None;
        self.out.clear();
        if self.out.capacity() > 4_096 {
            self.out = Vec::new();
        }
        Ok(true)
    }

    /// Sends what the peer takes of what waits, and says that no more follows. What came meanwhile is thrown away:
    /// closing a socket with unread bytes resets it (RFC 1122, 4.2.2.13), and a reset may cost the peer the farewell.
    pub(crate) fn part(&mut self, now_s: u32, buffer: &mut [u8]) {
        // Best effort: the peer may be gone.
        drop(self.flush(now_s));
        drop(self.socket.shutdown(Shutdown::Write));
        for _ in 0..limits::FAREWELL_READS_MAX {
            match self.socket.read(buffer) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
    }
}

fn consume(
    session: &mut Session,
    input: &[u8],
    context: &mut Context<'_>,
) -> Result<(usize, Handled), Close> {
    let mut at = 0;
    while at < input.len() {
        let version = session.version();
        let packet_bytes_max = match version {
            None => limits::CONNECT_BYTES_MAX.min(context.options.packet_bytes_max),
            Some(_) => context.options.packet_bytes_max,
        };
        let decoded = decode(&input[at..], version, packet_bytes_max);
        let Some(decoded) = decoded.map_err(|error| refused(error, session, context))? else { break };
        match session.on_packet(decoded.packet, context) {
            Ok(()) => at += decoded.consumed,
            Err(Halt::NotNow) => return Ok((at, Handled::UpToMessage)),
            Err(Halt::Close(close)) => return Err(close),
        }
    }
    Ok((at, Handled::All))
}

fn refused(error: wire::mqtt::DecodeError, session: &Session, context: &mut Context<'_>) -> Close {
    if session.version().is_none() {
        super::session::answer_malformed_connect(&error, context.out);
    }
    Close::refused(error.reason_code(), "malformed", error.to_string())
}
