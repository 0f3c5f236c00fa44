//! An expression that is parsed and checked.

use std::collections::BTreeSet;
use std::fmt;

use super::check::{Declarations, check};
use super::error::ExpressionError;
use super::evaluate::{Scope, evaluate};
use super::parse::parse;
use super::syntax::{Node, Term};
use crate::value::{Value, ValueKind};

/// An expression whose names and kinds are checked. Its evaluation cannot fail; it can lack values.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: Node,
    kind: ValueKind,
}

impl Expression {
    /// Parses and checks a text.
    pub fn new(text: &str, names: &dyn Declarations) -> Result<Self, ExpressionError> {
        let compiled = parse(text).and_then(|root| Ok((check(&root, names)?, root)));
        let (kind, root) = compiled.map_err(|fault| fault.in_text(text))?;
        Ok(Self { text: text.to_owned(), root, kind })
    }

    /// The kind of its value.
    pub fn kind(&self) -> ValueKind {
        self.kind
    }

    /// The names that it reads. Names that are only in `known()` are not among them.
    pub fn names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.root.walk(&mut |node| {
            if let Term::Name(name) = &node.term {
                names.insert(name.as_str());
            }
        });
        names
    }

    /// Evaluates the expression. An error lists the names of the missing values; the list is empty if a division by zero
    /// made the value unknown.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, BTreeSet<String>> {
        let mut missing = BTreeSet::new();
        evaluate(&self.root, scope, &mut missing).ok_or(missing)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
