//! The models of the class DataClean.

use std::f64::consts::PI;

use crate::virtual_sensors::plan::Model;

/// The values of the model at the times of a window. A window to which the model cannot be fitted keeps its values.
pub(super) fn fit(model: Model, window: &[(i64, f64)]) -> Vec<f64> {
    match model {
        Model::Polynomial(degree) => least_squares(degree, window),
        Model::Chebyshev(degree) => chebyshev(degree, window),
    }
}

/// A polynomial as a sum of polynomials that are orthogonal on the times of the window: it needs no system of equations, which would be
/// ill-conditioned for long windows.
fn least_squares(degree: usize, window: &[(i64, f64)]) -> Vec<f64> {
    let kept = || window.iter().map(|(_, value)| *value).collect();
    let Some(x) = centred(window) else { return kept() };
    let mut fitted = vec![0.0; window.len()];
    let mut before = vec![0.0; window.len()];
    let mut current = vec![1.0; window.len()];
    let mut norm_before = 1.0;
    for step in 0..=degree {
        let norm: f64 = current.iter().map(|p| p * p).sum();
        // Fewer different times than coefficients.
        if norm < 1e-12 * window.len() as f64 {
            return kept();
        }
        let share = current.iter().zip(window).map(|(p, (_, value))| p * value).sum::<f64>() / norm;
        fitted.iter_mut().zip(&current).for_each(|(sum, p)| *sum += share * p);
        let alpha = current.iter().zip(&x).map(|(p, x)| x * p * p).sum::<f64>() / norm;
        let beta = if step == 0 { 0.0 } else { norm / norm_before };
        let next =
            current.iter().zip(&before).zip(&x).map(|((p, q), x)| (x - alpha) * p - beta * q).collect();
        before = std::mem::replace(&mut current, next);
        norm_before = norm;
    }
    fitted
}

/// The times between -1 and 1; `None` if all are one.
fn centred(window: &[(i64, f64)]) -> Option<Vec<f64>> {
    let least = window.iter().map(|(timed, _)| *timed).min()?;
    let most = window.iter().map(|(timed, _)| *timed).max()?;
    let half = most.abs_diff(least) as f64 / 2.0;
    let place = |(timed, _): &(i64, f64)| (timed.abs_diff(least) as f64 - half) / half;
    (half > 0.0).then(|| window.iter().map(place).collect())
}

/// The polynomial in the basis of Chebyshev whose values at the nodes are those of the nearest times, as GSN computes it.
fn chebyshev(degree: usize, window: &[(i64, f64)]) -> Vec<f64> {
    let [(first, _), .., (last, _)] = window else {
        return window.iter().map(|(_, value)| *value).collect();
    };
    let since = |timed: i64| timed.saturating_sub(*first) as f64;
    let end = since(*last);
    let count = degree + 1;
    let node = |at: usize| (PI * (at as f64 + 0.5) / count as f64).cos();
    let at_nodes: Vec<f64> =
        (0..count).map(|at| nearest(window, end / 2.0 * (node(at) + 1.0), since)).collect();
    let coefficient = |order: usize| {
        let terms = at_nodes.iter().enumerate();
        let angle = |at: usize| PI * order as f64 * (at as f64 + 0.5) / count as f64;
        2.0 / count as f64 * terms.map(|(at, value)| value * angle(at).cos()).sum::<f64>()
    };
    let coefficients: Vec<f64> = (0..count).map(coefficient).collect();
    let value = |(timed, _): &(i64, f64)| {
        let x = if end == 0.0 { 0.0 } else { 2.0 * since(*timed) / end - 1.0 };
        evaluate(&coefficients, x)
    };
    window.iter().map(value).collect()
}

/// The value of the first time that is nearest to a place.
fn nearest(window: &[(i64, f64)], place: f64, since: impl Fn(i64) -> f64) -> f64 {
    let distance = |timed: i64| (since(timed) - place).abs();
    let mut found = window[0];
    for (timed, value) in window {
        if distance(*timed) < distance(found.0) {
            found = (*timed, *value);
        }
    }
    found.1
}

/// The sum of the polynomials; the first coefficient counts half.
fn evaluate(coefficients: &[f64], x: f64) -> f64 {
    let (mut before, mut current) = (1.0, x);
    let mut sum = coefficients[0] / 2.0;
    for coefficient in &coefficients[1..] {
        sum += coefficient * current;
        (before, current) = (current, 2.0 * x * current - before);
    }
    sum
}
