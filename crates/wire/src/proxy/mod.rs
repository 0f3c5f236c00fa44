//! The PROXY protocol, versions 1 and 2: the header with which a load balancer announces the address of its client
//! (<https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt>; the sections below are those of this text).
//!
//! A reader asks [`decode`] how many bytes it needs and reads no more than those. So the bytes after the header, such as
//! those of a TLS handshake, stay in the socket.

mod header;
pub mod limits;
mod v1;
mod v2;

pub use header::{Decoded, ProxyError};

/// Decodes the header at the beginning of `bytes`. Bytes after it are not looked at.
///
/// # Errors
/// The bytes are not a header, whatever follows.
pub fn decode(bytes: &[u8]) -> Result<Decoded, ProxyError> {
    if begins_like(bytes, v1::SIGNATURE) {
        v1::decode(bytes)
    } else if begins_like(bytes, v2::SIGNATURE) {
        v2::decode(bytes)
    } else {
        Err(ProxyError::NoHeader)
    }
}

/// Whether `bytes` begin with the signature, or are its beginning.
fn begins_like(bytes: &[u8], signature: &[u8]) -> bool {
    let both = bytes.len().min(signature.len());
    bytes[..both] == signature[..both]
}
