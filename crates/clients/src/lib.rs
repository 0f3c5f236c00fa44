//! The client side of the protocols that more than one crate speaks: TLS, HTTP and REST, MySQL and PostgreSQL, Redis; and the
//! URLs that name servers.
//!
//! All clients are blocking, with limits on time and size. The load generator, the tuner and the commands use them, and treat
//! our own server like any other: this crate knows no store, no application and no door.

#![warn(missing_docs)]

mod cancel;
pub mod http;
pub mod limits;
pub mod networks;
pub mod outgoing;
pub mod passwords;
pub mod redis;
pub mod sql;
pub mod target_url;
pub mod tls;

pub use cancel::CancelHandle;
