//! The doors over real sockets, with the in-memory reference store behind them.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod http;
mod mqtt;
mod postgres;
