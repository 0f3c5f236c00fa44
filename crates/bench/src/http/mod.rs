//! HTTP besides the load: the clients of our own REST interface, of ThingsBoard's and of counters.
//!
//! `client.rs` sends one request and reads its answer within limits. `rest.rs` adds the login, its renewal and JSON.
//! `devices.rs` has the requests of a run: it creates devices and reads back. All are blocking, with keep-alive.

mod client;
mod devices;
pub(crate) mod rest;
#[cfg(test)]
mod tests;

pub use client::{Body, HttpAnswer, HttpClient, HttpError, HttpLimits, HttpRequest};
pub(crate) use devices::number;
pub use devices::{Client, Device, Point, Provisioned};
pub use rest::{RestClient, RestError, Streamed, escaped, message_of};
