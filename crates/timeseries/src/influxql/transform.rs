//! Functions of successive points: differences, rates, averages that move, integrals.

use super::aggregate::Point;
use super::frame::Frame;
use super::reduce::{TIME_MAX, TIME_MIN};
use super::value::Value;

/// A function of successive points.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Transform {
    /// Change per unit of time, in nanoseconds; only rises if true.
    Derivative(i64, bool),
    /// Change; only rises if true.
    Difference(bool),
    /// The time between two points, divided by this unit in nanoseconds.
    Elapsed(i64),
    MovingAverage(usize),
    CumulativeSum,
}

/// Applies a function to the points of a group, which are in the order of the query. A point without a value is left out.
pub(super) fn transform(function: &Transform, points: Vec<Point>, ascending: bool) -> Vec<Point> {
    let points = points.into_iter().filter(|point| !point.value.is_null());
    match function {
        Transform::Derivative(unit, rises) => pairs(points, |old, new| {
            let change = new.value.number()? - old.value.number()?;
            let elapsed = (new.time - old.time) as f64 * if ascending { 1.0 } else { -1.0 };
            let kept = !(*rises && change < 0.0);
            kept.then(|| Value::Num(change / (elapsed / *unit as f64)))
        }),
        Transform::Difference(rises) => pairs(points, |old, new| {
            let change = match (&old.value, &new.value) {
                (Value::Int(old), Value::Int(new)) => Value::Int(new.wrapping_sub(*old)),
                (old, new) => Value::Num(new.number()? - old.number()?),
            };
            let kept = !(*rises && change.number()? < 0.0);
            kept.then_some(change)
        }),
        Transform::Elapsed(unit) => {
            all_pairs(points, |old, new| Some(Value::Int((new.time - old.time) / unit)))
        }
        Transform::MovingAverage(size) => moving_average(points, *size),
        Transform::CumulativeSum => cumulative_sum(points),
    }
}

/// Computes a value for each point and the one before it at another time.
fn pairs(points: impl Iterator<Item = Point>, value: impl Fn(&Point, &Point) -> Option<Value>) -> Vec<Point> {
    let mut last: Option<Point> = None;
    let advancing = points.filter(move |point| {
        let advances = last.as_ref().is_none_or(|last| last.time != point.time);
        last = Some(point.clone());
        advances
    });
    all_pairs(advancing, value)
}

fn all_pairs(
    points: impl Iterator<Item = Point>,
    value: impl Fn(&Point, &Point) -> Option<Value>,
) -> Vec<Point> {
    let mut last: Option<Point> = None;
    let mut out = Vec::new();
    for point in points {
        if let Some(last) = &last
            && let Some(value) = value(last, &point)
        {
            out.push(Point { time: point.time, value, others: Vec::new() });
        }
        last = Some(point);
    }
    out
}

fn moving_average(points: impl Iterator<Item = Point>, size: usize) -> Vec<Point> {
    let mut window = std::collections::VecDeque::new();
    let (mut int, mut num) = (0_i64, 0.0);
    let mut out = Vec::new();
    for point in points {
        match &point.value {
            Value::Int(value) => int = int.wrapping_add(*value),
            value => num += value.number().unwrap_or_default(),
        }
        let time = point.time;
        window.push_back(point.value);
        if window.len() > size {
            match window.pop_front() {
                Some(Value::Int(value)) => int = int.wrapping_sub(value),
                Some(value) => num -= value.number().unwrap_or_default(),
                None => {}
            }
        }
        if window.len() == size {
            let value = Value::Num((int as f64 + num) / size as f64);
            out.push(Point { time, value, others: Vec::new() });
        }
    }
    out
}

fn cumulative_sum(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut sum: Option<Value> = None;
    let mut out = Vec::new();
    for point in points {
        let value = match (&sum, point.value) {
            (Some(Value::Int(sum)), Value::Int(value)) => Value::Int(sum.wrapping_add(value)),
            (Some(sum), value) => {
                Value::Num(sum.number().unwrap_or_default() + value.number().unwrap_or_default())
            }
            (None, value) => value,
        };
        sum = Some(value.clone());
        out.push(Point { time: point.time, value, others: Vec::new() });
    }
    out
}

/// The area under the points of a group, or of each bucket, where time counts in this unit, in nanoseconds.
pub(super) fn integral(points: &[Point], unit: i64, frame: &Frame) -> Vec<Point> {
    let (buckets, ascending) = (&frame.buckets, frame.ascending);
    let window = |time: i64| {
        let (start, end) = buckets.around(time, 0, 0);
        if ascending { (start, end) } else { (end, start) }
    };
    let at = |point: &Point| (point.time, point.value.number().unwrap_or_default());
    let Some(first) = points.first() else { return Vec::new() };
    let mut out = Vec::new();
    let (mut last_time, mut last_value) = at(first);
    let (mut start, mut end) =
        if buckets.is_none() { (time_without_buckets(first, frame), 0) } else { window(last_time) };
    let mut sum = 0.0;
    for (time, value) in points[1..].iter().map(at) {
        if time == last_time {
            last_value = value;
            continue;
        }
        let beyond = if ascending { time >= end } else { time <= end };
        if !buckets.is_none() && beyond {
            if last_time != end {
                let slope = (value - last_value) / (time - last_time) as f64;
                let border = last_value + slope * (end - last_time) as f64;
                sum += 0.5 * (border + last_value) * ((end - last_time) as f64 / unit as f64);
                (last_time, last_value) = (end, border);
            }
            out.push(Point { time: start, value: Value::Num(sum), others: Vec::new() });
            (start, end) = window(time);
            sum = 0.0;
        }
        sum += 0.5 * (value + last_value) * ((time - last_time) as f64 / unit as f64);
        (last_time, last_value) = (time, value);
    }
    if last_time != start {
        out.push(Point { time: start, value: Value::Num(sum), others: Vec::new() });
    }
    out
}

/// The time of the integral of a whole range. InfluxDB gives that of integers the begin of the range, and that of fractions none.
fn time_without_buckets(first: &Point, frame: &Frame) -> i64 {
    let is_unbounded = if frame.ascending { frame.start == TIME_MIN } else { frame.end == TIME_MAX };
    match (&first.value, frame.ascending) {
        (Value::Int(_), true) if !is_unbounded => frame.start,
        (Value::Int(_), false) if !is_unbounded => frame.end + 1,
        _ => 0,
    }
}
