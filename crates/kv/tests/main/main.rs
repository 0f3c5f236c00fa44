//! The tests of the contract and of crashes.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod checkpoint;
mod conformance;
mod crash;
mod expiry;
mod faults;
mod journal;
mod memory;
