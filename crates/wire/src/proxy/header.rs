//! What a header announces, and why bytes are not a header.

use std::net::SocketAddr;

/// What the bytes so far are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// A complete header.
    Header {
        /// The address of the client. `None` if the sender speaks for itself, such as in a health check, or if the client
        /// has no internet address: then the address of the connection counts.
        client: Option<SocketAddr>,
        /// Length of the header.
        bytes: usize,
    },
    /// The beginning of a header.
    Incomplete {
        /// Bytes that certainly belong to the rest of the header, at least 1.
        needs: usize,
    },
}

/// Why bytes are not a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The bytes are of another protocol.
    #[error("the connection does not begin with a header of the PROXY protocol")]
    NoHeader,
    /// The header is longer than the limit.
    #[error("the header of the PROXY protocol is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The header breaks the rules of its version.
    #[error("malformed header of the PROXY protocol: {0}")]
    Malformed(&'static str),
}
