//! Rules that cannot be read.

use super::*;
use crate::alarm_rules::limits::{
    ALARM_TYPES_PER_PROFILE_MAX, FILTERS_PER_RULE_MAX, KEYS_PER_PROFILE_MAX, PREDICATE_DEPTH_MAX,
};

#[track_caller]
fn fault(profile_data: &Json, path: &str, part: &str) {
    let error = AlarmRules::parse(profile_data).unwrap_err();
    assert!(error.path.ends_with(path), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

fn with_rule(change: impl FnOnce(&mut Json)) -> Json {
    let mut rule = rule(vec![number("t", "GREATER", 20.0)], simple());
    change(&mut rule);
    profile(json!({"MAJOR": rule}), Json::Null)
}

#[test]
fn a_profile_without_alarms_has_no_rules() {
    for data in [json!({}), json!({"alarms": null}), json!({"alarms": []}), Json::Null] {
        assert!(AlarmRules::parse(&data).unwrap().is_empty());
    }
    let rules = AlarmRules::parse(&thresholds()).unwrap();
    assert_eq!((rules.alarms().len(), rules.keys().len()), (1, 1));
    assert!(rules.alarms()[0].clears());
}

#[test]
fn faults_name_their_place() {
    fault(&json!({"alarms": 1}), "alarms", "is a number; it must be a list");
    fault(&json!({"alarms": [{}]}), "alarms[0].alarmType", "is missing");
    fault(&profile(json!({}), Json::Null), "createRules", "no rule");
    fault(&profile(json!({"BAD": null}), Json::Null), "createRules", "INDETERMINATE");
    let place = "alarms[0].createRules.MAJOR";
    fault(&with_rule(|rule| rule["condition"] = Json::Null), &format!("{place}.condition.condition"), "list");
    let filter = |change: fn(&mut Json)| with_rule(|rule| change(&mut rule["condition"]["condition"][0]));
    let predicate = format!("{place}.condition.condition[0].predicate");
    fault(&filter(|f| f["key"]["type"] = "CLIENT".into()), "key.type", "CONSTANT");
    fault(&filter(|f| f["predicate"]["operation"] = "IN".into()), &format!("{predicate}.operation"), "LESS");
    fault(
        &filter(|f| f["predicate"]["value"]["defaultValue"] = "x".into()),
        &format!("{predicate}.value.defaultValue"),
        "is a text; it must be a number",
    );
    let spec = |spec: Json| with_rule(|rule| rule["condition"]["spec"] = spec);
    fault(&spec(duration(0)), "spec.predicate.defaultValue", "at least 1");
    fault(&spec(json!({"type": "DURATION"})), "spec.unit", "is missing");
    let schedule = |schedule: Json| with_rule(|rule| rule["schedule"] = schedule);
    fault(&schedule(json!({"type": "SOMETIMES"})), "schedule.type", "ANY_TIME");
    let specific = json!({"type": "SPECIFIC_TIME", "timezone": "Mars/Base", "daysOfWeek": [8]});
    fault(&schedule(specific), "daysOfWeek[0]", "1 (Monday)");
    let zone = json!({
        "type": "SPECIFIC_TIME", "timezone": "Mars/Base", "daysOfWeek": [], "startsOn": 0, "endsOn": 0
    });
    fault(&schedule(zone), "schedule.timezone", "Europe/Berlin");
    let attribute = json!({"type": "ANY_TIME", "dynamicValue": {"sourceAttribute": "s"}});
    fault(&schedule(attribute), "schedule.dynamicValue.sourceType", "is missing");
}

#[test]
fn two_alarms_of_a_profile_have_different_types() {
    let mut data = thresholds();
    let twin = data["alarms"][0].clone();
    data["alarms"].as_array_mut().unwrap().push(twin);
    fault(&data, "alarms[1].alarmType", "another alarm");
}

#[test]
fn limits_are_named() {
    let mut data = thresholds();
    data["alarms"] = vec![data["alarms"][0].clone(); ALARM_TYPES_PER_PROFILE_MAX + 1].into();
    fault(&data, "alarms", "ALARM_TYPES_PER_PROFILE_MAX");
    let filters = vec![number("t", "LESS", 1.0); FILTERS_PER_RULE_MAX + 1];
    fault(
        &with_rule(|rule| rule["condition"]["condition"] = filters.into()),
        "condition",
        "FILTERS_PER_RULE_MAX",
    );
    let leaf = number("t", "LESS", 1.0)["predicate"].clone();
    let deep = (0..PREDICATE_DEPTH_MAX)
        .fold(leaf, |inner, _| json!({"type": "COMPLEX", "operation": "AND", "predicates": [inner]}));
    let nested = with_rule(|rule| rule["condition"]["condition"][0]["predicate"] = deep);
    fault(&nested, "predicates[0]", "PREDICATE_DEPTH_MAX");
    let mut keys: Vec<Json> = Vec::new();
    for alarm in 0..=KEYS_PER_PROFILE_MAX {
        let one = rule(vec![number(&format!("k{alarm}"), "LESS", 1.0)], simple());
        let severity = Severity::ALL[alarm % 5].name();
        if alarm % 5 == 0 {
            keys.push(json!({"alarmType": format!("a{alarm}"), "createRules": {}}));
        }
        keys.last_mut().unwrap()["createRules"][severity] = one;
    }
    let data = json!({"alarms": keys});
    assert!(AlarmRules::parse(&data).unwrap_err().reason.contains("KEYS_PER_PROFILE_MAX"));
}
