//! TLS for all doors: certificate and key from files, and the handshake of doors on tokio.
//!
//! [`Tls`] holds the configuration for new handshakes. [`Tls::reload`] replaces it; open connections keep the one that they
//! began with. MQTT's event loops drive `rustls` by themselves (`mqtt/transport.rs`).

mod chain;
mod client_certificates;
mod error;
mod files;
mod handshake;
mod identity;
pub mod limits;
mod listeners;
#[cfg(test)]
mod tests;

pub(crate) use chain::is_issued_by;
pub use error::TlsError;
pub use files::{ClientCertificates, TlsFiles};
pub(crate) use handshake::{HandshakeError, handshake};
pub use identity::Tls;
pub use listeners::Listeners;
