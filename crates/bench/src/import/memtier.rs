//! memtier_benchmark: the file of `--json-out-file`.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use load::result::{
    Arrival, Builder, Bundle, Clock, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun, SecondLine,
    Summary,
};
use load::statistics::Distribution;
use serde_json::{Map, Value};

use super::bounds::{Field, run_length, sum};
use super::{Format, ImportError};

const PHASE: &str = "run";
/// The section of the only run.
const SECTION: &str = "ALL STATS";
/// Sections of the statistics that are not operations.
const OTHERS: [&str; 3] = ["Runtime", "Totals", "Waits"];
/// Settings that name a machine or contain a password, and do not describe the load.
const LEFT_OUT: [&str; 8] =
    ["authenticate", "server", "uri", "unix socket", "cert", "key", "cacert", "out_file"];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Memtier, what.to_owned());
    let file: Value =
        serde_json::from_str(text).map_err(|error| ImportError::json(Format::Memtier, &error))?;
    let root = Field::root(&file, Format::Memtier);
    let statistics = root.get(SECTION);
    if statistics.value.is_null() {
        return Err(missing(&other_sections(&file)));
    }
    let runtime = statistics.get("Runtime");
    let millis = runtime.get("Total duration");
    let ms = millis.number()?.ok_or_else(|| missing("no `Total duration`"))?;
    let duration = run_length(ms / 1e3).map_err(|what| millis.wrong(format!("ms are {what}")))?;
    let settings = file["configuration"].as_object().ok_or_else(|| missing("no `configuration`"))?;
    let configuration = root.get("configuration");
    let setting = |name: &str| configuration.get(name).count();
    let pipeline = setting("pipeline")?.max(1);
    let in_flight =
        |connections: u64| connections.checked_mul(pipeline).filter(|_| connections <= u32::MAX.into());
    let connections = setting("clients")?.checked_mul(setting("threads")?);
    let (connections, concurrency) =
        connections.and_then(|connections| Some((connections, in_flight(connections)?))).ok_or_else(
            || configuration.get("clients").wrong("times threads and pipeline are more than there can be"),
        )?;
    let mut builder = Builder::imported("memtier_benchmark", "", scenario(settings));
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration,
        arrival: Arrival::Closed { concurrency, pause_us: 0 },
        connections: connections as u32,
    });
    for (name, class) in statistics.members()?.into_iter().filter(|(name, _)| !OTHERS.contains(name)) {
        if class.get("Count").count()? > 0 {
            operation(&mut builder, &name.trim_end_matches('s').to_lowercase(), &class, duration)?;
        }
    }
    if runtime.get("Interrupted").value == "true" {
        builder.partial(duration, "memtier was interrupted");
    }
    hidden(
        &mut builder,
        setting("rate_limit")? > 0,
        pipeline > 1,
        settings.get("random_data") != Some(&Value::from("true")),
    );
    Ok(builder.finish(duration))
}

/// The names of other runs in the file, each of which would be a separate result.
fn other_sections(file: &Value) -> String {
    let names = file.as_object().into_iter().flat_map(Map::keys);
    let runs: Vec<String> =
        names.filter(|name| name.contains("RUN")).map(|name| format!("`{name}`")).collect();
    if runs.is_empty() {
        return format!("no `{SECTION}`");
    }
    format!(
        "it has the figures of several runs ({}); run memtier with --run-count=1 for each result",
        runs.join(", ")
    )
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

fn operation(
    builder: &mut Builder,
    name: &str,
    class: &Field<'_>,
    duration: Duration,
) -> Result<(), ImportError> {
    let value = |name: &str| Ok(class.get(name).number()?.unwrap_or(0.0));
    let whole = |per_s: f64| (per_s * duration.as_secs_f64()).round() as u64;
    let count = class.get("Count").count()?;
    let (hits_per_s, misses_per_s) = (value("Hits/sec")?, value("Misses/sec")?);
    let asked = hits_per_s + misses_per_s;
    let hits = if asked > 0.0 { (count as f64 * hits_per_s / asked).round() as u64 } else { 0 }.min(count);
    let mut counts = OperationCounts {
        planned: count,
        sent: count,
        completed: count,
        hits,
        misses: if asked > 0.0 { count - hits } else { 0 },
        bytes_sent: whole(value("KB/sec TX")? * 1_024.0),
        bytes_received: whole(value("KB/sec RX")? * 1_024.0),
        ..OperationCounts::default()
    };
    let failed = class.get("Connection Errors").count()?;
    if failed > 0 {
        counts.errors.insert("connection errors".to_owned(), failed);
    }
    builder.counts(PHASE, name, &counts);
    match packed_histogram(class)? {
        Some(distribution) => builder.distribution(PHASE, name, Clock::Service, &distribution),
        None => builder.summary(PHASE, name, Clock::Service, summary(class, count)?),
    };
    for (text, moment) in class.get("Time-Serie").members()? {
        let is_within = |second: &u64| *second as f64 <= duration.as_secs_f64() + 2.0;
        let second = text.parse::<u64>().ok().filter(is_within);
        let second = second.ok_or_else(|| moment.wrong("is of a second that the run does not have"))?;
        let count = moment.get("Count").count()?;
        let us = |name: &str| Ok(moment.get(name).number()?.map(|ms| ms * 1e3));
        builder.add_line(&SecondLine {
            phase: PHASE.to_owned(),
            operation: name.to_owned(),
            second,
            length_s: 1.0,
            sent: count,
            completed: count,
            service_p50_us: us("p50.00")?,
            service_p99_us: us("p99.00")?,
            ..SecondLine::default()
        });
    }
    Ok(())
}

/// Decodes a compressed HdrHistogram in microseconds, without loss.
fn packed_histogram(class: &Field<'_>) -> Result<Option<Distribution>, ImportError> {
    let packed = class.get("Percentile Latencies").get("Histogram log format").get("Compressed Histogram");
    let Some(bytes) = packed.base64()? else { return Ok(None) };
    let histogram: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| packed.wrong(format!("is not a histogram: {error}")))?;
    if sum(histogram.iter_recorded().map(|step| step.count_at_value())).is_none() {
        return Err(packed.wrong("has more operations than a run can have"));
    }
    Ok(Some(Distribution::from_histogram(&histogram)).filter(|distribution| !distribution.is_empty()))
}

fn summary(class: &Field<'_>, samples: u64) -> Result<Summary, ImportError> {
    let us = |name: &str| Ok(class.get(name).number()?.map(|ms| ms * 1e3));
    let mut quantiles = Vec::new();
    for (name, value) in class.get("Percentile Latencies").members()? {
        let Some(percent) = name.strip_prefix('p') else { continue };
        let percent = percent.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        let percent = percent.ok_or_else(|| value.wrong("is of no percentile"))?;
        if let Some(ms) = value.number()? {
            // 99.9 / 100 is not exactly 0.999.
            quantiles.push(Quantile::new((percent * 1e6).round() / 1e8, ms * 1e3, samples));
        }
    }
    quantiles.sort_by(|a, b| a.quantile.total_cmp(&b.quantile));
    Ok(Summary {
        samples,
        mean_us: us("Average Latency")?,
        min_us: us("Min Latency")?,
        quantiles,
        max_us: us("Max Latency")?,
    })
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
    builder.hides("of the percentiles of a second only p50 and p99 are taken over");
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

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let text = include_str!("fixtures/memtier.json");
        let [duration, connections] = ["\"Total duration\": 3001", "\"clients\": 4"];
        let count = "\"Count\": 37660";
        let (twice, several) = (format!("{text}{text}"), text.replace("ALL STATS", "BEST RUN RESULTS"));
        assert!([duration, connections, count].iter().all(|place| text.contains(place)));
        for (text, expected) in [
            (
                text.replace(duration, "\"Total duration\": 0"),
                "memtier's output, ALL STATS.Runtime.Total duration: `0` ms are a run of 0 s",
            ),
            (
                text.replace(duration, "\"Total duration\": -1"),
                "ALL STATS.Runtime.Total duration: `-1` is not a number",
            ),
            (text.replace(duration, "\"Total duration\": 1e30"), "is not a number of this place"),
            (text.replace(duration, "\"Total duration\": nan"), "line 67 of memtier's output"),
            (
                text.replace(connections, "\"clients\": 99999999999"),
                "configuration.clients: `99999999999` times threads",
            ),
            (text.replace(count, "\"Count\": -2"), "ALL STATS.Gets.Time-Serie.0.Count: `-2` is not a count"),
            (text.replace("\"3\":", "\"300\":"), "is of a second that the run does not have"),
            (text.replace("HISTFAAAAJd4nJN", "HISTFAAAAJd4nAN"), "Compressed Histogram: `"),
            (twice, "a second run"),
            (several, "several runs (`BEST RUN RESULTS`); run memtier with --run-count=1"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
