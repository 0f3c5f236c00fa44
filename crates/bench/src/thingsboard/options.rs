//! What a `thingsboard` run can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::generator::{Load, Protocol};
use crate::limits::IN_FLIGHT_MAX;
use crate::options::{Target, as_seconds, parse_duration};
use crate::payload::{PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN};
use crate::schedule::Arrivals;

/// Rate at which ticks begin to pay: two messages a tick.
const TICK_FROM_RATE: f64 = 10_000.0;
/// A fiftieth of a 10 ms latency; far below what a group commit takes.
const TICK_US: u32 = 200;

/// Devices publish small JSON messages at QoS 1 to v1/devices/me/telemetry, each over its own connection.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
pub struct Options {
    /// The server under test.
    #[command(flatten)]
    #[serde(flatten)]
    pub target: Target,
    /// Devices to provision; each opens one connection.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub devices: u32,
    /// Messages per second over all devices; latency counts from the moment a message is due.
    #[arg(long, default_value_t = 1_000.0)]
    pub rate: f64,
    /// Devices send at random, independently of each other (the default).
    #[arg(long, conflicts_with = "fixed")]
    pub poisson: bool,
    /// Every device sends at an exact period; devices are spread evenly, with jitter.
    #[arg(long)]
    pub fixed: bool,
    /// Ignore --rate: every connection keeps a window of messages in flight. Finds the limit, not the latency.
    #[arg(long, conflicts_with_all = ["poisson", "fixed"])]
    pub closed: bool,
    /// Messages in flight per connection of a closed run.
    #[arg(long, default_value_t = 1, requires = "closed")]
    pub window: usize,
    /// Open connections and send nothing but pings: what does an idle connection cost the server?
    #[arg(long, conflicts_with_all = ["poisson", "fixed", "closed"])]
    pub idle: bool,
    /// Connections, when not every device is to connect [default: --devices]
    #[arg(long)]
    pub connections: Option<u32>,
    /// Measured part of the run.
    #[arg(long, default_value = "30s", value_parser = parse_duration)]
    #[serde(serialize_with = "as_seconds", rename = "duration_s")]
    pub duration: Duration,
    /// Load before it that is not measured.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    #[serde(serialize_with = "as_seconds", rename = "warmup_s")]
    pub warmup: Duration,
    /// Size of a message's JSON.
    #[arg(long, default_value_t = 100)]
    pub payload_bytes: usize,
    /// MQTT version, 3.1.1 or 5.
    #[arg(long, default_value = "3.1.1")]
    pub protocol: Protocol,
    /// Device n has the access token (and so the MQTT user name) `<PREFIX>n`.
    #[arg(long, default_value = "tok", value_name = "PREFIX")]
    pub token_prefix: String,
    /// Device n is called `<PREFIX>n`.
    #[arg(long, default_value = "dev-", value_name = "PREFIX")]
    pub device_prefix: String,
    /// Generator threads. One is enough for a server on the same two cores.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// Look at sockets and schedule at most every so many microseconds. One turn then serves many messages, which
    /// saves a third of the generator's CPU time; what a message waits for it counts as its latency [default: 200 from 10,000
    /// messages a second on, otherwise 0, at once]
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=10_000), conflicts_with_all = ["closed", "idle"])]
    pub tick_us: Option<u32>,
    /// Keep-alive in seconds.
    #[arg(long, default_value_t = 60)]
    pub keep_alive_s: u16,
    /// Seed of the schedule; the same seed gives the same intended times.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory of the result (default: `bench-runs/<UTC>-thingsboard`)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress on standard error.
    #[arg(long)]
    pub quiet: bool,
}

impl Options {
    /// Refuses what cannot be run, before anything is started.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |what: String| Err(Error::Options(what));
        if !(self.rate > 0.0 && self.rate.is_finite()) {
            return refuse(format!("--rate {} must be above zero", self.rate));
        }
        if !(1..=IN_FLIGHT_MAX).contains(&self.window) {
            return refuse(format!("--window {} must be 1 to {IN_FLIGHT_MAX}", self.window));
        }
        if !(PAYLOAD_BYTES_MIN..=PAYLOAD_BYTES_MAX).contains(&self.payload_bytes) {
            let range = format!("{PAYLOAD_BYTES_MIN} (timestamp and sequence number) to {PAYLOAD_BYTES_MAX}");
            return refuse(format!("--payload-bytes {} must be {range}", self.payload_bytes));
        }
        if self.duration.is_zero() {
            return refuse("--duration must be above zero".to_owned());
        }
        if !(1..=self.devices).contains(&self.connections()) {
            let connections = self.connections();
            return refuse(format!("--connections {connections} must be 1 to --devices ({})", self.devices));
        }
        if self.target.target.is_none() && (self.target.http.is_some() || self.target.server_pid.is_some()) {
            return refuse("--http and --server-pid describe a running server: give --target too".to_owned());
        }
        if self.target.target.is_some() && self.target.data.is_some() {
            return refuse("--data is for a server started by the run: leave out --target".to_owned());
        }
        let needs_login =
            self.target.target.is_some() && !(self.target.no_provision && self.target.no_verify);
        if needs_login && self.target.password.is_none() {
            return refuse(
                "a running server needs --password to provision and verify (or --no-provision --no-verify); \
                 ours keeps it in admin-password in its data directory"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Connections of the run.
    pub fn connections(&self) -> u32 {
        self.connections.unwrap_or(self.devices)
    }

    /// See `--tick-us`.
    pub(crate) fn tick_us(&self) -> u32 {
        let default = if self.rate >= TICK_FROM_RATE { TICK_US } else { 0 };
        self.tick_us.unwrap_or(default)
    }

    pub(crate) fn load(&self) -> Load {
        if self.idle {
            Load::Idle
        } else if self.closed {
            Load::Closed { window: self.window, pause: Duration::ZERO }
        } else {
            let arrivals = if self.fixed { Arrivals::Fixed } else { Arrivals::Poisson };
            Load::Open { rate: self.rate, arrivals, seed: self.seed }
        }
    }

    /// One line that says what the run does.
    pub(crate) fn describe(&self) -> String {
        let connections = self.connections();
        let messages = format!("{}-byte JSON, QoS 1, MQTT {}", self.payload_bytes, self.protocol);
        let duration = self.duration.as_secs_f64();
        match self.load() {
            Load::Open { rate, arrivals, .. } => {
                let arrivals = if arrivals == Arrivals::Fixed { "fixed" } else { "Poisson" };
                format!(
                    "{connections} devices, {rate} msg/s open loop ({arrivals}), {messages}, {duration} s"
                )
            }
            Load::Closed { window, .. } => {
                format!("{connections} devices, closed loop with window {window}, {messages}, {duration} s")
            }
            Load::Idle | Load::Reopen { .. } | Load::Sample { .. } => {
                format!("{connections} idle connections, MQTT {}, {duration} s", self.protocol)
            }
        }
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

    fn parse(line: &str) -> std::result::Result<Options, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options).map_err(|e| e.to_string())
    }

    #[test]
    fn the_defaults_are_a_short_open_run_with_its_own_server() {
        let options = parse("").unwrap();
        options.check().unwrap();
        assert_eq!(options.connections(), 1_000);
        assert_eq!(options.load(), Load::Open { rate: 1_000.0, arrivals: Arrivals::Poisson, seed: 1 });
        assert_eq!((options.duration, options.payload_bytes), (Duration::from_secs(30), 100));
    }

    #[test]
    fn the_published_command_lines_are_understood() {
        let options = parse("--devices 19900 --rate 30000 --duration 60s").unwrap();
        options.check().unwrap();
        assert_eq!(
            options.describe(),
            "19900 devices, 30000 msg/s open loop (Poisson), 100-byte JSON, QoS 1, MQTT 3.1.1, 60 s"
        );
        let options = parse("--devices 200 --closed --window 64 --protocol 5").unwrap();
        options.check().unwrap();
        assert_eq!(
            (options.load(), options.protocol),
            (Load::Closed { window: 64, pause: Duration::ZERO }, Protocol::V5)
        );
        let foreign = "--target mqtt://127.0.0.1:1884 --no-provision --no-verify --server-pid 17";
        parse(foreign).unwrap().check().unwrap();
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        for (line, expected) in [
            ("--poisson --fixed", "cannot be used with"),
            ("--closed --fixed", "cannot be used with"),
            ("--window 3", "--closed"),
            ("--protocol 4.2", "use 3.1.1 or 5"),
            ("--duration 5x", "use ms, s, m or h"),
            ("--devices 0", "--devices"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
        for (line, expected) in [
            ("--rate 0", "above zero"),
            ("--payload-bytes 10", "must be 48"),
            ("--connections 2000", "--devices (1000)"),
            ("--http http://x", "give --target too"),
            ("--target mqtt://x --data d", "leave out --target"),
            ("--target mqtt://x", "needs --password"),
            ("--closed --window 40000", "must be 1 to"),
        ] {
            let error = parse(line).unwrap().check().unwrap_err().to_string();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
