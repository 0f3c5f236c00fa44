//! Checks names and kinds of an expression before it is evaluated.

use super::error::Fault;
use super::syntax::{Function, Node, Operator, Term};
use crate::value::ValueKind;

/// The names that an expression may use.
pub trait Declarations {
    /// The kind of a setting or a fact.
    fn kind(&self, name: &str) -> Option<ValueKind>;
    /// Whether the name is a counter.
    fn is_counter(&self, name: &str) -> bool;
}

/// Returns the kind of the expression's value.
pub(crate) fn check(node: &Node, names: &dyn Declarations) -> Result<ValueKind, Fault> {
    match &node.term {
        Term::Constant(value) => Ok(value.kind()),
        Term::Name(name) => match names.kind(name) {
            Some(kind) => Ok(kind),
            None if names.is_counter(name) => {
                Err(Fault::new(node.at, format!("`{name}` is a counter: use rate(), delta() or total()")))
            }
            None => Err(Fault::new(node.at, format!("`{name}` is not declared"))),
        },
        Term::Negate(inner) => expect(inner, ValueKind::Number, names),
        Term::Not(inner) => expect(inner, ValueKind::Boolean, names),
        Term::Binary(operator, left, right) => binary(*operator, left, right, names),
        Term::Call(function, arguments) => call(node.at, *function, arguments, names),
    }
}

fn expect(node: &Node, kind: ValueKind, names: &dyn Declarations) -> Result<ValueKind, Fault> {
    let found = check(node, names)?;
    if found == kind { Ok(kind) } else { Err(Fault::new(node.at, format!("this is {found}, not {kind}"))) }
}

fn binary(
    operator: Operator,
    left: &Node,
    right: &Node,
    names: &dyn Declarations,
) -> Result<ValueKind, Fault> {
    use Operator as O;
    let (sides, result) = match operator {
        O::Or | O::And => (ValueKind::Boolean, ValueKind::Boolean),
        O::Less | O::LessOrEqual | O::Greater | O::GreaterOrEqual => (ValueKind::Number, ValueKind::Boolean),
        O::Add | O::Subtract | O::Multiply | O::Divide => (ValueKind::Number, ValueKind::Number),
        O::Equal | O::NotEqual => (check(left, names)?, ValueKind::Boolean),
    };
    expect(left, sides, names)?;
    expect(right, sides, names)?;
    Ok(result)
}

fn call(
    at: usize,
    function: Function,
    arguments: &[Node],
    names: &dyn Declarations,
) -> Result<ValueKind, Fault> {
    use Function as F;
    let count = |expected: usize| match arguments.len() == expected {
        true => Ok(()),
        false => Err(Fault::new(at, format!("{} arguments instead of {expected}", arguments.len()))),
    };
    match function {
        F::Min | F::Max => {
            arguments.iter().try_for_each(|argument| expect(argument, ValueKind::Number, names).map(drop))?;
            Ok(ValueKind::Number)
        }
        F::Floor | F::Ceil => count(1).and_then(|()| expect(&arguments[0], ValueKind::Number, names)),
        F::If => {
            count(3)?;
            expect(&arguments[0], ValueKind::Boolean, names)?;
            let kind = check(&arguments[1], names)?;
            expect(&arguments[2], kind, names)
        }
        F::Rate | F::Delta | F::Total => {
            count(1)?;
            match &arguments[0].term {
                Term::Name(name) if names.is_counter(name) => Ok(ValueKind::Number),
                _ => Err(Fault::new(arguments[0].at, "this is not the name of a counter")),
            }
        }
        F::Known => {
            count(1)?;
            match &arguments[0].term {
                Term::Name(name) if names.kind(name).is_some() => Ok(ValueKind::Boolean),
                _ => Err(Fault::new(arguments[0].at, "this is not the name of a setting or a fact")),
            }
        }
    }
}
