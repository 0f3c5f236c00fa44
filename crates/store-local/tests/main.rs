#![allow(clippy::unwrap_used, reason = "a test may panic")]
//! The embedded store from outside.

mod backup;
mod check;
mod compaction;
mod contract;
mod crash;
mod damage;
mod deletion;
mod faults;
mod fixtures;
mod last_row;
mod model;
mod narrow;
mod panics;
mod parts;
mod pressure;
mod reopen;
mod retention;
mod slow;
mod support;
