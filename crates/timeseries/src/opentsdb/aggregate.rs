//! Aggregators: how several values become one.

use super::QueryError;
use super::percentile::{Estimate, percentile};
use crate::deviation::Deviation;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregator {
    name: &'static str,
    function: Function,
    absent: Absent,
}

/// What a series gives for a time between two of its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// The value on the straight line between the points.
    Line,
    Zero,
    /// The largest value of the type.
    Largest,
    /// The smallest value of the type.
    Smallest,
    /// The value of the earlier point.
    Previous,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    Sum,
    SquareSum,
    Min,
    Max,
    Avg,
    Median,
    None,
    Multiply,
    Deviation,
    Diff,
    Count,
    First,
    Last,
    Percentile(f64, Estimate),
}

/// All aggregators, by name.
pub const AGGREGATORS: [Aggregator; 35] = [
    new("avg", Function::Avg, Absent::Line),
    new("count", Function::Count, Absent::Zero),
    new("dev", Function::Deviation, Absent::Line),
    new("diff", Function::Diff, Absent::Line),
    new("ep50r3", Function::Percentile(50.0, Estimate::R3), Absent::Line),
    new("ep50r7", Function::Percentile(50.0, Estimate::R7), Absent::Line),
    new("ep75r3", Function::Percentile(75.0, Estimate::R3), Absent::Line),
    new("ep75r7", Function::Percentile(75.0, Estimate::R7), Absent::Line),
    new("ep90r3", Function::Percentile(90.0, Estimate::R3), Absent::Line),
    new("ep90r7", Function::Percentile(90.0, Estimate::R7), Absent::Line),
    new("ep95r3", Function::Percentile(95.0, Estimate::R3), Absent::Line),
    new("ep95r7", Function::Percentile(95.0, Estimate::R7), Absent::Line),
    new("ep999r3", Function::Percentile(99.9, Estimate::R3), Absent::Line),
    new("ep999r7", Function::Percentile(99.9, Estimate::R7), Absent::Line),
    new("ep99r3", Function::Percentile(99.0, Estimate::R3), Absent::Line),
    new("ep99r7", Function::Percentile(99.0, Estimate::R7), Absent::Line),
    new("first", Function::First, Absent::Zero),
    new("last", Function::Last, Absent::Zero),
    new("max", Function::Max, Absent::Line),
    new("median", Function::Median, Absent::Line),
    new("mimmax", Function::Max, Absent::Smallest),
    new("mimmin", Function::Min, Absent::Largest),
    new("min", Function::Min, Absent::Line),
    new("mult", Function::Multiply, Absent::Line),
    new("none", Function::None, Absent::Zero),
    new("p50", Function::Percentile(50.0, Estimate::Legacy), Absent::Line),
    new("p75", Function::Percentile(75.0, Estimate::Legacy), Absent::Line),
    new("p90", Function::Percentile(90.0, Estimate::Legacy), Absent::Line),
    new("p95", Function::Percentile(95.0, Estimate::Legacy), Absent::Line),
    new("p99", Function::Percentile(99.0, Estimate::Legacy), Absent::Line),
    new("p999", Function::Percentile(99.9, Estimate::Legacy), Absent::Line),
    new("pfsum", Function::Sum, Absent::Previous),
    new("squareSum", Function::SquareSum, Absent::Zero),
    new("sum", Function::Sum, Absent::Line),
    new("zimsum", Function::Sum, Absent::Zero),
];

const fn new(name: &'static str, function: Function, absent: Absent) -> Aggregator {
    Aggregator { name, function, absent }
}

impl Aggregator {
    /// The aggregator of this name.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: no aggregator has the name.
    pub fn parse(name: &str) -> Result<Self, QueryError> {
        let found = AGGREGATORS.iter().find(|known| known.name == name);
        found.copied().ok_or_else(|| QueryError::invalid(format!("No such aggregation function: {name}")))
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether each series is a result of its own.
    pub fn is_none(&self) -> bool {
        self.function == Function::None
    }

    pub(super) fn absent(&self) -> Absent {
        self.absent
    }

    /// Combines integers into an integer; sums wrap around, divisions truncate. `values` is not empty; its order is lost.
    pub(super) fn integers(&self, values: &mut [i64]) -> i64 {
        let (first, last) = (values[0], values[values.len() - 1]);
        let sum = |values: &[i64]| values.iter().fold(0_i64, |sum, value| sum.wrapping_add(*value));
        match self.function {
            Function::Sum => sum(values),
            Function::SquareSum => {
                values.iter().fold(0, |sum: i64, value| sum.wrapping_add(value.wrapping_mul(*value)))
            }
            Function::Min => values.iter().copied().fold(first, i64::min),
            Function::Max => values.iter().copied().fold(first, i64::max),
            Function::Avg => sum(values) / values.len() as i64,
            Function::Median => {
                values.sort_unstable();
                values[values.len() / 2]
            }
            Function::Multiply => values.iter().fold(1, |product: i64, value| product.wrapping_mul(*value)),
            Function::Deviation => deviation(values.iter().map(|value| *value as f64)) as i64,
            Function::Diff if values.len() == 1 => 0,
            Function::Diff => last.wrapping_sub(first),
            Function::Count => values.len() as i64,
            Function::None | Function::First => first,
            Function::Last => last,
            Function::Percentile(percent, estimate) => {
                let mut floats: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                percentile(&mut floats, percent, estimate) as i64
            }
        }
    }

    /// Combines floats. `values` is not empty; its order is lost. NaN is not a value to most aggregators.
    pub(super) fn floats(&self, values: &mut Vec<f64>) -> f64 {
        let (first, last) = (values[0], values[values.len() - 1]);
        let numbers = || values.iter().copied().filter(|value| !value.is_nan());
        match self.function {
            Function::Sum => total(numbers()),
            Function::SquareSum => total(numbers().map(|value| value * value)),
            Function::Min => {
                numbers().reduce(f64::min).filter(|min| *min < f64::INFINITY).unwrap_or(f64::NAN)
            }
            Function::Max => {
                numbers().reduce(f64::max).filter(|max| *max > f64::NEG_INFINITY).unwrap_or(f64::NAN)
            }
            Function::Avg => total(numbers()) / numbers().count() as f64,
            Function::Median => {
                values.retain(|value| !value.is_nan());
                values.sort_unstable_by(f64::total_cmp);
                values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
            }
            Function::Multiply => values.iter().product(),
            Function::Deviation => deviation(numbers()),
            Function::Diff => match values.iter().position(|value| !value.is_nan()) {
                None => f64::NAN,
                Some(at) if at + 1 == values.len() => 0.0,
                Some(at) => last - values[at],
            },
            Function::Count => numbers().count() as f64,
            Function::None | Function::First => first,
            Function::Last => last,
            // OpenTSDB estimates the percentile of floats in the same way whichever estimate the name asks for.
            Function::Percentile(percent, _) => {
                values.retain(|value| !value.is_nan());
                percentile(values, percent, Estimate::Legacy)
            }
        }
    }
}

/// The sum; NaN if there are no values.
fn total(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, any) = values.fold((0.0, false), |(sum, _), value| (sum + value, true));
    if any { sum } else { f64::NAN }
}

/// The standard deviation of a population; NaN if there are no values.
fn deviation(mut values: impl Iterator<Item = f64>) -> f64 {
    let Some(first) = values.next() else { return f64::NAN };
    let mut deviation = Deviation::of(first);
    values.for_each(|value| deviation.add(value));
    deviation.of_population()
}
