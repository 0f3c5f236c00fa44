//! What server and generator cost during the measured part of a run, sampled from the events of the generator.

use std::time::{Duration, Instant};

use crate::engine::Event;
use crate::generator::{Plan, Shared};
use crate::process::{Sampled, own_cpu};
use crate::recorder::Second;
use crate::report::{Cost, SeriesLine};

#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    acked: u64,
    generator_cpu: Duration,
    server_cpu: Option<Duration>,
}

/// Takes one sample when the warm-up ends and one when the load ends; memory every second.
#[derive(Debug)]
pub(crate) struct Sampler<'a> {
    server: Option<Sampled>,
    shared: &'a Shared,
    from: Duration,
    until: Duration,
    started: Option<Instant>,
    first: Option<Sample>,
    last: Option<Sample>,
    rss_before: Option<u64>,
    rss_connected: Option<u64>,
    rss_max: Option<u64>,
    pub(crate) series: Vec<SeriesLine>,
}

impl<'a> Sampler<'a> {
    /// Call before the first connection is opened.
    pub(crate) fn new(plan: &Plan, shared: &'a Shared, server: Option<Sampled>) -> Self {
        Self {
            server,
            shared,
            from: plan.warmup,
            until: plan.warmup + plan.duration,
            started: None,
            first: None,
            last: None,
            rss_before: server.and_then(|s| s.rss_bytes()),
            rss_connected: None,
            rss_max: None,
            series: Vec::new(),
        }
    }

    /// To be called with every event.
    pub(crate) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Started { at, .. } => {
                self.started = Some(*at);
                self.rss_connected = self.rss();
            }
            Event::Second(second) => self.second(second),
            Event::Tick | Event::Connecting(_) => {}
        }
        let Some(elapsed) = self.started.map(|at| at.elapsed()) else { return };
        if self.first.is_none() && elapsed >= self.from {
            self.first = Some(self.sample());
        }
        if self.last.is_none() && elapsed >= self.until {
            self.last = Some(self.sample());
        }
    }

    fn second(&mut self, second: &Second) {
        let rss = self.rss();
        self.rss_max = self.rss_max.max(rss);
        let total = second.total();
        let response = &total.clocks.response;
        self.series.push(SeriesLine {
            second: second.index,
            sent: total.sent,
            acked: total.completed,
            errors: second.errors,
            p50_us: response.quantile_us(0.5),
            p99_us: response.quantile_us(0.99),
            max_us: response.summary().max_us,
            lag_p99_us: total.clocks.lag.quantile_us(0.99),
            server_rss_bytes: rss.unwrap_or(0),
        });
    }

    fn rss(&self) -> Option<u64> {
        self.server.and_then(|server| server.rss_bytes())
    }

    fn sample(&self) -> Sample {
        Sample {
            at: Instant::now(),
            acked: self.shared.completed(),
            generator_cpu: own_cpu(),
            server_cpu: self.server.and_then(|server| server.cpu()),
        }
    }

    /// The cost between both samples.
    pub(crate) fn cost(&self, connections: u32) -> Cost {
        let per_connection =
            |before: u64, after: u64| (after as f64 - before as f64) / f64::from(connections.max(1));
        let mut cost = Cost {
            server_rss_before_bytes: self.rss_before,
            server_rss_connected_bytes: self.rss_connected,
            server_rss_max_bytes: self.rss_max,
            server_rss_per_connection_bytes: self
                .rss_before
                .zip(self.rss_connected)
                .map(|(before, after)| per_connection(before, after)),
            ..Cost::default()
        };
        let (Some(first), Some(last)) = (self.first, self.last) else { return cost };
        let (messages, seconds) = ((last.acked - first.acked) as f64, (last.at - first.at).as_secs_f64());
        let figures = |cpu: Duration| {
            let per_message = (messages > 0.0).then(|| cpu.as_secs_f64() * 1e6 / messages);
            (per_message, Some(cpu.as_secs_f64() * 100.0 / seconds))
        };
        (cost.generator_cpu_us_per_message, cost.generator_cpu_percent) =
            figures(last.generator_cpu.saturating_sub(first.generator_cpu));
        if let (Some(before), Some(after)) = (first.server_cpu, last.server_cpu) {
            (cost.server_cpu_us_per_message, cost.server_cpu_percent) = figures(after.saturating_sub(before));
        }
        cost
    }
}
