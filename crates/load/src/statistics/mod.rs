//! Statistics as pure functions on slices: no clock, no file. Random functions take a seed, so that figures can be
//! recomputed. Each module names the source of its method.
//!
//! The unit of comparison is the run, never the request, because the requests of one run are correlated (Kalibera and
//! Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).

pub mod arrivals;
pub mod bimodal;
pub mod bootstrap;
mod distribution;
pub mod little;
pub mod logistic;
pub mod paired;
pub mod quantile;
pub mod stalls;
pub mod steady;

pub use distribution::Distribution;
use statrs::distribution::{ContinuousCDF, Normal};

/// A lower and an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in the interval, bounds included.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Applies an increasing function to both bounds.
    pub fn map(self, rising: impl Fn(f64) -> f64) -> Self {
        Self { low: rising(self.low), high: rising(self.high) }
    }
}

/// The arithmetic mean; NaN for an empty slice.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Sample standard deviation (n - 1); 0 for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// Coefficient of variation: deviation as a share of the mean.
pub fn variation(values: &[f64]) -> f64 {
    deviation(values) / mean(values)
}

/// The median; NaN for an empty slice.
pub fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

/// The median; the values may be reordered.
pub(crate) fn median_of(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let is_odd = values.len() % 2 == 1;
    let (below, upper, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    let upper = *upper;
    if is_odd {
        return upper;
    }
    below.iter().copied().max_by(f64::total_cmp).map_or(upper, |lower| f64::midpoint(lower, upper))
}

/// The value below which a share of the sorted values lies, with linear interpolation (Hyndman and Fan, "Sample
/// quantiles in statistical packages", 1996, definition 7).
pub(crate) fn sorted_quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * place.fract()
}

pub(crate) fn normal() -> Normal {
    Normal::new(0.0, 1.0).expect("BUG: constant parameters are valid")
}

/// The value below which a share of a standard normal distribution lies.
pub fn normal_quantile(share: f64) -> f64 {
    normal().inverse_cdf(share)
}

/// Autocorrelation at a lag: 1 at lag 0; 0 for a constant series.
pub(crate) fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let total: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    if total <= 0.0 || lag >= values.len() {
        return 0.0;
    }
    values.iter().zip(&values[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_numbers_are_those_of_numpy() {
        let values = [0.012, -0.031, 0.044, 0.021, -0.008, 0.017, 0.052, 0.003, 0.029, -0.014];
        assert!((mean(&values) - 0.0125).abs() < 1e-12);
        assert!((deviation(&values) - 0.025_868_255_964_920_917).abs() < 1e-12);
        assert!((median(&values) - 0.0145).abs() < 1e-12);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!((normal_quantile(0.975) - 1.959_963_98).abs() < 1e-6);
        assert_eq!(sorted_quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), 2.5);
    }
}
