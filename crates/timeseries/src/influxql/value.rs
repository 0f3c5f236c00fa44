//! Values, and what operators and the functions of mathematics make of them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::ast::{DataType, Expr, Op};

/// A value in an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// A float.
    Num(f64),
    /// An integer.
    Int(i64),
    /// A text.
    Str(Arc<str>),
    Bool(bool),
}

impl Value {
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Str(text.into())
    }

    /// Whether there is no value.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value of a number as a float.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Num(value) => Some(*value),
            Self::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub fn data_type(&self) -> DataType {
        match self {
            Self::Null => DataType::Unknown,
            Self::Num(_) => DataType::Float,
            Self::Int(_) => DataType::Integer,
            Self::Str(_) => DataType::String,
            Self::Bool(_) => DataType::Boolean,
        }
    }

    /// The value as another type; null where there is none.
    pub fn cast(self, wanted: DataType) -> Value {
        match (wanted, self) {
            (DataType::Float, Self::Int(value)) => Self::Num(value as f64),
            (DataType::Integer, Self::Num(value)) => Self::Int(value as i64),
            (DataType::Float, value @ Self::Num(_)) | (DataType::Integer, value @ Self::Int(_)) => value,
            (DataType::String | DataType::Tag, value @ Self::Str(_)) => value,
            (DataType::Boolean, value @ Self::Bool(_)) => value,
            (DataType::Unknown | DataType::AnyField, value) => value,
            _ => Self::Null,
        }
    }

    /// The order of two values of one type.
    pub fn order(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.total_cmp(&b),
                _ => Ordering::Equal,
            },
        }
    }
}

/// The functions that compute a value from the values of one row.
pub(super) fn is_math(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "sin"
            | "cos"
            | "tan"
            | "asin"
            | "acos"
            | "atan"
            | "atan2"
            | "exp"
            | "log"
            | "ln"
            | "log2"
            | "log10"
            | "sqrt"
            | "pow"
            | "floor"
            | "ceil"
            | "round"
    )
}

/// How an expression is evaluated.
pub(super) struct Eval<'a> {
    /// The value of a reference.
    pub lookup: &'a dyn Fn(&str, DataType) -> Value,
    /// Whether the quotient of two integers is a float.
    pub float_division: bool,
}

impl Eval<'_> {
    pub(super) fn value(&self, expr: &Expr) -> Value {
        match expr {
            Expr::Ref(name, kind) => (self.lookup)(name, *kind),
            Expr::Str(text) => Value::text(text.as_str()),
            Expr::Num(value) => Value::Num(*value),
            Expr::Int(value) => Value::Int(*value),
            Expr::Uint(value) => Value::Num(*value as f64),
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Dur(nanos) => Value::Int(*nanos),
            Expr::Paren(inner) => self.value(inner),
            Expr::Call(name, args) => {
                let args: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect();
                math(name, &args)
            }
            Expr::Binary(op, left, right) => self.binary(*op, left, right),
            _ => Value::Null,
        }
    }

    /// Whether a condition holds.
    pub(super) fn holds(&self, condition: &Expr) -> bool {
        self.value(condition) == Value::Bool(true)
    }

    fn binary(&self, op: Op, left: &Expr, right: &Expr) -> Value {
        let first = self.value(left);
        if let (Op::Match | Op::NotMatch, Expr::Regex(pattern)) = (op, right) {
            return match &first {
                Value::Str(text) => Value::Bool(pattern.0.is_match(text) == (op == Op::Match)),
                _ => Value::Bool(false),
            };
        }
        operate(op, first, self.value(right), self.float_division)
    }
}

/// The result of an operator.
pub(super) fn operate(op: Op, left: Value, right: Value, float_division: bool) -> Value {
    match (left, right) {
        (Value::Bool(a), right) => match right {
            Value::Bool(b) => booleans(op, a, b),
            Value::Null if matches!(op, Op::And | Op::Or) => booleans(op, a, false),
            _ if op.is_condition() || matches!(op, Op::BitAnd | Op::BitOr | Op::BitXor) => Value::Bool(false),
            _ => Value::Null,
        },
        (Value::Null, Value::Bool(b)) if matches!(op, Op::And | Op::Or) => booleans(op, false, b),
        (Value::Int(a), Value::Int(b)) => integers(op, a, b, float_division),
        (Value::Str(a), Value::Str(b)) => match op {
            Op::Eq => Value::Bool(a == b),
            Op::Neq => Value::Bool(a != b),
            _ => Value::Null,
        },
        (Value::Str(_), _) if matches!(op, Op::Eq | Op::Neq) => Value::Bool(false),
        (left, right) => match (left.number(), right.number()) {
            (Some(a), Some(b)) => floats(op, a, b),
            // A float compared with what is not a number: the comparison does not hold.
            (Some(_), None) if op.is_condition() && matches!(left, Value::Num(_)) => Value::Bool(false),
            _ => Value::Null,
        },
    }
}

fn booleans(op: Op, a: bool, b: bool) -> Value {
    match op {
        Op::And | Op::BitAnd => Value::Bool(a && b),
        Op::Or | Op::BitOr => Value::Bool(a || b),
        Op::BitXor | Op::Neq => Value::Bool(a != b),
        Op::Eq => Value::Bool(a == b),
        _ => Value::Null,
    }
}

fn floats(op: Op, a: f64, b: f64) -> Value {
    match op {
        Op::Add => Value::Num(a + b),
        Op::Sub => Value::Num(a - b),
        Op::Mul => Value::Num(a * b),
        Op::Div if b == 0.0 => Value::Num(0.0),
        Op::Div => Value::Num(a / b),
        Op::Mod => Value::Num(a % b),
        Op::Eq => Value::Bool(a == b),
        Op::Neq => Value::Bool(a != b),
        Op::Lt => Value::Bool(a < b),
        Op::Lte => Value::Bool(a <= b),
        Op::Gt => Value::Bool(a > b),
        Op::Gte => Value::Bool(a >= b),
        _ => Value::Null,
    }
}

fn integers(op: Op, a: i64, b: i64, float_division: bool) -> Value {
    match op {
        Op::Add => Value::Int(a.wrapping_add(b)),
        Op::Sub => Value::Int(a.wrapping_sub(b)),
        Op::Mul => Value::Int(a.wrapping_mul(b)),
        Op::Div if float_division => floats(op, a as f64, b as f64),
        Op::Div => Value::Int(if b == 0 { 0 } else { a.wrapping_div(b) }),
        Op::Mod => Value::Int(if b == 0 { 0 } else { a.wrapping_rem(b) }),
        Op::BitAnd => Value::Int(a & b),
        Op::BitOr => Value::Int(a | b),
        Op::BitXor => Value::Int(a ^ b),
        Op::Eq => Value::Bool(a == b),
        Op::Neq => Value::Bool(a != b),
        Op::Lt => Value::Bool(a < b),
        Op::Lte => Value::Bool(a <= b),
        Op::Gt => Value::Bool(a > b),
        Op::Gte => Value::Bool(a >= b),
        _ => Value::Null,
    }
}

/// The value of a function of mathematics; null where it has none.
pub(super) fn math(name: &str, args: &[Value]) -> Value {
    if let ([value @ Value::Int(_)], "abs" | "floor" | "ceil" | "round") = (args, name) {
        return value.clone();
    }
    let numbers: Option<Vec<f64>> = args.iter().map(Value::number).collect();
    let result = match (name, numbers.as_deref()) {
        ("abs", Some([x])) => x.abs(),
        ("floor", Some([x])) => x.floor(),
        ("ceil", Some([x])) => x.ceil(),
        ("round", Some([x])) => x.round(),
        ("sin", Some([x])) => x.sin(),
        ("cos", Some([x])) => x.cos(),
        ("tan", Some([x])) => x.tan(),
        ("asin", Some([x])) => x.asin(),
        ("acos", Some([x])) => x.acos(),
        ("atan", Some([x])) => x.atan(),
        ("exp", Some([x])) => x.exp(),
        ("ln", Some([x])) => x.ln(),
        ("log2", Some([x])) => x.log2(),
        ("log10", Some([x])) => x.log10(),
        ("sqrt", Some([x])) => x.sqrt(),
        ("atan2", Some([y, x])) => y.atan2(*x),
        ("log", Some([x, base])) => x.ln() / base.ln(),
        ("pow", Some([x, y])) => x.powf(*y),
        _ => return Value::Null,
    };
    Value::Num(result)
}
