//! Adds and closes connections of a worker.

use std::io;
use std::net::SocketAddr;

use mio::{Interest, Token};
use wire::mqtt::ReasonCode;

use super::super::acks::ConnectionKey;
use super::super::connection::Connection;
use super::super::entry::Permit;
use super::super::limits;
use super::super::session::{Session, SessionEnd};
use super::super::transport::Transport;
use super::super::worker_handle::AcceptedSocket;
use super::event_loop::Worker;
use super::slots::{enqueue, find, take};
use crate::refusals;

impl Worker {
    /// Carries out the commands of other threads.
    pub(super) fn take_commands(&mut self) {
        let commands = self.parts.handle.take_commands();
        for accepted in commands.connections {
            self.add_connection(accepted);
        }
        for key in commands.taken_over {
            let cause = "another connection uses this client identifier now [MQTT-3.1.4-3]";
            self.close(key, SessionEnd::refused(ReasonCode::SESSION_TAKEN_OVER, "taken_over", cause));
        }
    }

    fn add_connection(&mut self, accepted: AcceptedSocket) {
        let AcceptedSocket { socket, peer, is_proxied, layers, entry } = accepted;
        // Acks are small and must not wait for further ones. A failure only costs latency.
        drop(socket.set_nodelay(true));
        let options = socket2::SockRef::from(&socket);
        drop(options.set_keepalive(true));
        // Otherwise the kernel takes megabytes for a peer that does not read.
        drop(options.set_tcp_notsent_lowat(limits::KERNEL_UNSENT_BYTES_MAX));
        let vacant = self.connections.vacant_entry();
        let slot = vacant.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let opened = Transport::new(socket, layers).map_err(io::Error::other).and_then(|mut transport| {
            self.parts.poll.registry().register(transport.socket(), Token(slot), interest)?;
            Ok(transport)
        });
        let transport = match opened {
            Ok(transport) => transport,
            Err(error) => {
                tracing::error!(%peer, %error, "cannot watch a connection");
                return;
            }
        };
        self.next_generation = self.next_generation.wrapping_add(1);
        let is_refused = entry.exceeded.is_some();
        let has_unread = matches!(transport, Transport::WebSocket(_));
        let now_s = self.state.now_s();
        vacant.insert(Connection::new(transport, entry, (peer, is_proxied), self.next_generation, now_s));
        let key = ConnectionKey { slot: slot as u32, generation: self.next_generation };
        if has_unread {
            // No event announces bytes that the HTTP door has read.
            let connection = &mut self.connections[slot];
            connection.readable = true;
            enqueue(&mut self.ready, connection, key);
        }
        if !is_refused {
            self.silent.push_back(key);
            self.close_silent();
        }
    }

    /// Counts a connection for the client that its load balancer has announced.
    pub(super) fn identify(&mut self, key: ConnectionKey, client: Option<SocketAddr>) {
        let Some(connection) = find(&mut self.connections, key) else { return };
        connection.peer = client.unwrap_or(connection.peer);
        let (gate, peer) = (&self.state.gate, connection.peer);
        if let Permit::Admitted(permit) = &mut connection.entry.permit
            && let Err(exceeded) = gate.admit_address(permit, peer.ip())
        {
            gate.refused(&exceeded, Some(peer));
            connection.entry.exceeded = Some(exceeded);
        }
        // The bytes after the header may be in the socket already.
        connection.readable = true;
        enqueue(&mut self.ready, connection, key);
    }

    /// Closes a connection and ends its session.
    pub(super) fn close(&mut self, key: ConnectionKey, end: SessionEnd) {
        let Some(mut connection) = take(&mut self.connections, key) else { return };
        let peer = connection.peer;
        if let Some(label) = end.label {
            self.state.hub.metrics().refused(hub::Door::Mqtt, label);
            let device = match &connection.session {
                Session::Connected(connected) => Some(&*connected.device),
                Session::New | Session::Joining(_) | Session::Provisioning(_) => None,
            };
            let (hub, counts) = (&self.state.hub, end.is_peer_fault());
            refusals::connection(hub, hub::Door::Mqtt, peer, device, counts, &end.cause);
        } else {
            tracing::debug!(%peer, cause = end.cause, "an MQTT connection ended");
        }
        self.partial_bytes -= connection.partial_bytes();
        if let (Some(reason), Some(peer)) = (end.reason, connection.session.peer()) {
            peer.write_disconnect(reason, &end.cause, connection.out.tail());
        }
        self.end_session(std::mem::take(&mut connection.session), key, peer);
        let (_, buffer) = self.read_buffer.free(&self.batches, limits::READ_BYTES_PER_PASS);
        connection.close_gracefully(self.state.now_s(), buffer);
        connection.take_sent().count_sent(&self.state.hub.metrics().broker);
        drop(self.parts.poll.registry().deregister(connection.transport.socket()));
    }
}
