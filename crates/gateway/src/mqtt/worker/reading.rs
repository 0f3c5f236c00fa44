//! Reads from connections and handles their packets.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use hub::clock::system_now;
use hub::wake::Wake;
use model::panics::contain_panic;
use wire::mqtt::ReasonCode;
use wire::proxy::ProxyError;
use wire::websocket::Fault;

use super::super::acks::ConnectionKey;
use super::super::clients::ConnectionRef;
use super::super::connection::Handled;
use super::super::limits;
use super::super::session::{Context, SessionEnd};
use super::super::stream::ReadOutcome;
use super::super::worker_handle::ConnectionWake;
use super::event_loop::Worker;
use super::slots::{enqueue, find};
use crate::acceptor::PROXY_PROTOCOL;

impl Worker {
    /// Handles the messages that waited.
    pub(super) fn resume_paused(&mut self) {
        let (mut bytes, mut throttled) = (0, None);
        for key in std::mem::take(&mut self.paused) {
            let no_room = self.is_blocked() || bytes > limits::PASS_BYTES_MAX || self.is_batch_full();
            let Some(connection) = find(&mut self.connections, key) else { continue };
            if no_room {
                self.paused.push(key);
                continue;
            }
            bytes += connection.partial_bytes();
            connection.paused = false;
            // Bytes that arrived meanwhile are in the socket.
            connection.readable = true;
            enqueue(&mut self.ready, connection, key);
            if let Err(end) = self.handle_bytes(key, 0..0) {
                self.close(key, end);
            }
            if self.throttled_until.is_some() && throttled.is_none() {
                throttled = Some(self.paused.len());
            }
        }
        // The next pass begins with the connections after the one that took the last message of this pass.
        self.paused.rotate_left(throttled.unwrap_or(0));
    }

    /// Reads once from every ready connection, as long as the batch has room.
    pub(super) fn read_ready(&mut self) {
        let mut bytes = 0;
        for _ in 0..self.ready.len() {
            if !self.is_blocked() && (bytes > limits::PASS_BYTES_MAX || self.is_batch_full()) {
                return;
            }
            let Some(key) = self.ready.pop_front() else { return };
            bytes += self.read_one(key);
        }
    }

    fn read_one(&mut self, key: ConnectionKey) -> usize {
        let in_flight_max = u32::from(self.state.options.receive_maximum);
        let bytes_max = match self.is_blocked() {
            true => limits::READ_BYTES_WHILE_STALLED,
            false => limits::READ_BYTES_PER_PASS,
        };
        let Some(connection) = find(&mut self.connections, key) else { return 0 };
        connection.queued = false;
        if connection.paused || !connection.readable || !connection.may_read(in_flight_max) {
            return 0;
        }
        let (begin, buffer) = self.read_buffer.free(&self.batches, bytes_max);
        let (bytes, outcome) = match connection.read(buffer) {
            Ok(read) => read,
            Err(error) => {
                self.close(key, broken(&error));
                return 0;
            }
        };
        if let ReadOutcome::Announced(client) = outcome {
            self.identify(key, client);
            return 0;
        }
        connection.readable = outcome == ReadOutcome::More;
        if connection.transport.wants_write() && !connection.dirty {
            connection.dirty = true;
            self.dirty.push(key);
        }
        if outcome == ReadOutcome::More {
            enqueue(&mut self.ready, connection, key);
        }
        let closed = if outcome == ReadOutcome::Closed {
            Err(SessionEnd::normal("the peer closed the connection"))
        } else if bytes > 0 {
            connection.heard_at_s = self.state.now_s();
            self.handle_bytes(key, begin..begin + bytes)
        } else {
            Ok(())
        };
        if let Err(end) = closed {
            self.close(key, end);
        }
        bytes
    }

    /// Passes the paused input and these bytes of the read buffer to the session.
    fn handle_bytes(&mut self, key: ConnectionKey, input: Range<usize>) -> Result<(), SessionEnd> {
        let (mut taken_over, mut deliver) = (None, false);
        let handle = &self.parts.handle;
        let wake = || Arc::new(ConnectionWake::new(Arc::clone(handle), key)) as Arc<dyn Wake>;
        let takes_messages = !self.is_blocked();
        let Some(connection) = find(&mut self.connections, key) else { return Ok(()) };
        let partial_before = connection.partial_bytes();
        let mut out = std::mem::take(connection.out.tail());
        let out_before = out.len();
        let mut context = Context {
            hub: &self.state.hub,
            options: &self.state.options,
            clients: &self.state.clients,
            provisioner: &self.state.provisioner,
            gate: &self.state.gate,
            exceeded: connection.entry.exceeded,
            connection: ConnectionRef { worker: self.index, key },
            peer: connection.peer,
            certificates: connection.certificates(),
            now: system_now(),
            received: None,
            now_s: self.state.now_s(),
            packet_end: None,
            takes_messages,
            out: &mut out,
            batches: &mut self.batches,
            publications: &mut self.publications,
            acknowledged: &mut self.acknowledged,
            kv_sequence: &mut self.kv_sequence,
            deferred: &mut self.deferred,
            deliver: &mut deliver,
            wake: &wake,
            taken_over: &mut taken_over,
        };
        // A client that triggers a bug repeatedly must not end the server each time. An unfinished message is not in the
        // batch. A panic inside of the store still ends the process.
        let begin = input.start;
        let input = self.read_buffer.get(input);
        let handled = contain_panic(|| connection.on_bytes(input, begin, &mut context));
        let result = handled.unwrap_or_else(|_| {
            // An answer may be incomplete.
            out.truncate(out_before);
            let cause = "the server failed at what came; its log says why";
            Err(SessionEnd::refused(ReasonCode::UNSPECIFIED_ERROR, "panic", cause))
        });
        *connection.out.tail() = out;
        self.received.add(connection.take_received());
        self.partial_bytes = self.partial_bytes + connection.partial_bytes() - partial_before;
        if !connection.out.is_empty() && !connection.dirty {
            connection.dirty = true;
            self.dirty.push(key);
        }
        if deliver {
            self.deliveries.push(key);
        }
        if let Some(other) = taken_over {
            self.state.workers[other.worker].take_over(other.key);
        }
        match result? {
            Handled::UpToMessage => {
                self.pause(key);
                self.store_busy |= takes_messages;
                Ok(())
            }
            Handled::UpToAwaited => {
                if let Some(connection) = find(&mut self.connections, key) {
                    (connection.paused, connection.awaits) = (true, true);
                }
                Ok(())
            }
            Handled::UpToHeldMessage(wait) => {
                if let Some(connection) = find(&mut self.connections, key) {
                    connection.paused = true;
                    self.held.push(key, wait, Instant::now());
                }
                Ok(())
            }
            Handled::UpToLaterMessage(wait) => {
                self.pause(key);
                self.throttled_until = Some(Instant::now() + wait.max(limits::THROTTLE_PAUSE));
                Ok(())
            }
            Handled::All if self.partial_bytes > self.state.options.partial_bytes_max() => {
                self.close_largest_partial(key)
            }
            Handled::All => Ok(()),
        }
    }

    /// Lets connections continue that were held for a limit of their tenant.
    pub(super) fn release_held(&mut self) {
        let now = Instant::now();
        while let Some(key) = self.held.pop_due(now) {
            self.paused.push(key);
        }
    }

    /// Stops reading from a connection until messages are accepted again.
    fn pause(&mut self, key: ConnectionKey) {
        if let Some(connection) = find(&mut self.connections, key) {
            connection.paused = true;
            self.paused.push(key);
        }
    }
}

fn broken(error: &io::Error) -> SessionEnd {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            let label = match error.get_ref() {
                Some(inner) if inner.is::<ProxyError>() => PROXY_PROTOCOL,
                Some(inner) if inner.is::<Fault>() => "websocket",
                _ => "tls_handshake",
            };
            SessionEnd::refused(ReasonCode::PROTOCOL_ERROR, label, error.to_string())
        }
        _ => SessionEnd::normal(format!("the connection broke: {error}")),
    }
}
