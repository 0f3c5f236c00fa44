//! The load generator: schedule, recorder, targets, report.
//!
//! The crate treats every server as a black box. It speaks the protocols that the server offers and uses no internal
//! interface, so it measures our own server in the same way as any other. The runner owns the schedule, the clock and
//! the histogram. Latency counts from the intended send time.

pub mod ab;
pub mod bundles;
pub mod capacity;
pub mod clients;
pub mod command;
mod command_line;
pub mod compare;
pub mod dataset;
pub mod engine;
mod error;
pub mod http;
pub mod import;
mod limits;
mod machine;
mod open_files;
pub mod options;
mod passwords;
pub mod payload;
pub mod process;
mod progress;
pub mod protocol;
pub mod recorder;
pub mod report;
pub mod result;
pub mod runner;
pub mod sampling;
pub mod scenario;
pub mod schedule;
mod server;
mod server_process;
pub mod statistics;
pub mod target;
mod target_url;
pub mod tls;

pub use error::{Error, Result};
pub use machine::{Machine, utc_now};
pub use options::Context;
