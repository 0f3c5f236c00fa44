//! memtier_benchmark: the file of `--json-out-file`.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Map, Value};

use super::{Format, ImportError};
use crate::result::{
    Arrival, Builder, Bundle, Clock, Distribution, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun,
    SecondLine, Summary,
};

const PHASE: &str = "run";
/// Sections of the statistics that are no operation.
const OTHERS: [&str; 3] = ["Runtime", "Totals", "Waits"];
/// Settings that name this or that machine or hold a password, and say nothing of the load.
const LEFT_OUT: [&str; 8] =
    ["authenticate", "server", "uri", "unix socket", "cert", "key", "cacert", "out_file"];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Memtier, what.to_owned());
    let file: Value = serde_json::from_str(text).map_err(|error| missing(&error.to_string()))?;
    let statistics = file["ALL STATS"].as_object().ok_or_else(|| missing("no `ALL STATS`"))?;
    let millis = statistics
        .get("Runtime")
        .and_then(|runtime| runtime["Total duration"].as_f64())
        .ok_or_else(|| missing("no `Total duration`"))?;
    let duration = Duration::from_secs_f64(millis / 1e3);
    let settings = file["configuration"].as_object().ok_or_else(|| missing("no `configuration`"))?;
    let setting = |name: &str| settings.get(name).and_then(Value::as_u64).unwrap_or(0);
    let (connections, pipeline) = (setting("clients") * setting("threads"), setting("pipeline").max(1));
    let mut builder = Builder::imported("memtier_benchmark", "", scenario(settings));
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration,
        arrival: Arrival::Closed { concurrency: connections * pipeline, pause_us: 0 },
        connections: connections as u32,
    });
    for (name, class) in statistics.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str())) {
        if class["Count"].as_u64().unwrap_or(0) > 0 {
            operation(
                &mut builder,
                &name.trim_end_matches('s').to_lowercase(),
                class,
                duration.as_secs_f64(),
            );
        }
    }
    if statistics["Runtime"]["Interrupted"] == "true" {
        builder.partial(duration, "memtier was interrupted");
    }
    hidden(
        &mut builder,
        setting("rate_limit") > 0,
        pipeline > 1,
        settings.get("random_data") != Some(&Value::from("true")),
    );
    Ok(builder.finish(duration))
}

fn scenario(settings: &Map<String, Value>) -> ScenarioAsRun {
    let configuration: Map<String, Value> = settings
        .iter()
        .filter(|(name, value)| !LEFT_OUT.contains(&name.as_str()) && !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    ScenarioAsRun {
        name: "memtier".to_owned(),
        about: "what memtier_benchmark wrote".to_owned(),
        driver: "redis".to_owned(),
        article: None,
        configuration: Value::Object(configuration),
    }
}

fn operation(builder: &mut Builder, name: &str, class: &Value, seconds: f64) {
    let value = |name: &str| class[name].as_f64().unwrap_or(0.0);
    let whole = |per_s: f64| (per_s * seconds).round() as u64;
    let count = class["Count"].as_u64().unwrap_or(0);
    let asked = value("Hits/sec") + value("Misses/sec");
    let hits = if asked > 0.0 { (count as f64 * value("Hits/sec") / asked).round() as u64 } else { 0 };
    let mut counts = OperationCounts {
        planned: count,
        sent: count,
        completed: count,
        hits,
        misses: if asked > 0.0 { count - hits } else { 0 },
        bytes_sent: whole(value("KB/sec TX") * 1_024.0),
        bytes_received: whole(value("KB/sec RX") * 1_024.0),
        ..OperationCounts::default()
    };
    let failed = class["Connection Errors"].as_u64().unwrap_or(0);
    if failed > 0 {
        counts.errors.insert("connection errors".to_owned(), failed);
    }
    builder.counts(PHASE, name, &counts);
    match packed_histogram(class) {
        Some(distribution) => builder.distribution(PHASE, name, Clock::Service, &distribution),
        None => builder.summary(PHASE, name, Clock::Service, summary(class, count)),
    };
    for (second, moment) in class["Time-Serie"].as_object().into_iter().flatten() {
        let (Ok(second), Some(count)) = (second.parse(), moment["Count"].as_u64()) else { continue };
        let us = |name: &str| moment[name].as_f64().map(|ms| ms * 1e3);
        builder.add_line(&SecondLine {
            phase: PHASE.to_owned(),
            operation: name.to_owned(),
            second,
            length_s: 1.0,
            sent: count,
            completed: count,
            service_p50_us: us("p50.00"),
            service_p99_us: us("p99.00"),
            ..SecondLine::default()
        });
    }
}

/// HdrHistogram, compressed, in microseconds: nothing is lost.
fn packed_histogram(class: &Value) -> Option<Distribution> {
    let packed = class["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"].as_str()?;
    let bytes = STANDARD.decode(packed).ok()?;
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
    Some(Distribution::from_histogram(&histogram)).filter(|distribution| !distribution.is_empty())
}

fn summary(class: &Value, samples: u64) -> Summary {
    let us = |name: &str| class[name].as_f64().map(|ms| ms * 1e3);
    let mut quantiles: Vec<Quantile> = class["Percentile Latencies"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| {
            let quantile = name.strip_prefix('p')?.parse::<f64>().ok()? / 100.0;
            Some(Quantile::new(quantile, value.as_f64()? * 1e3, samples))
        })
        .collect();
    quantiles.sort_by(|a, b| a.quantile.total_cmp(&b.quantile));
    Summary {
        samples,
        mean_us: us("Average Latency"),
        min_us: us("Min Latency"),
        quantiles,
        max_us: us("Max Latency"),
    }
}

fn hidden(builder: &mut Builder, is_limited: bool, is_pipelined: bool, is_constant: bool) {
    builder.hides(
        "memtier reads the wall clock once for each filling of a pipeline and once for each read from the socket; requests of \
         one batch share both stamps",
    );
    if is_limited {
        builder.hides(
            "--rate-limiting is for each connection, fills up every 20 ms and forgets what was not used: requests come in bursts, \
             and a stall is never made up for",
        );
    }
    if is_pipelined {
        builder.hides("with a pipeline a latency holds the waiting behind the requests sent before it");
    }
    if is_constant {
        builder
            .hides("values are one repeated letter: compression and copying look better than with real data");
    }
    builder.hides("hits and misses are known as rates only and are rounded here");
    builder.hides("what memtier itself cost, and whether it was the limit, is not in its output");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_own_histograms() {
        let bundle = read(include_str!("fixtures/memtier.json")).unwrap();
        let phase = bundle.main_phase().unwrap();
        assert_eq!(phase.arrival, Arrival::Closed { concurrency: 4, pause_us: 0 });
        let names: Vec<&str> = phase.operations.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["get", "set"]);
        let (get, total) = (&phase.operations[0], &phase.total);
        assert_eq!((get.counts.completed, total.counts.completed), (109_999, 146_666));
        assert_eq!(get.counts.hits + get.counts.misses, 109_999);
        let service = get.service.as_ref().unwrap();
        assert_eq!(service.samples, 109_999);
        assert_eq!(
            (service.quantile_us(0.5), service.quantile_us(0.99), service.quantile_us(0.999)),
            (Some(71.0), Some(183.0), Some(271.0))
        );
        assert!((total.completed_per_s - 48_872.4).abs() < 1.0, "{}", total.completed_per_s);
        let first = bundle.seconds.iter().find(|line| line.operation == "get").unwrap();
        assert!(first.service_p99_us.is_some() && first.completed > 0, "{first:?}");
    }
}
