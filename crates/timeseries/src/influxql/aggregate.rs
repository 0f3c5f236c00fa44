//! What an aggregate or a selector keeps of the points of one bucket.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::ast::Expr;
use super::value::Value;
use crate::deviation::Deviation;

/// A value at a time, with the values of other columns of the same row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// In nanoseconds.
    pub time: i64,
    /// Null where a fill found nothing.
    pub value: Value,
    pub others: Vec<Value>,
}

/// A function of the points of a bucket.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Function {
    Count,
    Sum,
    Mean,
    Min,
    Max,
    First,
    Last,
    Spread,
    Stddev,
    Median,
    Mode,
    Percentile(f64),
    Distinct,
    Sample(usize),
    /// top() if true, else bottom(); the number of points; the places of the tags in [`Point::others`].
    Top(bool, usize, Vec<usize>),
    /// All points, for a function of successive points.
    All,
}

impl Function {
    /// The function of a call whose first argument is a field. `other` finds the place of a reference in [`Point::others`].
    pub(super) fn of(name: &str, args: &[Expr], other: &dyn Fn(&Expr) -> usize) -> Option<Self> {
        let size = |index: usize| match args.get(index) {
            Some(Expr::Int(size)) => usize::try_from(*size).unwrap_or_default(),
            _ => 0,
        };
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "mean" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "first" => Self::First,
            "last" => Self::Last,
            "spread" => Self::Spread,
            "stddev" => Self::Stddev,
            "median" => Self::Median,
            "mode" => Self::Mode,
            "distinct" => Self::Distinct,
            "percentile" => match args.get(1) {
                Some(Expr::Num(part)) => Self::Percentile(*part),
                Some(Expr::Int(part)) => Self::Percentile(*part as f64),
                _ => return None,
            },
            "sample" => Self::Sample(size(1)),
            "top" | "bottom" => {
                let tags = args[1..args.len() - 1].iter().map(other).collect();
                Self::Top(name == "top", size(args.len() - 1), tags)
            }
            _ => return None,
        })
    }

    /// Whether the function selects points, with their times and other columns.
    pub(super) fn selects(&self) -> bool {
        matches!(
            self,
            Self::Min
                | Self::Max
                | Self::First
                | Self::Last
                | Self::Percentile(_)
                | Self::Sample(_)
                | Self::Top(..)
        )
    }

    /// Whether the result has the times of its points even where the query is grouped by time.
    pub(super) fn keeps_times(&self) -> bool {
        matches!(self, Self::Sample(_) | Self::Top(..) | Self::All)
    }

    /// Whether the function holds every point until the bucket ends.
    pub(super) fn holds_points(&self) -> bool {
        !matches!(
            self,
            Self::Count
                | Self::Sum
                | Self::Mean
                | Self::Min
                | Self::Max
                | Self::First
                | Self::Last
                | Self::Spread
                | Self::Stddev
        )
    }
}

/// What a function has seen of a bucket.
#[derive(Debug, Clone)]
pub(super) enum State {
    Count(i64),
    SumInt(i64),
    SumNum(f64),
    Mean { int: i64, num: f64, count: u64 },
    Picked(Point),
    Spread { low: Value, high: Value },
    Stddev(Deviation),
    Points(Vec<Point>),
}

impl State {
    /// The state after the first point.
    pub(super) fn first(
        function: &Function,
        time: i64,
        value: Value,
        others: impl FnOnce() -> Vec<Value>,
    ) -> Self {
        match function {
            Function::Count => Self::Count(1),
            Function::Sum => match value {
                Value::Int(value) => Self::SumInt(value),
                value => Self::SumNum(value.number().unwrap_or_default()),
            },
            Function::Mean => match value {
                Value::Int(int) => Self::Mean { int, num: 0.0, count: 1 },
                value => Self::Mean { int: 0, num: value.number().unwrap_or_default(), count: 1 },
            },
            Function::Min | Function::Max | Function::First | Function::Last => {
                Self::Picked(Point { time, value, others: others() })
            }
            Function::Spread => Self::Spread { low: value.clone(), high: value },
            Function::Stddev => Self::Stddev(Deviation::of(value.number().unwrap_or_default())),
            _ => Self::Points(vec![Point { time, value, others: others() }]),
        }
    }

    /// Adds a point.
    pub(super) fn add(
        &mut self,
        function: &Function,
        time: i64,
        value: Value,
        others: impl FnOnce() -> Vec<Value>,
    ) {
        match self {
            Self::Count(count) => *count += 1,
            Self::SumInt(sum) => {
                if let Value::Int(value) = value {
                    *sum = sum.wrapping_add(value);
                }
            }
            Self::SumNum(sum) => *sum += value.number().unwrap_or_default(),
            Self::Mean { int, num, count } => {
                match value {
                    Value::Int(value) => *int = int.wrapping_add(value),
                    value => *num += value.number().unwrap_or_default(),
                }
                *count += 1;
            }
            Self::Picked(point) => {
                if replaces(function, point, time, &value) {
                    *point = Point { time, value, others: others() };
                }
            }
            Self::Spread { low, high } => {
                if value.order(low) == Ordering::Less {
                    *low = value.clone();
                }
                if value.order(high) == Ordering::Greater {
                    *high = value;
                }
            }
            Self::Stddev(deviation) => deviation.add(value.number().unwrap_or_default()),
            Self::Points(points) => points.push(Point { time, value, others: others() }),
        }
    }

    /// The points that the function gives for its bucket. A point whose time does not matter has `None`.
    pub(super) fn finish(
        self,
        function: &Function,
        ascending: bool,
    ) -> Vec<(Option<i64>, Value, Vec<Value>)> {
        let value = match self {
            Self::Count(count) => Value::Int(count),
            Self::SumInt(sum) => Value::Int(sum),
            Self::SumNum(sum) => Value::Num(sum),
            Self::Mean { int, num, count } => Value::Num((int as f64 + num) / count as f64),
            Self::Picked(point) => return vec![(Some(point.time), point.value, point.others)],
            Self::Spread { low, high } => match (low, high) {
                (Value::Int(low), Value::Int(high)) => Value::Int(high.wrapping_sub(low)),
                (low, high) => {
                    Value::Num(high.number().unwrap_or_default() - low.number().unwrap_or_default())
                }
            },
            Self::Stddev(deviation) => Value::Num(deviation.of_sample()),
            Self::Points(points) => return of_points(function, points, ascending),
        };
        vec![(None, value, Vec::new())]
    }
}

fn replaces(function: &Function, old: &Point, time: i64, value: &Value) -> bool {
    let order = value.order(&old.value);
    match function {
        Function::Min => order == Ordering::Less || (order == Ordering::Equal && time < old.time),
        Function::Max => order == Ordering::Greater || (order == Ordering::Equal && time < old.time),
        Function::First => time < old.time || (time == old.time && order == Ordering::Greater),
        _ => time > old.time || (time == old.time && order == Ordering::Greater),
    }
}

fn of_points(
    function: &Function,
    mut points: Vec<Point>,
    ascending: bool,
) -> Vec<(Option<i64>, Value, Vec<Value>)> {
    // Of equal values the first one in the order of the query comes first.
    let by_value = |a: &Point, b: &Point| {
        let times = if ascending { a.time.cmp(&b.time) } else { b.time.cmp(&a.time) };
        a.value.order(&b.value).then(times)
    };
    let timeless = |value: Value| vec![(None, value, Vec::new())];
    let timed = |point: Point| (Some(point.time), point.value, point.others);
    match function {
        Function::Median => {
            points.sort_by(|a, b| a.value.order(&b.value));
            let middle = points.len() / 2;
            let high = points[middle].value.number().unwrap_or_default();
            if points.len() % 2 == 1 {
                return timeless(Value::Num(high));
            }
            let low = points[middle - 1].value.number().unwrap_or_default();
            timeless(Value::Num(low + (high - low) / 2.0))
        }
        Function::Mode => timeless(mode(points)),
        Function::Percentile(part) => {
            points.sort_by(by_value);
            let index = (points.len() as f64 * part / 100.0 + 0.5).floor() - 1.0;
            match index >= 0.0 && index < points.len() as f64 {
                true => vec![timed(points.swap_remove(index as usize))],
                false => Vec::new(),
            }
        }
        Function::Distinct => {
            points.sort_by(by_value);
            points.dedup_by(|a, b| a.value == b.value);
            points.sort_by(|a, b| a.time.cmp(&b.time).then(a.value.order(&b.value)));
            points.into_iter().map(timed).collect()
        }
        Function::Sample(size) => {
            sample(&mut points, *size);
            points.into_iter().map(timed).collect()
        }
        Function::Top(top, size, tags) => {
            top_points(&mut points, *top, *size, tags);
            points.into_iter().map(timed).collect()
        }
        _ => points.into_iter().map(timed).collect(),
    }
}

/// The most frequent value; of several, the one that came first.
fn mode(mut points: Vec<Point>) -> Value {
    points.sort_by(|a, b| a.value.order(&b.value).then(a.time.cmp(&b.time)));
    let mut best: Option<(usize, i64, &Value)> = None;
    for run in points.chunk_by(|a, b| a.value == b.value) {
        let (first, last) = (&run[0], &run[run.len() - 1]);
        let is_better = match (best, &first.value) {
            (None, _) => true,
            (Some((count, ..)), Value::Bool(_)) => run.len() >= count,
            // As in InfluxDB a value that is there once never takes the place of a lower one.
            (Some((count, time, _)), _) => {
                run.len() > 1 && (run.len() > count || (run.len() == count && first.time <= time))
            }
        };
        if is_better {
            best = Some((run.len(), last.time, &first.value));
        }
    }
    best.map_or(Value::Null, |(_, _, value)| value.clone())
}

/// Keeps a random choice of points, by time. The choice depends on nothing but the points, so a query can be repeated.
fn sample(points: &mut Vec<Point>, size: usize) {
    let mut state = points.len() as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for index in size..points.len() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let place = (state % (index as u64 + 1)) as usize;
        if place < size {
            points.swap(place, index);
        }
    }
    points.truncate(size);
    points.sort_by_key(|point| point.time);
}

/// Keeps the highest or lowest points, of equal ones the earliest; with tags at most one point for each set of their values.
/// Equal points of one time are in the order of these values, or else in the order in which they were read.
fn top_points(points: &mut Vec<Point>, top: bool, size: usize, tags: &[usize]) {
    let order = |a: &Point, b: &Point| {
        let by_value = if top { b.value.order(&a.value) } else { a.value.order(&b.value) };
        by_value.then(a.time.cmp(&b.time))
    };
    if !tags.is_empty() {
        let mut best: BTreeMap<Vec<String>, Point> = BTreeMap::new();
        for point in points.drain(..) {
            let key = tags.iter().map(|tag| format!("{:?}", point.others[*tag])).collect();
            match best.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(point)),
                Entry::Occupied(mut entry) => {
                    if order(&point, entry.get()) == Ordering::Less {
                        entry.insert(point);
                    }
                }
            }
        }
        points.extend(best.into_values());
    }
    points.sort_by(order);
    points.truncate(size);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tags of the chosen points, of equal points of hosts that were read in some order.
    fn chosen(top: bool, hosts: &[&str]) -> Vec<Value> {
        let point = |host: &&str| Point { time: 7, value: Value::Int(1), others: vec![Value::text(*host)] };
        let function = Function::Top(top, 2, vec![0]);
        let found = State::Points(hosts.iter().map(point).collect()).finish(&function, true);
        found.into_iter().map(|(_, _, others)| others[0].clone()).collect()
    }

    #[test]
    fn equal_points_of_a_time_are_chosen_by_their_tags_each_time() {
        for hosts in [["d", "b", "a", "c", "e"], ["a", "b", "c", "d", "e"], ["e", "d", "c", "b", "a"]] {
            for top in [true, false] {
                assert_eq!(chosen(top, &hosts), [Value::text("a"), Value::text("b")], "{top} {hosts:?}");
            }
        }
    }
}
