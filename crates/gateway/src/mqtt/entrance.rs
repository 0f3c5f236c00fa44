//! The entrance for connections that the HTTP door has turned into WebSockets.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use rustls::ServerConnection;

use super::entry::Entry;
use super::state::MqttState;
use super::transport::Layers;
use super::worker_handle::AcceptedSocket;
use crate::acceptor::ConnectionPermit;
use crate::door::LimitExceeded;

/// The entrance of a running MQTT door for WebSockets.
#[derive(Clone)]
pub struct MqttEntrance {
    state: Arc<MqttState>,
}

impl fmt::Debug for MqttEntrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MqttEntrance").finish_non_exhaustive()
    }
}

/// An open WebSocket.
#[derive(Debug)]
pub(crate) struct WebSocket {
    pub(crate) socket: TcpStream,
    /// The session, if the connection uses TLS.
    pub(crate) tls: Option<Box<ServerConnection>>,
    /// Bytes that came after the request.
    pub(crate) unread: Bytes,
    pub(crate) peer: SocketAddr,
}

impl MqttEntrance {
    pub(super) fn new(state: Arc<MqttState>) -> Self {
        Self { state }
    }

    /// Admits a connection within the limits of the MQTT door, or counts it as refused.
    pub(crate) fn admit(&self, peer: SocketAddr) -> Result<ConnectionPermit, LimitExceeded> {
        let gate = &self.state.gate;
        gate.admit(Some(peer.ip())).inspect_err(|exceeded| gate.refused(exceeded, Some(peer)))
    }

    /// Hands a WebSocket to a worker.
    ///
    /// # Errors
    /// The socket cannot be used, or too many connections wait for the worker. The connection is closed.
    pub(crate) fn hand_over(&self, opened: WebSocket, permit: ConnectionPermit) -> io::Result<()> {
        let WebSocket { socket, tls, unread, peer } = opened;
        socket.set_nonblocking(true)?;
        let accepted = AcceptedSocket {
            socket: mio::net::TcpStream::from_std(socket),
            peer,
            is_proxied: false,
            layers: Layers::WebSocket { tls, unread },
            entry: Entry::admitted(permit),
        };
        let added = self.state.next_worker().try_add(accepted);
        added.map_err(|_| io::Error::other("too many connections wait for a worker of MQTT"))
    }
}
