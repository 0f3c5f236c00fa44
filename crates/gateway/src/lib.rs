//! The doors: one module per protocol. They call only the hub.
//!
//! - `mqtt`, `postgres`: each is a door of its own.
//! - `http`: the server of HTTP, ThingsBoard's interfaces for devices and applications, and our own.
//! - `influx`, `opentsdb`, `prometheus`, `gsn`: interfaces of other products. They use the tools of `http`; `http` does not know them.
//! - `http_door`: puts all interfaces over HTTP behind one port.
//!
//! All doors have the same shape:
//! - `options.rs`: options for operators. `limits.rs`: fixed bounds.
//! - `state.rs`: the state that all connections of the door share: the hub, the options, pools and budgets.
//! - `server.rs`: listens, serves each connection, rejects connections above a bound, and stops in stages.
//!   HTTP has a folder `http/server/` for it, and its state in `http/tools/`, because all interfaces read it.
//! - a session, or one file per group of requests: decodes with `wire`, calls the hub, encodes the answer.
//!
//! The doors share the modules beside them:
//! - `door`: what the binary knows of a running door: its name, its addresses, how to stop it.
//! - `acceptor`: bounds and counts connections. MQTT has its own accepting thread and event loops, because it keeps many small
//!   batches in flight.
//! - `blocking`: runs reads and password checks off the event loop.
//! - `budget`: bounds the bytes that the server holds for clients.
//! - `tls`: certificate and key, and the TLS handshake.
//! - `error`: errors of requests. `refusals`: counts and logs refused messages and logins.
//! - `answer`: encodes query results. `text`: writes numbers and times.

mod acceptor;
pub mod answer;
mod attribute_pairs;
mod blocking;
mod budget;
pub mod door;
mod error;
mod gsn;
pub mod http;
pub mod http_door;
mod influx;
mod key_expiry;
pub mod mqtt;
mod opentsdb;
pub mod postgres;
mod prometheus;
mod provisioning;
mod refusals;
pub mod statements;
mod text;
pub mod tls;
