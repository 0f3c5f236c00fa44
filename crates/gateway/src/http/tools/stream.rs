//! Streamed answers: blocking work writes them while they are sent. A bounded number of pieces waits in between.

use std::io::{self, Write};
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::http::limits::{STREAM_PIECE_BYTES, STREAM_PIECES, STREAM_SEND_TIMEOUT};

/// The writer of a streamed answer. An error means that the client is gone or accepts no more output.
pub(crate) struct StreamWriter {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    buffer: BytesMut,
    runtime: Handle,
    timeout: Duration,
}

/// A body and its writer. The writer must be used on a blocking thread of this runtime.
pub(crate) fn streamed() -> (StreamWriter, Body) {
    let (pieces, receiver) = mpsc::channel(STREAM_PIECES);
    let body = stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|piece: io::Result<Bytes>| (piece, receiver))
    });
    let buffer = BytesMut::with_capacity(STREAM_PIECE_BYTES);
    let (runtime, timeout) = (Handle::current(), STREAM_SEND_TIMEOUT);
    (StreamWriter { pieces, buffer, runtime, timeout }, Body::from_stream(body))
}

impl StreamWriter {
    /// Breaks off the answer, so the client notices that it is incomplete.
    pub(crate) fn abort(self, why: io::Error) {
        // It fails only if the client is gone.
        let _ = self.send(Err(why));
    }

    fn send(&self, piece: io::Result<Bytes>) -> io::Result<()> {
        let sent = self.runtime.block_on(tokio::time::timeout(self.timeout, self.pieces.send(piece)));
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone")),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing any more")),
        }
    }
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(STREAM_PIECE_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        if self.buffer.len() == STREAM_PIECE_BYTES {
            self.flush()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let piece = self.buffer.split().freeze();
        self.send(Ok(piece))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn bytes_keep_their_order_and_an_abort_is_an_error() {
        let (mut writer, body) = streamed();
        let sent: Vec<u8> = (0..3 * STREAM_PIECE_BYTES + 5).map(|n| n as u8).collect();
        let copy = sent.clone();
        tokio::task::spawn_blocking(move || writer.write_all(&copy).and_then(|()| writer.flush()).unwrap());
        assert_eq!(body.collect().await.unwrap().to_bytes(), sent);
        let (writer, body) = streamed();
        tokio::task::spawn_blocking(move || writer.abort(io::Error::other("no")));
        assert!(body.collect().await.is_err());
    }

    #[tokio::test]
    async fn a_stalled_or_closed_client_ends_the_work() {
        let (mut writer, body) = streamed();
        writer.timeout = Duration::from_millis(10);
        let fill = |mut writer: StreamWriter| loop {
            if let Err(error) = writer.write_all(&[0; STREAM_PIECE_BYTES]) {
                return (writer, error.kind());
            }
        };
        let (writer, kind) = tokio::task::spawn_blocking(move || fill(writer)).await.unwrap();
        assert_eq!(kind, io::ErrorKind::TimedOut);
        drop(body);
        let (_, kind) = tokio::task::spawn_blocking(move || fill(writer)).await.unwrap();
        assert_eq!(kind, io::ErrorKind::BrokenPipe);
    }
}
