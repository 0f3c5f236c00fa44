//! The rules against their examples, the pages against the rules, the probes against recorded answers of servers, and chains of layers.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod chain;
mod pages;
mod probes;
mod recorded_server;
mod rules;
