//! The socket of a client: it reads and writes whole messages through bounded buffers.

use std::io;
use std::net::SocketAddr;

use bytes::{BufMut, BytesMut};
use hub::Hub;
use pgwire::messages::PgWireBackendMessage;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use wire::postgres::{First, MESSAGE_BYTES_MAX, Malformed, Message, take, take_first};

use super::error::PgError;
use super::limits::{INPUT_BYTES, OUTPUT_BYTES, SEND_TIMEOUT};
use crate::tls::{HandshakeError, Tls, handshake};

/// The type of the message that has a row.
const DATA_ROW: u8 = b'D';
/// The type of the message that has a piece of COPY.
const COPY_DATA: u8 = b'd';

/// A socket with its undecoded input and its unsent output.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    /// The client, also behind a load balancer.
    peer: SocketAddr,
    input: BytesMut,
    output: BytesMut,
}

/// The transport. `Handshake` is only while a handshake owns the socket.
#[derive(Debug)]
enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Handshake,
}

impl Stream {
    async fn write(&mut self, bytes: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_buf(bytes).await,
            Self::Tls(stream) => stream.write_buf(bytes).await,
            Self::Handshake => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends what TLS holds.
    async fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.flush().await,
            _ => Ok(()),
        }
    }

    async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.shutdown().await,
            Self::Tls(stream) => stream.shutdown().await,
            Self::Handshake => Ok(()),
        }
    }
}

/// The reason why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// The client left.
    #[error("the client closed the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Said to the client before the end.
    #[error("{}", .0.message)]
    Refused(PgError),
}

impl From<Malformed> for Ended {
    fn from(error: Malformed) -> Self {
        Self::Refused(error.into())
    }
}

impl Wire {
    pub(super) fn new(stream: TcpStream, peer: SocketAddr) -> Self {
        Self { stream: Stream::Plain(stream), peer, input: BytesMut::new(), output: BytesMut::new() }
    }

    /// The address of the client.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the client sends through TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Accepts TLS with one byte, and does the handshake.
    pub(super) async fn encrypt(&mut self, tls: &Tls, hub: &Hub) -> Result<(), Ended> {
        if !self.input.is_empty() {
            // Bytes from before the handshake would count as encrypted ones (CVE-2021-23214).
            let message = "unencrypted bytes follow the request for TLS";
            return Err(Ended::Refused(PgError::fatal("08P01", message)));
        }
        let Stream::Plain(mut socket) = std::mem::replace(&mut self.stream, Stream::Handshake) else {
            return Err(Ended::Closed);
        };
        socket.write_all(b"S").await?;
        let stream = handshake(tls, hub, hub::Door::Postgres, socket, self.peer).await?;
        self.stream = Stream::Tls(Box::new(stream));
        Ok(())
    }

    /// The next message before the login. It reads nothing beyond it, because the following bytes may be encrypted.
    pub(super) async fn first(&mut self) -> Result<First, Ended> {
        loop {
            if let Some(first) = take_first(&mut self.input)? {
                return Ok(first);
            }
            self.fill().await?;
        }
    }

    /// The next message. It sends the output before it waits. The future may be dropped at any time.
    pub(super) async fn message(&mut self) -> Result<Message, Ended> {
        loop {
            if let Some(message) = take(&mut self.input)? {
                return Ok(message);
            }
            self.flush().await?;
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Ended> {
        loop {
            let read = match &mut self.stream {
                Stream::Plain(socket) => {
                    // An idle connection holds no buffer.
                    socket.readable().await?;
                    self.input.reserve(INPUT_BYTES);
                    socket.try_read_buf(&mut self.input)
                }
                Stream::Tls(stream) => {
                    self.input.reserve(INPUT_BYTES);
                    stream.read_buf(&mut self.input).await
                }
                Stream::Handshake => return Err(Ended::Closed),
            };
            match read {
                Ok(0) => return Err(Ended::Closed),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns when the client is gone. Meanwhile it reads input ahead, up to a bound.
    pub(super) async fn closed(&mut self) -> Ended {
        loop {
            if self.input.len() >= MESSAGE_BYTES_MAX {
                // The input is full. The next output shows whether the client is still there.
                return std::future::pending().await;
            }
            if let Err(ended) = self.fill().await {
                return ended;
            }
        }
    }

    /// Adds a message to the output; [`flush`](Self::flush) sends it.
    pub(super) fn push(&mut self, message: PgWireBackendMessage) -> Result<(), PgError> {
        let before = self.output.len();
        message.encode(&mut self.output).map_err(|error| {
            // An incomplete message must not stay in the output.
            self.output.truncate(before);
            PgError::from(error)
        })
    }

    /// Adds the message of a row to the output. `write` appends its body.
    pub(super) fn push_row(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), PgError>,
    ) -> Result<(), PgError> {
        self.push_body(DATA_ROW, write)
    }

    /// Adds a message with a piece of COPY to the output. `write` appends its body.
    pub(super) fn push_copied(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), PgError>,
    ) -> Result<(), PgError> {
        self.push_body(COPY_DATA, write)
    }

    fn push_body(
        &mut self,
        kind: u8,
        write: impl FnOnce(&mut BytesMut) -> Result<(), PgError>,
    ) -> Result<(), PgError> {
        let before = self.output.len();
        self.output.put_u8(kind);
        let start = self.output.len();
        self.output.put_i32(0);
        let written = write(&mut self.output).and_then(|()| {
            let length = self.output.len() - start;
            i32::try_from(length).map_err(|_| {
                PgError::new("54000", format!("a row of {length} bytes; a message has 2 GiB at most"))
            })
        });
        match written {
            Ok(length) => self.output[start..start + size_of::<i32>()].copy_from_slice(&length.to_be_bytes()),
            Err(_) => self.output.truncate(before),
        }
        written.map(drop)
    }

    /// Whether the output is large enough to send.
    pub(super) fn is_full(&self) -> bool {
        self.output.len() >= OUTPUT_BYTES
    }

    /// Sends the output. A slow client stops its query here.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let timed_out = |_| io::Error::from(io::ErrorKind::TimedOut);
        while !self.output.is_empty() {
            let sent = timeout(SEND_TIMEOUT, self.stream.write(&mut self.output)).await;
            if sent.map_err(timed_out)?? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        timeout(SEND_TIMEOUT, self.stream.flush()).await.map_err(timed_out)?
    }

    /// Declines encryption with one byte.
    pub(super) async fn decline(&mut self) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(b"N").await,
            Stream::Tls(_) | Stream::Handshake => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends an error and closes the connection gracefully.
    pub(super) async fn refuse(&mut self, error: PgError) -> io::Result<()> {
        // An error without an encoding is not sent; the connection ends anyway.
        drop(self.push(error.response()));
        self.flush().await?;
        self.stream.shutdown().await
    }
}
