//! Numbers with few decimals as integers: 12.34 is 1234 with scale 2, in Parquet DECIMAL(18, 2).
//!
//! Most measurements are such numbers, and differences of integers compress better than the bits of doubles. The writer uses
//! this form only for columns in which every value comes back bit by bit; -0.0, NaN and infinities never do.

/// The number of digits of a decimal in parts. Parquet allows up to 18 in an INT64.
pub(crate) const PRECISION: i32 = 18;
/// The largest integer. A value and its product with a power of ten each have an error of at most one part in 2^53, which is
/// less than a half up to this bound. So rounding finds the integer, and a value that fits at one scale fits at each larger
/// one.
const INTEGER_MAX: f64 = (1_u64 << 50) as f64;
/// Adding and subtracting this number rounds to an integer. After the addition the lowest bits are that integer.
const ROUND: f64 = (3_u64 << 51) as f64;
const POWERS: [f64; PRECISION as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];

/// The value that an integer with a scale represents.
#[inline]
pub(crate) fn value_of(integer: i64, scale: u8) -> f64 {
    integer as f64 / POWERS[scale as usize]
}

/// The integer of a value, and whether the value comes back from it.
#[inline]
fn integer_of(value: f64, power: f64) -> (i64, bool) {
    let scaled = value * power;
    let rounded = scaled + ROUND;
    let integer = rounded.to_bits().wrapping_sub(ROUND.to_bits()).cast_signed();
    let back = (rounded - ROUND) / power;
    (integer, (scaled.abs() <= INTEGER_MAX) & (back.to_bits() == value.to_bits()))
}

/// Appends the integers of some values. `false` if a value does not come back.
pub(crate) fn put_integers(out: &mut Vec<i64>, values: &[f64], scale: u8) -> bool {
    let power = POWERS[scale as usize];
    let mut all = true;
    out.extend(values.iter().map(|value| {
        let (integer, exact) = integer_of(*value, power);
        all &= exact;
        integer
    }));
    all
}

/// Finds the scale of a column, value by value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ScaleFinder {
    scale: u8,
    largest: f64,
    impossible: bool,
}

impl ScaleFinder {
    /// Adds a value of the column.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        if self.impossible {
            return;
        }
        self.largest = self.largest.max(value.abs());
        if !integer_of(value, POWERS[self.scale as usize]).1 {
            self.raise(value);
        }
    }

    #[cold]
    fn raise(&mut self, value: f64) {
        let more = self.scale as usize + 1..POWERS.len();
        match more.into_iter().find(|scale| integer_of(value, POWERS[*scale]).1) {
            Some(scale) => self.scale = scale as u8,
            None => self.impossible = true,
        }
    }

    /// Adds a column whose values all fit at `scale` and are at most `largest`.
    pub(crate) fn add_column(&mut self, scale: u8, largest: f64) {
        self.scale = self.scale.max(scale);
        self.largest = self.largest.max(largest);
    }

    /// Whether a value fits at no scale.
    pub(crate) fn is_impossible(&self) -> bool {
        self.impossible
    }

    /// The smallest scale at which every value comes back; `None` if there is none.
    pub(crate) fn scale(&self) -> Option<u8> {
        Some(self.scale).filter(|scale| self.fits(*scale))
    }

    /// Whether every value comes back at this scale.
    pub(crate) fn fits(&self, scale: u8) -> bool {
        !self.impossible && self.scale <= scale && self.largest * POWERS[scale as usize] <= INTEGER_MAX
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale_of(values: &[f64]) -> Option<u8> {
        let mut finder = ScaleFinder::default();
        values.iter().for_each(|value| finder.add(*value));
        finder.scale()
    }

    #[test]
    fn the_smallest_scale_is_found() {
        assert_eq!(scale_of(&[]), Some(0));
        assert_eq!(scale_of(&[1.0, -5.0, 0.0]), Some(0));
        assert_eq!(scale_of(&[1.5, 20.25, -3.0]), Some(2));
        assert_eq!(scale_of(&[0.1, 0.2, 1e-9]), Some(9));
        assert_eq!(scale_of(&[0.1 + 0.2]), None);
        assert_eq!(scale_of(&[1e9, 1e-9]), None, "together they have more digits than a double");
        assert_eq!(scale_of(&[(1_u64 << 50) as f64]), Some(0));
    }

    #[test]
    fn what_does_not_come_back_is_refused() {
        for value in [-0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324, 1.0 / 3.0] {
            assert_eq!(scale_of(&[1.0, value]), None, "{value}");
            assert!(!put_integers(&mut Vec::new(), &[value], 3), "{value}");
        }
    }

    proptest! {
        #[test]
        fn accepted_values_come_back(
            integers in prop::collection::vec(-10_000_000_000_i64..10_000_000_000, 0..50),
            scale in 0_u8..6,
            raw in prop::collection::vec(any::<u64>(), 0..2),
        ) {
            let decimals = integers.iter().map(|integer| *integer as f64 / POWERS[scale as usize]);
            let values: Vec<f64> = decimals.chain(raw.iter().map(|bits| f64::from_bits(*bits))).collect();
            let found = scale_of(&values);
            if raw.is_empty() {
                prop_assert!(found.is_some_and(|found| found <= scale));
            }
            if let Some(scale) = found {
                let mut out = Vec::new();
                prop_assert!(put_integers(&mut out, &values, scale));
                for (integer, value) in out.iter().zip(&values) {
                    prop_assert_eq!(value_of(*integer, scale).to_bits(), value.to_bits());
                }
            }
        }
    }
}
