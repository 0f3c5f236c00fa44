//! sysbench 1.0 and 0.5: what `sysbench ... run` prints.

use std::time::Duration;

use super::lines::{after, leading_number, number};
use super::{Format, ImportError};
use crate::result::{
    Arrival, Builder, Bundle, Clock, Distribution, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun,
    SecondLine, Summary,
};

const PHASE: &str = "run";
const OPERATION: &str = "transaction";

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let missing = |what: &str| ImportError::incomplete(Format::Sysbench, format!("no `{what}`"));
    let need = |label: &str| number(text, label).ok_or_else(|| missing(label));
    let threads = need("Number of threads:")?;
    let seconds = need("total time:")?;
    let events = need("total number of events:")?;
    let rate = number(text, "Target transaction rate:");
    let version = after(text, "sysbench ").unwrap_or_default();
    let version = version.split_whitespace().next().unwrap_or_default().trim_end_matches(':');
    let scenario = ScenarioAsRun {
        name: "sysbench".to_owned(),
        about: "what sysbench printed".to_owned(),
        driver: "sql".to_owned(),
        article: None,
        configuration: serde_json::json!({"threads": threads, "rate_per_s": rate, "time_s": seconds.round()}),
    };
    let mut builder = Builder::imported("sysbench", version, scenario);
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration: Duration::from_secs_f64(seconds),
        arrival: match rate {
            Some(rate_per_s) => Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s },
            None => Arrival::Closed { concurrency: threads as u64, pause_us: 0 },
        },
        connections: threads as u32,
    });
    // With --rate sysbench counts from the moment an event was put into its queue; else from the send.
    let clock = if rate.is_some() { Clock::Response } else { Clock::Service };
    let counts = counts(text, events as u64);
    builder.counts(PHASE, OPERATION, &counts);
    let latency = latency(text).ok_or_else(|| missing("Latency (ms):` or `response time:"))?;
    match histogram(text) {
        Some(distribution) => builder.distribution(PHASE, OPERATION, clock, &distribution),
        None => builder.summary(PHASE, OPERATION, clock, summary(&latency, events as u64)),
    };
    intermediate(text, &mut builder);
    hidden(&mut builder, &latency, rate.is_some(), histogram(text).is_some());
    Ok(builder.finish(Duration::from_secs_f64(seconds)))
}

fn counts(text: &str, events: u64) -> OperationCounts {
    let mut counts =
        OperationCounts { planned: events, sent: events, completed: events, ..OperationCounts::default() };
    let ignored = number(text, "ignored errors:").unwrap_or(0.0) as u64;
    if ignored > 0 {
        counts.errors.insert("ignored errors (the transaction was begun again)".to_owned(), ignored);
    }
    for label in ["read:", "write:", "other:"] {
        if let Some(queries) = number(text, label) {
            counts.extra.insert(format!("{} queries", label.trim_end_matches(':')), queries as u64);
        }
    }
    counts
}

/// What is printed of latencies.
#[derive(Debug, Default)]
struct Latency<'a> {
    text: &'a str,
    /// The only percentile: percent and milliseconds.
    percentile: Option<(f64, f64)>,
    /// Between two values of the histogram that it comes from, percent.
    step_percent: f64,
}

/// `Latency (ms):` of 1.0, `response time:` with its units of 0.5. Lines of 0.5 about an interval have the same words, before.
fn latency(text: &str) -> Option<Latency<'_>> {
    if let Some((_, text)) = text.split_once("Latency (ms):") {
        let percentile = text.lines().find_map(|line| {
            let (percent, ms) = line.trim().split_once("th percentile:")?;
            Some((percent.parse::<f64>().ok()?, leading_number(ms.trim())?))
        });
        return Some(Latency { text, percentile, step_percent: 1.8 });
    }
    let text = text.split_once("General statistics:")?.1.split_once("response time:")?.1;
    let percentile = text.lines().find_map(|line| {
        let (percent, ms) = line.trim().strip_prefix("approx.")?.split_once("percentile:")?;
        Some((percent.trim().parse::<f64>().ok()?, leading_number(ms.trim())?))
    });
    Some(Latency { text, percentile, step_percent: 0.03 })
}

fn summary(latency: &Latency<'_>, samples: u64) -> Summary {
    let ms = |label: &str| number(latency.text, label).map(us);
    let percentile = latency.percentile.map(|(percent, ms)| Quantile::new(percent / 100.0, us(ms), samples));
    Summary {
        samples,
        mean_us: ms("avg:"),
        min_us: ms("min:"),
        quantiles: percentile.into_iter().collect(),
        max_us: ms("max:"),
    }
}

/// Microseconds of printed milliseconds, which have two digits behind the point: 28.37 ms are 28,370 us and not a little less.
fn us(ms: f64) -> f64 {
    (ms * 1e6).round() / 1e3
}

/// The table of `--histogram`: milliseconds, bar, count.
fn histogram(text: &str) -> Option<Distribution> {
    let table = text.split_once("Latency histogram")?.1;
    let mut distribution = Distribution::default();
    for line in table.lines().skip(2) {
        let Some((value, bar)) = line.split_once('|') else { break };
        let count = bar.trim_start_matches('*').trim().parse().ok()?;
        distribution.add((value.trim().parse::<f64>().ok()? * 1e3).round() as u64, count);
    }
    (!distribution.is_empty()).then_some(distribution)
}

/// `[ 2s ] thds: 4 tps: 710.70 ... err/s: 9.01 reconn/s: 0.00` of 1.0, `[  10s] threads: 8, tps: 402.11, ... errors: 0.20, ...` of
/// 0.5, which end the interval they speak of.
fn intermediate(text: &str, builder: &mut Builder) {
    let mut before = 0.0;
    for line in text.lines().filter_map(|line| line.strip_prefix('[')) {
        let field = |name: &str| leading_number(line.split_once(name)?.1.trim_start());
        let (Some(end), Some(rate)) = (leading_number(line.trim_start()), field("tps:")) else {
            continue;
        };
        let length_s = end - before;
        let count = |per_s: Option<f64>| (per_s.unwrap_or(0.0) * length_s).round() as u64;
        builder.add_line(&SecondLine {
            phase: PHASE.to_owned(),
            operation: OPERATION.to_owned(),
            second: before as u64,
            length_s,
            sent: count(Some(rate)),
            completed: count(Some(rate)),
            errors: count(field("err/s:").or_else(|| field("errors:"))),
            ..SecondLine::default()
        });
        before = end;
    }
}

fn hidden(builder: &mut Builder, latency: &Latency<'_>, is_open: bool, has_histogram: bool) {
    if has_histogram {
        builder.hides("sysbench's histogram has steps of 1.8 %, and what is above 100 s counts as 100 s");
    } else {
        let percentile = latency.percentile.map(|(percent, ms)| format!(" (p{percent} {ms:.2} ms)"));
        builder.hides(format!(
            "sysbench printed one percentile only{}, from a histogram with steps of {} %; the others are not known",
            percentile.unwrap_or_default(),
            latency.step_percent
        ));
    }
    if is_open {
        builder.hides(
            "with --rate sysbench counts from the moment its own thread put an event into the queue: when that thread is late, \
             nobody sees it",
        );
    }
    builder.hides("sysbench has no warm-up: the first seconds are in every figure");
    builder
        .hides("an ignored error begins the transaction again with other rows; its tries are in one latency");
    builder.hides("what sysbench itself cost, and whether it was the limit, is not in its output");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_histogram_and_seconds() {
        let bundle = read(include_str!("fixtures/sysbench.txt")).unwrap();
        let phase = bundle.main_phase().unwrap();
        assert_eq!(bundle.result.tool.version, "1.0.20");
        assert_eq!(phase.arrival, Arrival::Closed { concurrency: 4, pause_us: 0 });
        let total = &phase.total;
        assert_eq!((total.counts.completed, total.counts.errors_total()), (3_424, 39));
        assert_eq!(total.counts.extra["read queries"], 48_482);
        assert!((total.completed_per_s - 683.92).abs() < 0.1, "{}", total.completed_per_s);
        let service = total.service.as_ref().unwrap();
        assert_eq!(service.samples, 3_424, "every event is in the histogram");
        let p95 = bundle.histograms.get("run", OPERATION, Clock::Service).unwrap().total.quantile_us(0.95);
        assert!((p95 as f64 / 11_040.0 - 1.0).abs() < 0.01, "sysbench prints 11.04 ms: {p95}");
        assert!((service.mean_us.unwrap() / 5_840.0 - 1.0).abs() < 0.01);
        let rates: Vec<u64> =
            bundle.seconds.iter().filter(|l| l.operation == "all").map(|l| l.completed).collect();
        assert_eq!(rates, [694, 711, 724, 640, 653]);
    }

    #[test]
    fn a_run_with_a_rate_and_one_percentile() {
        let bundle = read(include_str!("fixtures/sysbench-rate.txt")).unwrap();
        let total = &bundle.main_phase().unwrap().total;
        let response = total.response.as_ref().unwrap();
        assert_eq!(
            (response.quantile_us(0.99), response.max_us, response.samples),
            (Some(10_840.0), Some(13_580.0), 265)
        );
        assert!(!response.quantiles[0].quotable, "265 samples do not carry a p99");
        assert!(total.service.is_none());
    }

    #[test]
    fn a_run_of_0_5() {
        let bundle = read(include_str!("fixtures/sysbench-0.5.txt")).unwrap();
        assert_eq!(bundle.result.tool.version, "0.5");
        let phase = bundle.main_phase().unwrap();
        assert_eq!(phase.arrival, Arrival::Closed { concurrency: 8, pause_us: 0 });
        let total = &phase.total;
        assert_eq!((total.counts.completed, total.counts.errors_total()), (12_200, 3));
        let queries = ["read queries", "write queries", "other queries"].map(|name| total.counts.extra[name]);
        assert_eq!(queries, [170_842, 48_809, 24_403]);
        let service = total.service.as_ref().unwrap();
        assert_eq!((service.min_us, service.mean_us), (Some(4_870.0), Some(19_670.0)));
        assert_eq!((service.quantile_us(0.95), service.max_us), (Some(28_370.0), Some(214_550.0)));
        let all = bundle.seconds.iter().filter(|line| line.operation == "all");
        let lines: Vec<(u64, f64, u64, u64)> =
            all.map(|line| (line.second, line.length_s, line.completed, line.errors)).collect();
        assert_eq!(lines, [(0, 10.0, 4_021, 2), (10, 10.0, 4_183, 0), (20, 10.0, 3_996, 1)]);
        assert!(
            bundle.result.hides.iter().any(|what| what.contains("(p95 28.37 ms)")),
            "{:?}",
            bundle.result.hides
        );
    }

    #[test]
    fn intervals_of_0_5_are_read_beyond_a_thousand_seconds() {
        let line = "[1000s] threads: 8, tps: 10.00, reads: 140.00, writes: 40.00, response time: 1.00ms (95%), errors: 0.00\n";
        let text =
            include_str!("fixtures/sysbench-0.5.txt").replace("OLTP test", &format!("{line}OLTP test"));
        let bundle = read(&text).unwrap();
        let last = bundle.seconds.iter().rfind(|line| line.operation == "all").unwrap();
        assert_eq!((last.second, last.length_s, last.completed), (30, 970.0, 9_700));
    }
}
