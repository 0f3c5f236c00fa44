//! Predicates against a naive model, and the shapes of queries.

use model::{Value, ValueRef};
use proptest::prelude::*;
use serde_json::json;

use super::error::EntityQueryError;
use super::limits::{QUERY_KEY_FILTERS_MAX, QUERY_KEYS_MAX, QUERY_PREDICATE_DEPTH_MAX, QUERY_TEXT_BYTES_MAX};
use super::order::SortValue;
use super::*;

fn predicate(json: serde_json::Value) -> Predicate {
    serde_json::from_value(json).unwrap()
}

fn text(operation: &str, operand: &str, ignore_case: bool) -> Predicate {
    let value = json!({ "defaultValue": operand });
    predicate(json!({ "type": "STRING", "operation": operation, "value": value, "ignoreCase": ignore_case }))
}

fn number(operation: &str, operand: f64) -> Predicate {
    predicate(json!({ "type": "NUMERIC", "operation": operation, "value": { "defaultValue": operand } }))
}

/// The characters of a text, in lower case if case does not matter.
fn characters(text: &str, ignore_case: bool) -> Vec<char> {
    match ignore_case {
        true => text.chars().flat_map(char::to_lowercase).collect(),
        false => text.chars().collect(),
    }
}

/// Whether a string predicate holds, said in another way than in the code.
fn naive(operation: &str, text: &str, operand: &str, ignore_case: bool) -> bool {
    let (text, operand) = (characters(text, ignore_case), characters(operand, ignore_case));
    let at =
        |start: usize| text[start..].iter().zip(&operand).filter(|(a, b)| a == b).count() == operand.len();
    let starts = 0..=text.len().saturating_sub(operand.len());
    let fits = operand.len() <= text.len();
    match operation {
        "EQUAL" => text == operand,
        "NOT_EQUAL" => text != operand,
        "STARTS_WITH" => fits && at(0),
        "ENDS_WITH" => fits && at(text.len() - operand.len()),
        "CONTAINS" => fits && starts.into_iter().any(at),
        "NOT_CONTAINS" => !(fits && starts.into_iter().any(at)),
        other => panic!("{other}"),
    }
}

fn value() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        any::<bool>().prop_map(|value| Some(Value::Bool(value))),
        (-3_i64..3).prop_map(|value| Some(Value::I64(value))),
        (-3_i32..3).prop_map(|value| Some(Value::F64(f64::from(value) / 2.0))),
        "[aAbB ]{0,4}".prop_map(|text| Some(Value::String(text))),
    ]
}

proptest! {
    #[test]
    fn string_predicates_agree_with_the_model(
        operation in prop::sample::select(vec!["EQUAL", "NOT_EQUAL", "STARTS_WITH", "ENDS_WITH", "CONTAINS", "NOT_CONTAINS"]),
        value in "[aAbB]{0,5}",
        operand in "[aAbB]{0,3}",
        ignore_case: bool,
    ) {
        let holds = text(operation, &operand, ignore_case).holds(Some(ValueRef::String(&value)));
        prop_assert_eq!(holds, naive(operation, &value, &operand, ignore_case));
    }

    #[test]
    fn numeric_predicates_hold_for_numbers_only(value in value(), operand in -3_i32..3) {
        let operand = f64::from(operand) / 2.0;
        let number_of = match &value {
            Some(Value::I64(value)) => Some(*value as f64),
            Some(Value::F64(value)) => Some(*value),
            _ => None,
        };
        let holds = |operation| number(operation, operand).holds(value.as_ref().map(Value::as_ref));
        for (operation, expected) in [
            ("EQUAL", number_of.is_some_and(|number| number == operand)),
            ("NOT_EQUAL", number_of.is_some_and(|number| number != operand)),
            ("GREATER", number_of.is_some_and(|number| number > operand)),
            ("LESS", number_of.is_some_and(|number| number < operand)),
            ("GREATER_OR_EQUAL", number_of.is_some_and(|number| number >= operand)),
            ("LESS_OR_EQUAL", number_of.is_some_and(|number| number <= operand)),
        ] {
            prop_assert_eq!(holds(operation), expected, "{} {:?} {}", operation, value, operand);
        }
    }

    #[test]
    fn joined_predicates_are_all_or_any(value in value(), operands in prop::collection::vec(-3_i32..3, 1..4)) {
        let parts: Vec<_> = operands.iter().map(|operand| {
            json!({ "type": "NUMERIC", "operation": "GREATER", "value": { "defaultValue": operand } })
        }).collect();
        let value = value.as_ref().map(Value::as_ref);
        let each: Vec<bool> = parts.iter().map(|part| predicate(part.clone()).holds(value)).collect();
        let joined = |operation| {
            predicate(json!({ "type": "COMPLEX", "operation": operation, "predicates": parts })).holds(value)
        };
        prop_assert_eq!(joined("AND"), !each.contains(&false));
        prop_assert_eq!(joined("OR"), each.contains(&true));
    }

    #[test]
    fn values_of_all_types_have_one_order(values in prop::collection::vec(value(), 0..8)) {
        let mut sorted: Vec<SortValue> =
            values.iter().map(|value| SortValue::of(value.as_ref().map(Value::as_ref))).collect();
        sorted.sort_by(SortValue::compare);
        for pair in sorted.windows(2) {
            prop_assert!(pair[0].compare(&pair[1]).is_le());
        }
        prop_assert_eq!(sorted.len(), values.len());
    }
}

#[test]
fn lists_are_separated_by_commas_and_absent_values_are_empty_text() {
    assert!(text("IN", "a, b", false).holds(Some(ValueRef::String("b"))));
    assert!(!text("IN", "a, b", false).holds(Some(ValueRef::String("B"))));
    assert!(text("IN", "a, b", true).holds(Some(ValueRef::String("B"))));
    assert!(text("NOT_IN", "a, b", false).holds(Some(ValueRef::String("c"))));
    assert!(text("EQUAL", "", false).holds(None) && text("NOT_EQUAL", "x", false).holds(None));
    assert!(!text("CONTAINS", "x", false).holds(None));
    assert!(text("EQUAL", "5.0", false).holds(Some(ValueRef::F64(5.0))));
}

#[test]
fn the_users_value_counts_before_the_default_and_a_missing_one_is_refused() {
    let chosen = json!({ "defaultValue": 1, "userValue": 2, "dynamicValue": null });
    let equal = |value: serde_json::Value| {
        predicate(json!({ "type": "NUMERIC", "operation": "EQUAL", "value": value }))
    };
    assert!(equal(chosen).holds(Some(ValueRef::I64(2))));
    let missing = equal(json!({ "defaultValue": null }));
    assert!(matches!(missing.check(1), Err(EntityQueryError::Invalid(_))));
}

#[test]
fn an_attribute_replaces_the_default_if_it_has_the_type() {
    let source = json!({ "sourceType": "CURRENT_USER", "sourceAttribute": "most", "inherit": false });
    let value = json!({ "defaultValue": 1, "userValue": null, "dynamicValue": source });
    for (found, expected) in [(Some(Value::I64(7)), 7), (Some(Value::String("7".into())), 1), (None, 1)] {
        let mut equal = predicate(json!({ "type": "NUMERIC", "operation": "EQUAL", "value": value.clone() }));
        equal
            .resolve(&mut |source| {
                assert_eq!(
                    (source.source_type, &*source.source_attribute),
                    (DynamicSource::CurrentUser, "most")
                );
                Ok(found.clone())
            })
            .unwrap();
        assert!(equal.holds(Some(ValueRef::I64(expected))), "{found:?}");
    }
}

fn query(members: serde_json::Value) -> EntityDataQuery {
    let mut query = json!({ "entityFilter": { "type": "entityType", "entityType": "DEVICE" }, "pageLink": { "pageSize": 10 } });
    query.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    serde_json::from_value(query).unwrap()
}

/// The name of the limit that a query exceeds.
fn exceeded(query: &EntityDataQuery) -> &'static str {
    match query.check() {
        Err(EntityQueryError::OverLimit { name, .. }) => name,
        other => panic!("{other:?}"),
    }
}

#[test]
fn queries_have_named_limits() {
    query(json!({})).check().unwrap();
    let key = json!({ "type": "TIME_SERIES", "key": "a" });
    assert_eq!(
        exceeded(&query(json!({ "latestValues": vec![key.clone(); QUERY_KEYS_MAX + 1] }))),
        "QUERY_KEYS_MAX"
    );
    let leaf = json!({ "type": "BOOLEAN", "operation": "EQUAL", "value": { "defaultValue": true } });
    let filter =
        |predicate: serde_json::Value| json!({ "key": key, "valueType": "BOOLEAN", "predicate": predicate });
    let many = vec![filter(leaf.clone()); QUERY_KEY_FILTERS_MAX + 1];
    assert_eq!(exceeded(&query(json!({ "keyFilters": many }))), "QUERY_KEY_FILTERS_MAX");
    let nested = |depth: usize| {
        (1..depth).fold(
            leaf.clone(),
            |inner, _| json!({ "type": "COMPLEX", "operation": "AND", "predicates": [inner] }),
        )
    };
    query(json!({ "keyFilters": [filter(nested(QUERY_PREDICATE_DEPTH_MAX))] })).check().unwrap();
    let deep = query(json!({ "keyFilters": [filter(nested(QUERY_PREDICATE_DEPTH_MAX + 1))] }));
    assert_eq!(exceeded(&deep), "QUERY_PREDICATE_DEPTH_MAX");
    let wide = json!({ "type": "COMPLEX", "operation": "OR", "predicates": vec![leaf.clone(); 1_001] });
    assert_eq!(exceeded(&query(json!({ "keyFilters": [filter(wide)] }))), "QUERY_PREDICATES_MAX");
    let long = json!({ "defaultValue": "x".repeat(QUERY_TEXT_BYTES_MAX + 1) });
    let long = json!({ "type": "STRING", "operation": "EQUAL", "value": long });
    assert_eq!(exceeded(&query(json!({ "keyFilters": [filter(long)] }))), "QUERY_TEXT_BYTES_MAX");
}

#[test]
fn unknown_words_are_refused_with_the_known_ones() {
    for (json, part) in [
        (json!({ "type": "STRING", "operation": "LIKE", "value": {} }), "STARTS_WITH"),
        (json!({ "type": "REGEX", "value": {} }), "COMPLEX"),
        (
            json!({ "type": "NUMERIC", "operation": "EQUAL", "value": { "defaultValue": "x" } }),
            "invalid type",
        ),
    ] {
        let error = serde_json::from_value::<Predicate>(json.clone()).unwrap_err().to_string();
        assert!(error.contains(part), "{json}: {error}");
    }
    let filter = json!({ "type": "deviceTypes" });
    let error = serde_json::from_value::<EntityFilter>(filter).unwrap_err().to_string();
    assert!(error.contains("deviceType") && error.contains("relationsQuery"), "{error}");
}

#[test]
fn selected_keys_are_sorted_by_kind_and_each_once() {
    let fields = json!([{ "type": "ENTITY_FIELD", "key": "name" }]);
    let latest = json!([
        { "type": "TIME_SERIES", "key": "b" },
        { "type": "ATTRIBUTE", "key": "a" },
        { "type": "TIME_SERIES", "key": "b" }
    ]);
    let selected =
        query(json!({ "entityFields": fields, "latestValues": latest, "keyFilters": null })).selected();
    let found: Vec<_> = selected.iter().map(|key| (key.kind.name(), &*key.key)).collect();
    assert_eq!(found, [("ENTITY_FIELD", "name"), ("ATTRIBUTE", "a"), ("TIME_SERIES", "b")]);
}
