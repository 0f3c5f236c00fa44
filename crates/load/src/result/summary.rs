//! Quantiles of a distribution, and whether they can be quoted.

use serde::{Deserialize, Serialize};

use crate::statistics::Distribution;

/// The quantiles of every summary, as far as there are samples.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];
/// Samples needed to quote a quantile q: 100 / (1 - q).
const SAMPLES_BEHIND_QUANTILE: f64 = 100.0;

/// Quantiles of one distribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The number of samples.
    pub samples: u64,
    /// Arithmetic mean, microseconds.
    pub mean_us: Option<f64>,
    /// Smallest sample, microseconds.
    pub min_us: Option<f64>,
    /// Quantiles, ascending.
    pub quantiles: Vec<Quantile>,
    /// Largest sample, microseconds.
    pub max_us: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// 0.99 for the 99th percentile.
    pub quantile: f64,
    /// Its value, microseconds.
    pub value_us: f64,
    /// Whether it has at least 100 / (1 - q) samples. Otherwise it is hardly more than the maximum.
    pub quotable: bool,
}

impl Summary {
    /// The usual quantiles of a distribution; `None` when it is empty.
    pub fn of(distribution: &Distribution) -> Option<Self> {
        let samples = distribution.samples();
        (samples > 0).then(|| Self {
            samples,
            mean_us: Some(distribution.mean_us()),
            min_us: Some(distribution.min_us() as f64),
            quantiles: QUANTILES
                .iter()
                .map(|q| Quantile::new(*q, distribution.quantile_us(*q) as f64, samples))
                .collect(),
            max_us: Some(distribution.max_us() as f64),
        })
    }

    /// The value of a quantile, if it was kept, microseconds.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        self.quantiles.iter().find(|q| (q.quantile - quantile).abs() < 1e-9).map(|q| q.value_us)
    }
}

impl Quantile {
    /// A quantile of `samples` samples.
    pub fn new(quantile: f64, value_us: f64, samples: u64) -> Self {
        let needed = SAMPLES_BEHIND_QUANTILE / (1.0 - quantile) * (1.0 - 1e-9);
        Self { quantile, value_us, quotable: samples as f64 >= needed }
    }
}
