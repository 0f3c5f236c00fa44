//! Predicates on values of all types.

use super::*;

/// A device whose only rule has a filter of the telemetry `k`.
fn of_predicate(predicate: Json) -> Device {
    let filter = json!({"key": {"type": "TIME_SERIES", "key": "k"}, "predicate": predicate});
    Device::new(&profile(json!({"MAJOR": rule(vec![filter], simple())}), Json::Null))
}

#[track_caller]
fn check(predicate: Json, value: ValueRef<'_>, expected: bool) {
    let mut device = of_predicate(predicate.clone());
    let found = device.row(1, "k", value).is_some();
    assert_eq!(found, expected, "{predicate} {value:?}");
}

fn numeric(operation: &str, value: f64) -> Json {
    json!({"type": "NUMERIC", "operation": operation, "value": {"defaultValue": value}})
}

fn text(operation: &str, value: &str, ignore_case: bool) -> Json {
    let value = json!({"defaultValue": value});
    json!({"type": "STRING", "operation": operation, "value": value, "ignoreCase": ignore_case})
}

#[test]
fn numbers_compare_by_value_whatever_their_type() {
    for (operation, below, same, above) in [
        ("EQUAL", false, true, false),
        ("NOT_EQUAL", true, false, true),
        ("GREATER", false, false, true),
        ("LESS", true, false, false),
        ("GREATER_OR_EQUAL", false, true, true),
        ("LESS_OR_EQUAL", true, true, false),
    ] {
        for (value, expected) in [(4, below), (5, same), (6, above)] {
            check(numeric(operation, 5.0), ValueRef::I64(value), expected);
            check(numeric(operation, 5.0), ValueRef::String(&value.to_string()), expected);
        }
    }
    check(numeric("EQUAL", 1.0), ValueRef::Bool(true), true);
}

#[test]
fn a_text_that_is_not_a_number_holds_in_no_comparison_and_is_counted() {
    let mut device = of_predicate(numeric("NOT_EQUAL", 5.0));
    assert_eq!(device.row(1, "k", ValueRef::String("n/a")), None);
    assert_eq!(device.row(2, "k", ValueRef::Json("[1]")), None);
    assert_eq!(device.row(3, "k", ValueRef::String("nan")), None);
    assert_eq!(device.mismatches, 3);
    assert_eq!(device.row(4, "k", float(6.0)), create(Severity::Major));
    assert_eq!(device.mismatches, 3);
}

#[test]
fn texts_compare_as_thingsboard_compares_them() {
    for (operation, operand, value, expected) in [
        ("EQUAL", "ab", "ab", true),
        ("NOT_EQUAL", "ab", "ab", false),
        ("STARTS_WITH", "a", "ab", true),
        ("ENDS_WITH", "a", "ab", false),
        ("CONTAINS", "b", "abc", true),
        ("NOT_CONTAINS", "b", "abc", false),
        ("IN", "x, ab", "ab", true),
        ("IN", "'x','ab'", "ab", true),
        ("IN", "\"x\", 'ab'", "ab", false),
        ("NOT_IN", "x,ab", "ab", false),
    ] {
        check(text(operation, operand, false), ValueRef::String(value), expected);
    }
    check(text("EQUAL", "AB", false), ValueRef::String("ab"), false);
    check(text("EQUAL", "ÄB", true), ValueRef::String("äb"), true);
    check(text("EQUAL", "true", false), ValueRef::Bool(true), true);
    check(text("EQUAL", "5", false), ValueRef::I64(5), true);
}

#[test]
fn truths_compare_with_numbers_and_texts() {
    let is_true = json!({"type": "BOOLEAN", "operation": "EQUAL", "value": {"defaultValue": true}});
    for (value, expected) in [
        (ValueRef::Bool(true), true),
        (ValueRef::I64(1), true),
        (ValueRef::F64(0.0), false),
        (ValueRef::String("TRUE"), true),
        (ValueRef::String("on"), false),
    ] {
        check(is_true.clone(), value, expected);
    }
    let not_true = json!({"type": "BOOLEAN", "operation": "NOT_EQUAL", "value": {"defaultValue": true}});
    check(not_true, ValueRef::Bool(false), true);
}

#[test]
fn complex_predicates_nest() {
    let between = json!({
        "type": "COMPLEX", "operation": "AND",
        "predicates": [numeric("GREATER", 1.0), numeric("LESS", 5.0)],
    });
    let outer = json!({"type": "COMPLEX", "operation": "OR", "predicates": [between, numeric("EQUAL", 9.0)]});
    for (value, expected) in [(1, false), (3, true), (5, false), (9, true)] {
        check(outer.clone(), ValueRef::I64(value), expected);
    }
}

#[test]
fn an_attribute_replaces_the_default_and_an_owner_inherits() {
    let mut predicate = numeric("GREATER", 50.0);
    predicate["value"]["dynamicValue"] =
        json!({"sourceType": "CURRENT_DEVICE", "sourceAttribute": "max", "inherit": true});
    let mut device = of_predicate(predicate);
    let sources = [KeySource::Attribute, KeySource::CustomerAttribute, KeySource::TenantAttribute];
    let keys = sources.map(|source| device.rules.key(source, "max").unwrap());
    assert_eq!(device.row(1, "k", float(40.0)), None);
    let observed = |value| Some(Observed { ts: Timestamp::from_micros(1), value: model::Value::F64(value) });
    device.values.set(keys[2], observed(30.0));
    assert_eq!(device.row(2, "k", float(40.0)), create(Severity::Major), "the attribute of the tenant");
    device.state.ended();
    device.values.set(keys[0], observed(45.0));
    assert_eq!(device.row(3, "k", float(40.0)), None, "its own attribute is nearer");
}

#[test]
fn constants_have_their_own_type() {
    let constant = |value_type: &str, value: Json, predicate: Json| {
        let constant = json!({
            "key": {"type": "CONSTANT", "key": "c"}, "valueType": value_type, "value": value,
            "predicate": predicate,
        });
        let create = json!({"MAJOR": rule(vec![number("k", "GREATER", 0.0), constant], simple())});
        Device::new(&profile(create, Json::Null)).row(1, "k", float(1.0)).is_some()
    };
    assert!(constant("NUMERIC", "7".into(), numeric("EQUAL", 7.0)));
    assert!(!constant("NUMERIC", 7.into(), numeric("LESS", 7.0)));
    assert!(constant("STRING", "on".into(), text("EQUAL", "on", false)));
    assert!(constant("DATE_TIME", "1000".into(), numeric("GREATER", 999.0)));
}
