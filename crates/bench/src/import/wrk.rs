//! wrk and wrk2: their output with `--latency`.

use load::result::{
    Arrival, Builder, Bundle, Clock, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun, Summary,
};
use load::statistics::Distribution;

use super::bounds::run_length;
use super::lines::{BYTES, Line, Lines, MICROS, PLAIN};
use super::{Format, ImportError};

const PHASE: &str = "run";
const OPERATION: &str = "request";
/// The allowed difference between the rate and requests / time, which are printed with two digits: as a share, and per
/// second.
const RATE_TOLERANCE: (f64, f64) = (0.02, 0.02);
/// wrk2's table of response times, and that of `--u_latency`, which counts from the send.
const TABLES: [(&str, Clock); 2] =
    [("Recorded Latency", Clock::Response), ("Uncorrected Latency", Clock::Service)];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let lines = Lines::new(text, Format::Wrk);
    lines.one_run(|line| line.starts_with("Running ") && line.contains(" test @ "))?;
    let done = Done::read(&lines)?;
    let [threads, connections] = threads_and_connections(&lines)?;
    let is_wrk2 = text.contains("HdrHistogram - ") || text.contains("Thread calibration:");
    let tool = if is_wrk2 { "wrk2" } else { "wrk" };
    let scenario = ScenarioAsRun {
        name: "http".to_owned(),
        about: format!("what {tool} printed"),
        driver: "http".to_owned(),
        article: None,
        configuration: serde_json::json!({"threads": threads, "connections": connections, "time_s": done.seconds.round()}),
    };
    let took = run_length(done.seconds).map_err(|what| done.line.wrong(what))?;
    let mut builder = Builder::imported(tool, "", scenario);
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: std::time::Duration::ZERO,
        warmup: std::time::Duration::ZERO,
        duration: run_length(done.measured_s()).map_err(|what| done.line.wrong(what))?,
        arrival: if is_wrk2 {
            // The planned rate is not printed; without a backlog it equals the achieved rate.
            Arrival::Open { process: "fixed".to_owned(), timer_us: 0, rate_per_s: done.per_s }
        } else {
            Arrival::Closed { concurrency: u64::from(connections), pause_us: 0 }
        },
        connections,
    });
    let mut counts = OperationCounts {
        planned: done.requests,
        sent: done.requests,
        completed: done.requests,
        bytes_received: done.bytes,
        ..OperationCounts::default()
    };
    errors(&lines, &mut counts)?;
    builder.counts(PHASE, OPERATION, &counts);
    let has_spectrum = latencies(&lines, is_wrk2, done.requests, &mut builder)?;
    hidden(&mut builder, is_wrk2, has_spectrum);
    Ok(builder.finish(took))
}

/// `2335 requests in 3.00s, 433.25KB read` and `Requests/sec: 778.22`.
struct Done<'a> {
    line: Line<'a>,
    requests: u64,
    seconds: f64,
    bytes: u64,
    per_s: f64,
}

impl<'a> Done<'a> {
    fn read(lines: &Lines<'a>) -> Result<Self, ImportError> {
        let line = lines.iter().find(|line| line.text.contains(" requests in "));
        let line = line.ok_or_else(|| ImportError::incomplete(Format::Wrk, "no `requests in`"))?;
        let (requests, rest) = line.text.split_once(" requests in ").unwrap_or_default();
        let (took, read) =
            rest.split_once(',').ok_or_else(|| line.wrong("how much was read is not there"))?;
        let done = Self {
            line,
            requests: line.with(requests).count()?,
            seconds: line.with(took).number(MICROS)? / 1e6,
            bytes: line.with(read.trim()).number(BYTES)? as u64,
            per_s: lines.need("Requests/sec:")?.number(PLAIN)?,
        };
        let by_time = done.requests as f64 / done.seconds;
        let (share, absolute) = RATE_TOLERANCE;
        if done.seconds > 0.0 && (by_time - done.per_s).abs() > share * by_time + absolute {
            let (requests, seconds, per_s) = (done.requests, done.seconds, done.per_s);
            return Err(lines.need("Requests/sec:")?.wrong(format!(
                "{per_s} requests per second do not fit {requests} requests in {seconds} s: a line is damaged"
            )));
        }
        Ok(done)
    }

    /// The length of the run. It is more exact than the printed time if there is a rate.
    fn measured_s(&self) -> f64 {
        if self.per_s > 0.0 && self.requests > 0 { self.requests as f64 / self.per_s } else { self.seconds }
    }
}

/// `1 threads and 4 connections`.
fn threads_and_connections(lines: &Lines<'_>) -> Result<[u32; 2], ImportError> {
    let line = lines.iter().find(|line| line.text.contains(" threads and "));
    let line = line.ok_or_else(|| ImportError::incomplete(Format::Wrk, "no `threads and`"))?;
    let (threads, connections) = line.text.split_once(" threads and ").unwrap_or_default();
    let number = |text| {
        let count = line.with(text).count()?;
        u32::try_from(count).map_err(|_| line.wrong(format!("`{count}` is more than there can be")))
    };
    Ok([number(threads)?, number(connections)?])
}

/// `Socket errors: connect 0, read 0, write 0, timeout 12` and `Non-2xx or 3xx responses: 3`.
fn errors(lines: &Lines<'_>, counts: &mut OperationCounts) -> Result<(), ImportError> {
    if let Some(line) = lines.labelled("Socket errors:")? {
        for part in line.text.split(',') {
            let (what, count) = part
                .trim()
                .split_once(' ')
                .ok_or_else(|| line.wrong(format!("`{part}` is not a kind and count")))?;
            let count = line.with(count).count()?;
            if count > 0 {
                counts.errors.insert(format!("socket: {what}"), count);
            }
        }
    }
    let Some(line) = lines.labelled("Non-2xx or 3xx responses:")? else { return Ok(()) };
    let refused = line.count()?;
    if refused > counts.completed {
        return Err(line.wrong(format!("{refused} responses of {} requests", counts.completed)));
    }
    if refused > 0 {
        counts.errors.insert("answer neither 2xx nor 3xx".to_owned(), refused);
        counts.completed -= refused;
    }
    Ok(())
}

/// Parses wrk2's spectra, or the percentiles. Returns whether there was a spectrum.
fn latencies(
    lines: &Lines<'_>,
    is_wrk2: bool,
    requests: u64,
    builder: &mut Builder,
) -> Result<bool, ImportError> {
    let mut has_spectrum = false;
    for (name, clock) in TABLES {
        let is_table =
            |line: &str| line.starts_with("Latency Distribution (HdrHistogram") && line.contains(name);
        let part = lines.between(is_table, |line| line.starts_with("#[Buckets"));
        if let Some(distribution) = part.map(|part| spectrum(&part)).transpose()?.flatten() {
            builder.distribution(PHASE, OPERATION, clock, &distribution);
            has_spectrum = true;
        }
    }
    if !has_spectrum && requests > 0 {
        let clock = if is_wrk2 { Clock::Response } else { Clock::Service };
        builder.summary(PHASE, OPERATION, clock, summary(lines, requests)?);
    }
    Ok(has_spectrum)
}

/// Parses wrk2's table: value in milliseconds, percentile, cumulative count, 1 / (1 - percentile). It is less fine than
/// the histogram.
fn spectrum(part: &Lines<'_>) -> Result<Option<Distribution>, ImportError> {
    let is_begin = |line: &str| line.starts_with("Detailed Percentile spectrum:");
    let Some(table) = part.between(is_begin, |line| line.starts_with('#')) else { return Ok(None) };
    let mut distribution = Distribution::default();
    let mut before = 0;
    for line in table.iter().filter(|line| !line.text.is_empty() && !line.text.starts_with("Value ")) {
        let fields: Vec<&str> = line.text.split_whitespace().collect();
        let [value, percentile, total, _] = fields[..] else {
            return Err(
                line.wrong("a line of the spectrum has a value, a percentile, a count and 1/(1-percentile)")
            );
        };
        let (value_ms, total) = (line.with(value).number(PLAIN)?, line.with(total).count()?);
        line.with(percentile).number(PLAIN)?;
        let more = total.checked_sub(before);
        let more = more.ok_or_else(|| line.wrong(format!("the count falls from {before} to {total}")))?;
        distribution.add((value_ms * 1e3).round() as u64, more);
        before = total;
    }
    Ok((!distribution.is_empty()).then_some(distribution))
}

/// Parses `Latency     5.37ms    3.65ms  29.12ms   79.61%` and the percentiles.
fn summary(lines: &Lines<'_>, samples: u64) -> Result<Summary, ImportError> {
    let stats =
        lines.iter().find(|line| line.text.starts_with("Latency ") && !line.text.starts_with("Latency Dist"));
    let stats = stats.ok_or_else(|| ImportError::incomplete(Format::Wrk, "no `Latency`"))?;
    let fields: Vec<&str> = stats.text.split_whitespace().skip(1).collect();
    let [mean, _, max, _] = fields[..] else {
        return Err(stats.wrong("the line of latencies has a mean, a deviation, a maximum and a share"));
    };
    let mut quantiles = Vec::new();
    let is_begin = |line: &str| line.starts_with("Latency Distribution");
    if let Some(table) = lines.between(is_begin, |line| !line.contains('%')) {
        for line in table.iter() {
            let (percent, value) = line.text.split_once('%').unwrap_or_default();
            let value_us = line.with(value.trim()).number(MICROS)?;
            quantiles.push(Quantile::new(line.with(percent).percentile()?, value_us, samples));
        }
    }
    let us = |text| stats.with(text).number(MICROS);
    Ok(Summary { samples, mean_us: Some(us(mean)?), min_us: None, quantiles, max_us: Some(us(max)?) })
}

fn hidden(builder: &mut Builder, is_wrk2: bool, has_spectrum: bool) {
    if is_wrk2 {
        builder.hides(
            "wrk2 leaves its first 10 s (calibration) out of the latencies, though not out of the requests",
        );
        builder.hides(
            "wrk2 looks at its schedule about once a millisecond and sends twice as fast while it catches up",
        );
        builder.hides("the rate that was asked for is not in wrk2's output; if it was more than what was achieved, this run was an overload");
        if has_spectrum {
            builder.hides(
                "the histogram was made again from the printed spectrum, which is coarser than wrk2's own",
            );
        }
    } else {
        builder.hides("wrk prints four percentiles; above the last of them only the maximum is known");
        builder.hides("wrk has no rate: latency is that of a server kept as busy as these connections can");
    }
    builder.hides("what is in an answer was not looked at beyond its status");
    builder.hides("what the tool itself cost, and whether it was the limit, is not in its output");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_gives_four_percentiles_and_no_histogram() {
        let bundle = read(include_str!("fixtures/wrk.txt")).unwrap();
        let phase = bundle.main_phase().unwrap();
        assert_eq!(phase.arrival, Arrival::Closed { concurrency: 4, pause_us: 0 });
        let total = &phase.total;
        assert!((total.completed_per_s - 778.22).abs() < 0.01 && total.counts.completed == 2_335);
        let service = total.service.as_ref().unwrap();
        let found: Vec<(f64, f64)> = service.quantiles.iter().map(|q| (q.quantile, q.value_us)).collect();
        assert_eq!(found, [(0.5, 4_020.0), (0.75, 7_450.0), (0.9, 10_440.0), (0.99, 17_150.0)]);
        assert_eq!((service.mean_us, service.max_us), (Some(5_370.0), Some(29_120.0)));
        assert!(bundle.histograms.is_empty());
    }

    #[test]
    fn wrk2_gives_response_times_with_a_spectrum() {
        let bundle = read(include_str!("fixtures/wrk2.txt")).unwrap();
        let total = &bundle.main_phase().unwrap().total;
        let response = total.response.as_ref().unwrap();
        assert_eq!((bundle.result.tool.name.as_str(), response.samples), ("wrk2", 296));
        assert_eq!((response.quantile_us(0.5), response.quantile_us(0.99)), (Some(1_361.0), Some(6_043.0)));
        assert!(total.service.is_none());
    }

    #[test]
    fn failures_are_counted() {
        let text = include_str!("fixtures/wrk.txt").replace(
            "Requests/sec:",
            "  Socket errors: connect 0, read 3, write 0, timeout 12\n  Non-2xx or 3xx responses: 35\nRequests/sec:",
        );
        let counts = &read(&text).unwrap().result.phases[0].total.counts.clone();
        assert_eq!((counts.completed, counts.errors_total()), (2_300, 50));
        assert_eq!(counts.errors["socket: timeout"], 12);
    }

    #[test]
    fn rates_of_nothing_and_of_a_little_have_the_time_that_is_printed() {
        let text = include_str!("fixtures/wrk.txt")
            .replace("2335 requests in 3.00s, 433.25KB", "0 requests in 3.00s, 0.00B");
        let none = text.replace("778.22", "0.00").replace("79.61%", "-nan%");
        let phase = read(&none).unwrap().result.phases.remove(0);
        assert_eq!((phase.duration_s, phase.total.completed_per_s, phase.total.service), (3.0, 0.0, None));
        let one = none.replace("0 requests in 3.00s", "1 requests in 1.00h");
        let phase = read(&one).unwrap().result.phases.remove(0);
        assert_eq!((phase.duration_s, phase.total.counts.completed), (3_600.0, 1));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let wrk = include_str!("fixtures/wrk.txt");
        let (wrk2, twice) = (include_str!("fixtures/wrk2.txt"), format!("{wrk}{wrk}"));
        for (text, expected) in [
            (
                wrk.replace("778.22", "0.00"),
                "line 12 of wrk's output: 0 requests per second do not fit 2335 requests in 3 s",
            ),
            (wrk.replace("778.22", "nan"), "line 12 of wrk's output: `nan` is not a number"),
            (wrk.replace("778.22", "inf"), "line 12"),
            (wrk.replace("2335", "-1"), "line 11 of wrk's output: `-1` is not a count"),
            (wrk.replace("2335", "99999999999999999999"), "is not a count"),
            (wrk.replace("in 3.00s", "in 0.00us"), "at most a year"),
            (wrk.replace("2335 requests in 3.00s", "0 requests in 99999999h"), "do not fit"),
            (wrk.replace("4.02ms", "4.02"), "line 7 of wrk's output: `4.02` is not a number with a unit"),
            (wrk.replace("7.45ms", "x"), "line 8"),
            (wrk.replace("433.25KB", "433.25XB"), "line 11"),
            (
                wrk.replace("Requests/sec", "  Non-2xx or 3xx responses: 2336\nRequests/sec"),
                "2336 responses of 2335",
            ),
            (
                wrk2.replace("          60         1.25", "          20         1.25"),
                "the count falls from 30 to 20",
            ),
            (wrk2.replace("       0.786     0.100000           30         1.11", "0.786"), "line 21"),
            (twice, "line 14 of wrk's output: here begins a second run"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    #[test]
    fn times_of_wrk2_from_the_send_are_service_times() {
        let text = include_str!("fixtures/wrk2.txt");
        let (begin, end) = (text.find("  Latency Distribution").unwrap(), text.find("-----").unwrap());
        let second = text[begin..end].replace(
            "Recorded Latency",
            "Uncorrected Latency (measured without taking delayed starts into account)",
        );
        let second = second.replace("       8.035     1.000000", "       9.035     1.000000");
        let bundle = read(&text.replace("-----\n", &format!("-----\n{second}"))).unwrap();
        let total = &bundle.main_phase().unwrap().total;
        assert_eq!(total.response.as_ref().unwrap().samples, total.service.as_ref().unwrap().samples);
        assert!(total.response.as_ref().unwrap().quantile_us(0.99) == Some(6_043.0));
    }
}
