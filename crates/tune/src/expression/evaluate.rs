//! Evaluates a checked expression over an observation.
//!
//! A value that the observation does not have is unknown, and so is all that depends on it. `false and unknown` is false and
//! `true or unknown` is true (Kleene's logic). A division by zero is unknown.

use std::collections::BTreeSet;

use super::syntax::{Function, Node, Operator, Term};
use crate::value::Value;

/// The increase of a counter between two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Increase {
    /// The value at the first moment.
    pub before: f64,
    /// The value at the second moment.
    pub after: f64,
    /// The time between the two moments, in seconds.
    pub window_s: f64,
}

impl Increase {
    /// The increase. A counter that was reset counts from zero.
    pub fn delta(&self) -> f64 {
        if self.after < self.before { self.after } else { self.after - self.before }
    }

    /// The increase per second, if time has passed.
    pub fn rate(&self) -> Option<f64> {
        (self.window_s > 0.0).then(|| self.delta() / self.window_s)
    }
}

/// The values that an expression reads.
pub trait Scope {
    /// The value of a setting or a fact.
    fn value(&self, name: &str) -> Option<Value>;
    /// The increase of a counter.
    fn counter(&self, name: &str) -> Option<Increase>;
}

/// Returns the value, or `None` if it is unknown. `missing` gets the names of missing values.
pub(crate) fn evaluate(node: &Node, scope: &dyn Scope, missing: &mut BTreeSet<String>) -> Option<Value> {
    match &node.term {
        Term::Constant(value) => Some(value.clone()),
        Term::Name(name) => {
            let value = scope.value(name);
            if value.is_none() {
                missing.insert(name.clone());
            }
            value
        }
        Term::Negate(inner) => number(inner, scope, missing).map(|number| Value::Number(-number)),
        Term::Not(inner) => boolean(inner, scope, missing).map(|boolean| Value::Boolean(!boolean)),
        Term::Binary(operator, left, right) => binary(*operator, left, right, scope, missing),
        Term::Call(function, arguments) => call(*function, arguments, scope, missing),
    }
}

fn number(node: &Node, scope: &dyn Scope, missing: &mut BTreeSet<String>) -> Option<f64> {
    match evaluate(node, scope, missing)? {
        Value::Number(number) => Some(number),
        other => wrong_kind(node, &other, missing),
    }
}

fn boolean(node: &Node, scope: &dyn Scope, missing: &mut BTreeSet<String>) -> Option<bool> {
    match evaluate(node, scope, missing)? {
        Value::Boolean(boolean) => Some(boolean),
        other => wrong_kind(node, &other, missing),
    }
}

/// The check has ruled out other kinds, so only the observation can have one: the value counts as missing.
fn wrong_kind<T>(node: &Node, value: &Value, missing: &mut BTreeSet<String>) -> Option<T> {
    if let Term::Name(name) = &node.term {
        missing.insert(format!("{name} (`{value}` has the wrong kind)"));
    }
    None
}

fn binary(
    operator: Operator,
    left: &Node,
    right: &Node,
    scope: &dyn Scope,
    missing: &mut BTreeSet<String>,
) -> Option<Value> {
    use Operator as O;
    match operator {
        O::And | O::Or => {
            let decisive = operator == O::Or;
            let left = boolean(left, scope, missing);
            if left == Some(decisive) {
                return Some(Value::Boolean(decisive));
            }
            let right = boolean(right, scope, missing);
            if right == Some(decisive) {
                return Some(Value::Boolean(decisive));
            }
            left.and(right).map(Value::Boolean)
        }
        O::Equal | O::NotEqual => {
            let (left, right) = both(evaluate(left, scope, missing), evaluate(right, scope, missing))?;
            let equal = match (&left, &right) {
                // Products print the same choice in different cases: `row` and `ROW`.
                (Value::Text(left), Value::Text(right)) => left.eq_ignore_ascii_case(right),
                _ => left == right,
            };
            Some(Value::Boolean(equal == (operator == O::Equal)))
        }
        _ => {
            let (left, right) = both(number(left, scope, missing), number(right, scope, missing))?;
            match operator {
                O::Less => Some(Value::Boolean(left < right)),
                O::LessOrEqual => Some(Value::Boolean(left <= right)),
                O::Greater => Some(Value::Boolean(left > right)),
                O::GreaterOrEqual => Some(Value::Boolean(left >= right)),
                O::Add => Some(Value::Number(left + right)),
                O::Subtract => Some(Value::Number(left - right)),
                O::Multiply => Some(Value::Number(left * right)),
                _ => (right != 0.0).then(|| Value::Number(left / right)),
            }
        }
    }
}

/// Both values. The caller has evaluated both, so that `missing` names all that is missing.
fn both<A, B>(left: Option<A>, right: Option<B>) -> Option<(A, B)> {
    left.zip(right)
}

fn call(
    function: Function,
    arguments: &[Node],
    scope: &dyn Scope,
    missing: &mut BTreeSet<String>,
) -> Option<Value> {
    use Function as F;
    let number_of = match function {
        F::If => {
            let chosen = if boolean(&arguments[0], scope, missing)? { &arguments[1] } else { &arguments[2] };
            return evaluate(chosen, scope, missing);
        }
        F::Known => {
            let known = matches!(&arguments[0].term, Term::Name(name) if scope.value(name).is_some());
            return Some(Value::Boolean(known));
        }
        F::Rate | F::Delta | F::Total => {
            let Term::Name(name) = &arguments[0].term else { return None };
            let increase = scope.counter(name);
            if increase.is_none() {
                missing.insert(name.clone());
            }
            match function {
                F::Rate => increase?.rate(),
                F::Delta => Some(increase?.delta()),
                _ => Some(increase?.after),
            }
        }
        F::Floor => number(&arguments[0], scope, missing).map(f64::floor),
        F::Ceil => number(&arguments[0], scope, missing).map(f64::ceil),
        F::Min | F::Max => {
            let fold = if function == F::Min { f64::min } else { f64::max };
            let numbers: Vec<_> = arguments.iter().map(|argument| number(argument, scope, missing)).collect();
            numbers.into_iter().collect::<Option<Vec<_>>>()?.into_iter().reduce(fold)
        }
    };
    number_of.map(Value::Number)
}
