//! Latency histograms and their quantiles.

use hdrhistogram::Histogram;

use crate::limits::LATENCY_US_MAX;

const DIGITS: u8 = 3;
/// The initial range of a histogram, microseconds. Each second has its own histograms for every clock, which are
/// created and merged during the load. With a range of an hour each would take 188 kB.
const FIRST_ROOM_US: u64 = 16_383;
/// Samples needed to quote a quantile q: 100 / (1 - q).
const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;

/// A latency histogram in microseconds.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

impl Latency {
    /// An empty histogram.
    pub fn new() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(1, FIRST_ROOM_US, DIGITS).expect("BUG: constant bounds are valid");
        histogram.auto(true);
        Self(histogram)
    }

    /// Adds one sample; below 1 us counts as 1 us, above 1 h as 1 h.
    pub fn record_ns(&mut self, nanos: u64) {
        let value_us = (nanos / 1_000).clamp(1, LATENCY_US_MAX);
        self.0.record(value_us).expect("BUG: a histogram that grows has room for an hour");
    }

    /// Adds all samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("BUG: a histogram that grows has room for an hour");
    }

    /// The histogram itself.
    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The number of samples.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether no sample was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of samples above a threshold in microseconds.
    pub fn count_above_us(&self, threshold_us: u64) -> u64 {
        // The histogram may have no bucket above its largest sample, and would count the last one.
        if threshold_us >= self.0.max() {
            return 0;
        }
        self.0.count_between(threshold_us + 1, LATENCY_US_MAX)
    }

    /// The value at a quantile (0 to 1) in microseconds; 0 when empty.
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// The usual quantiles.
    pub fn summary(&self) -> Quantiles {
        Quantiles {
            samples: self.len(),
            mean_us: self.0.mean(),
            p50_us: self.quantile_us(0.5),
            p90_us: self.quantile_us(0.9),
            p99_us: self.quantile_us(0.99),
            p99_9_us: self.quantile_us(0.999),
            p99_99_us: self.quantile_us(0.9999),
            max_us: if self.is_empty() { 0 } else { self.0.max() },
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

/// Quantiles of one histogram, microseconds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Quantiles {
    /// The number of samples.
    pub samples: u64,
    /// Arithmetic mean.
    pub mean_us: f64,
    /// Median.
    pub p50_us: u64,
    /// 90 %.
    pub p90_us: u64,
    /// 99 %.
    pub p99_us: u64,
    /// 99.9 %.
    pub p99_9_us: u64,
    /// 99.99 %.
    pub p99_99_us: u64,
    /// The largest sample.
    pub max_us: u64,
}

impl Quantiles {
    /// Whether a quantile has enough samples to be quoted. Otherwise it is hardly more than the maximum.
    pub fn is_quotable(&self, quantile: f64) -> bool {
        self.samples as f64 >= SAMPLES_BEHIND_QUANTILE / (1.0 - quantile) * (1.0 - f64::EPSILON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_quantiles_equal_those_of_all_samples_together() {
        let (mut left, mut right, mut all) = (Latency::new(), Latency::new(), Latency::new());
        for i in 1..=100_000_u64 {
            let nanos = i * i % 7_919 * 10_000;
            if i % 3 == 0 { &mut left } else { &mut right }.record_ns(nanos);
            all.record_ns(nanos);
        }
        left.merge(&right);
        assert_eq!(left.summary(), all.summary());
        assert_eq!(left.len(), 100_000);
    }

    #[test]
    fn quantiles_are_exact_to_three_digits() {
        let mut latency = Latency::new();
        (1..=10_000_u64).for_each(|us| latency.record_ns(us * 1_000));
        let q = latency.summary();
        for (got, expected) in [(q.p50_us, 5_000), (q.p90_us, 9_000), (q.p99_us, 9_900), (q.p99_9_us, 9_990)]
        {
            assert!(got.abs_diff(expected) <= expected / 1_000 + 1, "{got} for {expected}");
        }
        assert!(q.is_quotable(0.99) && !q.is_quotable(0.999));
    }

    #[test]
    fn it_grows_with_what_it_is_told_whatever_is_added_to_what() {
        let of = |values_us: &[u64]| {
            let mut latency = Latency::new();
            values_us.iter().for_each(|us| latency.record_ns(us * 1_000));
            latency
        };
        let (short, long) = ([1, 40, 16_000], [20_000, 1_000_000, LATENCY_US_MAX]);
        let all = of(&[short, long].concat()).summary();
        let (mut to_short, mut to_long) = (of(&short), of(&long));
        to_short.merge(&of(&long));
        to_long.merge(&of(&short));
        assert_eq!((to_short.summary(), to_long.summary()), (all.clone(), all));
        assert_eq!(to_short.count_above_us(2_000_000), 1, "the hour");
    }

    #[test]
    fn nothing_is_above_what_it_has_no_room_for() {
        let mut latency = Latency::new();
        [40_000, 16_383_000].into_iter().for_each(|nanos| latency.record_ns(nanos));
        assert_eq!([39, 40, 16_383, 20_000, 2_000_000].map(|us| latency.count_above_us(us)), [2, 1, 0, 0, 0]);
    }

    #[test]
    fn values_out_of_range_are_counted_at_the_ends() {
        let mut latency = Latency::new();
        latency.record_ns(0);
        latency.record_ns(u64::MAX);
        assert_eq!(latency.len(), 2);
        assert_eq!(latency.quantile_us(0.0), 1);
        assert!(latency.summary().max_us >= LATENCY_US_MAX);
    }
}
