//! One row for each interval of time, with an aggregate of each field.
//!
//! It is not that of `hub::history`: intervals are counted from 1970 and have the time of their newest row, text does not count, and a sum
//! stays an integer until it is too large. ThingsBoard's history counts intervals from the start of the range, gives their middle,
//! compares text, and adds floats from the first row on.

use super::refusal::Refusal;
use super::value::{Value, ValueKind};

/// A function over the values of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Max,
    Min,
    Avg,
    Sum,
}

/// Intervals with a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aggregation {
    pub(super) function: Function,
    /// The length of an interval in milliseconds; more than 0. Intervals are counted from 1970.
    pub(super) interval_ms: i64,
}

impl Function {
    /// The function with a name.
    pub(super) fn parse(name: &str) -> Result<Self, Refusal> {
        match name.trim() {
            name if name.eq_ignore_ascii_case("max") => Ok(Self::Max),
            name if name.eq_ignore_ascii_case("min") => Ok(Self::Min),
            name if name.eq_ignore_ascii_case("avg") => Ok(Self::Avg),
            name if name.eq_ignore_ascii_case("sum") => Ok(Self::Sum),
            other => Err(Refusal::argument(format!(
                "{other:?} is not a function of intervals; use max, min, avg or sum"
            ))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Min => "min",
            Self::Avg => "avg",
            Self::Sum => "sum",
        }
    }

    /// How the aggregates of a field are written.
    pub(super) fn kind(self, of: ValueKind) -> ValueKind {
        if self == Self::Avg { ValueKind::Double } else { of }
    }
}

impl Aggregation {
    /// The number of the interval of a time.
    pub(super) fn interval(self, millis: i64) -> i64 {
        millis.div_euclid(self.interval_ms)
    }
}

/// The interval that is being read. Rows come in the order of time, in either direction.
#[derive(Debug)]
pub(super) struct OpenInterval {
    function: Function,
    pub(super) number: i64,
    /// The newest time of its rows.
    pub(super) millis: i64,
    fields: Vec<Aggregate>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Aggregate {
    /// The smallest or largest value, or the sum; an integer as long as all values are and it fits.
    value: Option<Number>,
    count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    I64(i64),
    F64(f64),
}

impl OpenInterval {
    pub(super) fn new(function: Function, number: i64, fields: usize) -> Self {
        Self { function, number, millis: i64::MIN, fields: vec![Aggregate::default(); fields] }
    }

    /// Adds a row. Values that are not numbers do not count.
    pub(super) fn add(&mut self, millis: i64, values: &[Option<Value<'_>>]) {
        self.millis = self.millis.max(millis);
        for (aggregate, value) in self.fields.iter_mut().zip(values) {
            let number = match value {
                Some(Value::I64(number)) => Some(Number::I64(*number)),
                Some(value) => value.number().map(Number::F64),
                None => None,
            };
            if let Some(number) = number {
                aggregate.add(self.function, number);
            }
        }
    }

    /// The aggregate of each field.
    pub(super) fn values(&self) -> impl Iterator<Item = Option<Value<'static>>> + '_ {
        self.fields.iter().map(|aggregate| aggregate.result(self.function))
    }
}

impl Aggregate {
    fn add(&mut self, function: Function, number: Number) {
        self.count += 1;
        self.value = Some(match self.value {
            None => number,
            Some(value) => match function {
                Function::Max if number.f64() > value.f64() => number,
                Function::Min if number.f64() < value.f64() => number,
                Function::Max | Function::Min => value,
                Function::Avg | Function::Sum => value.plus(number),
            },
        });
    }

    fn result(self, function: Function) -> Option<Value<'static>> {
        let value = self.value?;
        Some(match (function, value) {
            (Function::Avg, value) => Value::F64(value.f64() / self.count as f64),
            (_, Number::I64(number)) => Value::I64(number),
            (_, Number::F64(number)) => Value::F64(number),
        })
    }
}

impl Number {
    fn f64(self) -> f64 {
        match self {
            Self::I64(number) => number as f64,
            Self::F64(number) => number,
        }
    }

    fn plus(self, other: Self) -> Self {
        if let (Self::I64(one), Self::I64(other)) = (self, other)
            && let Some(sum) = one.checked_add(other)
        {
            return Self::I64(sum);
        }
        Self::F64(self.f64() + other.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: Function) -> Vec<Option<Value<'static>>> {
        let mut open = OpenInterval::new(function, 0, 4);
        for (millis, a, b) in [(30, 1.5, 7), (10, 2.5, i64::MAX), (20, -1.0, -7)] {
            let text = Some(Value::Text("x"));
            open.add(millis, &[Some(Value::F64(a)), Some(Value::I64(b)), text, None]);
        }
        assert_eq!(open.millis, 30);
        open.values().collect()
    }

    #[test]
    fn each_function_has_its_result() {
        assert_eq!(of(Function::Max), [Some(Value::F64(2.5)), Some(Value::I64(i64::MAX)), None, None]);
        assert_eq!(of(Function::Min), [Some(Value::F64(-1.0)), Some(Value::I64(-7)), None, None]);
        assert_eq!(of(Function::Avg)[0], Some(Value::F64(1.0)));
        assert_eq!(of(Function::Sum)[1], Some(Value::F64(i64::MAX as f64)));
    }

    #[test]
    fn intervals_are_counted_from_1970() {
        let aggregation = Aggregation { function: Function::Max, interval_ms: 60_000 };
        assert_eq!([0, 59_999, 60_000, -1].map(|millis| aggregation.interval(millis)), [0, 0, 1, -1]);
    }
}
