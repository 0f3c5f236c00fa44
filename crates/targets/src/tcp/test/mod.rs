//! The test of a phase of driver `tcp`: its keys, checked and scaled.

use std::time::Duration;

use load::dataset::Distribution;
use load::engine::{AfterReopen, Close, Connect, FailureRule, Load, ReopenTrigger, Segment};
use load::scenario::{Arrival, Phase, Scenario, duration, typed};
use load::schedule::Arrivals;

use crate::http::{Expect, GroupConfig, Http, Operation, Order, Request, Version};
use serde::Deserialize;

use load::limits::HANDSHAKE_TIMEOUT_S;

use crate::limits::{PROBES_PER_S_MAX, SUSTAINED_FAILURES, SUSTAINED_LAST};
use crate::tcp::addresses::Sources;
use crate::tcp::ports::PortDemand;
use crate::tcp::{Application, Config};

/// The operation that opens a connection.
pub(super) const CONNECT: &str = "connect";
/// The operation that sends a request on an open connection.
const REQUEST: &str = "request";

/// The limit that a phase measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TestKind {
    /// The number of connections at a time.
    Maxconn,
    /// The number of connections that are opened and closed per second.
    Cps,
    /// The number of requests per second on open connections.
    Qps,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Closing {
    #[default]
    Fin,
    Rst,
    AfterRequest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ApplicationKind {
    None,
    Echo,
    #[default]
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeepAlive {
    #[default]
    Tcp,
    Application,
    None,
}

/// Keys of `[dataset]` and of a phase.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestOptions {
    test: TestKind,
    #[serde(default)]
    application: ApplicationKind,
    #[serde(default = "root")]
    path: String,
    #[serde(default)]
    sources: Sources,
    #[serde(default, deserialize_with = "duration")]
    connect_timeout: Option<Duration>,
    #[serde(default)]
    close: Closing,
    #[serde(default, deserialize_with = "duration")]
    hold: Option<Duration>,
    #[serde(default)]
    keep_alive: KeepAlive,
    #[serde(default, deserialize_with = "duration")]
    keep_alive_every: Option<Duration>,
    #[serde(default = "hundred")]
    sample: u32,
    #[serde(default = "sustained_last")]
    give_up_last: u32,
    #[serde(default = "sustained_failures")]
    give_up_failures: u32,
}

fn root() -> String {
    "/".to_owned()
}

fn hundred() -> u32 {
    100
}

fn sustained_last() -> u32 {
    SUSTAINED_LAST
}

fn sustained_failures() -> u32 {
    SUSTAINED_FAILURES
}

/// A phase, checked and at the scale of the scenario.
#[derive(Debug)]
pub(super) struct Test {
    pub(super) kind: TestKind,
    /// The number of connections at a time.
    pub(super) connections: u32,
    /// Connects or requests per second and their arrivals; `None` in a closed loop.
    scheduled: Option<(f64, Arrivals)>,
    timer_us: u32,
    pause: Duration,
    options: TestOptions,
}

impl Test {
    pub(super) fn of(scenario: &Scenario, phase: &Phase) -> Result<Self, String> {
        let place = phase.place();
        let [mix] = &phase.mixes[..] else { return Err(format!("{place}: this driver has no mixes")) };
        // A separate check of `[dataset]` gives better suggestions.
        let mut dataset = scenario.dataset.clone();
        dataset.entry("test").or_insert_with(|| toml::Value::String("qps".to_owned()));
        typed::<TestOptions>(dataset, "[dataset]", &[])?;
        let options: TestOptions = mix.options(&scenario.dataset, &place)?;
        let rate = mix.rate.unwrap_or(1.0) * scenario.rate_scale();
        let scheduled = match mix.arrival {
            Arrival::Poisson => Some((rate, Arrivals::Poisson)),
            Arrival::Fixed => Some((rate, Arrivals::Fixed)),
            Arrival::Closed if options.test != TestKind::Maxconn => None,
            other => {
                return Err(format!(
                    "{place}: arrival = {other:?}; this driver knows poisson and fixed, and closed for cps and qps"
                ));
            }
        };
        if scheduled.is_none() && options.test == TestKind::Cps && options.close != Closing::AfterRequest {
            return Err(format!(
                "{place}: a closed loop of connects needs close = \"after-request\": kernels shake hands for programs that \
                 do not accept yet, so there would be nothing to wait for"
            ));
        }
        if scheduled.is_none() && mix.window > 1 {
            return Err(format!(
                "{place}: window = {}; a connection asks for one thing at a time",
                mix.window
            ));
        }
        if options.test == TestKind::Cps && !mix.pause.is_zero() {
            return Err(format!("{place}: pause is for requests, not for connects"));
        }
        if options.test != TestKind::Qps && mix.timer_us > 0 {
            return Err(format!("{place}: timer_us is for requests per second, not for connects"));
        }
        if options.test == TestKind::Maxconn && phase.duration.is_some() {
            return Err(format!("{place}: `duration` follows from connections, rate and `hold`"));
        }
        if options.test != TestKind::Maxconn && phase.duration.is_none() {
            return Err(format!("{place}: it has no `duration` and would never end"));
        }
        if !wire::http1::write::is_target(&options.path) {
            return Err(format!(
                "{place}: path = \"{}\": it begins with `/` and has no blanks",
                options.path
            ));
        }
        if options.sample == 0 || options.give_up_last == 0 || options.give_up_failures == 0 {
            return Err(format!("{place}: sample, give_up_last and give_up_failures must be above zero"));
        }
        for name in [CONNECT, REQUEST] {
            if scenario.operation(name).is_none() {
                return Err(format!(
                    "there is no [[operation]] called `{name}`; this driver has connect and request"
                ));
            }
        }
        Ok(Self {
            kind: options.test,
            connections: u32::try_from(scenario.scaled(mix.connections.into())).unwrap_or(u32::MAX),
            scheduled,
            timer_us: mix.timer_us,
            pause: mix.pause,
            options,
        })
    }

    /// Checks that the application which the test needs is given. The check runs with the phase, because other phases
    /// of the same file may need none.
    pub(super) fn check_application(&self) -> Result<(), String> {
        let options = &self.options;
        let asks = self.kind == TestKind::Qps
            || (self.kind == TestKind::Cps && options.close == Closing::AfterRequest);
        if options.application != ApplicationKind::None {
            Ok(())
        } else if asks {
            Err("without an application (`http`, `echo`) nothing can be asked".to_owned())
        } else if self.kind == TestKind::Maxconn && options.keep_alive == KeepAlive::Application {
            Err("without an application keep_alive is \"tcp\" or \"none\"".to_owned())
        } else {
            Ok(())
        }
    }

    /// The engine's segments of the phase.
    pub(super) fn segments(&self, phase: &Phase, scenario: &Scenario) -> Vec<Segment> {
        let segment = |suffix: &str, load: Load, duration: Duration| Segment {
            name: format!("{}{suffix}", phase.name),
            loads: vec![load],
            warmup: if self.kind == TestKind::Maxconn { Duration::ZERO } else { phase.warmup },
            duration,
            drain: phase.drain,
        };
        let seed = scenario.head.seed;
        let scheduled = |(rate, arrivals)| ReopenTrigger::Scheduled { rate, arrivals, seed };
        let when = self.scheduled.map_or(ReopenTrigger::Again, scheduled);
        let connecting =
            |then| Load::Reopen { when, close: self.close(), class: scenario.class_of(CONNECT), then };
        let length = phase.duration.unwrap_or(Duration::MAX);
        match self.kind {
            TestKind::Qps => {
                let timer_us = self.timer_us;
                let open = |(rate, arrivals)| Load::Open { rate, arrivals, timer_us, seed };
                let closed = Load::Closed { window: 1, pause: self.pause };
                vec![segment("", self.scheduled.map_or(closed, open), length)]
            }
            TestKind::Cps if self.options.close == Closing::AfterRequest => {
                vec![segment("", connecting(AfterReopen::Answer), length)]
            }
            TestKind::Cps => vec![segment("", connecting(AfterReopen::Close), length)],
            TestKind::Maxconn => {
                let hold = self.options.hold.unwrap_or(Duration::from_secs(30));
                let mut all = vec![
                    segment("-open", connecting(AfterReopen::Stay(self.give_up())), Duration::MAX),
                    segment("-hold", Load::Idle, hold),
                ];
                if self.options.application != ApplicationKind::None {
                    let probes = f64::from(self.connections) / f64::from(self.options.sample);
                    let over = Duration::from_secs_f64((probes / PROBES_PER_S_MAX).max(1.0));
                    all.push(segment("-probe", Load::Sample { every: self.options.sample, over }, over));
                }
                all
            }
        }
    }

    /// The planned rate per second; `None` in a closed loop.
    pub(super) fn rate(&self) -> Option<f64> {
        self.scheduled.map(|(rate, _)| rate)
    }

    fn give_up(&self) -> FailureRule {
        FailureRule { last: self.options.give_up_last, failures: self.options.give_up_failures }
    }

    fn close(&self) -> Close {
        if self.options.close == Closing::Rst { Close::Reset } else { Close::Fin }
    }

    /// How the engine opens connections.
    pub(super) fn connect(&self) -> Connect {
        let by_kernel = self.kind == TestKind::Maxconn && self.options.keep_alive == KeepAlive::Tcp;
        Connect {
            by_load: self.kind != TestKind::Qps,
            timeout: self.options.connect_timeout.unwrap_or(Duration::from_secs(HANDSHAKE_TIMEOUT_S)),
            keep_alive: by_kernel.then(|| self.every()),
            at_once: usize::MAX,
        }
    }

    fn every(&self) -> Duration {
        self.options.keep_alive_every.unwrap_or(Duration::from_secs(30))
    }

    /// The driver's configuration, for a target called `host`.
    pub(super) fn config(&self, scenario: &Scenario, host: &str) -> Config {
        let pings = self.kind == TestKind::Maxconn && self.options.keep_alive == KeepAlive::Application;
        Config {
            application: self.application(host),
            class: scenario.class_of(REQUEST),
            ping: pings.then(|| self.every()),
        }
    }

    pub(super) fn application(&self, host: &str) -> Application {
        match self.options.application {
            ApplicationKind::None => Application::None,
            ApplicationKind::Echo => Application::Echo,
            ApplicationKind::Http => {
                Application::Http { host: host.to_owned(), path: self.options.path.clone() }
            }
        }
    }

    /// The HTTP driver for requests to a web server.
    pub(super) fn http(&self, scenario: &Scenario, host: &str) -> Result<Option<Http>, String> {
        let Application::Http { host, path } = self.application(host) else { return Ok(None) };
        let request = Request { method: "GET".to_owned(), target: path, host, ..Request::default() };
        let expect = Expect { statuses: (200..400).collect(), ..Expect::default() };
        // Every class needs a request; only the one for requests is used.
        let operations = vec![Operation { request, expect }; scenario.operations.len()];
        let group = GroupConfig {
            connections: self.connections,
            operations: vec![(scenario.class_of(REQUEST), 1)],
            order: Order::Random,
            setup: Vec::new(),
            version: Version::One,
            window: 1,
            close: false,
            requests: None,
            keys: (0, 0),
            distribution: Distribution::Uniform,
        };
        Http::new(&operations, vec![group], scenario.head.seed).map(Some)
    }

    pub(super) fn sources(&self) -> &Sources {
        &self.options.sources
    }

    /// The ports that the test needs.
    pub(super) fn needs(&self, on_loopback: bool) -> PortDemand {
        // The side that closes first keeps the port in TIME_WAIT, except after a reset.
        let closes = self.kind == TestKind::Cps && self.options.close != Closing::Rst;
        PortDemand {
            connections: self.connections.into(),
            // The rate of a closed loop is unknown.
            closed_per_s: if closes { self.rate().unwrap_or(f64::INFINITY) } else { 0.0 },
            on_loopback,
        }
    }
}

#[cfg(test)]
mod tests;
