//! Fills a bundle as a runner does, from a simulated store that flushes every 15 seconds, and writes it with its page:
//! `cargo run -p bench --example bundle -- DIRECTORY [SPEED] [SECONDS] [SEED]`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use bench::report::html::{LabelledBundle, page};
use load::recorder::Latency;
use load::result::{
    Arrival, Builder, Bundle, Cost, Gate, Generator, OperationCounts, PhaseFacts, Rule, ScenarioAsRun,
    SecondLine, Target, Times,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const RATE: u64 = 4_000;
const FLUSH_EVERY_S: u64 = 15;
const WARM_UP_S: u64 = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("usage: bundle DIRECTORY [SPEED] [SECONDS] [SEED]")?;
    let speed = arguments.get(1).map_or(Ok(1.0), |text| text.parse())?;
    let seconds = arguments.get(2).map_or(Ok(180), |text| text.parse())?;
    let seed = arguments.get(3).map_or(Ok(1), |text| text.parse())?;
    let bundle = simulate(speed, seconds, seed);
    bundle.write(Path::new(directory))?;
    let label = Path::new(directory).file_name().map(|name| name.to_string_lossy().into_owned());
    let html = page(&[LabelledBundle { label: label.unwrap_or_default(), side: 0, bundle }], &[]);
    std::fs::write(Path::new(directory).join("report.html"), html)?;
    Ok(())
}

/// The response times of one class.
#[derive(Default)]
struct Class {
    response: Latency,
    service: Latency,
    lag: Latency,
    counts: OperationCounts,
}

impl Class {
    fn record(&mut self, lag_us: f64, service_us: f64, waiting_us: f64) {
        let nanos = |us: f64| (us * 1e3) as u64;
        self.lag.record_ns(nanos(lag_us));
        self.service.record_ns(nanos(service_us));
        self.response.record_ns(nanos(lag_us + waiting_us + service_us));
        self.counts.planned += 1;
        self.counts.sent += 1;
        self.counts.completed += 1;
    }

    fn times(&self) -> Times<'_> {
        Times { response: Some(&self.response), service: Some(&self.service), lag: Some(&self.lag) }
    }
}

fn simulate(speed: f64, seconds: u64, seed: u64) -> Bundle {
    let scenario = ScenarioAsRun {
        name: "simulated-store".to_owned(),
        about: "Reads and writes, three to one, on a store that does not exist and flushes every 15 seconds"
            .to_owned(),
        driver: "simulation".to_owned(),
        article: None,
        configuration: serde_json::json!({"operation": {"get": {"weight": 3}, "put": {"weight": 1}}, "store": {"speed": speed}}),
    };
    let mut builder = Builder::new(scenario, seed, UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    builder
        .target(Target {
            address: "simulated".to_owned(),
            product: Some("simulated store".to_owned()),
            tls: None,
            started_by_run: true,
            settings: BTreeMap::from([("flush_interval_s".to_owned(), FLUSH_EVERY_S.to_string())]),
        })
        .generator(Generator { threads: 1, cpu_s: Some(seconds as f64 * 0.1) });
    for (name, from, until) in [("warmup", 0, WARM_UP_S), ("run", WARM_UP_S, seconds)] {
        builder.phase(&PhaseFacts {
            name: name.to_owned(),
            kind: name.to_owned(),
            measured: name == "run",
            starts: Duration::from_secs(from),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(until - from),
            arrival: Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s: RATE as f64 },
            connections: 200,
        });
        run(&mut builder, name, from..until, speed, seed);
    }
    builder.cost(
        "run",
        Cost {
            generator_cpu_us_per_operation: Some(4.1),
            generator_cpu_percent: Some(16.0),
            generator_polling_percent: None,
            target_cpu_us_per_operation: Some(23.0 / speed),
            target_cpu_percent: Some(92.0 / speed),
            target_rss_bytes_max: Some(412_000_000),
            target_rss_bytes_per_connection: None,
        },
    );
    builder.gate(Gate::new(
        "sent_share",
        1.0,
        Rule::AtLeast,
        0.99,
        "",
        "what was planned was sent; below, the generator was the limit",
    ));
    builder.gate(Gate::new(
        "lag_p99",
        61.0,
        Rule::AtMost,
        100.0,
        "us",
        "the generator's own lateness; above, give it a core of its own or lower the rate",
    ));
    builder.gate(Gate::new("error_share", 0.0, Rule::AtMost, 0.001, "", "operations that failed"));
    builder.check("keys stored", 40_000, 40_000, true);
    builder.finish(Duration::from_secs(seconds))
}

fn run(builder: &mut Builder, phase: &str, range: std::ops::Range<u64>, speed: f64, seed: u64) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ range.start);
    let mut total: BTreeMap<&str, Class> = BTreeMap::new();
    for second in range {
        let mut classes: BTreeMap<&str, Class> = BTreeMap::new();
        let flushing = second % FLUSH_EVERY_S == 7;
        let cold = 1.0 + 5.0 * (-(second as f64) / 5.0).exp();
        let count = RATE + rng.random_range(0..130) - 65;
        for _ in 0..count {
            let name = if rng.random::<f64>() < 0.75 { "get" } else { "put" };
            let base = if name == "get" { 310.0 } else { 640.0 };
            let noise = normal(&mut rng);
            let service = base * cold / speed * (0.28 * noise).exp();
            let tail = if rng.random::<f64>() < 0.004 { 6_000.0 * rng.random::<f64>() } else { 0.0 };
            // During a flush, writes queue for a part of the second.
            let stalled = flushing && rng.random::<f64>() < if name == "put" { 0.5 } else { 0.12 };
            let waiting = if stalled { 45_000.0 * rng.random::<f64>() / speed } else { 0.0 };
            let lag = 6.0 + 12.0 * -(1.0 - rng.random::<f64>()).ln();
            for class in [classes.entry(name).or_default(), total.entry(name).or_default()] {
                class.record(lag, service + tail, waiting);
            }
        }
        for (name, class) in &classes {
            let line = SecondLine {
                phase: phase.to_owned(),
                operation: (*name).to_owned(),
                second,
                sent: class.counts.sent,
                completed: class.counts.completed,
                bytes: class.counts.sent * 180,
                ..SecondLine::default()
            };
            builder.second(&line, class.times());
        }
        let busy = 91.0 / speed + 3.0 * normal(&mut rng) + if flushing { 60.0 } else { 0.0 };
        builder.telemetry(second, "target.cpu_percent", busy);
        let level = 3.1e8 + (second % FLUSH_EVERY_S) as f64 * 6e6 + second as f64 * 1e5;
        builder.telemetry(second, "target.rss_bytes", level);
        builder.telemetry(
            second,
            "store.flushed_bytes_per_s",
            if flushing { 8.8e7 } else { 1.2e5 * rng.random::<f64>() },
        );
    }
    for (name, class) in &total {
        builder.operation(phase, name, &class.counts, class.times());
    }
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}
