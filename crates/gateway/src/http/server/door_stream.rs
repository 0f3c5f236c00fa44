//! The stream of an HTTP connection: plain or TLS. The socket can be taken out of it for another door.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::ServerConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::server::TlsStream;

use crate::http::limits::WRITE_TIMEOUT;

/// The stream of a connection.
#[derive(Debug)]
pub(crate) enum DoorStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    /// The socket was taken.
    Taken,
}

/// A stream that fails if the peer does not read output for too long.
pub(crate) type TimedStream = Pin<Box<TimeoutStream<DoorStream>>>;

/// Bounds the time in which the peer takes output.
pub(crate) fn timed(stream: DoorStream) -> TimedStream {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(stream)
}

/// Takes the socket out of a stream, with its TLS session if it has one.
///
/// # Errors
/// The socket was taken before, or it cannot leave the runtime.
pub(crate) fn take_socket(
    mut stream: TimedStream,
) -> io::Result<(std::net::TcpStream, Option<Box<ServerConnection>>)> {
    let inner = stream.as_mut().get_pin_mut().get_mut();
    match std::mem::replace(inner, DoorStream::Taken) {
        DoorStream::Plain(socket) => Ok((socket.into_std()?, None)),
        DoorStream::Tls(stream) => {
            let (socket, session) = stream.into_inner();
            Ok((socket.into_std()?, Some(Box::new(session))))
        }
        DoorStream::Taken => Err(taken()),
    }
}

fn taken() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the socket was handed to another door")
}

impl AsyncRead for DoorStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Taken => Poll::Ready(Err(taken())),
        }
    }
}

impl AsyncWrite for DoorStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Taken => Poll::Ready(Err(taken())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Taken => Poll::Ready(Err(taken())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Taken => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Taken => Poll::Ready(Err(taken())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Taken => Poll::Ready(Ok(())),
        }
    }
}
