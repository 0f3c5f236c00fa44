//! The doors on real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod mqtt;
