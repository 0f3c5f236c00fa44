//! The load generator: schedule, recorder, ledger, drivers, report.
//!
//! A black box by construction: it speaks MQTT and HTTP to whatever listens and knows nothing of how our server works
//! inside, so our own server is measured the way any other is. The runner owns schedule, clock and histogram; latency
//! counts from the intended send time.

mod error;
pub mod generator;
pub mod http;
mod limits;
mod open_files;
pub mod payload;
pub mod process;
pub mod recorder;
pub mod schedule;
mod server;

pub use error::{Error, Result};
