//! The engine of loads: schedules, engines, recorders, statistics, scenarios, results and samples of the machine.
//!
//! The crate knows no protocol: a driver hands it a [`protocol::Protocol`] or a [`protocol::Blocking`], and sources to sample.
//! It treats every server as a black box and uses no internal interface of ours. The engine owns the schedule, the clock and
//! the histogram. Latency counts from the intended send time.

pub mod dataset;
pub mod engine;
mod error;
pub mod limits;
pub mod machine;
pub mod objective;
pub mod open_files;
pub mod payload;
pub mod process;
pub mod progress;
pub mod protocol;
pub mod recorder;
pub mod result;
pub mod sampling;
pub mod scenario;
pub mod schedule;
pub mod server_process;
pub mod statistics;

pub use error::{Error, Result};
pub use machine::{Machine, utc_now};
