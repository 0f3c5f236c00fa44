//! Metrics in Prometheus' text format over HTTP.

use std::collections::HashSet;
use std::time::Duration;

use clients::http::{HttpAnswer, HttpClient, HttpLimits};
use clients::tls::TlsConfig;
use load::sampling::{Readings, Source, ValueKind};

use crate::limits::HTTP_BODY_BYTES_MAX;

const LIMITS: HttpLimits =
    HttpLimits { timeout: Duration::from_secs(2), body_bytes_max: HTTP_BODY_BYTES_MAX };

/// The address of some metrics.
pub(crate) struct Prometheus {
    prefix: String,
    metrics: HttpClient,
}

impl Prometheus {
    /// `url` is like `http://127.0.0.1:8080/metrics`; `token` is for servers that require a bearer token.
    pub(crate) fn new(url: &str, prefix: &str, token: Option<String>) -> Self {
        let login = token.map(|token| format!("Bearer {token}"));
        let metrics = HttpClient::new(url, LIMITS).with_header("Authorization", login);
        Self { prefix: prefix.to_owned(), metrics }
    }

    /// The metrics of a Tachograph server; `base` is its `http://host:port`.
    pub(crate) fn tacho(base: &str) -> Self {
        Self::new(&format!("{base}/metrics"), "tacho", None)
    }

    /// The same with TLS, for an address that begins with `https`.
    pub(crate) fn with_tls(self, tls: Option<TlsConfig>) -> Self {
        Self { metrics: self.metrics.with_tls(tls), ..self }
    }
}

impl Source for Prometheus {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn read(&mut self) -> Result<Readings, String> {
        let answer = self.metrics.get("").and_then(HttpAnswer::success);
        let answer = answer.map_err(|error| error.to_string())?;
        Ok(parse(&answer.text()))
    }
}

/// Parses the text. Buckets of histograms are left out; their sums and counts are counters.
fn parse(text: &str) -> Readings {
    let mut counters = HashSet::new();
    let mut histograms = HashSet::new();
    let mut readings = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            match declared.split_once(' ') {
                Some((name, "counter")) => _ = counters.insert(name.to_owned()),
                Some((name, "histogram" | "summary")) => _ = histograms.insert(name.to_owned()),
                _ => {}
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((series, value)) = sample(line) else { continue };
        let name = series.split('{').next().unwrap_or(series);
        let of_histogram =
            |suffix: &str| name.strip_suffix(suffix).is_some_and(|base| histograms.contains(base));
        if of_histogram("_bucket") || histograms.contains(name) {
            continue;
        }
        let counts = counters.contains(name)
            || name.strip_suffix("_total").is_some_and(|base| counters.contains(base))
            || of_histogram("_sum")
            || of_histogram("_count");
        let kind = if counts { ValueKind::Counter } else { ValueKind::Gauge };
        readings.push((series.to_owned(), kind, value));
    }
    readings
}

/// Parses `name{labels} value [timestamp]`; labels may contain blanks.
fn sample(line: &str) -> Option<(&str, f64)> {
    let end = match line.find('{') {
        Some(_) => line.rfind('}')? + 1,
        None => line.find(char::is_whitespace)?,
    };
    let value: f64 = line[end..].split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((line[..end].trim(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_gauges_and_histograms_are_told_apart() {
        let text = "# HELP a x\n# TYPE a counter\na_total{k=\"v w\"} 3\n# TYPE b gauge\nb 1.5 1700000000\n\
                    # TYPE h histogram\nh_bucket{le=\"1\"} 9\nh_sum 2\nh_count 9\nodd NaN\n# EOF\n";
        let expected = [
            ("a_total{k=\"v w\"}", ValueKind::Counter, 3.0),
            ("b", ValueKind::Gauge, 1.5),
            ("h_sum", ValueKind::Counter, 2.0),
            ("h_count", ValueKind::Counter, 9.0),
        ];
        let expected: Readings = expected.map(|(name, kind, value)| (name.to_owned(), kind, value)).into();
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn an_address_without_metrics_is_named() {
        let mut source = Prometheus::new("http://127.0.0.1:1/metrics", "ours", None);
        assert!(source.read().unwrap_err().contains("127.0.0.1:1/metrics"));
    }
}
