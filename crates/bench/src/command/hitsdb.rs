//! `tacho bench run hitsdb`: the scenario of that name, with its own options. The numbers of timelines and of clients make
//! its phases: for each pair one in which all timelines are new, and one that writes on.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use load::scenario::parse_duration;
use load::{Error, Result};
use toml::{Table, Value};

use super::login_options::LoginOptions;
use super::scenario_options::ScenarioOptions;
use super::sets::Sets;

/// The scenario.
pub(super) const NAME: &str = "hitsdb";

/// The protocol to write with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// `/api/put`, JSON.
    Opentsdb,
    /// `/write`, line protocol.
    Influx,
    /// `/api/v1/write`, remote write.
    Prometheus,
}

impl Protocol {
    fn driver(self) -> &'static str {
        match self {
            Self::Opentsdb => "opentsdb",
            Self::Influx => "influx",
            Self::Prometheus => "prometheus",
        }
    }
}

/// The HiTSDB test: clients write points of many timelines, 500 in a request, and the run reads back what was acknowledged. For
/// each number of timelines and of clients: every timeline once, while all are new, then more points for some time. Without
/// --target a server is started on a fresh directory for each pair, and stopped afterwards
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) common: ScenarioOptions,
    /// Protocol to write with [default: opentsdb]
    #[arg(long, value_enum)]
    protocol: Option<Protocol>,
    /// Numbers of timelines, up to 10^8
    #[arg(long, value_delimiter = ',', default_values_t = [10_000_u64, 100_000, 1_000_000])]
    timelines: Vec<u64>,
    /// Numbers of clients, each with a connection
    #[arg(long, value_delimiter = ',', default_values_t = [1_u32, 2, 4])]
    clients: Vec<u32>,
    /// Points of a request [default: 500]
    #[arg(long)]
    points_per_request: Option<u64>,
    /// Metrics; timeline i belongs to metric i % METRICS [default: 100]
    #[arg(long)]
    metrics: Option<u64>,
    /// Tags of each timeline; the first distinguishes them [default: 1]
    #[arg(long)]
    tags_per_series: Option<u32>,
    /// How long clients write on when all timelines are known
    #[arg(long, default_value = "10s", value_parser = written_duration)]
    duration: String,
    /// Points that each timeline gets in the phase `known`, which ends after --duration at the latest; 0 leaves the phase out
    #[arg(long)]
    cycles: Option<u64>,
    /// Points per second over all clients: an open loop, in which the latency of a request counts from the moment it was due
    /// [default: closed loop, the next request after the answer]
    #[arg(long, conflicts_with = "closed")]
    rate: Option<f64>,
    /// Keep the points of the pairs before, and do not restart the server between them
    #[arg(long)]
    accumulate: bool,
    /// Timelines whose points are read back and compared one by one [default: 100]
    #[arg(long)]
    sample: Option<u64>,
    /// Address to read back from, if it is not that of the target
    #[arg(long, value_name = "URL", requires = "target")]
    http: Option<String>,
    /// Shell command that starts the server of --target on the empty directory {data}; it is started again for each pair
    #[arg(long, value_name = "COMMAND", requires = "target")]
    server_command: Option<String>,
    /// Directory of a running server on this machine, whose size is measured
    #[arg(long, value_name = "DIR", requires = "target", conflicts_with = "server_command")]
    server_data: Option<PathBuf>,
    #[command(flatten)]
    login: LoginOptions,
}

fn written_duration(text: &str) -> std::result::Result<String, String> {
    parse_duration(text).map(|_| text.to_owned())
}

impl Options {
    /// The settings of these options, followed by those of `--set`.
    pub(super) fn sets(&self) -> Result<Vec<String>> {
        let mut sets = Sets::default();
        sets.text("scenario.driver", self.protocol.map(Protocol::driver));
        sets.number("dataset.points_per_request", self.points_per_request);
        sets.number("dataset.metrics", self.metrics);
        sets.number("dataset.tags_per_series", self.tags_per_series);
        sets.number("dataset.sample", self.sample);
        sets.number("dataset.accumulate", self.accumulate.then_some(true));
        sets.text("target.http", self.http.as_deref());
        sets.text("target.command", self.server_command.as_deref());
        let data = self.server_data.as_ref().map(|data| data.to_string_lossy());
        sets.text("target.data", data.as_deref());
        self.login.add_to(&mut sets);
        sets.number("phase", Some(Value::Array(self.phases()?)));
        sets.0.extend(self.common.sets());
        Ok(sets.0)
    }

    fn phases(&self) -> Result<Vec<Value>> {
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            return Err(Error::Options("--rate must be above zero".to_owned()));
        }
        let mut phases = Vec::new();
        for timelines in &self.timelines {
            for clients in &self.clients {
                phases.extend(self.cell(*timelines, *clients)?);
            }
        }
        Ok(phases)
    }

    /// The phases of one pair.
    fn cell(&self, timelines: u64, clients: u32) -> Result<Vec<Value>> {
        let count = i64::try_from(timelines)
            .map_err(|_| Error::Options(format!("--timelines {timelines} are too many")))?;
        let mut phase = Table::new();
        let set = |phase: &mut Table, key: &str, value: Value| _ = phase.insert(key.to_owned(), value);
        set(&mut phase, "timelines", Value::Integer(count));
        set(&mut phase, "connections", Value::Integer(clients.into()));
        match self.rate {
            None => set(&mut phase, "arrival", Value::String("closed".to_owned())),
            Some(rate) => {
                let requests = rate / self.points_per_request.unwrap_or(500).max(1) as f64;
                set(&mut phase, "arrival", Value::String("poisson".to_owned()));
                set(&mut phase, "rate", Value::Float(requests));
            }
        }
        let (mut new, mut known) = (phase.clone(), phase);
        set(&mut new, "name", Value::String(format!("new-{timelines}x{clients}")));
        set(&mut new, "cycles", Value::Integer(1));
        set(&mut known, "name", Value::String(format!("known-{timelines}x{clients}")));
        set(&mut known, "continues", Value::Boolean(true));
        set(&mut known, "duration", Value::String(self.duration.clone()));
        match self.cycles {
            Some(0) => return Ok(vec![Value::Table(new)]),
            None => {}
            Some(cycles) => {
                let cycles = i64::try_from(cycles)
                    .map_err(|_| Error::Options(format!("--cycles {cycles} are too many")))?;
                set(&mut known, "cycles", Value::Integer(cycles));
            }
        }
        Ok(vec![Value::Table(new), Value::Table(known)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::scenario::{Arrival, Builtin, Scenario};

    fn scenario(line: &str) -> std::result::Result<Scenario, String> {
        super::super::understood(&format!("{NAME} {line}"))
    }

    #[test]
    fn the_options_have_the_defaults_of_the_file() {
        let (file, options) = (Builtin::named(NAME).unwrap().scenario().unwrap(), scenario("").unwrap());
        assert_eq!(file.phases.len(), 18);
        assert_eq!((options.phases, options.dataset), (file.phases, file.dataset));
    }

    #[test]
    fn each_pair_of_timelines_and_clients_is_a_cell_of_two_phases() {
        let scenario = scenario("--timelines 10,20 --clients 3 --protocol influx --cycles 5").unwrap();
        let names: Vec<&str> = scenario.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["new-10x3", "known-10x3", "new-20x3", "known-20x3"]);
        assert_eq!(scenario.head.driver, "influx");
        let known = &scenario.phases[1].mixes[0];
        assert_eq!((known.connections, known.arrival), (3, Arrival::Closed));
        assert_eq!(known.driver_keys["cycles"].as_integer(), Some(5));
        assert!(known.driver_keys["continues"].as_bool().unwrap());
    }

    #[test]
    fn a_rate_of_points_is_an_open_loop_of_requests() {
        let open = scenario("--rate 100000 --points-per-request 50 --timelines 100 --clients 1").unwrap();
        let mix = &open.phases[1].mixes[0];
        assert_eq!((mix.arrival, mix.rate), (Arrival::Poisson, Some(2_000.0)));
    }

    #[test]
    fn a_peer_is_named_with_its_address_command_and_login() {
        let line = "--timelines 10 --clients 1 --target http://127.0.0.1:4242 --http http://127.0.0.1:8428 --user me --password 12";
        let peer = scenario(line).unwrap();
        assert_eq!(peer.target.driver_keys["password"].as_str(), Some("12"));
        assert_eq!(peer.target.driver_keys["http"].as_str(), Some("http://127.0.0.1:8428"));
    }

    #[test]
    fn contradictions_are_refused_with_what_to_do() {
        for (line, expected) in [
            ("--rate 0", "above zero"),
            ("--rate 5 --closed", "cannot be used with"),
            ("--timelines 0", "timelines = 0; use 1 to"),
            ("--clients 0", "above zero"),
            ("--points-per-request 50001", "use 1 to 50000"),
            ("--tags-per-series 9", "use 1 to 8"),
            ("--metrics 0", "must be above zero"),
            ("--protocol graphite", "possible values"),
            ("--http http://h:1", "--target"),
            ("--target http://h:1 --server-command victoria-metrics", "{data}"),
            ("--target http://h:1 --token x --user me --password y", "cannot be used with"),
            ("--timelines 10 --timelines 10 --clients 1", "two phases are called"),
        ] {
            let error = scenario(line).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }
}
