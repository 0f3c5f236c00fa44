//! Percentiles, as the class Percentile of Apache Commons Math estimates them. Those of InfluxQL are always one of the values.

/// How a percentile between two values is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Estimate {
    /// The position is p * (n + 1).
    Legacy,
    /// Type 3 of Hyndman and Fan: the nearest value, of two equally near ones the even one.
    R3,
    /// Type 7 of Hyndman and Fan: the position is 1 + p * (n - 1).
    R7,
}

/// The percentile of values, which this sorts; `percent` is in (0, 100]. NaN if there are no values.
pub(super) fn percentile(values: &mut [f64], percent: f64, estimate: Estimate) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let (Some(&smallest), Some(&largest)) = (values.first(), values.last()) else { return f64::NAN };
    let (p, n) = (percent / 100.0, values.len() as f64);
    let position = match estimate {
        Estimate::Legacy if p >= 1.0 => n,
        Estimate::Legacy => p * (n + 1.0),
        Estimate::R3 if p <= 0.5 / n => 0.0,
        Estimate::R3 => (n * p).round_ties_even(),
        Estimate::R7 if p >= 1.0 => n,
        Estimate::R7 => 1.0 + (n - 1.0) * p,
    };
    if position < 1.0 {
        return smallest;
    }
    if position >= n {
        return largest;
    }
    let below = values[position as usize - 1];
    below + (position - position.floor()) * (values[position as usize] - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimates_differ_between_values() {
        let of = |estimate| percentile(&mut [40.0, 10.0, 30.0, 20.0], 75.0, estimate);
        assert_eq!(of(Estimate::Legacy), 37.5);
        assert_eq!(of(Estimate::R3), 30.0);
        assert_eq!(of(Estimate::R7), 32.5);
    }

    #[test]
    fn the_ends_are_the_smallest_and_the_largest_value() {
        for estimate in [Estimate::Legacy, Estimate::R3, Estimate::R7] {
            assert!(percentile(&mut [], 50.0, estimate).is_nan());
            assert_eq!(percentile(&mut [7.0], 99.9, estimate), 7.0);
            assert_eq!(percentile(&mut [2.0, 1.0], 100.0, estimate), 2.0);
        }
        assert_eq!(percentile(&mut [2.0, 1.0], 0.1, Estimate::Legacy), 1.0);
    }
}
