//! `tacho bench run thingsboard`: the scenario of that name, with its own options. Every option sets keys of the
//! scenario, which has the defaults.

use std::path::PathBuf;

use clap::Args;
use load::limits::IN_FLIGHT_MAX;
use load::scenario::parse_duration;
use load::{Error, Result};
use targets::mqtt::Version;

use super::scenario_options::ScenarioOptions;
use super::sets::Sets;

/// The scenario.
pub(super) const NAME: &str = "thingsboard";
/// The rate from which ticks save time: four messages per tick. Below it, answers that wait for the next send save as
/// much.
const TICK_FROM_RATE: f64 = 20_000.0;
/// A fiftieth of a latency of 10 ms, and far below the time of a group commit.
const TICK_US: u32 = 200;

/// Devices publish small JSON messages at QoS 1 to v1/devices/me/telemetry, each over its own connection; what was acknowledged
/// is read back. Without --target a server is started on a fresh directory and stopped afterwards
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) common: ScenarioOptions,
    /// Devices to provision; each opens one connection [default: 1000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    devices: Option<u32>,
    /// Messages per second over all devices; latency counts from the moment a message is due [default: 1000]
    #[arg(long)]
    rate: Option<f64>,
    /// Devices send at random, independently of each other (the default)
    #[arg(long, conflicts_with_all = ["fixed", "closed", "idle"])]
    poisson: bool,
    /// Every device sends at an exact period; devices are spread evenly, with jitter
    #[arg(long, conflicts_with_all = ["closed", "idle"])]
    fixed: bool,
    /// Messages in flight per connection of a closed run [default: 1]
    #[arg(long, requires = "closed")]
    window: Option<usize>,
    /// Open connections and send nothing but pings: what does an idle connection cost the server?
    #[arg(long, conflicts_with = "closed")]
    idle: bool,
    /// Connections, when not every device is to connect [default: --devices]
    #[arg(long)]
    connections: Option<u32>,
    /// Measured part of the run, such as 60s or 5m [default: 30s]
    #[arg(long, value_parser = written_duration)]
    duration: Option<String>,
    /// Load before it that is not measured [default: 5s]
    #[arg(long, value_parser = written_duration)]
    warmup: Option<String>,
    /// Size of a message's JSON [default: 100]
    #[arg(long)]
    payload_bytes: Option<usize>,
    /// MQTT version, 3.1.1 or 5 [default: 3.1.1]
    #[arg(long, value_parser = written_version)]
    protocol: Option<String>,
    /// Device n has the access token (and so the MQTT user name) `<PREFIX>n` [default: tok]
    #[arg(long, value_name = "PREFIX")]
    token_prefix: Option<String>,
    /// Device n is called `<PREFIX>n` [default: dev-]
    #[arg(long, value_name = "PREFIX")]
    device_prefix: Option<String>,
    /// Generator threads. One is enough for a server on the same two cores [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Look at sockets and schedule at most once in this time, in microseconds. One pass then serves many messages, which
    /// takes less of the generator's CPU time; what a message waits for it counts as its lag and latency [default: 200 from
    /// 20,000 messages a second on, otherwise 0, at once]
    #[arg(long, value_parser = clap::value_parser!(u32).range(..=10_000), conflicts_with_all = ["closed", "idle"])]
    tick_us: Option<u32>,
    /// Messages come due at ticks of a timer that all devices follow, microseconds: those of a tick are sent together, and latency
    /// counts from it. 0 for at any time [default: 0]
    #[arg(long, conflicts_with_all = ["closed", "idle", "tick_us"])]
    timer_us: Option<u32>,
    /// Keep-alive in seconds [default: 60]
    #[arg(long)]
    keep_alive_s: Option<u16>,
    /// Seed of the schedule; the same seed gives the same intended times [default: 1]
    #[arg(long)]
    seed: Option<u32>,
    /// HTTP address of a running server, for provisioning and reading back [default: port 8080 of the target's host]
    #[arg(long, value_name = "URL", requires = "target")]
    http: Option<String>,
    /// User who may provision devices and read them [default: the first administrator of a server of ours]
    #[arg(long, requires = "target")]
    user: Option<String>,
    /// Their password
    #[arg(long, env = "TACHO_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    /// Do not create devices; the server knows them or accepts anybody
    #[arg(long)]
    no_provision: bool,
    /// Do not read back what was stored
    #[arg(long)]
    no_verify: bool,
    /// Data directory of a server started by this run; it is kept [default: a temporary one in the working directory,
    /// removed afterwards]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    data: Option<PathBuf>,
}

fn written_duration(text: &str) -> std::result::Result<String, String> {
    parse_duration(text).map(|_| text.to_owned())
}

/// Checks an MQTT version and returns it unchanged.
pub(super) fn written_version(text: &str) -> std::result::Result<String, String> {
    text.parse::<Version>().map(|_| text.to_owned())
}

impl Options {
    /// The settings of these options, followed by those of `--set`.
    pub(super) fn sets(&self) -> Result<Vec<String>> {
        if let Some(window) = self.window.filter(|window| !(1..=IN_FLIGHT_MAX).contains(window)) {
            return Err(Error::Options(format!("--window {window} must be 1 to {IN_FLIGHT_MAX}")));
        }
        let mut sets = Sets::default();
        sets.number("phase.run.connections", self.connections.or(self.devices));
        sets.number("dataset.devices", self.devices);
        sets.number("phase.run.rate", self.rate);
        let arrival = [(self.fixed, "fixed"), (self.idle, "idle"), (self.poisson, "poisson")];
        sets.text("phase.run.arrival", arrival.into_iter().find_map(|(is, word)| is.then_some(word)));
        sets.number("phase.run.window", self.window);
        sets.text("phase.run.duration", self.duration.as_deref());
        sets.text("phase.run.warmup", self.warmup.as_deref());
        sets.number("phase.run.threads", self.threads);
        sets.number("phase.run.tick_us", self.tick_us());
        sets.number("phase.run.timer_us", self.timer_us);
        sets.number("dataset.payload_bytes", self.payload_bytes);
        sets.text("dataset.version", self.protocol.as_deref());
        sets.text("dataset.token_prefix", self.token_prefix.as_deref());
        sets.text("dataset.device_prefix", self.device_prefix.as_deref());
        sets.number("dataset.keep_alive_s", self.keep_alive_s);
        sets.number("seed", self.seed);
        self.target(&mut sets)?;
        sets.0.extend(self.common.sets());
        Ok(sets.0)
    }

    fn tick_us(&self) -> Option<u32> {
        let open = !self.common.closed && !self.idle && self.timer_us.is_none_or(|us| us == 0);
        self.tick_us.or((open && self.rate? >= TICK_FROM_RATE).then_some(TICK_US))
    }

    fn target(&self, sets: &mut Sets) -> Result<()> {
        sets.number("target.provision", Some(!self.no_provision));
        sets.number("target.verify", Some(!self.no_verify));
        sets.text("target.data", self.data.as_ref().map(|data| data.to_string_lossy()).as_deref());
        let asks = !(self.no_provision && self.no_verify);
        if self.common.target.is_none() || !asks {
            return Ok(());
        }
        if self.password.is_none() {
            return Err(Error::Options(
                "a running server needs --password to provision and verify (or --no-provision --no-verify); \
                 ours keeps it in admin-password in its data directory"
                    .to_owned(),
            ));
        }
        sets.text("target.http", self.http.as_deref());
        sets.text("target.user", self.user.as_deref());
        sets.text("target.password", self.password.as_deref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::scenario::{Arrival, Scenario};

    fn scenario(line: &str) -> std::result::Result<Scenario, String> {
        super::super::understood(&format!("{NAME} {line}"))
    }

    #[test]
    fn the_defaults_are_a_short_open_run_with_its_own_server() {
        let scenario = scenario("").unwrap();
        let [phase] = &scenario.phases[..] else { panic!("{:?}", scenario.phases) };
        assert_eq!((phase.connections(), phase.mixes[0].rate), (1_000, Some(1_000.0)));
        assert_eq!((phase.mixes[0].arrival, phase.tick_us), (Arrival::Poisson, 0));
        assert_eq!((phase.duration.unwrap().as_secs(), phase.warmup.as_secs()), (30, 5));
        assert_eq!(scenario.target.url, "");
    }

    #[test]
    fn the_published_command_lines_are_understood() {
        let article = scenario("--devices 19900 --rate 30000 --duration 60s").unwrap();
        let phase = &article.phases[0];
        assert_eq!((phase.connections(), phase.mixes[0].rate, phase.tick_us), (19_900, Some(30_000.0), 200));
        let slower = scenario("--devices 10000 --rate 10000").unwrap();
        assert_eq!(slower.phases[0].tick_us, 0);
        let timer = scenario("--devices 19900 --rate 30000 --timer-us 1000").unwrap();
        assert_eq!((timer.phases[0].mixes[0].timer_us, timer.phases[0].tick_us), (1_000, 0));
        let saturation = scenario("--devices 200 --closed --window 64 --protocol 5 --rate 20000").unwrap();
        let mix = &saturation.phases[0].mixes[0];
        assert_eq!((mix.arrival, mix.window, saturation.phases[0].tick_us), (Arrival::Closed, 64, 0));
        assert_eq!(saturation.dataset["version"].as_str(), Some("5"));
        let idle = scenario("--devices 20 --connections 10 --idle").unwrap();
        assert_eq!((idle.phases[0].mixes[0].arrival, idle.phases[0].connections()), (Arrival::Idle, 10));
        let foreign =
            scenario("--target mqtt://127.0.0.1:1884 --no-provision --no-verify --server-pid 17").unwrap();
        assert_eq!((foreign.target.pid, foreign.target.driver_keys.get("http")), (Some(17), None));
        let ours = scenario("--target mqtt://h --password 1234 --set phase.run.rate=7 --rate 9").unwrap();
        assert_eq!(ours.target.driver_keys["password"].as_str(), Some("1234"));
        assert_eq!(ours.phases[0].mixes[0].rate, Some(7.0), "--set comes last");
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        for (line, expected) in [
            ("--poisson --fixed", "cannot be used with"),
            ("--closed --fixed", "cannot be used with"),
            ("--timer-us 1000 --tick-us 200", "cannot be used with"),
            ("--window 3", "--closed"),
            ("--protocol 4.2", "use 3.1.1 or 5"),
            ("--duration 5x", "use ms, s, m or h"),
            ("--devices 0", "--devices"),
            ("--rate 0", "above zero"),
            ("--payload-bytes 10", "use 48"),
            ("--connections 2000 --devices 1000", "as many devices, not 1000"),
            ("--http http://x", "--target"),
            ("--target mqtt://x --data d", "cannot be used with"),
            ("--target mqtt://x", "needs --password"),
            ("--closed --window 40000", "must be 1 to"),
        ] {
            let error = scenario(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
