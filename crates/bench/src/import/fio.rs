//! fio: `--output-format=json` or `json+`.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Format, ImportError};
use crate::driver::host::fio::in_flight;
use crate::result::{
    Arrival, Builder, Bundle, Clock, Distribution, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun,
    Summary,
};

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// Options that name a place on this or that machine.
const LEFT_OUT: [&str; 2] = ["filename", "directory"];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Fio, what.to_owned());
    // Warnings of fio stand before its JSON.
    let json = text.find('{').map(|start| &text[start..]).ok_or_else(|| missing("no JSON"))?;
    let file: Value = serde_json::from_str(json).map_err(|error| missing(&error.to_string()))?;
    let jobs = file["jobs"].as_array().filter(|jobs| !jobs.is_empty()).ok_or_else(|| missing("no `jobs`"))?;
    let version = file["fio version"].as_str().unwrap_or_default().trim_start_matches("fio-");
    let global = file["global options"].as_object().cloned().unwrap_or_default();
    let mut configuration = Map::new();
    for job in jobs {
        let mut options = global.clone();
        options.extend(job["job options"].as_object().cloned().unwrap_or_default());
        options.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
        configuration.insert(job["jobname"].as_str().unwrap_or("job").to_owned(), Value::Object(options));
    }
    let scenario = ScenarioAsRun {
        name: "disk".to_owned(),
        about: "what fio wrote".to_owned(),
        driver: "host".to_owned(),
        article: None,
        configuration: Value::Object(configuration),
    };
    let mut builder = Builder::imported("fio", version, scenario);
    let mut took = Duration::ZERO;
    for (index, job) in jobs.iter().enumerate() {
        took = took.max(
            phase(&mut builder, job, &global, index)
                .ok_or_else(|| missing("a job without `read` and `write`"))?,
        );
    }
    hidden(&mut builder, jobs.iter().any(|job| job["read"]["clat_ns"]["bins"].is_object()));
    Ok(builder.finish(took))
}

/// Every job is a phase of its own: jobs of one file may run one after the other.
fn phase(builder: &mut Builder, job: &Value, global: &Map<String, Value>, index: usize) -> Option<Duration> {
    let option = |name: &str| job["job options"].get(name).or_else(|| global.get(name));
    let number = |name: &str, otherwise: u64| {
        option(name).and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok()).unwrap_or(otherwise)
    };
    let runtime_ms = DIRECTIONS.iter().filter_map(|name| job[*name]["runtime"].as_f64()).fold(0.0, f64::max);
    let has_any = DIRECTIONS.iter().any(|name| job[*name]["total_ios"].as_u64().unwrap_or(0) > 0);
    if !has_any || runtime_ms <= 0.0 {
        return None;
    }
    let duration = Duration::from_secs_f64(runtime_ms / 1e3);
    let plain = job["jobname"].as_str().unwrap_or("job");
    let name = if index == 0 { plain.to_owned() } else { format!("{plain}-{}", index + 1) };
    // With group_reporting one entry is the sum of its jobs; without, each job has an entry of its own.
    let jobs = if option("group_reporting").is_some() { number("numjobs", 1) } else { 1 };
    let (engine, depth) =
        (option("ioengine").and_then(Value::as_str).unwrap_or_default(), number("iodepth", 1));
    let in_flight = |direct| in_flight(engine, depth, direct);
    // A job that is limited to a rate does not keep its queue full, and a queue in front of the page cache is full when it likes.
    let is_limited = ["rate", "rate_iops"].iter().any(|name| option(name).is_some());
    let is_full = !is_limited && (number("direct", 0) == 1 || in_flight(true) == 1);
    builder.phase(&PhaseFacts {
        name: name.clone(),
        kind: "run".to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration,
        arrival: if is_full {
            Arrival::Closed { concurrency: in_flight(true) * jobs, pause_us: 0 }
        } else {
            Arrival::Unknown
        },
        connections: jobs as u32,
    });
    for direction in DIRECTIONS {
        let part = &job[direction];
        let count = part["total_ios"].as_u64().unwrap_or(0);
        if count == 0 {
            continue;
        }
        let mut counts =
            OperationCounts { planned: count, sent: count, completed: count, ..OperationCounts::default() };
        let bytes = part["io_bytes"].as_u64().unwrap_or(0);
        if direction == "read" {
            counts.bytes_received = bytes
        } else {
            counts.bytes_sent = bytes
        }
        let failed = job["error"].as_u64().unwrap_or(0);
        if failed > 0 {
            counts.errors.insert(format!("fio error {failed}"), 1);
        }
        builder.counts(&name, direction, &counts);
        match bins(&part["clat_ns"]) {
            Some(distribution) => builder.distribution(&name, direction, Clock::Service, &distribution),
            None => builder.summary(&name, direction, Clock::Service, summary(&part["clat_ns"], count)),
        };
    }
    Some(duration)
}

/// The bins of json+: nanoseconds and counts.
fn bins(latency: &Value) -> Option<Distribution> {
    let mut distribution = Distribution::default();
    for (nanos, count) in latency["bins"].as_object()? {
        distribution.add((nanos.parse::<f64>().ok()? / 1e3).round() as u64, count.as_u64()?);
    }
    (!distribution.is_empty()).then_some(distribution)
}

fn summary(latency: &Value, samples: u64) -> Summary {
    let us = |name: &str| latency[name].as_f64().map(|nanos| nanos / 1e3);
    let mut quantiles: Vec<Quantile> = latency["percentile"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(percent, nanos)| {
            // 99.9 / 100 is not 0.999 to the last digit; six digits are what fio prints.
            let quantile = (percent.parse::<f64>().ok()? * 1e6).round() / 1e8;
            Some(Quantile::new(quantile, nanos.as_f64()? / 1e3, samples))
        })
        .collect();
    quantiles.sort_by(|a, b| a.quantile.total_cmp(&b.quantile));
    Summary { samples, mean_us: us("mean"), min_us: us("min"), quantiles, max_us: us("max") }
}

fn hidden(builder: &mut Builder, has_bins: bool) {
    builder.hides("fio's completion latency counts from the submission: what waited for a place in the queue is not in it");
    builder.hides("fio keeps its queue full: latency is that of a device as busy as this depth makes it (see Little's law)");
    if has_bins {
        builder.hides("fio's bins are up to 0.8 % wide");
    } else {
        builder
            .hides("percentiles come from bins up to 0.8 % wide; with json+ fio writes the bins themselves");
    }
    builder.hides("without `time_based` fio stops after `size`, whatever `runtime` says");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_of_a_job_are_operations() {
        let bundle = read(include_str!("fixtures/fio.json")).unwrap();
        let phase = bundle.main_phase().unwrap();
        assert_eq!(phase.arrival, Arrival::Unknown, "it goes through the page cache");
        let direct = include_str!("fixtures/fio.json").replace("\"direct\" : \"0\"", "\"direct\" : \"1\"");
        let in_flight = Arrival::Closed { concurrency: 8, pause_us: 0 };
        assert_eq!(read(&direct).unwrap().main_phase().unwrap().arrival, in_flight);
        let names: Vec<&str> = phase.operations.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["read", "write"]);
        let read = &phase.operations[0];
        assert!((read.completed_per_s - 7_033.6).abs() < 0.1, "{}", read.completed_per_s);
        let service = read.service.as_ref().unwrap();
        assert_eq!(
            (service.quantile_us(0.5), service.quantile_us(0.99), service.samples),
            (Some(288.768), Some(4_620.288), 21_122)
        );
        assert!(
            !bundle.result.scenario.configuration.to_string().contains("fio.dat"),
            "no file name of a machine"
        );
    }

    #[test]
    fn bins_become_a_histogram() {
        let text = include_str!("fixtures/fio-plus.json");
        let bundle = read(text).unwrap();
        let phase = bundle.main_phase().unwrap();
        let service = phase.total.service.as_ref().unwrap();
        let file: Value = serde_json::from_str(text).unwrap();
        let expected = &file["jobs"][0]["read"];
        assert_eq!(service.samples, expected["total_ios"].as_u64().unwrap());
        let p99 = expected["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap() / 1e3;
        assert!((service.quantile_us(0.99).unwrap() / p99 - 1.0).abs() < 0.02, "{service:?} {p99}");
    }
}
