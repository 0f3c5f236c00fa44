//! The syntax tree of an expression.

use crate::value::Value;

/// A part of an expression with the byte at which it begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) term: Term,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Term {
    Constant(Value),
    Name(String),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
}

/// Operators with two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// The smallest of numbers.
    Min,
    /// The largest of numbers.
    Max,
    /// A number rounded down.
    Floor,
    /// A number rounded up.
    Ceil,
    /// `if(condition, a, b)`.
    If,
    /// The increase of a counter per second.
    Rate,
    /// The increase of a counter in the window.
    Delta,
    /// The value of a counter at the second moment.
    Total,
    /// Whether the observation has a value.
    Known,
}

impl Function {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Min,
            "max" => Self::Max,
            "floor" => Self::Floor,
            "ceil" => Self::Ceil,
            "if" => Self::If,
            "rate" => Self::Rate,
            "delta" => Self::Delta,
            "total" => Self::Total,
            "known" => Self::Known,
            _ => return None,
        })
    }
}

impl Node {
    /// Calls `see` for this node and all below it.
    pub(crate) fn walk<'a>(&'a self, see: &mut impl FnMut(&'a Self)) {
        see(self);
        match &self.term {
            Term::Constant(_) | Term::Name(_) => {}
            Term::Negate(inner) | Term::Not(inner) => inner.walk(see),
            Term::Binary(_, left, right) => {
                left.walk(see);
                right.walk(see);
            }
            // The argument of `known` is a question about a name, not a use of it.
            Term::Call(Function::Known, _) => {}
            Term::Call(_, arguments) => arguments.iter().for_each(|argument| argument.walk(see)),
        }
    }
}
