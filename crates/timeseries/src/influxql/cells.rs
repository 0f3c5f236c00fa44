//! The values that the columns of an answer are computed from, row by row.

use super::ast::{DataType, Expr, Fill};
use super::fill::number;
use super::scan::Wanted;
use super::value::{Eval, Value};

/// Values that outputs are computed from. They stay from row to row where a fill keeps what was before.
pub(super) struct Cells {
    pub(super) refs: Vec<Wanted>,
    pub(super) values: Vec<Value>,
    pub(super) calls: Vec<Value>,
}

impl Cells {
    pub(super) fn new(refs: Vec<Wanted>, calls: usize) -> Self {
        Self { values: vec![Value::Null; refs.len()], refs, calls: vec![Value::Null; calls] }
    }

    /// Forgets the values of the rows before: a fill does not go on into the next group.
    pub(super) fn clear(&mut self) {
        self.values.fill(Value::Null);
        self.calls.fill(Value::Null);
    }

    pub(super) fn outputs(&self, outputs: &[Expr]) -> Vec<Value> {
        let lookup = |name: &str, kind: DataType| match kind {
            DataType::Time => {
                name.parse().ok().and_then(|call: usize| self.calls.get(call)).cloned().unwrap_or_default()
            }
            _ => {
                let found = self.refs.iter().position(|(own, own_kind)| own == name && *own_kind == kind);
                found.map_or(Value::Null, |index| self.values[index].clone())
            }
        };
        let eval = Eval { lookup: &lookup, float_division: true };
        let value = |output| match eval.value(output) {
            Value::Num(number) if number.is_nan() => Value::Null,
            value => value,
        };
        outputs.iter().map(value).collect()
    }
}

/// What takes the place of a value that a row does not have; `None` keeps the value of the row before.
pub(super) fn default_value(fill: Fill, kind: DataType) -> Option<Value> {
    match fill {
        Fill::Previous => None,
        Fill::Int(value) => Some(number(Value::Int(value), kind)),
        Fill::Num(value) => Some(number(Value::Num(value), kind)),
        _ => Some(Value::Null),
    }
}

pub(super) fn set(cell: &mut Value, value: Value, fill: Fill, kind: DataType) {
    match (value, default_value(fill, kind)) {
        (Value::Null, Some(default)) => *cell = default,
        (Value::Null, None) => {}
        (value, _) => *cell = value,
    }
}
