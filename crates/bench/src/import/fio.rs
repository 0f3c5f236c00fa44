//! fio: `--output-format=json` or `json+`.

use std::time::Duration;

use load::result::{
    Arrival, Builder, Bundle, Clock, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun, Summary,
};
use load::statistics::Distribution;
use serde_json::{Map, Value};
use targets::host::fio::in_flight;

use super::bounds::{Field, run_length, sum};
use super::{Format, ImportError};

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// Options that name a place on a machine.
const LEFT_OUT: [&str; 2] = ["filename", "directory"];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Fio, what.to_owned());
    // fio prints warnings before its JSON.
    let start = text.find('{').ok_or_else(|| missing("no JSON"))?;
    let (notes, json) = text.split_at(start);
    let before = notes.matches('\n').count();
    let file: Value =
        serde_json::from_str(json).map_err(|error| ImportError::json_after(Format::Fio, &error, before))?;
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
    let root = Field::root(&file, Format::Fio).get("jobs");
    for index in 0..jobs.len() {
        took = took.max(phase(&mut builder, &root.at(index), &global, index)?);
    }
    hidden(&mut builder, jobs.iter().any(|job| job["read"]["clat_ns"]["bins"].is_object()));
    Ok(builder.finish(took))
}

/// Every job is a separate phase, because jobs of one file may run one after the other.
fn phase(
    builder: &mut Builder,
    job: &Field<'_>,
    global: &Map<String, Value>,
    index: usize,
) -> Result<Duration, ImportError> {
    let options = job.get("job options");
    let option = |name: &str| options.value.get(name).or_else(|| global.get(name));
    // Users write these values: `iodepth` may be an expression, which is then unknown.
    let number = |name: &str, otherwise: u64| {
        option(name).and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok()).unwrap_or(otherwise)
    };
    let mut runtime_ms = 0.0_f64;
    let mut operations = 0;
    for direction in DIRECTIONS {
        runtime_ms = runtime_ms.max(job.get(direction).get("runtime").number()?.unwrap_or(0.0));
        operations += job.get(direction).get("total_ios").count()?;
    }
    if operations == 0 {
        return Err(job.get("read").wrong("and `write`: the job did nothing"));
    }
    let duration = run_length(runtime_ms / 1e3)
        .map_err(|what| job.get("read").get("runtime").wrong(format!("ms are {what}")))?;
    let plain = job.value["jobname"].as_str().unwrap_or("job");
    let name = if index == 0 { plain.to_owned() } else { format!("{plain}-{}", index + 1) };
    // With group_reporting, one entry is the sum of its jobs; otherwise each job has its own.
    let jobs = if option("group_reporting").is_some() { number("numjobs", 1) } else { 1 };
    let (engine, depth) =
        (option("ioengine").and_then(Value::as_str).unwrap_or_default(), number("iodepth", 1));
    let in_flight = |direct| in_flight(engine, depth, direct);
    let connections =
        u32::try_from(jobs).map_err(|_| options.get("numjobs").wrong("is more than there can be"))?;
    let concurrency = in_flight(true).checked_mul(jobs);
    let concurrency = concurrency.ok_or_else(|| options.get("iodepth").wrong("is more than there can be"))?;
    // A job with a rate limit does not keep its queue full, and neither does one that uses the page cache.
    let is_limited = ["rate", "rate_iops"].iter().any(|name| option(name).is_some());
    let is_full = !is_limited && (number("direct", 0) == 1 || in_flight(true) == 1);
    builder.phase(&PhaseFacts {
        name: name.clone(),
        kind: "run".to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration,
        arrival: if is_full { Arrival::Closed { concurrency, pause_us: 0 } } else { Arrival::Unknown },
        connections,
    });
    for direction in DIRECTIONS {
        self::direction(builder, job, &name, direction)?;
    }
    Ok(duration)
}

fn direction(builder: &mut Builder, job: &Field<'_>, phase: &str, name: &str) -> Result<(), ImportError> {
    let part = job.get(name);
    let count = part.get("total_ios").count()?;
    if count == 0 {
        return Ok(());
    }
    let mut counts =
        OperationCounts { planned: count, sent: count, completed: count, ..OperationCounts::default() };
    let bytes = part.get("io_bytes").number()?.unwrap_or(0.0) as u64;
    if name == "read" {
        counts.bytes_received = bytes
    } else {
        counts.bytes_sent = bytes
    }
    let failed = job.get("error").count()?;
    if failed > 0 {
        counts.errors.insert(format!("fio error {failed}"), 1);
    }
    builder.counts(phase, name, &counts);
    let latency = part.get("clat_ns");
    match bins(&latency)? {
        Some(distribution) => builder.distribution(phase, name, Clock::Service, &distribution),
        None => builder.summary(phase, name, Clock::Service, summary(&latency, count)?),
    };
    Ok(())
}

/// The bins of json+: nanoseconds and counts.
fn bins(latency: &Field<'_>) -> Result<Option<Distribution>, ImportError> {
    let mut distribution = Distribution::default();
    let mut all = Vec::new();
    for (nanos, bin) in latency.get("bins").members()? {
        let count = bin.count()?;
        let nanos: u64 =
            nanos.parse().map_err(|_| bin.wrong("is of a bin that is not a time in nanoseconds"))?;
        distribution.add((nanos as f64 / 1e3).round() as u64, count);
        all.push(count);
    }
    match sum(all.into_iter()) {
        Some(_) => Ok((!distribution.is_empty()).then_some(distribution)),
        None => Err(latency.get("bins").wrong("has more operations than a run can have")),
    }
}

fn summary(latency: &Field<'_>, samples: u64) -> Result<Summary, ImportError> {
    let us = |name: &str| Ok(latency.get(name).number()?.map(|nanos| nanos / 1e3));
    let mut quantiles = Vec::new();
    for (percent, value) in latency.get("percentile").members()? {
        let known = percent.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        let percent = known.ok_or_else(|| value.wrong("is of no percentile"))?;
        if let Some(nanos) = value.number()? {
            // 99.9 / 100 is not exactly 0.999; fio prints six digits.
            quantiles.push(Quantile::new((percent * 1e6).round() / 1e8, nanos / 1e3, samples));
        }
    }
    quantiles.sort_by(|a, b| a.quantile.total_cmp(&b.quantile));
    Ok(Summary { samples, mean_us: us("mean")?, min_us: us("min")?, quantiles, max_us: us("max")? })
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
        assert_eq!(read.service.as_ref().unwrap().samples, 4_050);
        assert!(
            !bundle.result.scenario.configuration.to_string().contains("fio.dat"),
            "no file name of a machine"
        );
    }

    /// What is behind each `label`, up to `end`.
    fn after<'a>(text: &'a str, label: &str, end: char) -> Vec<&'a str> {
        text.split(label).skip(1).map(|rest| rest.split(end).next().unwrap()).collect()
    }

    #[test]
    fn the_figures_are_those_of_the_summary_that_fio_printed() {
        // One run wrote both, with `--output-format=normal,json`.
        let text = include_str!("fixtures/fio-summary.txt");
        let bundle = read(include_str!("fixtures/fio.json")).unwrap();
        let phase = bundle.main_phase().unwrap();
        let totals =
            after(text, "issued rwts: total=", ' ')[0].split(',').map(|count| count.parse().unwrap());
        let completed: Vec<u64> = phase.operations.iter().map(|one| one.counts.completed).collect();
        assert_eq!(completed, totals.take(2).collect::<Vec<u64>>());
        let rates = after(text, "IOPS=", ',');
        let sections = text.split("clat percentiles (usec):").skip(1);
        for ((operation, rate), section) in phase.operations.iter().zip(rates).zip(sections) {
            let rate: f64 = rate.parse().unwrap();
            // fio cuts the fraction off.
            assert_eq!(operation.completed_per_s.floor(), rate, "{}", operation.name);
            let service = operation.service.as_ref().unwrap();
            let lines = section.lines().skip(1).take_while(|line| line.trim().starts_with('|'));
            let cells = lines.flat_map(|line| line.trim().trim_start_matches('|').split("],"));
            let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
            assert_eq!(cells.len(), service.quantiles.len(), "{cells:?}");
            for cell in cells {
                let (percent, us) = cell.split_once("th=[").unwrap();
                let quantile = percent.trim().parse::<f64>().unwrap() / 100.0;
                let us: f64 = us.trim_end_matches(']').trim().parse().unwrap();
                let ours = service.quantiles.iter().find(|one| (one.quantile - quantile).abs() < 1e-9);
                let ours = ours.unwrap_or_else(|| panic!("{percent} is missing: {service:?}"));
                // fio rounds to whole microseconds.
                assert!((ours.value_us - us).abs() <= 1.0, "{percent} of {}: {ours:?} {us}", operation.name);
            }
        }
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

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        let text = include_str!("fixtures/fio.json");
        let plus = include_str!("fixtures/fio-plus.json");
        let twice = format!("{text}{text}");
        let runtime = "\"runtime\" : 526";
        assert!(text.contains(runtime) && text.contains("\"total_ios\" : 4050"));
        for (text, expected) in [
            (
                text.replace(runtime, "\"runtime\" : -1"),
                "fio's output, jobs[0].read.runtime: `-1` is not a number",
            ),
            (text.replace(runtime, "\"runtime\" : 0"), "a run of 0 s"),
            (text.replace(runtime, "\"runtime\" : 1e30"), "jobs[0].read.runtime"),
            (
                text.replace("\"total_ios\" : 4050", "\"total_ios\" : -1"),
                "jobs[0].read.total_ios: `-1` is not a count",
            ),
            (text.replace("\"99.000000\"", "\"199.000000\""), "is of no percentile"),
            (text.replace("\"1.000000\"", "\"nan\""), "is of no percentile"),
            (plus.replacen(" : 1,", " : -1,", 1), "`-1` is not"),
            (twice, "here begins a second run"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
