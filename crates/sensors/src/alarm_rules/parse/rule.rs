//! Reads a rule: `AlarmRule`, `AlarmCondition` and `AlarmConditionSpec`.

use model::Value;
use serde_json::Value as Json;

use super::keys::intern;
use super::node::Node;
use super::predicate::{operand, predicate};
use super::schedule::schedule;
use crate::alarm_rules::error::RuleError;
use crate::alarm_rules::keys::{Key, KeySet, KeySource};
use crate::alarm_rules::limits::FILTERS_PER_RULE_MAX;
use crate::alarm_rules::operand::{Operand, Predicate};
use crate::alarm_rules::rule::{Filter, Rule, Spec, Subject};

const SECOND_US: i64 = 1_000_000;

/// The kind of a filter's key (`AlarmConditionKeyType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Of(KeySource),
    Constant,
}

/// The kind of a rule's condition (`AlarmConditionSpecType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpecType {
    Simple,
    Duration,
    Repeating,
}

pub(super) fn rule(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Rule, RuleError> {
    let condition = node.member("condition");
    let list = condition.member("condition");
    let mut filters = Vec::new();
    for filter_node in list.list(FILTERS_PER_RULE_MAX, "FILTERS_PER_RULE_MAX")? {
        filters.push(filter(&filter_node, keys)?);
    }
    if filters.is_empty() {
        return Err(list.fault("is empty; a rule needs at least one filter".into()));
    }
    let spec = spec(&condition.member("spec"), keys)?;
    let mut read = KeySet::EMPTY;
    let mut reads_telemetry = false;
    for filter in &filters {
        if let Subject::Key(key) = filter.subject {
            read.add(key);
            reads_telemetry |= keys[usize::from(key)].source == KeySource::TimeSeries;
        }
        add_dynamic(&filter.predicate, &mut read);
    }
    let schedule = schedule(&node.member("schedule"), keys)?;
    let details = node.member("alarmDetails").optional_text()?.filter(|text| !text.is_empty());
    let dashboard = dashboard(&node.member("dashboardId"))?;
    Ok(Rule {
        filters,
        spec,
        schedule,
        details: details.map(Into::into),
        dashboard,
        keys: read,
        reads_telemetry,
    })
}

fn dashboard(node: &Node<'_>) -> Result<Option<Box<str>>, RuleError> {
    if node.is_absent() {
        return Ok(None);
    }
    node.member("id").text().map(|id| Some(id.into()))
}

fn add_dynamic(predicate: &Predicate, read: &mut KeySet) {
    let mut add = |dynamic: &[u8]| dynamic.iter().for_each(|key| read.add(*key));
    match predicate {
        Predicate::Numeric { value, .. } => add(&value.dynamic),
        Predicate::String { value, .. } => add(&value.dynamic),
        Predicate::Boolean { value, .. } => add(&value.dynamic),
        Predicate::Complex { predicates, .. } => {
            predicates.iter().for_each(|part| add_dynamic(part, read));
        }
    }
}

fn filter(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Filter, RuleError> {
    let key = node.member("key");
    let key_type = key.member("type").one_of(&[
        ("TIME_SERIES", KeyType::Of(KeySource::TimeSeries)),
        ("ATTRIBUTE", KeyType::Of(KeySource::Attribute)),
        ("ENTITY_FIELD", KeyType::Of(KeySource::EntityField)),
        ("CONSTANT", KeyType::Constant),
    ])?;
    let subject = match key_type {
        KeyType::Constant => Subject::Constant(constant(node)?),
        KeyType::Of(source) => {
            let name = key.member("key");
            Subject::Key(intern(&name, keys, source, name.text()?)?)
        }
    };
    Ok(Filter { subject, predicate: predicate(&node.member("predicate"), keys, 1)? })
}

/// The constant of a filter, of the type that `valueType` names.
fn constant(node: &Node<'_>) -> Result<Value, RuleError> {
    #[derive(Clone, Copy)]
    enum ValueType {
        Text,
        Number,
        Bool,
        Time,
    }
    let value_type = node.member("valueType").one_of(&[
        ("STRING", ValueType::Text),
        ("NUMERIC", ValueType::Number),
        ("BOOLEAN", ValueType::Bool),
        ("DATE_TIME", ValueType::Time),
    ])?;
    let value = node.member("value");
    let text = match value.json() {
        Json::String(text) => text.clone(),
        Json::Number(_) | Json::Bool(_) => value.json().to_string(),
        _ => return Err(value.fault("must be a text, a number or a boolean".into())),
    };
    let wrong = |expected: &str| value.fault(format!("is {text:?}; it must be {expected}"));
    Ok(match value_type {
        ValueType::Text => Value::String(text),
        ValueType::Bool => Value::Bool(text.parse().map_err(|_| wrong("true or false"))?),
        ValueType::Time => Value::I64(text.parse().map_err(|_| wrong("milliseconds since 1970"))?),
        ValueType::Number => {
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            Value::F64(number.ok_or_else(|| wrong("a number"))?)
        }
    })
}

fn spec(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Spec, RuleError> {
    if node.is_absent() {
        return Ok(Spec::Simple);
    }
    let spec_type = node.member("type").one_of(&[
        ("SIMPLE", SpecType::Simple),
        ("DURATION", SpecType::Duration),
        ("REPEATING", SpecType::Repeating),
    ])?;
    match spec_type {
        SpecType::Simple => Ok(Spec::Simple),
        SpecType::Duration => {
            let unit_us = node.member("unit").one_of(&[
                ("MILLISECONDS", SECOND_US / 1_000),
                ("SECONDS", SECOND_US),
                ("MINUTES", 60 * SECOND_US),
                ("HOURS", 3_600 * SECOND_US),
                ("DAYS", 86_400 * SECOND_US),
            ])?;
            Ok(Spec::Duration { value: whole(&node.member("predicate"), keys)?, unit_us })
        }
        SpecType::Repeating => Ok(Spec::Repeating { count: whole(&node.member("predicate"), keys)? }),
    }
}

/// A whole number of at least 1, which an attribute may replace.
fn whole(node: &Node<'_>, keys: &mut Vec<Key>) -> Result<Operand<f64>, RuleError> {
    operand(node, keys, |default| match default.whole()? {
        number @ 1.. => Ok(number as f64),
        number => Err(default.fault(format!("is {number}; it must be at least 1"))),
    })
}
