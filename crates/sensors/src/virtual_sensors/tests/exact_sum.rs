//! Exact sums against integers of any size, which `i128` is for numbers of one range.

use proptest::prelude::*;

use crate::virtual_sensors::sql::exact_sum::ExactSum;

fn sum(numbers: &[f64]) -> f64 {
    let mut sum = ExactSum::new();
    numbers.iter().for_each(|number| sum.add(*number));
    sum.value()
}

#[test]
fn what_leaves_a_sum_leaves_nothing_behind() {
    assert_eq!(sum(&[1e300, 1.0, -1e300]), 1.0);
    assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[-f64::MAX, -f64::MAX]), f64::NEG_INFINITY);
    assert_eq!(sum(&[5e-324, 5e-324, 1.0, -1.0]), 1e-323);
    assert_eq!(sum(&[-5e-324]), -5e-324);
    assert_eq!(sum(&[]), 0.0);
    assert_eq!(sum(&[0.1; 10]), 1.0);
}

#[test]
fn a_half_is_rounded_to_even_unless_something_is_below_it() {
    let one_and_half_ulp = [1.0, f64::EPSILON / 2.0];
    assert_eq!(sum(&one_and_half_ulp), 1.0);
    assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 1e-300]), 1.0 + f64::EPSILON);
    assert_eq!(sum(&[1.0 + f64::EPSILON, f64::EPSILON / 2.0]), 1.0 + 2.0 * f64::EPSILON);
}

#[test]
fn the_parts_of_a_sum_are_more_than_its_value() {
    let mut sum = ExactSum::new();
    sum.add(1.0);
    sum.add(1e-30);
    assert_eq!(sum.parts(), (1.0, 1e-30));
}

proptest! {
    #[test]
    fn sums_are_those_of_integers(numbers in prop::collection::vec((-(1_i64 << 52)..(1 << 52), 0_u32..60), 0..40)) {
        let floats: Vec<f64> = numbers.iter().map(|(number, power)| *number as f64 * (1_u64 << power) as f64).collect();
        let whole: i128 = numbers.iter().map(|(number, power)| i128::from(*number) << power).sum();
        prop_assert_eq!(sum(&floats), whole as f64);
    }

    #[test]
    fn what_is_added_and_removed_does_not_count(
        kept in prop::collection::vec(-1e10_f64..1e10, 0..10),
        passing in prop::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 0..20),
    ) {
        let all: Vec<f64> = passing.iter().copied().chain(kept.iter().copied()).chain(passing.iter().map(|x| -x)).collect();
        prop_assert_eq!(sum(&all), sum(&kept));
    }
}
