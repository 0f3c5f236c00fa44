//! sysbench 1.0 and 0.5: the output of `sysbench ... run`.

use std::time::Duration;

use load::result::{
    Arrival, Builder, Bundle, Clock, OperationCounts, PhaseFacts, Quantile, ScenarioAsRun, SecondLine,
    Summary,
};
use load::statistics::Distribution;

use super::bounds::{run_length, sum};
use super::lines::{Line, Lines, PLAIN};
use super::{Format, ImportError};

const PHASE: &str = "run";
const OPERATION: &str = "transaction";
const SECONDS: &[(&str, f64)] = &[("s", 1.0)];
/// Converts milliseconds into microseconds. 0.5 prints the unit, 1.0 prints it in the heading.
const MILLIS: &[(&str, f64)] = &[("", 1e3), ("ms", 1e3)];

pub(super) fn read(text: &str) -> Result<Bundle, ImportError> {
    let lines = Lines::new(text, Format::Sysbench);
    lines.one_run(|line| line.starts_with("Number of threads:"))?;
    if let Some(line) = lines.iter().find(|line| line.text.ends_with("Checkpoint report:")) {
        return Err(
            line.wrong("with --report-checkpoints its figures are of parts of the run; run it without")
        );
    }
    let threads = lines.need("Number of threads:")?;
    let threads = u32::try_from(threads.count()?).map_err(|_| threads.wrong("these are too many threads"))?;
    // 1.1 uses another label.
    let elapsed = lines.labelled("time elapsed:")?;
    let total_time = elapsed.map_or_else(|| lines.need("total time:"), Ok)?;
    let took = run_length(total_time.number(SECONDS)?).map_err(|what| total_time.wrong(what))?;
    let events = lines.need("total number of events:")?.count()?;
    let rate = lines.labelled("Target transaction rate:")?;
    let rate = rate.map(|line| line.number(&[("/sec", 1.0), ("", 1.0)])).transpose()?;
    let version = lines.iter().find_map(|line| line.text.strip_prefix("sysbench "));
    let version =
        version.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().trim_end_matches(':');
    let is_sql = text.contains("queries performed:");
    let scenario = ScenarioAsRun {
        name: "sysbench".to_owned(),
        about: "what sysbench printed".to_owned(),
        driver: if is_sql { "sql" } else { "host" }.to_owned(),
        article: None,
        configuration: serde_json::json!({"threads": threads, "rate_per_s": rate, "time_s": took.as_secs_f64().round()}),
    };
    let mut builder = Builder::imported("sysbench", version, scenario);
    builder.phase(&PhaseFacts {
        name: PHASE.to_owned(),
        kind: PHASE.to_owned(),
        measured: true,
        starts: Duration::ZERO,
        warmup: Duration::ZERO,
        duration: took,
        arrival: match rate {
            Some(rate_per_s) => Arrival::Open { process: "poisson".to_owned(), timer_us: 0, rate_per_s },
            None => Arrival::Closed { concurrency: threads.into(), pause_us: 0 },
        },
        connections: threads,
    });
    // With --rate, sysbench counts from the moment at which an event was queued; otherwise from the send.
    let clock = if rate.is_some() { Clock::Response } else { Clock::Service };
    builder.counts(PHASE, OPERATION, &counts(&lines, events)?);
    let latency = Latency::read(&lines)?;
    let histogram = histogram(&lines)?;
    match &histogram {
        Some(distribution) => builder.distribution(PHASE, OPERATION, clock, distribution),
        None => builder.summary(PHASE, OPERATION, clock, latency.summary(events)),
    };
    intermediate(&lines, took, clock, &mut builder)?;
    hidden(&mut builder, &latency, rate.is_some(), histogram.is_some());
    Ok(builder.finish(took))
}

fn counts(lines: &Lines<'_>, events: u64) -> Result<OperationCounts, ImportError> {
    let mut counts =
        OperationCounts { planned: events, sent: events, completed: events, ..OperationCounts::default() };
    let ignored = lines.labelled("ignored errors:")?.map_or(Ok(0), |line| line.count())?;
    if ignored > 0 {
        counts.errors.insert("ignored errors (the transaction was begun again)".to_owned(), ignored);
    }
    let queries =
        lines.between(|line| line.starts_with("queries performed:"), |line| line.starts_with("total:"));
    for label in ["read:", "write:", "other:"] {
        if let Some(line) = queries.as_ref().map_or(Ok(None), |queries| queries.labelled(label))? {
            counts.extra.insert(format!("{} queries", label.trim_end_matches(':')), line.count()?);
        }
    }
    Ok(counts)
}

/// The printed latencies, microseconds.
#[derive(Debug, Default)]
struct Latency {
    min_us: Option<f64>,
    mean_us: Option<f64>,
    max_us: Option<f64>,
    /// The quantiles and their values. Some versions print several.
    quantiles: Vec<(f64, f64)>,
    /// The step of the histogram behind them, percent.
    step_percent: f64,
}

impl Latency {
    /// Parses `Latency (ms):` of 1.0, or `response time:` with units of 0.5. Earlier lines of 0.5 about an interval
    /// contain the same words.
    fn read(lines: &Lines<'_>) -> Result<Self, ImportError> {
        let is_end = |line: &str| line.is_empty() || line.starts_with("Threads fairness:");
        let general = lines.between(|line| line.starts_with("General statistics:"), |_| false);
        let (part, step_percent) = match lines.between(|line| line.starts_with("Latency (ms):"), is_end) {
            Some(part) => (Some(part), 1.8),
            None => (
                general.and_then(|part| part.between(|line| line.starts_with("response time:"), is_end)),
                0.03,
            ),
        };
        let missing = || ImportError::incomplete(Format::Sysbench, "no `Latency (ms):` or `response time:`");
        let part = part.ok_or_else(missing)?;
        let ms = |label| part.labelled(label)?.map(|line| line.number(MILLIS)).transpose();
        let mut latency = Self {
            min_us: ms("min:")?,
            mean_us: ms("avg:")?,
            max_us: ms("max:")?,
            step_percent,
            ..Self::default()
        };
        for line in part.iter().filter(|line| line.text.contains("percentile:")) {
            latency.quantiles.push(percentile(&line)?);
        }
        latency.quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(latency)
    }

    fn summary(&self, samples: u64) -> Summary {
        Summary {
            samples,
            mean_us: self.mean_us,
            min_us: self.min_us,
            quantiles: self.quantiles.iter().map(|(q, us)| Quantile::new(*q, *us, samples)).collect(),
            max_us: self.max_us,
        }
    }
}

/// Parses `95th percentile: 11.04` of 1.0, or `approx.  95 percentile: 28.37ms` of 0.5.
fn percentile(line: &Line<'_>) -> Result<(f64, f64), ImportError> {
    let (percent, ms) = line.text.split_once("percentile:").unwrap_or_default();
    let percent = percent.trim().trim_start_matches("approx.").trim();
    let percent = percent.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    Ok((line.with(percent).percentile()?, line.with(ms.trim()).number(MILLIS)?))
}

/// Parses the table of `--histogram`: milliseconds, bar, count.
fn histogram(lines: &Lines<'_>) -> Result<Option<Distribution>, ImportError> {
    let Some(table) = lines.between(|line| line.starts_with("Latency histogram"), str::is_empty) else {
        return Ok(None);
    };
    let mut distribution = Distribution::default();
    let mut rows = Vec::new();
    for line in table.iter().skip_while(|line| line.text.starts_with("value ")) {
        let row = line.text.split_once('|').ok_or_else(|| line.wrong("a line of the histogram has a bar"))?;
        let count = line.with(row.1.trim().trim_start_matches('*').trim()).count()?;
        distribution.add(line.with(row.0.trim()).number(MILLIS)?.round() as u64, count);
        rows.push(count);
    }
    match sum(rows.into_iter()) {
        Some(_) => Ok((!distribution.is_empty()).then_some(distribution)),
        None => Err(ImportError::incomplete(
            Format::Sysbench,
            "its histogram has more events than a run can have",
        )),
    }
}

/// Parses `[ 2s ] thds: 4 tps: 710.70 ... err/s: 9.01 reconn/s: 0.00` of 1.0, or `[  10s] threads: 8, tps: 402.11, ...
/// errors: 0.20, ...` of 0.5, at the end of the interval. Tests without transactions have `eps:`; fileio and memory
/// have neither.
fn intermediate(
    lines: &Lines<'_>,
    took: Duration,
    clock: Clock,
    builder: &mut Builder,
) -> Result<(), ImportError> {
    let (mut before, mut left_out) = (0.0, None);
    let (mut percentile_not_kept, mut has_queue) = (None, false);
    for line in lines.iter() {
        let Some((end, rest)) = interval(&line)? else { continue };
        if rest.text.starts_with("queue length:") {
            has_queue = true;
            continue;
        }
        let Some(rate) = field(&rest, &["tps:", "eps:"])? else {
            left_out.get_or_insert(line.number);
            continue;
        };
        let length_s = end - before;
        // The last interval may end a little after the run.
        if length_s <= 0.0 || end > took.as_secs_f64() + 2.0 {
            return Err(line.wrong(format!(
                "an interval from {before} s to {end} s in a run of {:.1} s: a line is damaged, or of another run",
                took.as_secs_f64()
            )));
        }
        let whole = |per_s: f64| (per_s * length_s).round() as u64;
        let errors = field(&rest, &["err/s:", "errors:"])?.unwrap_or(0.0);
        let mut of_second = SecondLine {
            phase: PHASE.to_owned(),
            operation: OPERATION.to_owned(),
            second: before as u64,
            length_s,
            sent: whole(rate),
            completed: whole(rate),
            errors: whole(errors),
            ..SecondLine::default()
        };
        if let Some((percent, us)) = latency_of_interval(&rest)? {
            let place = match (clock, percent) {
                (Clock::Response, 50) => Some(&mut of_second.response_p50_us),
                (Clock::Response, 99) => Some(&mut of_second.response_p99_us),
                (_, 50) => Some(&mut of_second.service_p50_us),
                (_, 99) => Some(&mut of_second.service_p99_us),
                _ => None,
            };
            match place {
                Some(place) => *place = Some(us),
                None => percentile_not_kept = Some(percent),
            }
        }
        builder.add_line(&of_second);
        before = end;
    }
    if let Some(percent) = percentile_not_kept {
        builder.hides(format!(
            "p{percent} of each interval is not taken over: a second of a result has p50 and p99"
        ));
    }
    if has_queue {
        builder.hides("lengths of sysbench's queue in each interval are not taken over");
    }
    if let Some(number) = left_out {
        builder.hides(format!(
            "intervals without a rate of events are not taken over, the first in line {number}"
        ));
    }
    Ok(())
}

/// Splits `[ 2s ] ...` into its end and the rest; `None` for other lines.
fn interval<'a>(line: &Line<'a>) -> Result<Option<(f64, Line<'a>)>, ImportError> {
    let Some((inside, rest)) = line.text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Ok(None);
    };
    // The brackets of a log line of the client library contain a word.
    let inside = inside.trim();
    if !inside.ends_with('s') || !inside.contains(|c: char| c.is_ascii_digit()) {
        return Ok(None);
    }
    Ok(Some((line.with(inside).number(SECONDS)?, line.with(rest.trim()))))
}

/// The number after the first of the names that occurs.
fn field(line: &Line<'_>, names: &[&str]) -> Result<Option<f64>, ImportError> {
    let rest = names.iter().find_map(|name| line.text.split_once(name).map(|(_, rest)| rest.trim_start()));
    rest.map(|rest| line.with(rest).number(PLAIN)).transpose()
}

/// Parses `lat (ms,95%): 11.65` of 1.0, or `response time: 28.41ms (95%)` of 0.5: percent and microseconds.
fn latency_of_interval(line: &Line<'_>) -> Result<Option<(u64, f64)>, ImportError> {
    let (percent, value) = if let Some((_, rest)) = line.text.split_once("lat (ms,") {
        rest.split_once("%):").ok_or_else(|| line.wrong("the percentile of its latency is not there"))?
    } else if let Some((_, rest)) = line.text.split_once("response time:") {
        let (value, rest) = rest
            .split_once('(')
            .ok_or_else(|| line.wrong("the percentile of its response time is not there"))?;
        (rest.split('%').next().unwrap_or_default(), value)
    } else {
        return Ok(None);
    };
    Ok(Some((line.with(percent.trim()).count()?, line.with(value.trim()).number(MILLIS)?)))
}

fn hidden(builder: &mut Builder, latency: &Latency, is_open: bool, has_histogram: bool) {
    if has_histogram {
        builder.hides("sysbench's histogram has steps of 1.8 %, and what is above 100 s counts as 100 s");
    } else {
        let name = |(quantile, us): &(f64, f64)| {
            format!("{} {:.2} ms", load::result::percentile(*quantile), us / 1e3)
        };
        let names: Vec<String> = latency.quantiles.iter().map(name).collect();
        builder.hides(format!(
            "sysbench printed {} percentile(s) only ({}), from a histogram with steps of {} %; the others are not known",
            names.len(),
            names.join(", "),
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
        let text = include_str!("fixtures/sysbench-0.5.txt")
            .replace("OLTP test", &format!("{line}OLTP test"))
            .replace("30.0063s", "1000.0063s");
        let bundle = read(&text).unwrap();
        let last = bundle.seconds.iter().rfind(|line| line.operation == "all").unwrap();
        assert_eq!((last.second, last.length_s, last.completed), (30, 970.0, 9_700));
    }

    #[test]
    fn all_percentiles_and_those_of_the_intervals_are_taken() {
        let line = "         95th percentile:                        9.00\n         99th percentile:";
        let interval = "[ 1s ] thds: 4 tps: 88.00 qps: 1.0 (r/w/o: 1/1/1) lat (ms,99%): 9.73 err/s: 0.00 reconn/s: 0.00\n\
                        [ 1s ] queue length: 0, concurrency: 1\nSQL statistics:";
        let text = include_str!("fixtures/sysbench-rate.txt").replace("         99th percentile:", line);
        let bundle = read(&text.replace("SQL statistics:", interval)).unwrap();
        let response = bundle.main_phase().unwrap().total.response.as_ref().unwrap();
        assert_eq!((response.quantile_us(0.95), response.quantile_us(0.99)), (Some(9_000.0), Some(10_840.0)));
        let second = bundle.seconds.iter().find(|line| line.operation == OPERATION).unwrap();
        assert_eq!((second.completed, second.response_p99_us), (88, Some(9_730.0)));
        assert!(bundle.result.hides.iter().any(|what| what.contains("queue")), "{:?}", bundle.result.hides);
        let hides = read(include_str!("fixtures/sysbench.txt")).unwrap().result.hides;
        assert!(
            hides.iter().any(|what| what.contains("p95 of each interval is not taken over")),
            "{hides:?}"
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let text = include_str!("fixtures/sysbench.txt");
        let twice = format!("{text}{text}");
        for (text, expected) in [
            (
                text.replace("[ 3s ] thds: 4 tps: 723.97", "[ 3s ] thds: 4 tps: x"),
                "line 15 of sysbench's output: `x` is not a number",
            ),
            (text.replace("[ 3s ]", "[ 1s ]"), "line 15 of sysbench's output: an interval from 2 s to 1 s"),
            (text.replace("[ 5s ]", "[ 500s ]"), "line 17"),
            (text.replace("[ 3s ]", "[ 3xs ]"), "line 15"),
            (text.replace("lat (ms,95%): 9.06", "lat (ms,95%): inf"), "line 15"),
            (
                text.replace("total time:                          5.0061s", "total time: nan"),
                "`nan` is not a number",
            ),
            (
                text.replace("total time:                          5.0061s", "total time: 0.0000s"),
                "above zero",
            ),
            (
                text.replace("total time:                          5.0061s", "total time: 1e30s"),
                "is not a number",
            ),
            (text.replace("events:              3424", "events: -3424"), "`-3424` is not a count"),
            (
                text.replace("       0.989 |                                         1", "       0.989 | x"),
                "line 21",
            ),
            (
                text.replace("95th percentile:                       11.04", "95th percentile: -"),
                "`-` is not a number",
            ),
            (text.replace("[ 3s ] thds", "[ 3s ] Checkpoint report:\n[ 3s ] thds"), "--report-checkpoints"),
            (twice, "here begins a second run; import each run from a file of its own"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
