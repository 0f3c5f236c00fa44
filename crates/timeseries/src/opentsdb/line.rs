//! The points of one series.

/// The points of one series, by ascending time. No two have the same time.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Milliseconds since 1970.
    pub times: Vec<i64>,
    /// The values, one for each time.
    pub values: Values,
}

/// The values of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// All are integers.
    Integers(Vec<i64>),
    /// All are floats. NaN is a value that a fill policy put in.
    Floats(Vec<f64>),
}

impl Values {
    /// The values as floats.
    pub(super) fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Integers(values) => values.into_iter().map(|value| value as f64).collect(),
            Self::Floats(values) => values,
        }
    }
}

impl Line {
    /// A line of floats.
    pub fn floats(times: Vec<i64>, values: Vec<f64>) -> Self {
        Self { times, values: Values::Floats(values) }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

/// A value of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Integer(i64),
    Float(f64),
}
