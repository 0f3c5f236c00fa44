//! The address of a client in messages.

use std::net::IpAddr;

/// The address of a client as text.
pub(super) fn peer_text(peer: Option<IpAddr>) -> String {
    peer.map_or_else(|| "unknown".to_owned(), |peer| peer.to_canonical().to_string())
}
