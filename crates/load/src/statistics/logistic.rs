//! The probability to pass as a function of the rate: P(pass) = 1 / (1 + exp(-(a + b ln rate))).

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use super::{Interval, sorted_quantile};

const ITERATIONS_MAX: usize = 100;
/// A step of Newton's method that leads lower is halved at most this often.
const HALVINGS_MAX: usize = 12;
/// The unit of the logarithm of the rate in the fit. Trials around an edge lie a few units apart.
const SCALE: f64 = 0.05;

/// One trial at a rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Operations per second.
    pub rate_per_s: f64,
    /// Whether the objective was met.
    pub passed: bool,
}

/// A fitted curve that falls with the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// A point between passes and failures, so that both parameters are moderate.
    centre: f64,
    intercept: f64,
    slope: f64,
}

impl Curve {
    /// Fits trials with Firth's penalty ("Bias reduction of maximum likelihood estimates", 1993). The slope is finite
    /// even if every trial below some rate passed and every one above failed (Heinze and Schemper, 2002). `None`
    /// without enough information: only one outcome, or passes that do not become rarer with the rate.
    pub fn fit(trials: &[Trial]) -> Option<Self> {
        if trials.iter().all(|t| t.passed) || !trials.iter().any(|t| t.passed) {
            return None;
        }
        let logs: Vec<f64> = trials.iter().map(|t| t.rate_per_s.ln()).collect();
        let edge = |passed: bool| {
            let side: Vec<f64> =
                trials.iter().zip(&logs).filter(|(t, _)| t.passed == passed).map(|(_, log)| *log).collect();
            super::median(&side)
        };
        let centre = f64::midpoint(edge(true), edge(false));
        let points: Vec<(bool, f64)> =
            trials.iter().zip(&logs).map(|(t, log)| (t.passed, (log - centre) / SCALE)).collect();
        let (mut at, mut height) = ((0.0, -1.0), penalised(&points, (0.0, -1.0))?);
        for _ in 0..ITERATIONS_MAX {
            let Some(step) = newton(&points, at) else { break };
            let Some((next, higher)) = climb(&points, at, step, height) else { break };
            let gained = higher - height;
            (at, height) = (next, higher);
            if gained < 1e-9 {
                break;
            }
        }
        let (intercept, slope) = at;
        (slope < 0.0).then_some(Self { centre, intercept, slope: slope / SCALE })
    }

    /// The probability to pass at a rate.
    pub fn chance(&self, rate_per_s: f64) -> f64 {
        sigmoid(self.intercept + self.slope * (rate_per_s.ln() - self.centre))
    }

    /// The rate at which the probability to pass is `chance`, operations per second.
    pub fn rate_at(&self, chance: f64) -> f64 {
        let odds = (chance / (1.0 - chance)).ln();
        (self.centre + (odds - self.intercept) / self.slope).exp()
    }

    /// The interval of the rate at `chance` by the parametric bootstrap (Efron and Tibshirani, 1993, chapter 6.5):
    /// trials at the same rates are drawn from the fitted curve and fitted again. Draws without a fit are left out.
    pub fn interval(
        &self,
        trials: &[Trial],
        chance: f64,
        confidence: f64,
        resamples: usize,
        seed: u64,
    ) -> Interval {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut rates: Vec<f64> = (0..resamples)
            .filter_map(|_| {
                let drawn: Vec<Trial> = trials
                    .iter()
                    .map(|t| Trial { passed: rng.random::<f64>() < self.chance(t.rate_per_s), ..*t })
                    .collect();
                Some(Self::fit(&drawn)?.rate_at(chance)).filter(|rate| rate.is_finite())
            })
            .collect();
        let point = self.rate_at(chance);
        if rates.is_empty() {
            return Interval { low: point, high: point };
        }
        rates.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        Interval { low: sorted_quantile(&rates, tail), high: sorted_quantile(&rates, 1.0 - tail) }
    }
}

/// Fisher's information of both parameters: its three distinct entries.
fn information(points: &[(bool, f64)], (intercept, slope): (f64, f64)) -> (f64, f64, f64) {
    points.iter().fold((0.0, 0.0, 0.0), |(i00, i01, i11), (_, x)| {
        let p = sigmoid(intercept + slope * x);
        let weight = p * (1.0 - p);
        (i00 + weight, i01 + weight * x, i11 + weight * x * x)
    })
}

/// The log-likelihood with Firth's penalty, half the logarithm of the information's determinant. `None` if that is not
/// positive.
fn penalised(points: &[(bool, f64)], at: (f64, f64)) -> Option<f64> {
    let (i00, i01, i11) = information(points, at);
    let determinant = i00 * i11 - i01 * i01;
    let likelihood: f64 = points
        .iter()
        .map(|(passed, x)| {
            let odds = at.0 + at.1 * x;
            // The logarithm of the probability of the outcome, without overflow.
            -(if *passed { -odds } else { odds }).exp().ln_1p()
        })
        .sum();
    (determinant > 0.0).then(|| likelihood + 0.5 * determinant.ln()).filter(|height| height.is_finite())
}

/// One step of Newton's method on Firth's modified score.
fn newton(points: &[(bool, f64)], at: (f64, f64)) -> Option<(f64, f64)> {
    let (i00, i01, i11) = information(points, at);
    let determinant = i00 * i11 - i01 * i01;
    if determinant.is_nan() || determinant <= 0.0 {
        return None;
    }
    let (mut score0, mut score1) = (0.0, 0.0);
    for (passed, x) in points {
        let p = sigmoid(at.0 + at.1 * x);
        let leverage = p * (1.0 - p) * (i11 - 2.0 * x * i01 + x * x * i00) / determinant;
        let residual = f64::from(u8::from(*passed)) - p + leverage * (0.5 - p);
        score0 += residual;
        score1 += residual * x;
    }
    Some(((i11 * score0 - i01 * score1) / determinant, (i00 * score1 - i01 * score0) / determinant))
}

/// The part of a step that leads higher; `None` at the maximum.
fn climb(points: &[(bool, f64)], at: (f64, f64), step: (f64, f64), height: f64) -> Option<((f64, f64), f64)> {
    let mut share = 1.0;
    for _ in 0..HALVINGS_MAX {
        let next = (at.0 + share * step.0, at.1 + share * step.1);
        if let Some(higher) = penalised(points, next).filter(|higher| *higher > height) {
            return Some((next, higher));
        }
        share /= 2.0;
    }
    None
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trials(rates: &[f64], passed: &[bool]) -> Vec<Trial> {
        rates
            .iter()
            .zip(passed)
            .map(|(rate_per_s, passed)| Trial { rate_per_s: *rate_per_s, passed: *passed })
            .collect()
    }

    fn drawn(capacity: f64, steepness: f64, count: usize, seed: u64) -> Vec<Trial> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..count)
            .map(|i| {
                let rate_per_s = capacity * (0.8 + 0.4 * i as f64 / count as f64);
                let chance = sigmoid(-steepness * (rate_per_s / capacity).ln());
                Trial { rate_per_s, passed: rng.random::<f64>() < chance }
            })
            .collect()
    }

    #[test]
    fn the_parameters_of_a_large_sample_are_found_again() {
        let curve = Curve::fit(&drawn(5_000.0, 40.0, 20_000, 3)).unwrap();
        assert!((curve.rate_at(0.5) / 5_000.0 - 1.0).abs() < 0.005, "{curve:?}");
        assert!((curve.slope / -40.0 - 1.0).abs() < 0.05, "{curve:?}");
        assert!((curve.chance(curve.rate_at(0.9)) - 0.9).abs() < 1e-9);
    }

    #[test]
    fn a_clean_edge_gives_a_finite_curve_between_pass_and_fail() {
        let trials = trials(
            &[100.0, 150.0, 225.0, 240.0, 250.0, 280.0, 340.0],
            &[true, true, true, true, false, false, false],
        );
        let curve = Curve::fit(&trials).unwrap();
        let rate = curve.rate_at(0.5);
        assert!((230.0..260.0).contains(&rate), "{rate}");
        let interval = curve.interval(&trials, 0.5, 0.95, 500, 1);
        assert!(interval.low < rate && rate < interval.high && interval.low > 100.0, "{interval:?}");
    }

    #[test]
    fn one_outcome_or_a_rising_chance_is_not_a_curve() {
        assert_eq!(Curve::fit(&trials(&[1.0, 2.0], &[true, true])), None);
        assert_eq!(Curve::fit(&trials(&[1.0, 2.0, 3.0, 4.0], &[false, false, true, true])), None);
        assert_eq!(Curve::fit(&trials(&[5.0, 5.0], &[false, true])), None);
    }

    proptest! {
        #[test]
        fn the_curve_scales_with_the_rates(seed in 0_u64..50, factor in 0.01_f64..100.0) {
            let trials = drawn(1_000.0, 30.0, 60, seed);
            let scaled: Vec<Trial> = trials.iter().map(|t| Trial { rate_per_s: t.rate_per_s * factor, ..*t }).collect();
            if let (Some(curve), Some(other)) = (Curve::fit(&trials), Curve::fit(&scaled)) {
                prop_assert!((other.rate_at(0.5) / (curve.rate_at(0.5) * factor) - 1.0).abs() < 1e-6);
            }
        }
    }
}
