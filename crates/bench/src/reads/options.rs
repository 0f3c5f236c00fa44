//! Options of the reads.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::options::{as_seconds, parse_duration};

/// Questions of a dashboard over HTTP, one client, warm: at rest and while points are being written
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
pub struct Options {
    /// Devices with one value every ten seconds.
    #[arg(long, default_value_t = 1_000)]
    pub devices: u32,
    /// Hours of their history, up to now.
    #[arg(long, default_value_t = 12)]
    pub hours: u32,
    /// How long each question is asked.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    #[serde(rename = "duration_s", serialize_with = "as_seconds")]
    pub duration: Duration,
    /// How long it is asked before that, unmeasured.
    #[arg(long, default_value = "1s", value_parser = parse_duration)]
    #[serde(rename = "warmup_s", serialize_with = "as_seconds")]
    pub warmup: Duration,
    /// Points per second that are written while the questions are asked a second time.
    #[arg(long, default_value_t = 100_000.0)]
    pub write_rate: f64,
    /// Directory of the result (default: `bench-runs/<UTC>-reads`).
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(long)]
    pub quiet: bool,
}

impl Options {
    pub(super) fn check(&self) -> Result<()> {
        if self.devices < 100 || self.hours < 12 || self.write_rate.is_nan() || self.write_rate <= 0.0 {
            return Err(Error::Options(
                "the questions need at least 100 devices, 12 hours and a rate of writing above 0".to_owned(),
            ));
        }
        Ok(())
    }
}
