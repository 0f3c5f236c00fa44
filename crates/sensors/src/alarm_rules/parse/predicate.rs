//! Reads a predicate: `KeyFilterPredicate` and `FilterPredicateValue`.

use super::keys::intern;
use super::node::Node;
use crate::alarm_rules::error::RuleError;
use crate::alarm_rules::keys::{Key, KeyIndex, KeySource};
use crate::alarm_rules::limits::{PREDICATE_DEPTH_MAX, PREDICATES_PER_COMPLEX_MAX};
use crate::alarm_rules::operand::{Operand, Predicate};
use crate::predicate::{Comparison, Equality, Join, TextOperation};

#[derive(Debug, Clone, Copy)]
enum PredicateType {
    Number,
    Text,
    Bool,
    Complex,
}

pub(super) fn predicate(node: &Node<'_>, keys: &mut Vec<Key>, depth: usize) -> Result<Predicate, RuleError> {
    if depth > PREDICATE_DEPTH_MAX {
        let limit = PREDICATE_DEPTH_MAX;
        return Err(node.fault(format!("is at depth {depth}, the limit is {limit} (PREDICATE_DEPTH_MAX)")));
    }
    let predicate_type = node.member("type").one_of(&[
        ("NUMERIC", PredicateType::Number),
        ("STRING", PredicateType::Text),
        ("BOOLEAN", PredicateType::Bool),
        ("COMPLEX", PredicateType::Complex),
    ])?;
    let value = node.member("value");
    match predicate_type {
        PredicateType::Number => Ok(Predicate::Numeric {
            operation: comparison(node)?,
            value: operand(&value, keys, |default| default.number())?,
        }),
        PredicateType::Text => Ok(Predicate::String {
            operation: text_operation(node)?,
            value: operand(&value, keys, |default| default.text().map(Into::into))?,
            ignore_case: node.member("ignoreCase").flag()?,
        }),
        PredicateType::Bool => Ok(Predicate::Boolean {
            operation: node
                .member("operation")
                .one_of(&[("EQUAL", Equality::Equal), ("NOT_EQUAL", Equality::NotEqual)])?,
            value: operand(&value, keys, |default| default.bool())?,
        }),
        PredicateType::Complex => complex(node, keys, depth),
    }
}

fn complex(node: &Node<'_>, keys: &mut Vec<Key>, depth: usize) -> Result<Predicate, RuleError> {
    let operation = node.member("operation").one_of(&[("AND", Join::And), ("OR", Join::Or)])?;
    let list = node.member("predicates").list(PREDICATES_PER_COMPLEX_MAX, "PREDICATES_PER_COMPLEX_MAX")?;
    let mut predicates = Vec::with_capacity(list.len());
    for part in &list {
        predicates.push(predicate(part, keys, depth + 1)?);
    }
    Ok(Predicate::Complex { operation, predicates })
}

fn comparison(node: &Node<'_>) -> Result<Comparison, RuleError> {
    node.member("operation").one_of(&[
        ("EQUAL", Comparison::Equal),
        ("NOT_EQUAL", Comparison::NotEqual),
        ("GREATER", Comparison::Greater),
        ("LESS", Comparison::Less),
        ("GREATER_OR_EQUAL", Comparison::GreaterOrEqual),
        ("LESS_OR_EQUAL", Comparison::LessOrEqual),
    ])
}

fn text_operation(node: &Node<'_>) -> Result<TextOperation, RuleError> {
    node.member("operation").one_of(&[
        ("EQUAL", TextOperation::Equal),
        ("NOT_EQUAL", TextOperation::NotEqual),
        ("STARTS_WITH", TextOperation::StartsWith),
        ("ENDS_WITH", TextOperation::EndsWith),
        ("CONTAINS", TextOperation::Contains),
        ("NOT_CONTAINS", TextOperation::NotContains),
        ("IN", TextOperation::In),
        ("NOT_IN", TextOperation::NotIn),
    ])
}

/// A `FilterPredicateValue`: a default, which an attribute may replace. `userValue` has no effect in rules, as in ThingsBoard.
pub(super) fn operand<T>(
    node: &Node<'_>,
    keys: &mut Vec<Key>,
    default: impl FnOnce(&Node<'_>) -> Result<T, RuleError>,
) -> Result<Operand<T>, RuleError> {
    let default = default(&node.member("defaultValue"))?;
    Ok(Operand { default, dynamic: dynamic(&node.member("dynamicValue"), keys)? })
}

/// The attributes of a `DynamicValue`, in the order in which they are asked.
pub(super) fn dynamic(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Vec<KeyIndex>, RuleError> {
    let attribute = node.member("sourceAttribute");
    // ThingsBoard's page writes an empty `dynamicValue` for a value without one.
    if node.is_absent() || attribute.optional_text()?.is_none_or(str::is_empty) {
        return Ok(Vec::new());
    }
    let order = [KeySource::Attribute, KeySource::CustomerAttribute, KeySource::TenantAttribute];
    let first = node.member("sourceType").one_of(&[
        ("CURRENT_DEVICE", 0),
        ("CURRENT_CUSTOMER", 1),
        ("CURRENT_TENANT", 2),
    ])?;
    let count = if node.member("inherit").flag()? { order.len() - first } else { 1 };
    let sources = order.into_iter().skip(first).take(count);
    sources.map(|source| intern(&attribute, keys, source, attribute.text()?)).collect()
}
