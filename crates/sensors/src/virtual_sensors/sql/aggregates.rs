//! Aggregates that rows can join and leave, so that a window which moves by one element costs one element.

use std::collections::BTreeMap;

use super::datum::{Datum, Key, Number};
use super::exact_sum::ExactSum;

/// What an aggregate computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    CountRows,
    /// Values.
    Count,
    CountDistinct,
    Sum,
    SumDistinct,
    Avg,
    AvgDistinct,
    Min,
    Max,
    StddevSample,
    StddevPopulation,
    VarianceSample,
    VariancePopulation,
    /// The value of the oldest row.
    First,
    /// The value of the newest row.
    Last,
}

impl AggregateKind {
    /// The aggregate of a name.
    pub(crate) fn named(name: &str, distinct: bool) -> Option<Self> {
        Some(match (name, distinct) {
            ("count", false) => Self::Count,
            ("count", true) => Self::CountDistinct,
            ("sum", false) => Self::Sum,
            ("sum", true) => Self::SumDistinct,
            ("avg", false) => Self::Avg,
            ("avg", true) => Self::AvgDistinct,
            ("min", _) => Self::Min,
            ("max", _) => Self::Max,
            // H2 and PostgreSQL: of a sample. MySQL's own word is of a population.
            ("stddev" | "stddev_samp", false) => Self::StddevSample,
            ("std" | "stddev_pop", false) => Self::StddevPopulation,
            ("variance" | "var_samp", false) => Self::VarianceSample,
            ("var_pop", false) => Self::VariancePopulation,
            ("first" | "first_value", false) => Self::First,
            ("last" | "last_value", false) => Self::Last,
            _ => return None,
        })
    }

    pub(crate) fn accumulator(self) -> Accumulator {
        match self {
            Self::CountRows | Self::Count => Accumulator::Count(0),
            Self::Sum | Self::Avg => Accumulator::Sum(Box::default()),
            Self::CountDistinct | Self::SumDistinct | Self::AvgDistinct | Self::Min | Self::Max => {
                Accumulator::Values(BTreeMap::new())
            }
            Self::StddevSample | Self::StddevPopulation | Self::VarianceSample | Self::VariancePopulation => {
                Accumulator::Moments(Box::new(Moments::new()))
            }
            Self::First | Self::Last => Accumulator::Ordered(BTreeMap::new()),
        }
    }
}

/// The place of a row in its window: its time, and a number that no other row has.
pub(crate) type Order = (i64, i64);

/// The state of one aggregate.
#[derive(Debug, Clone)]
pub(crate) enum Accumulator {
    Count(u64),
    Sum(Box<Sum>),
    /// How often each value is there.
    Values(BTreeMap<Key, u64>),
    Moments(Box<Moments>),
    Ordered(BTreeMap<Order, Datum>),
}

/// A value as an aggregate takes it. Making one can fail; adding and removing it cannot.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// The row is not counted.
    None,
    Datum(Datum),
    Number(Number),
}

impl Operand {
    /// # Errors
    /// A sum needs a number.
    pub(crate) fn new(kind: AggregateKind, datum: Datum) -> Result<Self, String> {
        match kind {
            AggregateKind::First | AggregateKind::Last => Ok(Self::Datum(datum)),
            _ if datum.is_null() => Ok(Self::None),
            AggregateKind::CountRows
            | AggregateKind::Count
            | AggregateKind::CountDistinct
            | AggregateKind::Min
            | AggregateKind::Max => Ok(Self::Datum(datum)),
            AggregateKind::SumDistinct | AggregateKind::AvgDistinct => match datum.number()? {
                Some(Number::Int(number)) => Ok(Self::Datum(Datum::Int(number))),
                Some(Number::Float(number)) => Ok(Self::Datum(Datum::Float(number))),
                None => Ok(Self::None),
            },
            _ => Ok(datum.number()?.map_or(Self::None, Self::Number)),
        }
    }
}

impl Accumulator {
    pub(crate) fn add(&mut self, operand: &Operand, order: Order) {
        match (self, operand) {
            (_, Operand::None) => {}
            (Self::Count(count), _) => *count += 1,
            (Self::Sum(sum), Operand::Number(number)) => sum.change(*number, 1),
            (Self::Moments(moments), Operand::Number(number)) => moments.change(number.as_f64(), 1),
            (Self::Values(values), Operand::Datum(datum)) => {
                *values.entry(Key(datum.clone())).or_default() += 1
            }
            (Self::Ordered(values), Operand::Datum(datum)) => drop(values.insert(order, datum.clone())),
            (state, operand) => debug_assert!(false, "{state:?} does not accept {operand:?}"),
        }
    }

    pub(crate) fn remove(&mut self, operand: &Operand, order: Order) {
        match (self, operand) {
            (_, Operand::None) => {}
            (Self::Count(count), _) => *count -= 1,
            (Self::Sum(sum), Operand::Number(number)) => sum.change(*number, -1),
            (Self::Moments(moments), Operand::Number(number)) => moments.change(number.as_f64(), -1),
            (Self::Values(values), Operand::Datum(datum)) => {
                let key = Key(datum.clone());
                match values.get_mut(&key) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(values.remove(&key)),
                }
            }
            (Self::Ordered(values), _) => drop(values.remove(&order)),
            (state, operand) => debug_assert!(false, "{state:?} does not accept {operand:?}"),
        }
    }

    /// The value of the aggregate.
    ///
    /// # Errors
    /// A sum can be too large.
    pub(crate) fn value(&self, kind: AggregateKind) -> Result<Datum, String> {
        match (self, kind) {
            (Self::Count(count), _) => Ok(Datum::Int(*count as i64)),
            (Self::Sum(sum), AggregateKind::Avg) => sum.average(),
            (Self::Sum(sum), _) => sum.sum(),
            (Self::Values(values), AggregateKind::CountDistinct) => Ok(Datum::Int(values.len() as i64)),
            (Self::Values(values), AggregateKind::Min) => Ok(end(values.first_key_value())),
            (Self::Values(values), AggregateKind::Max) => Ok(end(values.last_key_value())),
            (Self::Values(values), _) => distinct(values, kind),
            (Self::Moments(moments), _) => moments.value(kind),
            (Self::Ordered(values), AggregateKind::First) => Ok(end_of_rows(values.first_key_value())),
            (Self::Ordered(values), _) => Ok(end_of_rows(values.last_key_value())),
        }
    }

    /// Bytes that the state holds, with what its trees and boxes cost.
    pub(crate) fn bytes(&self) -> usize {
        const ENTRY: usize = 48;
        size_of::<Self>()
            + match self {
                Self::Count(_) => 0,
                Self::Sum(sum) => size_of::<Sum>() + sum.floats.as_ref().map_or(0, |_| size_of::<ExactSum>()),
                Self::Moments(_) => size_of::<Moments>(),
                Self::Values(values) => values.len() * ENTRY,
                Self::Ordered(values) => values.len() * ENTRY,
            }
    }
}

fn end(entry: Option<(&Key, &u64)>) -> Datum {
    entry.map_or(Datum::Null, |(key, _)| key.0.clone())
}

fn end_of_rows(entry: Option<(&Order, &Datum)>) -> Datum {
    entry.map_or(Datum::Null, |(_, datum)| datum.clone())
}

fn distinct(values: &BTreeMap<Key, u64>, kind: AggregateKind) -> Result<Datum, String> {
    let mut sum = Sum::default();
    for key in values.keys() {
        if let Some(number) = key.0.number()? {
            sum.change(number, 1);
        }
    }
    if kind == AggregateKind::AvgDistinct { sum.average() } else { sum.sum() }
}

/// A sum and the count of its numbers. Whole numbers stay whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sum {
    whole: i128,
    count: i64,
    floats: Option<Box<ExactSum>>,
    float_count: i64,
}

impl Sum {
    fn change(&mut self, number: Number, by: i64) {
        self.count += by;
        match number {
            Number::Int(number) => self.whole += i128::from(number) * i128::from(by),
            Number::Float(number) => {
                self.float_count += by;
                let floats = self.floats.get_or_insert_with(|| Box::new(ExactSum::new()));
                floats.add(if by > 0 { number } else { -number });
            }
        }
    }

    fn total(&self) -> f64 {
        self.floats.as_ref().map_or(0.0, |floats| floats.value()) + self.whole as f64
    }

    fn sum(&self) -> Result<Datum, String> {
        match i64::try_from(self.whole) {
            _ if self.count == 0 => Ok(Datum::Null),
            Ok(whole) if self.float_count == 0 => Ok(Datum::Int(whole)),
            _ => Datum::finite(self.total(), "the sum"),
        }
    }

    fn average(&self) -> Result<Datum, String> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        Datum::finite(self.total() / self.count as f64, "the average")
    }
}

/// The sums of numbers and of their squares, both exact but for squares that are too small or too large for an `f64`.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    count: i64,
    sum: ExactSum,
    squares: ExactSum,
    /// Numbers whose squares are too large.
    large: i64,
}

impl Moments {
    fn new() -> Self {
        Self { count: 0, sum: ExactSum::new(), squares: ExactSum::new(), large: 0 }
    }

    fn change(&mut self, number: f64, by: i64) {
        self.count += by;
        let (square, rest) = product(number, number);
        if !square.is_finite() {
            self.large += by;
            return;
        }
        let sign = if by > 0 { 1.0 } else { -1.0 };
        self.sum.add(sign * number);
        self.squares.add(sign * square);
        self.squares.add(sign * rest);
    }

    fn value(&self, kind: AggregateKind) -> Result<Datum, String> {
        let sample = matches!(kind, AggregateKind::StddevSample | AggregateKind::VarianceSample);
        let divisor = self.count - i64::from(sample);
        if divisor <= 0 {
            return Ok(Datum::Null);
        }
        if self.large > 0 {
            return Err("the variance is not a finite number".into());
        }
        let variance = self.squared_deviations() / divisor as f64;
        let root = matches!(kind, AggregateKind::StddevSample | AggregateKind::StddevPopulation);
        Datum::finite(if root { variance.sqrt() } else { variance }, "the variance")
    }

    /// Σx² - (Σx)²/n. Both terms can be almost equal, so each is a pair of numbers until after the subtraction.
    fn squared_deviations(&self) -> f64 {
        let count = self.count as f64;
        let (sum, sum_rest) = self.sum.parts();
        let (squares, squares_rest) = self.squares.parts();
        let (square, square_rest) = product(sum, sum);
        let mean = square / count;
        let mean_rest = (f64::mul_add(-mean, count, square) + square_rest + 2.0 * sum * sum_rest) / count;
        let difference = squares - mean;
        // What the subtraction has rounded away.
        let part = difference - squares;
        let lost = (squares - (difference - part)) - (mean + part);
        (difference + (lost + (squares_rest - mean_rest))).max(0.0)
    }
}

/// A product, and what rounding it leaves.
fn product(left: f64, right: f64) -> (f64, f64) {
    let product = left * right;
    (product, if product.is_finite() { f64::mul_add(left, right, -product) } else { 0.0 })
}
