//! Finds the address of a client behind a load balancer, by the header of the PROXY protocol.

use std::io;
use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::proxy::limits::V2_BYTES_MAX;
use wire::proxy::{Decoded, ProxyError, decode};

use super::accept::Accepted;
use super::gate::Gate;
use super::limits::PROXY_HEADER_TIMEOUT;
use super::permit::ConnectionPermit;
use crate::door::LimitExceeded;
use crate::refusals;

/// The reason in the metrics for connections without a usable header.
pub(crate) const PROXY_PROTOCOL: &str = "proxy_protocol";

/// Why a connection is not served.
#[derive(Debug)]
pub(crate) enum NotIdentified {
    /// The load balancer sent no usable header. The connection gets no answer.
    Header,
    /// The client has too many connections.
    Exceeded(LimitExceeded),
}

/// Why a load balancer's connection has no usable header.
#[derive(Debug, thiserror::Error)]
enum HeaderError {
    #[error("no header of the PROXY protocol within {} s", PROXY_HEADER_TIMEOUT.as_secs())]
    Timeout,
    #[error("the connection ended within the header of the PROXY protocol: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Refused(#[from] ProxyError),
}

impl Gate {
    /// If the peer is a load balancer, reads the header and counts the connection for the address of the client.
    pub(crate) async fn identify(
        &self,
        accepted: &mut Accepted,
        permit: &mut ConnectionPermit,
    ) -> Result<(), NotIdentified> {
        if !accepted.is_proxied {
            return Ok(());
        }
        self.read_header(accepted).await?;
        self.admit_address(permit, accepted.peer.ip()).map_err(NotIdentified::Exceeded)
    }

    /// If the peer is a load balancer, reads the header. Then `peer` is the client, as far as the load balancer knows it.
    pub(crate) async fn read_header(&self, accepted: &mut Accepted) -> Result<(), NotIdentified> {
        if !accepted.is_proxied {
            return Ok(());
        }
        let read = timeout(PROXY_HEADER_TIMEOUT, read(&mut accepted.stream)).await;
        match read.unwrap_or(Err(HeaderError::Timeout)) {
            Ok(client) => {
                accepted.peer = client.unwrap_or(accepted.peer);
                Ok(())
            }
            // Many load balancers only open and close a connection to see that the door is there.
            Err(HeaderError::Io(_)) => Err(NotIdentified::Header),
            Err(error) => {
                self.hub().metrics().refused(self.door(), PROXY_PROTOCOL);
                let (peer, cause) = (accepted.peer, error.to_string());
                refusals::connection(self.hub(), self.door(), peer, None, false, &cause);
                Err(NotIdentified::Header)
            }
        }
    }
}

/// Reads the header and nothing after it.
async fn read(stream: &mut TcpStream) -> Result<Option<SocketAddr>, HeaderError> {
    let mut header = Vec::new();
    loop {
        let needs = match decode(&header)? {
            Decoded::Header { client, .. } => return Ok(client),
            Decoded::Incomplete { needs } => needs,
        };
        let had = header.len();
        debug_assert!(had + needs <= V2_BYTES_MAX, "the codec bounds the header");
        header.resize(had + needs, 0);
        stream.read_exact(&mut header[had..]).await?;
    }
}
