//! wrk and wrk2: what they print with `--latency`.

use std::time::Duration;

use super::lines::{after, bytes, leading_number, micros, number};
use super::{Format, ImportError};
use crate::result::{
    Arrival, Builder, Bundle, Clock, Distribution, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun,
    Summary,
};

const PHASE: &str = "run";
const OPERATION: &str = "request";

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Wrk, format!("no `{what}`"));
    // `2335 requests in 3.00s, 433.25KB read`
    let done =
        text.lines().find(|line| line.contains(" requests in ")).ok_or_else(|| missing("requests in"))?;
    let (requests, rest) = done.split_once(" requests in ").ok_or_else(|| missing("requests in"))?;
    let requests: u64 = requests.trim().parse().map_err(|_| missing("requests in"))?;
    let (took, read) = rest.split_once(',').unwrap_or((rest, ""));
    let seconds = micros(took.trim()).ok_or_else(|| missing("requests in"))? / 1e6;
    let per_s = number(text, "Requests/sec:").ok_or_else(|| missing("Requests/sec:"))?;
    let line =
        text.lines().find(|line| line.contains(" threads and ")).ok_or_else(|| missing("threads and"))?;
    let (threads, connections) = line.split_once(" threads and ").ok_or_else(|| missing("threads and"))?;
    let threads: u64 = threads.trim().parse().map_err(|_| missing("threads and"))?;
    let connections = leading_number(connections).ok_or_else(|| missing("connections"))? as u32;
    let is_wrk2 = text.contains("HdrHistogram - ");
    let scenario = ScenarioAsRun {
        name: "http".to_owned(),
        about: format!("what {} printed", if is_wrk2 { "wrk2" } else { "wrk" }),
        driver: "http".to_owned(),
        article: None,
        configuration: serde_json::json!({"threads": threads, "connections": connections, "time_s": seconds.round()}),
    };
    let mut builder = Builder::imported(if is_wrk2 { "wrk2" } else { "wrk" }, "", scenario);
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration: Duration::from_secs_f64(requests as f64 / per_s),
        arrival: if is_wrk2 {
            // The rate asked for is not printed; without a backlog it is the rate achieved.
            Arrival::Open { process: "fixed".to_owned(), timer_us: 0, rate_per_s: per_s }
        } else {
            Arrival::Closed { concurrency: u64::from(connections), pause_us: 0 }
        },
        connections,
    });
    let mut counts = OperationCounts {
        planned: requests,
        sent: requests,
        completed: requests,
        ..OperationCounts::default()
    };
    counts.bytes_received = read.trim().split(' ').next().and_then(bytes).unwrap_or(0.0) as u64;
    errors(text, &mut counts);
    builder.counts(PHASE, OPERATION, &counts);
    let clock = if is_wrk2 { Clock::Response } else { Clock::Service };
    match spectrum(text) {
        Some(distribution) => builder.distribution(PHASE, OPERATION, clock, &distribution),
        None => builder.summary(
            PHASE,
            OPERATION,
            clock,
            summary(text, requests).ok_or_else(|| missing("Latency"))?,
        ),
    };
    hidden(&mut builder, is_wrk2, text);
    Ok(builder.finish(Duration::from_secs_f64(seconds)))
}

/// `Socket errors: connect 0, read 0, write 0, timeout 12` and `Non-2xx or 3xx responses: 3`.
fn errors(text: &str, counts: &mut OperationCounts) {
    for part in after(text, "Socket errors:").unwrap_or_default().split(',') {
        if let Some((what, count)) = part.trim().split_once(' ')
            && let Ok(count) = count.parse()
            && count > 0
        {
            counts.errors.insert(format!("socket: {what}"), count);
        }
    }
    let refused = number(text, "Non-2xx or 3xx responses:").unwrap_or(0.0) as u64;
    if refused > 0 {
        counts.errors.insert("answer neither 2xx nor 3xx".to_owned(), refused);
        counts.completed -= refused.min(counts.completed);
    }
}

/// wrk2's table: value in milliseconds, percentile, count so far, 1 / (1 - percentile). Steps of it are as fine as the
/// table, not as the histogram.
fn spectrum(text: &str) -> Option<Distribution> {
    let table = text.split_once("Detailed Percentile spectrum:")?.1;
    let mut distribution = Distribution::default();
    let mut before = 0;
    for line in table.lines().skip(3) {
        let mut fields = line.split_whitespace();
        let (Some(value), Some(_), Some(total)) = (fields.next(), fields.next(), fields.next()) else {
            break;
        };
        let (Ok(value), Ok(total)) = (value.parse::<f64>(), total.parse::<u64>()) else { break };
        distribution.add((value * 1e3).round() as u64, total.checked_sub(before)?);
        before = total;
    }
    (!distribution.is_empty()).then_some(distribution)
}

fn summary(text: &str, samples: u64) -> Option<Summary> {
    let mut fields = after(text, "Latency ")?.split_whitespace();
    let (mean, _, max) = (fields.next()?, fields.next()?, fields.next()?);
    let quantiles = text
        .lines()
        .filter_map(|line| {
            let (percent, value) = line.trim().split_once('%')?;
            let value_us = micros(value.trim())?;
            Some(Quantile::new(percent.parse::<f64>().ok()? / 100.0, value_us, samples))
        })
        .collect();
    Some(Summary { samples, mean_us: micros(mean), min_us: None, quantiles, max_us: micros(max) })
}

fn hidden(builder: &mut Builder, is_wrk2: bool, text: &str) {
    if is_wrk2 {
        builder.hides(
            "wrk2 leaves its first 10 s (calibration) out of the latencies, though not out of the requests",
        );
        builder.hides(
            "wrk2 looks at its schedule about once a millisecond and sends twice as fast while it catches up",
        );
        builder.hides("the rate that was asked for is not in wrk2's output; if it was more than what was achieved, this run was an overload");
        if text.contains("Detailed Percentile spectrum:") {
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
}
