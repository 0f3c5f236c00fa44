//! The rules against their examples, the pages against the rules, and the probes against recorded answers of servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod pages;
mod probes;
mod recorded_server;
mod rules;
