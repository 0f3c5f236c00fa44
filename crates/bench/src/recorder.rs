//! What a run measured: HDR histograms in microseconds (3 digits, 1 us to 1 h), counters, and one line per second.
//! Histograms are merged, never their quantiles averaged.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::limits::LATENCY_US_MAX;

const DIGITS: u8 = 3;
/// Samples a quantile q needs to be quotable: 100 / (1 - q).
const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;

/// A latency histogram in microseconds.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u64>);

impl Latency {
    /// An empty one.
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS).expect("BUG: constant bounds are valid"))
    }

    /// Adds one sample; below 1 us counts as 1 us, above 1 h as 1 h.
    pub fn record_ns(&mut self, nanos: u64) {
        self.0.saturating_record((nanos / 1_000).clamp(1, LATENCY_US_MAX));
    }

    /// Adds all samples of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("BUG: all latency histograms have the same bounds");
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Samples.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Samples above a threshold in microseconds.
    pub fn count_above_us(&self, threshold_us: u64) -> u64 {
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

    /// The percentile distribution as HdrHistogram's text format (`.hgrm`): value, percentile, count, 1/(1-percentile).
    pub fn to_hgrm(&self) -> String {
        use std::fmt::Write as _;
        let mut text = String::from("       Value_us     Percentile TotalCount 1/(1-Percentile)\n\n");
        for step in self.0.iter_quantiles(5) {
            let quantile = step.quantile_iterated_to();
            let inverse =
                if quantile < 1.0 { format!("{:.2}", 1.0 / (1.0 - quantile)) } else { "inf".to_owned() };
            let total = self.0.count_between(0, step.value_iterated_to());
            let _ = writeln!(
                text,
                "{:>15} {quantile:>14.12} {total:>10} {inverse:>14}",
                step.value_iterated_to()
            );
        }
        let _ =
            writeln!(text, "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]", self.0.mean(), self.0.stdev());
        let max = if self.is_empty() { 0 } else { self.0.max() };
        let _ = writeln!(text, "#[Max     = {max:>12}, Total count    = {:>12}]", self.len());
        text
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
    /// Samples behind all the others.
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
    /// Whether enough samples stand behind a quantile to quote it; otherwise it is hardly more than the maximum.
    pub fn is_quotable(&self, quantile: f64) -> bool {
        self.samples as f64 >= SAMPLES_BEHIND_QUANTILE / (1.0 - quantile) * (1.0 - f64::EPSILON)
    }
}

/// Message counters. `measured_*` exclude the warm-up; the others do not.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Messages whose intended time came.
    pub planned: u64,
    /// Messages handed to the kernel.
    pub sent: u64,
    /// Messages acknowledged with success.
    pub acked: u64,
    /// Messages the schedule put into the measured window.
    pub measured_planned: u64,
    /// Messages of the measured window that were sent.
    pub measured_sent: u64,
    /// Messages of the measured window that were acknowledged.
    pub measured_acked: u64,
    /// Messages acknowledged while the measured window lasted, whenever they were due: the throughput.
    pub acked_within_window: u64,
    /// Failures by what happened.
    pub errors: BTreeMap<String, u64>,
}

impl Counts {
    /// Counts a failure.
    pub fn error(&mut self, what: &str, count: u64) {
        if count > 0 {
            *self.errors.entry(what.to_owned()).or_default() += count;
        }
    }

    /// All failures.
    pub fn errors_total(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the counters of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.planned += other.planned;
        self.sent += other.sent;
        self.acked += other.acked;
        self.measured_planned += other.measured_planned;
        self.measured_sent += other.measured_sent;
        self.measured_acked += other.measured_acked;
        self.acked_within_window += other.acked_within_window;
        for (what, count) in &other.errors {
            self.error(what, *count);
        }
    }
}

/// One second of one worker, for the progress line and the time series.
#[derive(Debug, Clone, Default)]
pub struct Second {
    /// Seconds since the start of the load, from zero.
    pub index: u64,
    /// Messages sent in it.
    pub sent: u64,
    /// Messages acknowledged in it.
    pub acked: u64,
    /// Failures in it.
    pub errors: u64,
    /// Latencies of what was acknowledged in it.
    pub latency: Latency,
    /// Generator lag of what was sent in it.
    pub lag: Latency,
}

impl Second {
    /// Adds the same second of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.acked += other.acked;
        self.errors += other.errors;
        self.latency.merge(&other.latency);
        self.lag.merge(&other.lag);
    }
}

/// Everything one worker measured.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    window: Window,
    /// Counters.
    pub counts: Counts,
    /// Acknowledged minus intended send time, measured window only.
    pub latency: Latency,
    /// Acknowledged minus actual send time, measured window only.
    pub service: Latency,
    /// Actual minus intended send time, measured window only.
    pub lag: Latency,
    second: Second,
    errors_before: u64,
}

/// The measured part of a run, nanoseconds after the start of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// End of the warm-up.
    pub from_ns: u64,
    /// End of the load.
    pub until_ns: u64,
}

impl Window {
    /// Whether a time lies in it.
    pub fn contains(&self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }
}

impl Recorder {
    /// An empty recorder that measures the given window.
    pub fn new(window: Window) -> Self {
        Self { window, ..Self::default() }
    }

    /// A message came due.
    pub fn planned(&mut self, intended_ns: u64) {
        self.counts.planned += 1;
        self.counts.measured_planned += u64::from(self.window.contains(intended_ns));
    }

    /// A message was handed to the kernel.
    pub fn sent(&mut self, intended_ns: u64, sent_ns: u64) {
        let lag_ns = sent_ns.saturating_sub(intended_ns);
        self.counts.sent += 1;
        self.second.sent += 1;
        self.second.lag.record_ns(lag_ns);
        if self.window.contains(intended_ns) {
            self.counts.measured_sent += 1;
            self.lag.record_ns(lag_ns);
        }
    }

    /// A message was acknowledged with success.
    pub fn acked(&mut self, intended_ns: u64, sent_ns: u64, now_ns: u64) {
        let latency_ns = now_ns.saturating_sub(intended_ns);
        self.counts.acked += 1;
        self.counts.acked_within_window += u64::from(self.window.contains(now_ns));
        self.second.acked += 1;
        self.second.latency.record_ns(latency_ns);
        if self.window.contains(intended_ns) {
            self.counts.measured_acked += 1;
            self.latency.record_ns(latency_ns);
            self.service.record_ns(now_ns.saturating_sub(sent_ns));
        }
    }

    /// `count` messages or connections failed.
    pub fn error(&mut self, what: &str, count: u64) {
        self.counts.error(what, count);
    }

    /// Ends the current second and hands it out.
    pub fn take_second(&mut self, index: u64) -> Second {
        let errors = self.counts.errors_total();
        let mut second = std::mem::take(&mut self.second);
        second.index = index;
        second.errors = errors - self.errors_before;
        self.errors_before = errors;
        second
    }

    /// Adds what another worker measured in the same window.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

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
    fn values_out_of_range_are_counted_at_the_ends() {
        let mut latency = Latency::new();
        latency.record_ns(0);
        latency.record_ns(u64::MAX);
        assert_eq!(latency.len(), 2);
        assert_eq!(latency.quantile_us(0.0), 1);
        assert!(latency.summary().max_us >= LATENCY_US_MAX);
    }

    #[test]
    fn warm_up_is_counted_but_not_measured() {
        let mut recorder = Recorder::new(Window { from_ns: 100 * MS, until_ns: 200 * MS });
        for at in [50 * MS, 99 * MS, 100 * MS, 150 * MS] {
            recorder.planned(at);
            recorder.sent(at, at + MS);
            recorder.acked(at, at + MS, at + 3 * MS);
        }
        assert_eq!((recorder.counts.acked, recorder.counts.measured_acked), (4, 2));
        assert_eq!(
            recorder.counts.acked_within_window, 3,
            "one message of the warm-up ends inside the window"
        );
        assert_eq!(recorder.latency.len(), 2);
        let near = |us: u64, expected: u64| us.abs_diff(expected) <= 2;
        assert!(near(recorder.latency.quantile_us(1.0), 3_000), "latency counts from the intended time");
        assert!(near(recorder.service.quantile_us(1.0), 2_000), "service time counts from the actual one");
        assert!(near(recorder.lag.quantile_us(1.0), 1_000));
    }

    #[test]
    fn seconds_carry_only_what_happened_in_them() {
        let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: MS });
        recorder.sent(0, 0);
        recorder.error("timeout", 3);
        let first = recorder.take_second(0);
        let second = recorder.take_second(1);
        assert_eq!((first.sent, first.errors, second.sent, second.errors), (1, 3, 0, 0));
    }

    #[test]
    fn hgrm_ends_with_all_samples() {
        let mut latency = Latency::new();
        (1..=1_000_u64).for_each(|us| latency.record_ns(us * 1_000));
        let text = latency.to_hgrm();
        let last = text.lines().rfind(|line| line.trim_end().ends_with("inf")).unwrap();
        assert_eq!(last.split_whitespace().nth(2), Some("1000"), "{text}");
    }
}
