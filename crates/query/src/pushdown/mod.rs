//! Finds the conditions that the store can decide: those on tags and on the time.

use arrow_schema::Schema;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{InList, Like};
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};
use model::{TimeRange, Timestamp};
use regex::RegexBuilder;
use store::table::COLUMN_NAME;
use store::{TagMatcher, TagPredicate};

use crate::column_kind;

/// A condition that the store decides in place of a filter above the scan.
#[derive(Debug, Clone)]
pub(crate) enum Pushed {
    /// A condition on a tag, decided exactly.
    Tag(TagMatcher),
    /// A condition on the time. No time outside of the range satisfies it.
    Time {
        /// The times that may satisfy the condition.
        range: TimeRange,
        /// Whether all times in the range satisfy the condition, so that no filter is needed.
        exact: bool,
    },
}

/// Returns the condition as the store decides it; `None` if the store cannot.
pub(crate) fn push(condition: &Expr, schema: &Schema) -> Option<Pushed> {
    if let Some((range, exact)) = times(condition, &|expr| is_ts(expr, schema)) {
        return Some(Pushed::Time { range, exact });
    }
    tag(condition, schema).map(Pushed::Tag)
}

/// Returns the times that are in both ranges.
pub(crate) fn intersect(one: TimeRange, other: TimeRange) -> TimeRange {
    TimeRange::new(one.start.max(other.start), one.end.min(other.end))
}

/// Returns the shortest range that contains both.
pub(crate) fn hull(one: TimeRange, other: TimeRange) -> TimeRange {
    if one.is_empty() {
        return other;
    }
    if other.is_empty() {
        return one;
    }
    TimeRange::new(one.start.min(other.start), one.end.max(other.end))
}

/// Returns the times that may satisfy the condition, and whether all of them do; `None` if it is not a condition on the time alone.
pub(crate) fn times(condition: &Expr, is_time: &dyn Fn(&Expr) -> bool) -> Option<(TimeRange, bool)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            let (one, other) = (times(left, is_time)?, times(right, is_time)?);
            Some((intersect(one.0, other.0), one.1 && other.1))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (one, other) = (times(left, is_time)?, times(right, is_time)?);
            Some((hull(one.0, other.0), false))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if is_time(left) {
                Some((compared(*op, nanos(right)?)?, true))
            } else if is_time(right) {
                Some((compared(op.swap()?, nanos(left)?)?, true))
            } else {
                None
            }
        }
        Expr::Between(Between { expr, negated: false, low, high }) if is_time(expr) => {
            let low = compared(Operator::GtEq, nanos(low)?)?;
            let high = compared(Operator::LtEq, nanos(high)?)?;
            Some((intersect(low, high), true))
        }
        _ => None,
    }
}

/// Whether the expression is the time column.
fn is_ts(expr: &Expr, schema: &Schema) -> bool {
    is_ts_column(uncast_time(expr), schema)
}

/// Removes a cast that keeps the time, such as the one to nanoseconds before a comparison with `now()`. Removes only one cast: two casts
/// by way of another time zone shift the time.
pub(crate) fn uncast_time(expr: &Expr) -> &Expr {
    use arrow_schema::{DataType, TimeUnit::Microsecond, TimeUnit::Nanosecond};
    match expr {
        Expr::Cast(Cast { expr: inner, field, .. }) | Expr::TryCast(TryCast { expr: inner, field, .. })
            if matches!(field.data_type(), DataType::Timestamp(Microsecond | Nanosecond, _)) =>
        {
            inner
        }
        _ => expr,
    }
}

fn is_ts_column(expr: &Expr, schema: &Schema) -> bool {
    let field = expr.try_as_col().and_then(|column| schema.field_with_name(&column.name).ok());
    field.is_some_and(column_kind::is_ts)
}

/// Returns a literal time in nanoseconds.
fn nanos(expr: &Expr) -> Option<i128> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::TimestampSecond(Some(value), _) => Some(i128::from(*value) * 1_000_000_000),
        ScalarValue::TimestampMillisecond(Some(value), _) => Some(i128::from(*value) * 1_000_000),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Some(i128::from(*value) * 1_000),
        ScalarValue::TimestampNanosecond(Some(value), _) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Returns the range of microseconds that satisfy a comparison.
fn compared(op: Operator, nanos: i128) -> Option<TimeRange> {
    let at = |micros: i128| {
        Timestamp::from_micros(micros.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    };
    let floor = nanos.div_euclid(1_000);
    let ceiling = -(-nanos).div_euclid(1_000);
    let all = TimeRange::ALL;
    Some(match op {
        Operator::Gt => TimeRange::new(at(floor + 1), all.end),
        Operator::GtEq => TimeRange::new(at(ceiling), all.end),
        Operator::Lt => TimeRange::new(all.start, at(ceiling)),
        Operator::LtEq => TimeRange::new(all.start, at(floor + 1)),
        // A time between two microseconds gives an empty range.
        Operator::Eq => TimeRange::new(at(ceiling), at(floor + 1)),
        _ => return None,
    })
}

fn tag(condition: &Expr, schema: &Schema) -> Option<TagMatcher> {
    let (column, predicate) = match condition {
        Expr::IsNull(expr) => (expr.try_as_col()?, TagPredicate::Absent),
        Expr::IsNotNull(expr) => (expr.try_as_col()?, TagPredicate::Present),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => either(left, right, schema)?,
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match left.try_as_col() {
            Some(column) => (column, compared_text(*op, text(right)?)?),
            None => (right.try_as_col()?, compared_text(op.swap()?, text(left)?)?),
        },
        Expr::InList(InList { expr, list, negated }) => {
            // `IN` ignores a NULL in the list. `NOT IN` with a NULL returns no rows, so a list with a NULL is not pushed down.
            let is_null = |value: &&Expr| matches!(value, Expr::Literal(value, _) if value.is_null());
            let known = list.iter().filter(|value| *negated || !is_null(value));
            let values: Vec<_> = known.map(|value| text(value).map(str::to_owned)).collect::<Option<_>>()?;
            let predicate = if *negated { TagPredicate::NoneOf(values) } else { TagPredicate::OneOf(values) };
            (expr.try_as_col()?, predicate)
        }
        Expr::Like(like) => (like.expr.try_as_col()?, like_predicate(like)?),
        _ => return None,
    };
    Some(TagMatcher { tag: tag_name(column, schema)?, predicate })
}

/// Returns the values of `device = 'a' OR device = 'b'`. DataFusion rewrites a short IN list to this.
fn either<'a>(left: &'a Expr, right: &'a Expr, schema: &Schema) -> Option<(&'a Column, TagPredicate)> {
    let values = |expr: &Expr| {
        let matcher = tag(expr, schema)?;
        let values = match matcher.predicate {
            TagPredicate::Is(value) => vec![value],
            TagPredicate::OneOf(values) => values,
            _ => return None,
        };
        Some((matcher.tag, values))
    };
    let ((one, mut all), (other, more)) = (values(left)?, values(right)?);
    if one != other {
        return None;
    }
    all.extend(more);
    Some((first_column(left)?, TagPredicate::OneOf(all)))
}

fn first_column(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            first_column(left).or_else(|| first_column(right))
        }
        Expr::InList(InList { expr, .. }) => first_column(expr),
        _ => None,
    }
}

fn tag_name(column: &Column, schema: &Schema) -> Option<String> {
    let field = schema.field_with_name(&column.name).ok()?;
    column_kind::is_tag(field).then(|| field.metadata().get(COLUMN_NAME).cloned()).flatten()
}

fn text(expr: &Expr) -> Option<&str> {
    let Expr::Literal(value, _) = expr else { return None };
    value.try_as_str().flatten()
}

fn compared_text(op: Operator, value: &str) -> Option<TagPredicate> {
    let pattern = |ignore_case| RegexBuilder::new(value).case_insensitive(ignore_case).build().ok();
    Some(match op {
        Operator::Eq => TagPredicate::Is(value.to_owned()),
        Operator::NotEq => TagPredicate::IsNot(value.to_owned()),
        Operator::RegexMatch => TagPredicate::Matches(pattern(false)?),
        Operator::RegexIMatch => TagPredicate::Matches(pattern(true)?),
        Operator::RegexNotMatch => TagPredicate::MatchesNot(pattern(false)?),
        Operator::RegexNotIMatch => TagPredicate::MatchesNot(pattern(true)?),
        _ => return None,
    })
}

fn like_predicate(like: &Like) -> Option<TagPredicate> {
    let pattern = like_pattern(text(&like.pattern)?, like.escape_char.unwrap_or('\\'));
    let regex = RegexBuilder::new(&pattern).case_insensitive(like.case_insensitive).build().ok()?;
    Some(if like.negated { TagPredicate::MatchesNot(regex) } else { TagPredicate::Matches(regex) })
}

/// Returns the regular expression of a LIKE pattern: `%` is any text, `_` any character.
pub(crate) fn like_pattern(like: &str, escape: char) -> String {
    let mut pattern = String::from("(?s)^");
    let mut characters = like.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' => pattern.push_str(".*"),
            '_' => pattern.push('.'),
            _ if character == escape => {
                let literal = characters.next().unwrap_or(escape);
                pattern.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4])));
            }
            literal => pattern.push_str(&regex::escape(literal.encode_utf8(&mut [0; 4]))),
        }
    }
    pattern.push('$');
    pattern
}

#[cfg(test)]
mod tests;
