//! The shape that all doors share: what the binary knows of a running door, and the limits that operators set.

mod limits;

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

pub use clients::networks::{NetworkError, Networks};
pub use limits::DoorLimits;
pub(crate) use limits::{DoorLimit, LimitExceeded};

/// A running door. The binary keeps a list of them.
pub trait Door: Debug + Send {
    /// The door, which is also its label in metrics.
    fn door(&self) -> hub::Door;

    /// The addresses that the door listens on.
    fn addresses(&self) -> &[ListenAddress];

    /// Begins to stop the door: it accepts no more connections. The future ends when all connections are closed.
    ///
    /// # Errors
    /// The door failed before it was asked to stop.
    fn stop(self: Box<Self>) -> Stopping;
}

/// The end of a door.
pub type Stopping = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// An address that a door listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    /// The protocol of its connections, such as `mqtt`, or `mqtts` with TLS.
    pub scheme: &'static str,
    /// Address and port.
    pub address: SocketAddr,
}
