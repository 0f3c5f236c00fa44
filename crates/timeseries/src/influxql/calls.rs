//! The calls of a statement: which values they read, and the points that they give for a group.

use std::collections::BTreeMap;

use super::aggregate::{Function, Point, State};
use super::ast::{DataType, Expr, Fill};
use super::fill::fill;
use super::frame::Frame;
use super::reduce::{TIME_MAX, TIME_MIN};
use super::scan::Wanted;
use super::transform::{Transform, integral, transform};
use super::value::Value;

/// A function of one field, computed while rows are read.
#[derive(Debug)]
pub(super) struct Leaf {
    pub function: Function,
    /// An index into the values that the statement reads.
    pub field: usize,
    /// First and last time of the rows that count, in nanoseconds.
    pub start: i64,
    pub end: i64,
}

/// A call: a function of a field, or of the points of another call.
#[derive(Debug)]
pub(super) enum Call {
    Leaf { leaf: usize, kind: DataType, count: bool },
    CountDistinct { leaf: usize },
    Integral { leaf: usize, unit: i64 },
    Transform { function: Transform, inner: Box<Call>, start: i64, end: i64 },
}

/// What the leaves have seen of a group: the buckets of each leaf.
pub(super) type GroupState = Vec<BTreeMap<i64, State>>;

/// Builds the calls of a statement and the leaves that they need.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub frame: &'a Frame,
    pub wanted: &'a mut Vec<Wanted>,
    /// The columns besides the calls, as indices into `wanted`.
    pub others: &'a [usize],
    pub leaves: Vec<Leaf>,
}

impl Builder<'_> {
    /// The place of a reference among the values that the statement reads.
    pub(super) fn want(wanted: &mut Vec<Wanted>, name: &str, kind: DataType) -> usize {
        wanted.iter().position(|(own, own_kind)| own == name && *own_kind == kind).unwrap_or_else(|| {
            wanted.push((name.to_owned(), kind));
            wanted.len() - 1
        })
    }

    /// A call; `None` if its field does not exist.
    ///
    /// # Errors
    /// The function does not take the type of the field.
    pub(super) fn call(&mut self, name: &str, args: &[Expr]) -> Result<Option<Call>, String> {
        self.nested(name, args, self.frame.start, self.frame.end)
    }

    fn nested(&mut self, name: &str, args: &[Expr], start: i64, end: i64) -> Result<Option<Call>, String> {
        let Some(first) = args.first() else { return Ok(None) };
        if let Some(function) = self.transform(name, args) {
            // The points of the bucket before the first one are read too, so that the first one has something to differ from.
            let more = match function {
                Transform::CumulativeSum => 0,
                _ => 1,
            };
            let extra = self.frame.buckets.every.saturating_mul(more);
            let (start, end) = match self.frame.ascending {
                true => (if start == TIME_MIN { start } else { start.saturating_sub(extra) }, end),
                false => (start, if end == TIME_MAX { end } else { end.saturating_add(extra) }),
            };
            let inner = match first {
                Expr::Call(inner, args) => self.nested(inner, args, start, end)?,
                Expr::Ref(field, kind) => {
                    numeric(name, *kind)?;
                    self.leaf(Function::All, field, *kind, start, end)
                }
                _ => None,
            };
            return Ok(inner.map(|inner| Call::Transform { function, inner: Box::new(inner), start, end }));
        }
        if let ("count", Expr::Call(_, args)) = (name, first) {
            let Some(Expr::Ref(field, kind)) = args.first() else { return Ok(None) };
            let leaf = self.leaf(Function::Distinct, field, *kind, start, end);
            return Ok(leaf.map(|call| match call {
                Call::Leaf { leaf, .. } => Call::CountDistinct { leaf },
                other => other,
            }));
        }
        let Expr::Ref(field, kind) = first else { return Ok(None) };
        numeric(name, *kind)?;
        if name == "integral" {
            let unit = unit_of(args).unwrap_or(1_000_000_000);
            let leaf = self.leaf(Function::All, field, *kind, start, end);
            return Ok(leaf.map(|call| match call {
                Call::Leaf { leaf, .. } => Call::Integral { leaf, unit },
                other => other,
            }));
        }
        let (wanted, others) = (&*self.wanted, self.others);
        let other = |expr: &Expr| {
            let Expr::Ref(name, kind) = expr else { return 0 };
            let found =
                others.iter().position(|index| wanted[*index].0 == *name && wanted[*index].1 == *kind);
            found.unwrap_or_default()
        };
        let function = Function::of(name, args, &other);
        Ok(function.and_then(|function| self.leaf(function, field, *kind, start, end)))
    }

    fn transform(&self, name: &str, args: &[Expr]) -> Option<Transform> {
        let every = self.frame.buckets.every;
        let own = unit_of(args);
        let unit = own.unwrap_or(if every > 0 { every } else { 1_000_000_000 });
        Some(match name {
            "derivative" => Transform::Derivative(unit, false),
            "non_negative_derivative" => Transform::Derivative(unit, true),
            "difference" => Transform::Difference(false),
            "non_negative_difference" => Transform::Difference(true),
            "elapsed" => Transform::Elapsed(own.unwrap_or(1)),
            "cumulative_sum" => Transform::CumulativeSum,
            "moving_average" => match args.get(1) {
                Some(Expr::Int(size)) => Transform::MovingAverage(usize::try_from(*size).ok()?),
                _ => return None,
            },
            _ => return None,
        })
    }

    fn leaf(
        &mut self,
        function: Function,
        field: &str,
        kind: DataType,
        start: i64,
        end: i64,
    ) -> Option<Call> {
        if kind == DataType::Unknown {
            return None;
        }
        let field = Self::want(self.wanted, field, kind);
        let count = function == Function::Count;
        let result = match function {
            Function::Count => DataType::Integer,
            Function::Mean | Function::Median | Function::Stddev => DataType::Float,
            _ => kind,
        };
        self.leaves.push(Leaf { function, field, start, end });
        Some(Call::Leaf { leaf: self.leaves.len() - 1, kind: result, count })
    }
}

fn unit_of(args: &[Expr]) -> Option<i64> {
    match args.get(1) {
        Some(Expr::Dur(nanos)) => Some(*nanos),
        _ => None,
    }
}

/// Refuses a type that a function cannot compute with, in the words of InfluxDB.
fn numeric(name: &str, kind: DataType) -> Result<(), String> {
    let allowed = match kind {
        DataType::Float | DataType::Integer | DataType::Unsigned | DataType::Unknown => true,
        DataType::Boolean => {
            matches!(
                name,
                "count" | "min" | "max" | "first" | "last" | "mode" | "distinct" | "elapsed" | "sample"
            )
        }
        DataType::String => {
            matches!(name, "count" | "first" | "last" | "mode" | "distinct" | "elapsed" | "sample")
        }
        _ => true,
    };
    let function = match name {
        "non_negative_derivative" => "derivative",
        "non_negative_difference" => "difference",
        "cumulative_sum" => "cumulative sum",
        "moving_average" => "moving average",
        other => other,
    };
    match allowed {
        true => Ok(()),
        false => {
            Err(format!("unsupported {function} iterator type: *query.{}InterruptIterator", kind.name()))
        }
    }
}

impl Call {
    /// The points that the call gives for a group, in the order of the query.
    ///
    /// # Errors
    /// There are more buckets than a statement may have.
    pub(super) fn points(
        &self,
        frame: &Frame,
        leaves: &[Leaf],
        state: &mut GroupState,
    ) -> Result<Vec<Point>, String> {
        self.within(frame, leaves, state, (frame.start, frame.end), frame.reached)
    }

    fn within(
        &self,
        frame: &Frame,
        leaves: &[Leaf],
        state: &mut GroupState,
        range: (i64, i64),
        most: usize,
    ) -> Result<Vec<Point>, String> {
        let start = range.0;
        match self {
            Self::Leaf { leaf, kind, count } => {
                let function = &leaves[*leaf].function;
                let points = buckets(frame, function, &mut state[*leaf], start);
                let filled = match function {
                    Function::Distinct | Function::Sample(_) | Function::Top(..) | Function::All => false,
                    _ => !frame.buckets.is_none() && frame.fill != Fill::None,
                };
                if filled { fill(frame, points, *kind, *count, range, most) } else { Ok(points) }
            }
            Self::CountDistinct { leaf } => {
                let points = buckets(frame, &Function::Distinct, &mut state[*leaf], start);
                let mut counted: Vec<Point> = Vec::new();
                for point in points {
                    match counted.last_mut() {
                        Some(Point { time, value: Value::Int(count), .. }) if *time == point.time => {
                            *count += 1
                        }
                        _ => counted.push(Point { value: Value::Int(1), others: Vec::new(), ..point }),
                    }
                }
                match frame.buckets.is_none() || frame.fill == Fill::None {
                    true => Ok(counted),
                    false => fill(frame, counted, DataType::Integer, true, range, most),
                }
            }
            Self::Integral { leaf, unit } => {
                let points = buckets(frame, &Function::All, &mut state[*leaf], start);
                Ok(integral(&points, *unit, frame))
            }
            Self::Transform { function, inner, start, end } => {
                let points = inner.within(frame, leaves, state, (*start, *end), usize::MAX)?;
                Ok(transform(function, points, frame.ascending))
            }
        }
    }
}

/// The points of a function, bucket by bucket, in the order of the query.
fn buckets(frame: &Frame, function: &Function, states: &mut BTreeMap<i64, State>, start: i64) -> Vec<Point> {
    let mut points = Vec::new();
    let keeps_times =
        function.keeps_times() || (frame.selector && frame.buckets.is_none() && function.selects());
    // The points of a bucket that have its time keep their order.
    let mut ordered: Vec<(i64, State)> = std::mem::take(states).into_iter().collect();
    if !frame.ascending && !keeps_times {
        ordered.reverse();
    }
    for (bucket, state) in ordered {
        let own = if frame.buckets.is_none() { start } else { bucket };
        // The earliest time stands for a query without a lower bound; its answer is at the epoch.
        let shown = if own == TIME_MIN { 0 } else { own };
        points.extend(state.finish(function, frame.ascending).into_iter().map(|(time, value, others)| {
            Point {
                time: match time {
                    Some(time) if keeps_times => time,
                    _ => shown,
                },
                value,
                others,
            }
        }));
    }
    if keeps_times {
        points.sort_by_key(|point| point.time);
        if !frame.ascending {
            points.reverse();
        }
    }
    points
}
