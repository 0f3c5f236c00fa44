//! Buckets without rows.

use super::aggregate::Point;
use super::ast::{DataType, Fill};
use super::frame::Frame;
use super::reduce::TIME_MIN;
use super::time::offset_at;
use super::value::Value;

/// Adds a point for each bucket of a range that has none, up to `most` points in all. The points of a group are in the order of
/// the query; a group without points stays so.
///
/// # Errors
/// There are more buckets than a statement may have.
pub(super) fn fill(
    frame: &Frame,
    points: Vec<Point>,
    kind: DataType,
    count: bool,
    range: (i64, i64),
    most: usize,
) -> Result<Vec<Point>, String> {
    let Some(first) = points.first() else { return Ok(points) };
    let way = match frame.fill {
        Fill::Null if count => Fill::Int(0),
        other => other,
    };
    let (start, end) = range;
    let window = |time: i64| frame.buckets.start(time, start, end);
    let (begin, until) = match frame.ascending {
        true => (window(start), window(end)),
        false => (window(end), window(start)),
    };
    let mut next = match frame.ascending {
        true if begin == TIME_MIN || start == TIME_MIN => window(first.time),
        _ => begin,
    };
    let every = frame.buckets.every;
    let mut offset = frame.buckets.zone.map(|zone| offset_at(zone, next));
    let mut filled = Vec::with_capacity(points.len());
    let mut last: Option<Point> = None;
    let mut points = points.into_iter().peekable();
    while filled.len() < most {
        if filled.len() as u64 > frame.buckets_max {
            return Err(over_limit(filled.len() as u64, frame.buckets_max));
        }
        let inside = match frame.ascending {
            true => next <= until,
            false => next >= until && until != TIME_MIN && start != TIME_MIN,
        };
        let due = points.peek().is_some_and(|point| match frame.ascending {
            true => point.time <= next,
            false => point.time >= next,
        });
        let point = match due {
            true => points.next(),
            false if points.peek().is_some() || inside => {
                Some(made(frame, way, kind, next, last.as_ref(), points.peek()))
            }
            false => None,
        };
        let Some(point) = point else { break };
        if due {
            last = Some(point.clone());
        }
        filled.push(point);
        next = if frame.ascending { next.saturating_add(every) } else { next.saturating_sub(every) };
        if let (Some(zone), Some(before)) = (frame.buckets.zone, offset) {
            let now = offset_at(zone, next.saturating_sub(1));
            if now != before {
                if (before - now).abs() < every {
                    next += before - now;
                }
                offset = Some(now);
            }
        }
    }
    Ok(filled)
}

/// The message for too many buckets.
pub(super) fn over_limit(buckets: impl std::fmt::Display, most: u64) -> String {
    format!("max-select-buckets limit exceeded: ({buckets}/{most})")
}

/// The point of a bucket without rows.
fn made(
    frame: &Frame,
    way: Fill,
    kind: DataType,
    time: i64,
    last: Option<&Point>,
    next: Option<&Point>,
) -> Point {
    let value = match way {
        Fill::Null | Fill::None => Value::Null,
        // As in InfluxDB a column without numbers gets its empty value.
        Fill::Int(_) | Fill::Num(_) if kind == DataType::String => Value::text(""),
        Fill::Int(_) | Fill::Num(_) if kind == DataType::Boolean => Value::Bool(false),
        Fill::Int(value) => number(Value::Int(value), kind),
        Fill::Num(value) => number(Value::Num(value), kind),
        Fill::Previous => last.map_or(Value::Null, |last| last.value.clone()),
        Fill::Linear => match (last, next) {
            (Some(last), Some(next)) => linear(frame.buckets.every, time, last, next),
            _ => Value::Null,
        },
    };
    Point { time, value, others: vec![Value::Null; frame.others] }
}

/// The number of a fill, in the type of the column.
pub(super) fn number(value: Value, kind: DataType) -> Value {
    match kind {
        DataType::Float | DataType::Integer => value.cast(kind),
        _ => value,
    }
}

fn linear(every: i64, time: i64, last: &Point, next: &Point) -> Value {
    let (Some(from), Some(to)) = (last.value.number(), next.value.number()) else { return Value::Null };
    let (at, begin, end) = (time / every, last.time / every, next.time / every);
    let value = (to - from) / (end - begin) as f64 * (at - begin) as f64 + from;
    match last.value {
        Value::Int(_) => Value::Int(value as i64),
        _ => Value::Num(value),
    }
}
