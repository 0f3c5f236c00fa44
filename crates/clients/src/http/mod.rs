//! Clients of HTTP and of REST interfaces.
//!
//! `client.rs` sends one request and reads its answer within limits. `rest.rs` adds the login, its renewal and JSON. Both are
//! blocking, with keep-alive.

mod client;
mod resolver;
mod rest;
#[cfg(test)]
mod tests;

pub use client::{Body, HttpAnswer, HttpClient, HttpError, HttpLimits, HttpRequest};
pub use rest::{RestClient, RestError, Streamed, escaped, form, message_of};
