//! The bytes of a socket: plain, or through TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};

use crate::tls::limits as tls_limits;

/// A socket, with TLS or without.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// Socket and TLS hold no more bytes.
    Drained,
    /// There may be more.
    More,
    /// The peer closed its side.
    Closed,
    /// The header of the PROXY protocol is complete. `None`: the load balancer speaks for itself.
    Announced(Option<SocketAddr>),
}

/// How far the output was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Bytes of the output that need not be passed again.
    pub(crate) taken: usize,
    /// The socket took bytes.
    pub(crate) progress: bool,
    /// Nothing waits for the socket.
    pub(crate) all: bool,
}

impl Stream {
    /// A connection; with `tls` it begins with a handshake.
    pub(crate) fn new(socket: TcpStream, tls: Option<Arc<ServerConfig>>) -> Result<Self, rustls::Error> {
        let Some(config) = tls else { return Ok(Self::Plain(socket)) };
        let mut session = ServerConnection::new(config)?;
        session.set_buffer_limit(Some(tls_limits::BUFFER_BYTES_MAX));
        Ok(Self::Tls(Box::new(TlsStream { socket, session })))
    }

    /// A connection that has done its handshake, if it uses TLS.
    pub(super) fn open(socket: TcpStream, tls: Option<ServerConnection>) -> Self {
        match tls {
            None => Self::Plain(socket),
            Some(session) => Self::Tls(Box::new(TlsStream { socket, session })),
        }
    }

    /// The socket, for the registry of events.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => &mut tls.socket,
        }
    }

    /// The certificates that the client sent in its TLS handshake, its own first.
    pub(super) fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        match self {
            Self::Plain(_) => Vec::new(),
            Self::Tls(tls) => tls.session.peer_certificates().map(<[_]>::to_vec).unwrap_or_default(),
        }
    }

    /// Whether TLS has bytes for the socket, such as those of the handshake.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(tls) => tls.session.wants_write(),
        }
    }

    /// Reads once into `buffer`. Returns the number of bytes. `peer_closed`: an event announced the end of the stream.
    ///
    /// # Errors
    /// The connection is broken. [`io::ErrorKind::InvalidData`]: what came is not TLS, or not one that the server accepts.
    pub(crate) fn read(&mut self, buffer: &mut [u8], peer_closed: bool) -> io::Result<(usize, ReadOutcome)> {
        match self {
            Self::Plain(socket) => read_plain(socket, buffer, peer_closed),
            Self::Tls(tls) => tls.read(buffer),
        }
    }

    /// Sends as much of `output` as the socket takes now.
    pub(crate) fn write(&mut self, output: &[u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => write_plain(socket, output),
            Self::Tls(tls) => tls.write(output),
        }
    }

    /// Ends the sending side.
    pub(crate) fn end_output(&mut self) {
        if let Self::Tls(tls) = self {
            tls.session.send_close_notify();
            // Best effort: the peer may be gone.
            drop(tls.write(&[]));
        }
        drop(self.socket().shutdown(Shutdown::Write));
    }
}

fn read_plain(
    socket: &mut TcpStream,
    buffer: &mut [u8],
    peer_closed: bool,
) -> io::Result<(usize, ReadOutcome)> {
    match socket.read(buffer) {
        Ok(0) => Ok((0, ReadOutcome::Closed)),
        // A short read empties the socket; the next event announces new bytes (epoll(7), edge-triggered). If the end
        // of the stream came with the last bytes, their event announced it.
        Ok(bytes) if bytes < buffer.len() && !peer_closed => Ok((bytes, ReadOutcome::Drained)),
        Ok(bytes) => Ok((bytes, ReadOutcome::More)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok((0, ReadOutcome::Drained)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok((0, ReadOutcome::More)),
        Err(error) => Err(error),
    }
}

fn write_plain(socket: &mut TcpStream, output: &[u8]) -> io::Result<Sent> {
    let mut taken = 0;
    while taken < output.len() {
        match socket.write(&output[taken..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => taken += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Sent { taken, progress: taken > 0, all: taken == output.len() })
}

/// A socket with its TLS session.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: TcpStream,
    session: ServerConnection,
}

impl TlsStream {
    /// Reads until `buffer` is full or the socket is empty. A short read says nothing about TLS: the session may hold
    /// decrypted bytes of an empty socket, so it is asked first.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<(usize, ReadOutcome)> {
        let mut filled = 0;
        for _ in 0..tls_limits::READS_PER_PASS {
            match self.session.reader().read(&mut buffer[filled..]) {
                // The peer ended its side with close_notify.
                Ok(0) => return Ok(end(filled)),
                Ok(bytes) => {
                    filled += bytes;
                    if filled == buffer.len() {
                        return Ok((filled, ReadOutcome::More));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer ended the TCP connection without close_notify. MQTT has its own DISCONNECT.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(end(filled)),
                Err(error) => return Err(error),
            }
            match self.session.read_tls(&mut self.socket) {
                Ok(_) => self.decrypt()?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok((filled, ReadOutcome::Drained));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((filled, ReadOutcome::More))
    }

    fn decrypt(&mut self) -> io::Result<()> {
        let phase = if self.session.is_handshaking() { "the TLS handshake failed" } else { "TLS broke" };
        let decrypted = self.session.process_new_packets();
        decrypted
            .map(drop)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{phase}: {error}")))
    }

    fn write(&mut self, output: &[u8]) -> io::Result<Sent> {
        let mut sent = Sent { taken: 0, progress: false, all: false };
        loop {
            if sent.taken < output.len() {
                // It takes nothing while its buffer is full.
                sent.taken += self.session.writer().write(&output[sent.taken..])?;
            }
            if !self.session.wants_write() {
                sent.all = sent.taken == output.len();
                return Ok(sent);
            }
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => sent.progress = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// The end of the stream, after the bytes before it: the next read finds it again.
fn end(filled: usize) -> (usize, ReadOutcome) {
    match filled {
        0 => (0, ReadOutcome::Closed),
        _ => (filled, ReadOutcome::More),
    }
}
