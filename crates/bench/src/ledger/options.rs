//! What a ledger run can be asked for.

use std::path::PathBuf;

use crate::driver::mqtt::Version as Protocol;
use crate::error::{Error, Result};

/// Kills the server at random moments and proves that every acknowledged point is readable exactly once and that no
/// point was invented.
///
/// SIGKILL keeps the operating system's page cache: this proves recovery, not what a power cut leaves.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
pub struct Options {
    /// How often the server is killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub kills: u32,
    /// Seed of the moments.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Devices that write, each over its own connection.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub devices: u32,
    /// Messages in flight per connection.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub window: u16,
    /// Most messages per second over all devices; bounds what must be read back.
    #[arg(long, default_value_t = 20_000.0)]
    pub rate: f64,
    /// MQTT version, 3.1.1 or 5.
    #[arg(long, default_value = "3.1.1")]
    pub protocol: Protocol,
    /// Data directory, empty or missing. It is kept [default: a temporary one beside the result, kept only when the
    /// promise was broken]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Directory of the result (default: `bench-runs/<UTC>-ledger`)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(long)]
    pub quiet: bool,
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return Err(Error::Options(format!("--rate {} must be above zero", self.rate)));
        }
        let Some(data) = &self.data else { return Ok(()) };
        let used = std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_some());
        if used {
            let text =
                format!("--data {} is not empty; the ledger must know every point in it", data.display());
            return Err(Error::Options(text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parse(words: &[&str]) -> Options {
        Line::parse_from(std::iter::once(&"ledger").chain(words)).options
    }

    #[test]
    fn defaults_and_the_published_command_line() {
        let options = parse(&["--kills", "20", "--seed", "7"]);
        options.check().unwrap();
        assert_eq!((options.kills, options.seed, options.devices), (20, 7, 8));
        assert_eq!(parse(&["--protocol", "5"]).protocol, Protocol::V5);
    }

    #[test]
    fn a_used_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        parse(&["--data", path]).check().unwrap();
        std::fs::write(directory.path().join("x"), "").unwrap();
        let error = parse(&["--data", path]).check().unwrap_err().to_string();
        assert!(error.contains("is not empty"), "{error}");
        assert!(parse(&["--rate", "0"]).check().is_err());
    }
}
