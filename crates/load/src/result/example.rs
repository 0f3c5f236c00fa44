//! A small bundle, for tests of everything that reads bundles.

use std::time::{Duration, UNIX_EPOCH};

use super::{
    Arrival, Builder, Bundle, Gate, Generator, OperationCounts, PhaseFacts, Rule, ScenarioAsRun, SecondLine,
    Times,
};
use crate::recorder::Latency;

/// A histogram of values in microseconds.
pub fn latency(values_us: &[u64]) -> Latency {
    let mut latency = Latency::new();
    values_us.iter().for_each(|us| latency.record_ns(us * 1_000));
    latency
}

/// A valid run of two seconds with two classes of operation.
pub fn example() -> Bundle {
    example_with(7, &[150, 250, 1_200])
}

/// The same with response times of `get` from a list, in turn.
pub fn example_with(seed: u64, get_us: &[u64]) -> Bundle {
    let scenario = ScenarioAsRun {
        name: "example".to_owned(),
        about: "gets and sets, two to one second".to_owned(),
        driver: "redis".to_owned(),
        article: None,
        configuration: serde_json::json!({"target": {"url": "redis://127.0.0.1:6379"}, "scale": 1}),
    };
    let mut builder = Builder::new(scenario, seed, UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    builder
        .command(&["tacho".to_owned(), "bench".to_owned()], Some("abc"))
        .generator(Generator { threads: 1, cpu_s: Some(0.5) })
        .phase(&PhaseFacts {
            name: "run".to_owned(),
            kind: "run".to_owned(),
            measured: true,
            starts: Duration::ZERO,
            warmup: Duration::ZERO,
            duration: Duration::from_secs(2),
            arrival: Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s: 200.0 },
            connections: 10,
        });
    for (name, values) in [("get", get_us), ("set", &[400, 500][..])] {
        let all: Vec<u64> = values.iter().copied().cycle().take(200).collect();
        let mut counts = OperationCounts { planned: 201, sent: 201, completed: 200, ..Default::default() };
        counts.errors.insert("timeout".to_owned(), 1);
        let (lag, whole) = (latency(&[5; 200]), latency(&all));
        let times = Times { response: Some(&whole), service: Some(&whole), lag: Some(&lag) };
        builder.operation("run", name, &counts, times);
        for (second, half) in all.chunks(100).enumerate() {
            let line = SecondLine {
                phase: "run".to_owned(),
                operation: name.to_owned(),
                second: second as u64,
                sent: 100,
                completed: 100,
                ..SecondLine::default()
            };
            let (lag, half) = (latency(&[5; 100]), latency(half));
            builder.second(&line, Times { response: Some(&half), service: Some(&half), lag: Some(&lag) });
            builder.telemetry(second as u64, "target.rss_bytes", 1e6 + second as f64);
        }
    }
    builder.gate(Gate::new("sent_share", 1.0, Rule::AtLeast, 0.99, "", "the generator kept up"));
    builder.check("keys stored", 200, 200, true);
    builder.finish(Duration::from_secs(2))
}
