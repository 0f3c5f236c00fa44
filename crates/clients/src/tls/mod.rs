//! TLS of every client of ours: the drivers of the load generator, the HTTP clients, the connectors, the simulated fleet.
//!
//! [`TlsOptions`] say what a client trusts and who it is; [`TlsConfig`] is read from them once. A [`TlsClient`] is a
//! configuration with the name of one server. [`TlsSession`] encrypts for non-blocking sockets, [`TlsStream`] for
//! blocking ones. Every handshake is a full one: a session is never resumed, so the cost of a connection is the same for
//! the first and for all later ones. Only [`TlsConfig::of_authorities`] resumes.
//!
//! The readers of PEM files are for the server's doors too.

mod client;
mod error;
mod http;
mod pem;
mod session;
mod stream;
mod verifier;

pub use client::{Identity, TlsClient, TlsConfig, TlsOptions, Trust};
pub use error::{TlsError, TlsFailure};
pub(crate) use http::TlsConnector;
pub use pem::{PemError, read_authorities, read_certificates, read_key};
pub use session::TlsSession;
pub use stream::{Stream, TlsStream};
