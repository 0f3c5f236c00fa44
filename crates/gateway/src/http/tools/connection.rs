//! The connection that a request came by.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::OwnedSemaphorePermit;

use crate::acceptor::{AddressPermit, ConnectionPermit};

/// A connection. It counts as open until its requests and WebSocket have ended too.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    _permit: Arc<Permit>,
    peer: SocketAddr,
}

/// The permit of a connection.
#[derive(Debug)]
enum Permit {
    Regular {
        _permit: ConnectionPermit,
    },
    /// For a connection above the bound that only checks the server's health.
    Probe {
        _permit: OwnedSemaphorePermit,
        _address: AddressPermit,
    },
}

impl Connection {
    pub(crate) fn new(permit: ConnectionPermit, peer: SocketAddr) -> Self {
        Self { _permit: Arc::new(Permit::Regular { _permit: permit }), peer }
    }

    /// The client.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// A connection above the bound that only checks the server's health.
    pub(crate) fn probe(permit: OwnedSemaphorePermit, address: AddressPermit, peer: SocketAddr) -> Self {
        Self { _permit: Arc::new(Permit::Probe { _permit: permit, _address: address }), peer }
    }
}

/// The address of the peer of a request, for the log. `None` if the connection is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) Option<SocketAddr>);

impl<S: Send + Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Connection>().map(|connection| connection.peer)))
    }
}
