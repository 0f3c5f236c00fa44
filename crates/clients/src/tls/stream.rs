//! TLS over a blocking stream, for one thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use super::client::TlsClient;
use super::error::TlsFailure;

/// A blocking stream with TLS.
#[derive(Debug)]
pub struct TlsStream<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl<S: Read + Write> TlsStream<S> {
    /// Does the handshake over a connected stream. The timeouts of the stream apply to each of its steps.
    ///
    /// # Errors
    /// The certificate is not trusted, the server speaks no TLS, or the stream failed ([`TlsFailure::of`]).
    pub fn handshake(client: &TlsClient, stream: S) -> io::Result<Self> {
        let mut stream = StreamOwned::new(client.connection(), stream);
        while stream.conn.is_handshaking() {
            if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
                return Err(TlsFailure::explain(error));
            }
        }
        Ok(Self(stream))
    }

    /// The stream below.
    pub fn get_ref(&self) -> &S {
        &self.0.sock
    }

    /// The stream below.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.0.sock
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer) {
            // Many servers close without the alert that announces it. Protocols with lengths notice a missing end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
            other => other.map_err(TlsFailure::explain),
        }
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(TlsFailure::explain)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(TlsFailure::explain)
    }
}

/// A blocking connection over TCP, with TLS or without.
#[derive(Debug)]
pub enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects. `timeout` is for the connect, and for each read and write.
    ///
    /// # Errors
    /// Those of the socket, and those of [`TlsStream::handshake`].
    pub fn connect(address: SocketAddr, tls: Option<&TlsClient>, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Self::over(stream, tls)
    }

    /// Does the handshake over a connected socket, if there is TLS.
    ///
    /// # Errors
    /// Those of [`TlsStream::handshake`].
    pub fn over(stream: TcpStream, tls: Option<&TlsClient>) -> io::Result<Self> {
        match tls {
            None => Ok(Self::Plain(stream)),
            Some(client) => Ok(Self::Tls(Box::new(TlsStream::handshake(client, stream)?))),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
