//! MQTT inside of the binary messages of a WebSocket.

use std::io;

use bytes::{Buf, Bytes};
use rustls::pki_types::CertificateDer;
use wire::websocket::{CloseCode, FrameReader, write_binary, write_close};

use super::limits::WEBSOCKET_FRAME_BYTES;
use super::stream::{ReadOutcome, Sent, Stream};

#[derive(Debug)]
pub(super) struct WebSocketStream {
    stream: Stream,
    reader: FrameReader,
    /// Bytes that came with the request for the WebSocket.
    unread: Bytes,
    /// Frames that the socket has not taken.
    frames: Vec<u8>,
    /// A close frame was sent or received. Nothing follows it.
    is_closed: bool,
}

impl WebSocketStream {
    pub(super) fn new(stream: Stream, unread: Bytes) -> Self {
        Self { stream, reader: FrameReader::default(), unread, frames: Vec::new(), is_closed: false }
    }

    pub(super) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    pub(super) fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.stream.peer_certificates()
    }

    pub(super) fn wants_write(&self) -> bool {
        !self.frames.is_empty() || self.stream.wants_write()
    }

    /// Reads once, and leaves in `buffer` what the frames carry.
    pub(super) fn read(&mut self, buffer: &mut [u8], peer_closed: bool) -> io::Result<(usize, ReadOutcome)> {
        if self.is_closed {
            return Ok((0, ReadOutcome::Closed));
        }
        let (bytes, outcome) = if self.unread.is_empty() {
            self.stream.read(buffer, peer_closed)?
        } else {
            let bytes = self.unread.len().min(buffer.len());
            self.unread.copy_to_slice(&mut buffer[..bytes]);
            (bytes, ReadOutcome::More)
        };
        let taken = self.reader.read(&mut buffer[..bytes], &mut self.frames);
        self.is_closed = taken.is_err() || taken.is_ok_and(|taken| taken.is_closed);
        match taken {
            Err(fault) => Err(io::Error::new(io::ErrorKind::InvalidData, fault)),
            // The next read finds the end.
            Ok(taken) if self.is_closed => Ok((taken.bytes, ReadOutcome::More)),
            Ok(taken) => Ok((taken.bytes, outcome)),
        }
    }

    /// Sends as much of `output` as the socket takes now.
    pub(super) fn write(&mut self, output: &[u8]) -> io::Result<Sent> {
        // After a close frame the client reads no more messages.
        let taken = if self.is_closed { output.len() } else { 0 };
        let mut sent = Sent { taken, progress: false, all: false };
        loop {
            if self.frames.is_empty() && sent.taken < output.len() {
                let bytes = (output.len() - sent.taken).min(WEBSOCKET_FRAME_BYTES);
                write_binary(&output[sent.taken..sent.taken + bytes], &mut self.frames);
                sent.taken += bytes;
            }
            if !self.wants_write() {
                sent.all = true;
                self.frames.shrink_to(0);
                return Ok(sent);
            }
            let through = self.stream.write(&self.frames)?;
            self.frames.drain(..through.taken);
            sent.progress |= through.progress;
            if !through.all {
                return Ok(sent);
            }
        }
    }

    /// Sends a close frame, if none was sent.
    pub(super) fn end_output(&mut self) {
        if !self.is_closed {
            write_close(CloseCode::NORMAL, &mut self.frames);
            self.is_closed = true;
        }
        // Best effort: the peer may be gone.
        drop(self.write(&[]));
        self.stream.end_output();
    }
}
