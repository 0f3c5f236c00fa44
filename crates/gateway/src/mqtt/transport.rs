//! The transport of MQTT: a socket, or a WebSocket.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};

use super::stream::{ReadOutcome, Sent, Stream};
use super::websocket_stream::WebSocketStream;

/// The transport of MQTT.
#[derive(Debug)]
pub(super) enum Transport {
    Socket(Stream),
    WebSocket(Box<WebSocketStream>),
}

/// The layers between a new socket and MQTT.
#[derive(Debug)]
pub(super) enum Layers {
    /// None.
    Plain,
    /// The connection begins with a TLS handshake.
    Tls(Arc<ServerConfig>),
    /// An open WebSocket, over TLS or not, with the bytes that were read after the request for it.
    WebSocket { tls: Option<Box<ServerConnection>>, unread: Bytes },
}

impl Transport {
    /// A connection with these layers.
    pub(super) fn new(socket: TcpStream, layers: Layers) -> Result<Self, rustls::Error> {
        Ok(match layers {
            Layers::Plain => Self::Socket(Stream::new(socket, None)?),
            Layers::Tls(config) => Self::Socket(Stream::new(socket, Some(config))?),
            Layers::WebSocket { tls, unread } => {
                let stream = Stream::open(socket, tls.map(|session| *session));
                Self::WebSocket(Box::new(WebSocketStream::new(stream, unread)))
            }
        })
    }

    /// The socket, for the registry of events.
    pub(super) fn socket(&mut self) -> &mut TcpStream {
        match self {
            Self::Socket(stream) => stream.socket(),
            Self::WebSocket(stream) => stream.stream().socket(),
        }
    }

    /// The certificates that the client sent in its TLS handshake, its own first.
    pub(super) fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        match self {
            Self::Socket(stream) => stream.peer_certificates(),
            Self::WebSocket(stream) => stream.peer_certificates(),
        }
    }

    /// Whether a layer has bytes for the socket, such as those of a handshake.
    pub(super) fn wants_write(&self) -> bool {
        match self {
            Self::Socket(stream) => stream.wants_write(),
            Self::WebSocket(stream) => stream.wants_write(),
        }
    }

    /// Reads once into `buffer`. Returns the number of bytes. `peer_closed`: an event announced the end of the stream.
    ///
    /// # Errors
    /// The connection is broken. [`io::ErrorKind::InvalidData`]: what came breaks the rules of a layer.
    pub(super) fn read(&mut self, buffer: &mut [u8], peer_closed: bool) -> io::Result<(usize, ReadOutcome)> {
        match self {
            Self::Socket(stream) => stream.read(buffer, peer_closed),
            Self::WebSocket(stream) => stream.read(buffer, peer_closed),
        }
    }

    /// Sends as much of `output` as the socket takes now.
    pub(super) fn write(&mut self, output: &[u8]) -> io::Result<Sent> {
        match self {
            Self::Socket(stream) => stream.write(output),
            Self::WebSocket(stream) => stream.write(output),
        }
    }

    /// Ends the sending side.
    pub(super) fn end_output(&mut self) {
        match self {
            Self::Socket(stream) => stream.end_output(),
            Self::WebSocket(stream) => stream.end_output(),
        }
    }
}
