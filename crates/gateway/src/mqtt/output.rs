//! The unsent output of a connection.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use hub::broker::Message;
use wire::mqtt::{PacketType, whole_packets};

use super::limits;
use super::traffic::Traffic;
use super::transport::Transport;

/// Bytes that wait for the socket. Small packets are copied into one buffer. The payload of a large message is not: all its
/// receivers share one block, so a message for thousands of clients that do not read takes the memory of one.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What leaves before `tail`.
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that were sent.
    sent: usize,
    /// Whole packets, but for the beginning of the first one if there are no chunks.
    tail: Vec<u8>,
    /// Bytes of the tail whose packets are counted.
    counted: usize,
    /// What was counted and not taken yet.
    traffic: Traffic,
}

#[derive(Debug)]
enum Chunk {
    Bytes(Vec<u8>),
    Payload(Arc<Message>),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Payload(message) => &message.payload,
        }
    }
}

impl Output {
    pub(crate) fn is_empty(&self) -> bool {
        self.tail.is_empty() && self.chunks.is_empty()
    }

    /// Whether the peer must take some of it before more follows.
    pub(crate) fn is_full(&self) -> bool {
        !self.chunks.is_empty() || self.tail.len() >= limits::UNSENT_BYTES_MAX
    }

    /// The buffer to which packets are appended.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.tail
    }

    /// Appends the payload of a PUBLISH whose other bytes end the tail, from `head` on.
    pub(super) fn append_payload(&mut self, head: usize, message: &Arc<Message>) {
        if message.payload.len() < limits::SHARED_PAYLOAD_BYTES_MIN {
            self.tail.extend_from_slice(&message.payload);
            return;
        }
        self.count_tail(head);
        self.traffic.add_packet(true, self.tail.len() - head + message.payload.len());
        self.counted = 0;
        self.chunks.push_back(Chunk::Bytes(std::mem::take(&mut self.tail)));
        self.chunks.push_back(Chunk::Payload(Arc::clone(message)));
    }

    /// What was counted since the last call.
    pub(super) fn take_traffic(&mut self) -> Traffic {
        std::mem::take(&mut self.traffic)
    }

    /// Sends what the transport takes.
    pub(super) fn flush(&mut self, transport: &mut Transport) -> io::Result<Flushed> {
        self.count_tail(self.tail.len());
        let mut progress = false;
        while let Some(first) = self.chunks.front() {
            let sent = transport.write(&first.bytes()[self.sent..])?;
            progress |= sent.progress;
            self.sent += sent.taken;
            if self.sent == first.bytes().len() {
                self.chunks.pop_front();
                self.sent = 0;
            }
            if !sent.all {
                return Ok(Flushed { all: false, progress });
            }
        }
        self.flush_tail(transport, progress)
    }

    fn flush_tail(&mut self, transport: &mut Transport, progress: bool) -> io::Result<Flushed> {
        let sent = transport.write(&self.tail)?;
        let progress = progress || sent.progress;
        if !sent.all {
            self.tail.drain(..sent.taken);
            self.counted -= sent.taken;
            return Ok(Flushed { all: false, progress });
        }
        self.tail.clear();
        self.counted = 0;
        // Most connections are idle most of the time.
        if self.tail.capacity() > limits::IDLE_OUTPUT_BYTES_MAX {
            self.tail = Vec::new();
        }
        if self.chunks.capacity() > 0 {
            self.chunks = VecDeque::new();
        }
        Ok(Flushed { all: true, progress })
    }

    /// Counts the packets of the tail up to `end`.
    fn count_tail(&mut self, end: usize) {
        for (packet, bytes) in whole_packets(&self.tail[self.counted..end]) {
            self.traffic.add_packet(packet == PacketType::Publish, bytes);
        }
        self.counted = end;
    }
}

/// How far the output was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flushed {
    /// Nothing is left.
    pub(super) all: bool,
    /// The socket took bytes.
    pub(super) progress: bool,
}
