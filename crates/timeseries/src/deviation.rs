//! The deviation of numbers, in one pass.

/// The mean of numbers and the sum of the squares of their distances from it, by Welford's method. It has at least one number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    /// Of one number.
    pub(crate) fn of(number: f64) -> Self {
        Self { count: 1, mean: number, squares: 0.0 }
    }

    pub(crate) fn add(&mut self, number: f64) {
        self.count += 1;
        let distance = number - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (number - self.mean);
    }

    /// The standard deviation of a sample. A single number has none: NaN.
    pub(crate) fn of_sample(&self) -> f64 {
        if self.count == 1 { f64::NAN } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }

    /// The standard deviation of a population. That of a single number is 0.
    pub(crate) fn of_population(&self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_of_a_sample_and_of_a_population() {
        let mut deviation = Deviation::of(2.0);
        assert!(deviation.of_sample().is_nan());
        assert_eq!(deviation.of_population(), 0.0);
        [4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|number| deviation.add(number));
        assert_eq!((deviation.of_sample(), deviation.of_population()), ((32.0_f64 / 7.0).sqrt(), 2.0));
        let mut infinite = Deviation::of(f64::INFINITY);
        assert_eq!(infinite.of_population(), 0.0);
        infinite.add(1.0);
        assert!(infinite.of_population().is_nan());
    }
}
