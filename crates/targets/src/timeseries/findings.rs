//! The sentences of a result: throughput over time, cost of a point, size on disk.

use load::result::{Phase, Summary};

use super::request_log::{Expected, RequestLog};

/// Into how many parts the course of a phase is divided.
const PARTS: usize = 10;

/// What a cell took on the disk.
#[derive(Debug, Clone)]
pub(crate) struct DiskUse {
    /// The name of the last phase.
    pub(crate) phase: String,
    /// The state of the server: "running", "after an orderly stop".
    pub(crate) when: &'static str,
    pub(crate) bytes: u64,
    pub(crate) points: u64,
}

impl DiskUse {
    pub(crate) fn sentence(&self) -> String {
        let Self { phase, when, bytes, points } = self;
        format!(
            "{phase}: the server's files take {:.1} MiB, {:.2} bytes for each of {points} points ({when}).",
            *bytes as f64 / 1_048_576.0,
            *bytes as f64 / (*points).max(1) as f64
        )
    }
}

/// The written data.
pub(crate) fn written(phase: &str, written: &RequestLog, timelines: u64) -> String {
    let Expected { stored, unknown } = written.total();
    let without = match unknown {
        0 => String::new(),
        unknown => format!(", {unknown} more were sent without an acknowledgement"),
    };
    format!(
        "{phase}: {stored} points of {timelines} timelines are acknowledged since they were new{without}."
    )
}

/// The throughput in the parts of a phase, so that a decay is seen. `by_second` has the requests that were sent in each
/// second; the last one is rarely whole. `None` for a phase of a few seconds.
pub(crate) fn course(phase: &str, by_second: &[u64], points_per_request: u64) -> Option<String> {
    let whole = &by_second[..by_second.len().saturating_sub(1)];
    if whole.len() < 4 {
        return None;
    }
    let rates: Vec<f64> = (0..PARTS.min(whole.len()))
        .map(|part| {
            let parts = PARTS.min(whole.len());
            let range = &whole[whole.len() * part / parts..whole.len() * (part + 1) / parts];
            (range.iter().sum::<u64>() * points_per_request) as f64 / range.len() as f64
        })
        .collect();
    let (first, last) = (rates[0], rates[rates.len() - 1]);
    let texts: Vec<String> = rates.iter().map(|rate| format!("{:.0}", rate / 1_000.0)).collect();
    Some(format!(
        "{phase}: thousand points per second over the time of the phase: {}; the last part has {:.0} % of the first.",
        texts.join(" "),
        last / first.max(1e-9) * 100.0
    ))
}

/// Throughput, latency and cost of a phase by point.
pub(crate) fn figures(phase: &Phase, points_per_request: u64) -> String {
    let points = points_per_request as f64;
    let latency = phase.total.response.as_ref().map_or(String::new(), quantiles);
    let cost = &phase.cost;
    let per_point = |us: Option<f64>| us.map_or("unknown".to_owned(), |us| format!("{:.3} us", us / points));
    let rss = cost
        .target_rss_bytes_max
        .map_or("unknown".to_owned(), |bytes| format!("{:.0} MiB", bytes as f64 / 1_048_576.0));
    format!(
        "{}: {:.0} points/s acknowledged{latency}; CPU of a point: client {}, server {}; memory of the server at most {rss}.",
        phase.name,
        phase.total.completed_per_s * points,
        per_point(cost.generator_cpu_us_per_operation),
        per_point(cost.target_cpu_us_per_operation),
    )
}

fn quantiles(summary: &Summary) -> String {
    let at = |wanted: f64| summary.quantiles.iter().find(|known| known.quantile == wanted);
    let text = |(name, wanted): (&str, f64)| {
        at(wanted).map(|known| format!("{name} {:.2} ms", known.value_us / 1_000.0))
    };
    let texts: Vec<String> =
        [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)].into_iter().filter_map(text).collect();
    format!("; a request {}", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decay_is_seen_in_the_course() {
        let by_second: Vec<u64> = (0..21).map(|second| 300 - 10 * second).collect();
        let text = course("p", &by_second, 500).unwrap();
        assert!(text.contains(": 148 138 128 118 108 98 88 78 68 58; the last part has 39 %"), "{text}");
        assert_eq!(course("p", &[1, 2, 3, 4], 500), None);
    }

    #[test]
    fn a_directory_is_divided_by_its_points() {
        let disk = DiskUse { phase: "p".to_owned(), when: "running", bytes: 3_145_728, points: 1_000_000 };
        let text = disk.sentence();
        assert_eq!(
            text,
            "p: the server's files take 3.0 MiB, 3.15 bytes for each of 1000000 points (running)."
        );
    }
}
