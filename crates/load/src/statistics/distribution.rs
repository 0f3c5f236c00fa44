//! A latency distribution as its non-empty buckets: the form in which a bundle keeps histograms, also per second.

use hdrhistogram::Histogram;

use crate::limits::LATENCY_US_MAX;
use crate::recorder::Latency;

/// Buckets are exact below this value. Above it their width is 1/1024 of the power of two below them: HdrHistogram with
/// 3 digits.
const EXACT_BELOW_US: u64 = 2_048;
const SUB_BUCKET_BITS: u32 = 10;

/// Counts by bucket, ascending. The buckets are those of an HdrHistogram of 3 digits from 1 us. Two distributions
/// therefore add up without loss, and a conversion into a histogram and back changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// The largest value of each bucket in microseconds, and its number of samples.
    buckets: Vec<(u64, u64)>,
}

impl Distribution {
    /// The samples of a recorder's histogram.
    pub fn of(latency: &Latency) -> Self {
        Self::from_histogram(latency.histogram())
    }

    /// The samples of any histogram in microseconds.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Self {
        let mut distribution = Self::default();
        for step in histogram.iter_recorded() {
            distribution.add(step.value_iterated_to(), step.count_at_value());
        }
        distribution
    }

    /// Adds `count` samples of `value_us`; values above one hour count as one hour, as in the recorder.
    pub fn add(&mut self, value_us: u64, count: u64) {
        if count == 0 {
            return;
        }
        let value = bucket_end_us(value_us.clamp(1, LATENCY_US_MAX));
        match self.buckets.binary_search_by_key(&value, |(end, _)| *end) {
            Ok(index) => self.buckets[index].1 += count,
            Err(index) => self.buckets.insert(index, (value, count)),
        }
    }

    /// Adds all samples of another distribution.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        for (value, count) in &other.buckets {
            self.add(*value, *count);
        }
    }

    /// Writes the samples into an empty histogram of 3 digits.
    pub(crate) fn fill(&self, histogram: &mut Histogram<u64>) {
        for (value, count) in &self.buckets {
            histogram.saturating_record_n((*value).min(LATENCY_US_MAX), *count);
        }
    }

    /// The largest value of each bucket in microseconds and its number of samples, ascending.
    pub fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The value at a quantile (0 to 1) in microseconds, 0 when empty: the largest value of the bucket that holds the
    /// sample of that rank, as HdrHistogram defines it.
    pub fn quantile_us(&self, quantile: f64) -> u64 {
        let samples = self.samples();
        let rank = ((quantile.clamp(0.0, 1.0) * samples as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (value, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return *value;
            }
        }
        0
    }

    /// Arithmetic mean in microseconds, each sample counted as the middle of its bucket; 0 when empty.
    pub fn mean_us(&self) -> f64 {
        let sum: f64 = self.buckets.iter().map(|(value, count)| middle_us(*value) * *count as f64).sum();
        sum / self.samples().max(1) as f64
    }

    /// Largest value in microseconds; 0 when empty.
    pub fn max_us(&self) -> u64 {
        self.buckets.last().map_or(0, |(value, _)| *value)
    }

    /// Smallest value in microseconds, rounded up to its bucket's end; 0 when empty.
    pub fn min_us(&self) -> u64 {
        self.buckets.first().map_or(0, |(value, _)| *value)
    }
}

/// Width of the bucket around a value, microseconds.
fn width_us(value_us: u64) -> u64 {
    if value_us < EXACT_BELOW_US { 1 } else { 1 << (value_us.ilog2() - SUB_BUCKET_BITS) }
}

fn bucket_end_us(value_us: u64) -> u64 {
    let width = width_us(value_us);
    value_us - value_us % width + width - 1
}

/// The middle of the bucket that ends at a value, microseconds.
fn middle_us(end_us: u64) -> f64 {
    end_us as f64 - (width_us(end_us) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency(values_us: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values_us.iter().for_each(|us| latency.record_ns(us * 1_000));
        latency
    }

    proptest! {
        #[test]
        fn it_says_what_the_histogram_says(values in prop::collection::vec(1_u64..LATENCY_US_MAX, 1..200)) {
            let latency = latency(&values);
            let distribution = Distribution::of(&latency);
            for quantile in [0.5, 0.9, 0.99, 0.999, 1.0] {
                prop_assert_eq!(distribution.quantile_us(quantile), latency.quantile_us(quantile));
            }
            prop_assert_eq!(distribution.max_us(), latency.summary().max_us);
            prop_assert_eq!(distribution.samples(), latency.len());
            let mean = latency.summary().mean_us;
            prop_assert!((distribution.mean_us() / mean - 1.0).abs() < 0.001);
        }

        #[test]
        fn own_buckets_are_those_of_the_histogram(values in prop::collection::vec(1_u64..LATENCY_US_MAX, 1..50)) {
            let mut own = Distribution::default();
            values.iter().for_each(|us| own.add(*us, 1));
            prop_assert_eq!(own, Distribution::of(&latency(&values)));
        }

        #[test]
        fn merging_equals_recording_together(
            left in prop::collection::vec(1_u64..10_000_000, 0..50), right in prop::collection::vec(1_u64..10_000_000, 0..50),
        ) {
            let mut merged = Distribution::of(&latency(&left));
            merged.merge(&Distribution::of(&latency(&right)));
            let all: Vec<u64> = left.into_iter().chain(right).collect();
            prop_assert_eq!(merged, Distribution::of(&latency(&all)));
        }
    }

    #[test]
    fn nothing_has_no_values() {
        let empty = Distribution::default();
        assert!(empty.is_empty());
        assert_eq!((empty.samples(), empty.quantile_us(0.99), empty.max_us()), (0, 0, 0));
    }
}
