//! The handshake of doors on tokio.

use std::io;
use std::net::SocketAddr;

use hub::{Door, Hub};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::identity::Tls;
use super::limits::{BUFFER_BYTES_MAX, HANDSHAKE_TIMEOUT};
use crate::refusals;

/// Why a handshake failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeError {
    #[error("no TLS handshake within {} s", HANDSHAKE_TIMEOUT.as_secs())]
    Timeout,
    #[error("the TLS handshake failed: {0}")]
    Failed(#[from] io::Error),
}

/// Does the server's side of a handshake with `peer`. A failure is counted and logged; the peer gets the alert that fits.
pub(crate) async fn handshake(
    tls: &Tls,
    hub: &Hub,
    door: Door,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<TlsStream<TcpStream>, HandshakeError> {
    let accepting = TlsAcceptor::from(tls.server_config())
        .accept_with(stream, |session| session.set_buffer_limit(Some(BUFFER_BYTES_MAX)));
    let done = match timeout(HANDSHAKE_TIMEOUT, accepting).await {
        Ok(done) => done.map_err(HandshakeError::Failed),
        Err(_) => Err(HandshakeError::Timeout),
    };
    if let Err(error) = &done {
        hub.metrics().refused(door, "tls_handshake");
        refusals::connection(hub, door, peer, None, false, &error.to_string());
    }
    done
}
