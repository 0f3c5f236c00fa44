//! Computes what is constant in an expression, and takes the time out of a condition.

use super::ast::{Expr, Op};
use super::time;
use super::value::{Value, is_math, math, operate};

/// Earliest time that a query can name, in nanoseconds. It stands for no lower bound.
pub(super) const TIME_MIN: i64 = i64::MIN + 2;
/// Latest time that a query can name, in nanoseconds. It stands for no upper bound.
pub(super) const TIME_MAX: i64 = i64::MAX - 1;

/// What constants depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants {
    /// The time of the query, in nanoseconds.
    pub now: i64,
    /// The zone of times without one.
    pub zone: Option<chrono_tz::Tz>,
}

/// A time range, both ends inside, in nanoseconds; `None` is not a bound.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Times {
    pub min: Option<i64>,
    pub max: Option<i64>,
}

impl Times {
    pub(super) fn intersect(self, other: Times) -> Times {
        let both = |a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        Times { min: both(self.min, other.min, i64::max), max: both(self.max, other.max, i64::min) }
    }
}

/// An expression with its constant parts computed. `constants` is `None` where `now()` and functions stay as they are.
pub(super) fn reduce(expr: &Expr, constants: Option<&Constants>) -> Expr {
    match expr {
        Expr::Binary(op, left, right) => {
            binary(*op, reduce(left, constants), reduce(right, constants), constants.and_then(|c| c.zone))
        }
        Expr::Paren(inner) => match reduce(inner, constants) {
            inner @ Expr::Binary(..) => Expr::Paren(Box::new(inner)),
            inner => inner,
        },
        Expr::Call(name, args) => {
            let args: Vec<Expr> = args.iter().map(|arg| reduce(arg, constants)).collect();
            match constants {
                Some(constants) if name == "now" && args.is_empty() => Expr::Time(constants.now),
                Some(_) if is_math(name) && !args.is_empty() && args.iter().all(Expr::is_literal) => {
                    literal(math(name, &args.iter().map(constant).collect::<Vec<_>>()))
                }
                _ => Expr::Call(name.clone(), args),
            }
        }
        other => other.clone(),
    }
}

fn constant(expr: &Expr) -> Value {
    match expr {
        Expr::Num(value) => Value::Num(*value),
        Expr::Int(value) => Value::Int(*value),
        Expr::Uint(value) => Value::Num(*value as f64),
        Expr::Bool(value) => Value::Bool(*value),
        Expr::Str(text) => Value::text(text.as_str()),
        _ => Value::Null,
    }
}

fn literal(value: Value) -> Expr {
    match value {
        Value::Num(value) => Expr::Num(value),
        Value::Int(value) => Expr::Int(value),
        Value::Bool(value) => Expr::Bool(value),
        Value::Str(text) => Expr::Str(text.to_string()),
        Value::Null => Expr::Nil,
    }
}

fn binary(op: Op, left: Expr, right: Expr, zone: Option<chrono_tz::Tz>) -> Expr {
    use Expr::{Bool, Dur, Int, Nil, Num, Str, Time, Uint};
    let time_of = |text: &str| time::parse(text, zone).ok();
    match (op, &left, &right) {
        (Op::And, Bool(false), _) | (Op::And, _, Bool(false)) => return Bool(false),
        (Op::And, Bool(true), _) => return right,
        (Op::And, _, Bool(true)) => return left,
        (Op::Or, Bool(true), _) | (Op::Or, _, Bool(true)) => return Bool(true),
        (Op::Or, Bool(false), _) => return right,
        (Op::Or, _, Bool(false)) => return left,
        _ => {}
    }
    let reduced = match (op, &left, &right) {
        (Op::Add, Dur(a), Dur(b)) => Some(Dur(a.wrapping_add(*b))),
        (Op::Sub, Dur(a), Dur(b)) => Some(Dur(a.wrapping_sub(*b))),
        (Op::Mul, Dur(a), Int(b)) => Some(Dur(a.wrapping_mul(*b))),
        (Op::Mul, Dur(a), Num(b)) => Some(Dur(a.wrapping_mul(*b as i64))),
        (Op::Div, Dur(_), Int(0)) => Some(Dur(0)),
        (Op::Div, Dur(a), Int(b)) => Some(Dur(a.wrapping_div(*b))),
        (Op::Div, Dur(a), Num(b)) => Some(Dur(a.checked_div(*b as i64).unwrap_or(0))),
        (Op::Add, Int(a), Dur(b)) => Some(Time(a.saturating_add(*b))),
        (Op::Sub, Int(a), Dur(b)) => Some(Time(a.saturating_sub(*b))),
        (Op::Add, Time(a), Dur(b)) | (Op::Add, Dur(b), Time(a)) => Some(Time(a.saturating_add(*b))),
        (Op::Add, Time(a), Int(b)) | (Op::Add, Int(b), Time(a)) => Some(Time(a.saturating_add(*b))),
        (Op::Sub, Time(a), Dur(b) | Int(b)) => Some(Time(a.saturating_sub(*b))),
        (Op::Sub, Time(a), Time(b)) => Some(Dur(a.saturating_sub(*b))),
        (Op::Add, Str(a), Dur(b)) | (Op::Add, Dur(b), Str(a)) => {
            time_of(a).map(|a| Time(a.saturating_add(*b)))
        }
        (Op::Sub, Str(a), Dur(b)) => time_of(a).map(|a| Time(a.saturating_sub(*b))),
        (Op::Add, Str(a), Str(b)) => Some(Str(format!("{a}{b}"))),
        (_, Int(a), Int(b)) if op.precedence() >= 3 => match op {
            Op::Div if *b == 0 => Some(Num(0.0)),
            _ => Some(literal(operate(op, Value::Int(*a), Value::Int(*b), true))),
        },
        (_, Int(_) | Num(_) | Uint(_), Int(_) | Num(_) | Uint(_)) => {
            Some(literal(operate(op, constant(&left), constant(&right), true)))
        }
        (_, Bool(_), Bool(_)) | (Op::Eq | Op::Neq, Str(_), Str(_)) => {
            Some(literal(operate(op, constant(&left), constant(&right), true)))
        }
        (_, Int(_) | Num(_) | Bool(_) | Str(_) | Dur(_), Nil) | (Op::Eq | Op::Neq, Nil, _) => {
            Some(Bool(false))
        }
        _ => None,
    };
    match reduced {
        Some(Nil) | None => Expr::binary(op, left, right),
        Some(expr) => expr,
    }
}

/// The condition without the time, and the time range.
///
/// # Errors
/// In the words of InfluxDB.
pub(super) fn split_condition(
    condition: Option<&Expr>,
    constants: &Constants,
) -> Result<(Option<Expr>, Times), String> {
    let Some(condition) = condition else { return Ok((None, Times::default())) };
    let (rest, times) = split(condition, constants)?;
    let rest = match rest {
        Some(Expr::Paren(inner)) => Some(*inner),
        rest => rest,
    };
    Ok((rest.filter(|rest| *rest != Expr::Bool(true)), times))
}

fn split(condition: &Expr, constants: &Constants) -> Result<(Option<Expr>, Times), String> {
    match condition {
        Expr::Binary(op @ (Op::And | Op::Or), left, right) => {
            let (left, left_times) = split(left, constants)?;
            let (right, right_times) = split(right, constants)?;
            let rest = match (left, right) {
                (Some(left), Some(right)) => Some(reduce(&Expr::binary(*op, left, right), None)),
                (left, right) => left.or(right),
            };
            Ok((rest, left_times.intersect(right_times)))
        }
        Expr::Binary(op, left, right) => {
            let is_time =
                |expr: &Expr| matches!(expr, Expr::Ref(name, _) if name.eq_ignore_ascii_case("time"));
            if is_time(left) {
                return Ok((None, bounds(*op, right, constants)?));
            }
            if is_time(right) {
                let op = match op {
                    Op::Gt => Op::Lt,
                    Op::Lt => Op::Gt,
                    Op::Gte => Op::Lte,
                    Op::Lte => Op::Gte,
                    other => *other,
                };
                return Ok((None, bounds(op, left, constants)?));
            }
            Ok((Some(reduce(condition, Some(constants))), Times::default()))
        }
        Expr::Paren(inner) => {
            let (inner, times) = split(inner, constants)?;
            Ok((inner.map(|inner| reduce(&Expr::Paren(Box::new(inner)), None)), times))
        }
        Expr::Bool(_) => Ok((Some(condition.clone()), Times::default())),
        other => Err(format!("invalid condition expression: {other}")),
    }
}

fn bounds(op: Op, bound: &Expr, constants: &Constants) -> Result<Times, String> {
    let reduced = match bound {
        Expr::Str(text) if time::looks_like(text) => {
            let nanos = time::parse_wide(text, constants.zone)?;
            let shown = || time::rfc3339_wide(nanos);
            if nanos > i128::from(TIME_MAX) {
                return Err(format!("time {} overflows time literal", shown()));
            }
            if nanos < i128::from(TIME_MIN) + 1 {
                return Err(format!("time {} underflows time literal", shown()));
            }
            Expr::Time(nanos as i64)
        }
        other => reduce(other, Some(constants)),
    };
    let value = match reduced {
        Expr::Time(nanos) | Expr::Dur(nanos) | Expr::Int(nanos) => nanos,
        Expr::Num(value) => value as i64,
        other => return Err(format!("invalid operation: time and {} are not compatible", other.kind_name())),
    };
    Ok(match op {
        Op::Gt => Times { min: Some(value.saturating_add(1)), max: None },
        Op::Gte => Times { min: Some(value), max: None },
        Op::Lt => Times { min: None, max: Some(value.saturating_sub(1)) },
        Op::Lte => Times { min: None, max: Some(value) },
        Op::Eq => Times { min: Some(value), max: Some(value) },
        other => return Err(format!("invalid time comparison operator: {}", other.text())),
    })
}
