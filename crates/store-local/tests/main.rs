#![allow(clippy::unwrap_used, reason = "a test may panic")]
//! Tests of the embedded store through its public interface.

mod backup;
mod check;
mod compaction;
mod contract;
mod crash;
mod damage;
mod deletion;
mod deletion_of_rows;
mod faults;
mod fixtures;
mod last_row;
mod long_texts;
mod model;
mod narrow;
mod panics;
mod parts;
mod pressure;
mod reopen;
mod retention;
mod slow;
mod support;
