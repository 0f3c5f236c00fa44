//! The listening sockets of a door.

use std::sync::Arc;

use super::identity::Tls;

/// The listening sockets of a door. All share its limits.
#[derive(Debug)]
pub struct Listeners<L> {
    /// For connections without TLS.
    pub plain: L,
    /// For connections that begin with a TLS handshake.
    pub tls: Option<(L, Arc<Tls>)>,
}

impl<L> From<L> for Listeners<L> {
    fn from(plain: L) -> Self {
        Self { plain, tls: None }
    }
}
