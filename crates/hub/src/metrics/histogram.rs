//! A histogram of latencies in atomic buckets. Many equal observations cost as much as one, and there is no lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};

/// Buckets with an upper bound.
const BOUNDED: usize = 42;
/// Upper bound of the first bucket in seconds.
const FIRST_S: f64 = 20e-6;
/// Ratio of two bounds: from 20 us to about 20 s, fine enough to interpolate a p99.
const FACTOR: f64 = 1.4;

/// A histogram of latencies in seconds. Clones are the same histogram.
#[derive(Debug, Clone, Default)]
pub struct LatencyHistogram {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    counts: [AtomicU64; BOUNDED + 1],
    sum_ns: AtomicU64,
}

impl Default for State {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| AtomicU64::new(0)), sum_ns: AtomicU64::new(0) }
    }
}

impl LatencyHistogram {
    /// Counts one latency.
    pub fn observe(&self, latency_s: f64) {
        self.observe_many(latency_s, 1);
    }

    /// Counts `times` events that all took `latency_s`.
    pub fn observe_many(&self, latency_s: f64, times: u64) {
        let bucket = bounds().position(|bound_s| latency_s <= bound_s).unwrap_or(BOUNDED);
        self.state.counts[bucket].fetch_add(times, Ordering::Relaxed);
        let sum_ns = (latency_s * 1e9) as u64;
        self.state.sum_ns.fetch_add(sum_ns.saturating_mul(times), Ordering::Relaxed);
    }
}

fn bounds() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(FIRST_S), |bound_s| Some(bound_s * FACTOR)).take(BOUNDED)
}

impl TypedMetric for LatencyHistogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for LatencyHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let counts = self.state.counts.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets: Vec<(f64, u64)> = bounds().chain([f64::INFINITY]).zip(counts).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum_s = self.state.sum_ns.load(Ordering::Relaxed) as f64 / 1e9;
        encoder.encode_histogram::<[(String, String); 0]>(sum_s, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn adding_many_equals_adding_one_by_one() {
        let (one_by_one, at_once) = (LatencyHistogram::default(), LatencyHistogram::default());
        for (latency_s, times) in [(1e-6, 3), (25e-6, 2), (0.5, 7), (1e9, 1)] {
            (0..times).for_each(|_| one_by_one.observe(latency_s));
            at_once.observe_many(latency_s, times);
        }
        let text = |histogram: &LatencyHistogram| {
            let mut registry = Registry::default();
            registry.register("latency", "help", histogram.clone());
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        assert_eq!(text(&one_by_one), text(&at_once));
        for line in [
            "latency_count 13",
            r#"latency_bucket{le="0.00002"} 3"#,
            r#"latency_bucket{le="0.000028"} 5"#,
            r#"latency_bucket{le="+Inf"} 13"#,
        ] {
            assert!(text(&at_once).contains(line), "{line} is missing in:\n{}", text(&at_once));
        }
    }
}
