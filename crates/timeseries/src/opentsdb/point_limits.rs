//! Which points of an answer are shown: HiTSDB's `dpValue`, `offset` and `limit`.

use super::{Line, QueryError, Values};

/// The points of a line that are shown: those whose values satisfy the condition, without the first ones, and not more than a number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PointLimits {
    condition: Option<Condition>,
    offset: usize,
    limit: Option<usize>,
}

/// A comparison with a number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Condition {
    comparison: Comparison,
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

impl PointLimits {
    /// A cut by a condition such as `>=5`, with the points that it leaves out at the start and the number of those it shows; 0 is any
    /// number.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: the condition is none.
    pub fn new(
        condition: Option<&str>,
        offset: Option<usize>,
        limit: Option<usize>,
    ) -> Result<Self, QueryError> {
        let condition = condition.map(Condition::parse).transpose()?;
        Ok(Self { condition, offset: offset.unwrap_or(0), limit: limit.filter(|limit| *limit > 0) })
    }

    /// Whether a value satisfies the condition. NaN, which stands for a missing value, satisfies none.
    pub fn shows(&self, value: f64) -> bool {
        self.condition.is_none_or(|condition| condition.holds(value))
    }

    /// Whether it shows all points.
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Removes the points that are not shown.
    pub fn apply(&self, line: &mut Line) {
        if self.is_whole() {
            return;
        }
        let times = std::mem::take(&mut line.times);
        let kept: Vec<usize> = match &line.values {
            Values::Integers(values) => self.kept(values.iter().map(|value| *value as f64)),
            Values::Floats(values) => self.kept(values.iter().copied()),
        };
        line.times = kept.iter().map(|at| times[*at]).collect();
        match &mut line.values {
            Values::Integers(values) => *values = kept.iter().map(|at| values[*at]).collect(),
            Values::Floats(values) => *values = kept.iter().map(|at| values[*at]).collect(),
        }
    }

    /// The range that `offset` and `limit` select from a number of rows.
    pub fn page(&self, rows: usize) -> std::ops::Range<usize> {
        let start = self.offset.min(rows);
        start..self.limit.map_or(rows, |limit| start.saturating_add(limit).min(rows))
    }

    fn kept(&self, values: impl Iterator<Item = f64>) -> Vec<usize> {
        let shown = values.enumerate().filter(|(_, value)| self.shows(*value)).map(|(at, _)| at);
        shown.skip(self.offset).take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}

impl Condition {
    fn parse(text: &str) -> Result<Self, QueryError> {
        const COMPARISONS: [(&str, Comparison); 7] = [
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("!=", Comparison::NotEqual),
            ("==", Comparison::Equal),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
            ("=", Comparison::Equal),
        ];
        let found = COMPARISONS.iter().find_map(|(sign, comparison)| {
            let number = text.trim().strip_prefix(sign)?.trim().parse().ok()?;
            Some(Self { comparison: *comparison, number })
        });
        found.ok_or_else(|| {
            QueryError::Invalid(format!(
                "'{text}' is not a condition on values; it is <, <=, =, !=, >= or > and a number"
            ))
        })
    }

    fn holds(self, value: f64) -> bool {
        match self.comparison {
            Comparison::Less => value < self.number,
            Comparison::LessOrEqual => value <= self.number,
            Comparison::Equal => value == self.number,
            Comparison::NotEqual => value != self.number && !value.is_nan(),
            Comparison::GreaterOrEqual => value >= self.number,
            Comparison::Greater => value > self.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(condition: Option<&str>, offset: usize, limit: usize) -> Vec<i64> {
        let mut line = Line { times: vec![1, 2, 3, 4], values: Values::Integers(vec![10, 20, 30, 40]) };
        PointLimits::new(condition, Some(offset), Some(limit)).unwrap().apply(&mut line);
        assert_eq!(line.times.len(), line.len());
        let Values::Integers(values) = line.values else { panic!("the values stay integers") };
        values
    }

    #[test]
    fn a_condition_comes_before_the_page() {
        assert_eq!(cut(None, 0, 0), [10, 20, 30, 40]);
        assert_eq!(cut(None, 1, 2), [20, 30]);
        assert_eq!(cut(Some(">= 20"), 1, 0), [30, 40]);
        assert_eq!(cut(Some("!=20"), 0, 2), [10, 30]);
        assert_eq!(cut(Some("<=20"), 0, 0), [10, 20]);
        assert_eq!(cut(Some("=40"), 0, 0), [40]);
        assert_eq!(cut(None, 9, 0), [0; 0]);
    }

    #[test]
    fn a_missing_value_satisfies_no_condition_and_a_wrong_condition_is_refused() {
        assert!(!PointLimits::new(Some("!=5"), None, None).unwrap().shows(f64::NAN));
        for wrong in ["", "5", "=>5", "> x", "<"] {
            assert!(PointLimits::new(Some(wrong), None, None).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_lies_within_the_rows() {
        let page = |offset, limit| PointLimits::new(None, Some(offset), Some(limit)).unwrap().page(10);
        assert_eq!(page(0, 0), 0..10);
        assert_eq!(page(3, 4), 3..7);
        assert_eq!(page(8, usize::MAX), 8..10);
        assert_eq!(page(11, 1), 10..10);
    }
}
