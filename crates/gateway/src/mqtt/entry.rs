//! How a connection came in: within the limits of the door, or only to hear which one it exceeds.

use tokio::sync::OwnedSemaphorePermit;

use crate::acceptor::ConnectionPermit;
use crate::door::LimitExceeded;

/// The entry of a connection. Its permit is held until the connection is closed.
#[derive(Debug)]
pub(super) struct Entry {
    /// The limit that the connection exceeds. It waits for its CONNECT, which gets the reason.
    pub(super) exceeded: Option<LimitExceeded>,
    pub(super) permit: Permit,
}

/// The permit of a connection.
#[derive(Debug)]
pub(super) enum Permit {
    /// Within the limits, as far as they were known when the connection came.
    Admitted(ConnectionPermit),
    /// One of the refused connections that may wait for an answer.
    Refused { _permit: OwnedSemaphorePermit },
}

impl Entry {
    /// A connection within the limits.
    pub(super) fn admitted(permit: ConnectionPermit) -> Self {
        Self { exceeded: None, permit: Permit::Admitted(permit) }
    }

    /// A connection above a limit.
    pub(super) fn refused(exceeded: LimitExceeded, permit: OwnedSemaphorePermit) -> Self {
        Self { exceeded: Some(exceeded), permit: Permit::Refused { _permit: permit } }
    }
}
