//! Rules in ThingsBoard's form, and what they decide.

mod naive;
mod parsing;
mod predicates;

use model::{Timestamp, ValueRef};
use serde_json::{Value as Json, json};

use super::*;

const SECOND: i64 = 1_000_000;

/// A device with one type of alarm.
struct Device {
    rules: AlarmRules,
    values: Values,
    state: AlarmState,
    mismatches: u64,
}

impl Device {
    fn new(profile_data: &Json) -> Self {
        let rules = AlarmRules::parse(profile_data).unwrap();
        let values = Values::new(rules.keys().len());
        let state = AlarmState::new(&rules.alarms()[0]);
        Self { rules, values, state, mismatches: 0 }
    }

    /// A row with one value, seen at its own time.
    fn row(&mut self, ts: i64, key: &str, value: ValueRef<'_>) -> Option<Transition> {
        self.event(KeySource::TimeSeries, ts, key, value)
    }

    fn event(&mut self, source: KeySource, ts: i64, key: &str, value: ValueRef<'_>) -> Option<Transition> {
        let ts = Timestamp::from_micros(ts);
        let index = self.rules.key(source, key).expect("a key of the rules");
        let mut keys = KeySet::EMPTY;
        let kind = match source {
            KeySource::TimeSeries => {
                if self.values.put(index, ts, value) {
                    keys.add(index);
                }
                EventKind::Telemetry
            }
            _ => {
                if self.values.set(index, Some(Observed { ts, value: value.to_owned() })) {
                    keys.add(index);
                }
                EventKind::Attributes
            }
        };
        let event = Event { kind, keys, ts, now: ts };
        let alarm = &self.rules.alarms()[0];
        on_event(alarm, &mut self.state, &self.values, &event, &mut self.mismatches)
    }

    fn timer(&mut self, now: i64) -> Option<Transition> {
        on_timer(&self.rules.alarms()[0], &mut self.state, &self.values, Timestamp::from_micros(now))
    }

    fn deadline(&self) -> Option<i64> {
        next_deadline(&self.rules.alarms()[0], &self.state, &self.values).map(Timestamp::micros)
    }
}

/// A filter of telemetry.
fn number(key: &str, operation: &str, value: f64) -> Json {
    json!({
        "key": {"type": "TIME_SERIES", "key": key},
        "valueType": "NUMERIC",
        "value": null,
        "predicate": {
            "type": "NUMERIC",
            "operation": operation,
            "value": {"defaultValue": value, "userValue": null, "dynamicValue": null},
        },
    })
}

fn rule(filters: Vec<Json>, spec: Json) -> Json {
    json!({
        "condition": {"condition": filters, "spec": spec},
        "schedule": null, "alarmDetails": null, "dashboardId": null,
    })
}

fn simple() -> Json {
    json!({"type": "SIMPLE"})
}

fn duration(seconds: i64) -> Json {
    json!({"type": "DURATION", "unit": "SECONDS", "predicate": {"defaultValue": seconds, "dynamicValue": null}})
}

fn repeating(count: i64) -> Json {
    json!({"type": "REPEATING", "predicate": {"defaultValue": count}})
}

fn profile(create: Json, clear: Json) -> Json {
    json!({"alarms": [{"id": "a", "alarmType": "Hot", "createRules": create, "clearRule": clear}]})
}

fn float(value: f64) -> ValueRef<'static> {
    ValueRef::F64(value)
}

fn create(severity: Severity) -> Option<Transition> {
    Some(Transition::Create { severity })
}

fn update(severity: Severity, changed: bool) -> Option<Transition> {
    Some(Transition::Update { severity, changed })
}

/// Above 20 is a warning, above 30 critical, below 10 the end.
fn thresholds() -> Json {
    profile(
        json!({
            "WARNING": rule(vec![number("t", "GREATER", 20.0)], simple()),
            "CRITICAL": rule(vec![number("t", "GREATER", 30.0)], simple()),
        }),
        rule(vec![number("t", "LESS", 10.0)], simple()),
    )
}

#[test]
fn an_attribute_replaces_the_schedule_and_what_is_not_a_schedule_replaces_nothing() {
    let mut always = rule(vec![number("t", "GREATER", 20.0)], simple());
    always["schedule"] = json!({
        "type": "CUSTOM", "timezone": "UTC", "items": [],
        "dynamicValue": {"sourceType": "CURRENT_CUSTOMER", "sourceAttribute": "hours", "inherit": true},
    });
    let mut device = Device::new(&profile(json!({"MINOR": always}), Json::Null));
    assert_eq!(device.row(1, "t", float(30.0)), None, "no day has hours");
    let set = |device: &mut Device, source: KeySource, text: &str| {
        device.event(source, 1, "hours", ValueRef::Json(text))
    };
    let night = r#"{"timezone":"UTC","items":[{"dayOfWeek":4,"enabled":true,"startsOn":0,"endsOn":60000}]}"#;
    assert_eq!(set(&mut device, KeySource::TenantAttribute, night), None, "a schedule is not an event");
    // 1970 began on a Thursday.
    assert_eq!(device.row(2, "t", float(31.0)), create(Severity::Minor));
    device.state.ended();
    set(&mut device, KeySource::CustomerAttribute, r#"{"type":"SPECIFIC_TIME"}"#);
    assert_eq!(device.row(3, "t", float(32.0)), None, "a broken schedule leaves that of the profile");
    set(&mut device, KeySource::CustomerAttribute, r#"{"type":"ANY_TIME"}"#);
    assert_eq!(device.row(4, "t", float(33.0)), create(Severity::Minor));
}

#[test]
fn the_most_severe_rule_decides_and_a_severity_only_rises() {
    let mut device = Device::new(&thresholds());
    assert_eq!(device.row(1, "t", float(15.0)), None);
    assert_eq!(device.row(2, "t", float(25.0)), create(Severity::Warning));
    assert_eq!(device.row(3, "t", float(26.0)), update(Severity::Warning, false));
    assert_eq!(device.row(4, "t", float(31.0)), update(Severity::Critical, true));
    assert_eq!(device.row(5, "t", float(25.0)), None, "the alarm stays critical");
    assert_eq!(device.row(6, "t", float(15.0)), None, "neither rule is true");
    assert_eq!(device.row(7, "t", float(9.0)), Some(Transition::Clear));
    assert_eq!(device.row(8, "t", float(9.0)), None, "it is cleared once");
    assert_eq!(device.row(9, "t", float(25.0)), create(Severity::Warning));
}

#[test]
fn a_late_point_and_the_same_point_again_are_no_news() {
    let mut device = Device::new(&thresholds());
    assert_eq!(device.row(10, "t", float(25.0)), create(Severity::Warning));
    assert_eq!(device.row(10, "t", float(25.0)), None);
    assert_eq!(device.row(9, "t", float(35.0)), None, "it is older than the newest value");
    assert_eq!(device.row(10, "t", float(35.0)), update(Severity::Critical, true), "the row was overwritten");
}

#[test]
fn a_duration_ends_by_events_or_by_the_timer() {
    let create_rules = json!({"MAJOR": rule(vec![number("t", "GREATER", 20.0)], duration(10))});
    let mut device = Device::new(&profile(create_rules, Json::Null));
    assert_eq!(device.row(0, "t", float(25.0)), None);
    assert_eq!(device.row(10 * SECOND, "t", float(25.0)), None, "it must hold for longer");
    assert_eq!(device.row(10 * SECOND + 1, "t", float(25.0)), create(Severity::Major));
    assert_eq!(device.deadline(), None, "no more severe rule waits");

    device.state.ended();
    assert_eq!(device.row(20 * SECOND, "t", float(25.0)), None);
    assert_eq!(device.row(24 * SECOND, "t", float(25.0)), None);
    assert_eq!(device.deadline(), Some(30 * SECOND + 1));
    assert_eq!(device.timer(30 * SECOND), None);
    assert_eq!(device.timer(1), None, "the clock of the server went back");
    assert_eq!(device.timer(30 * SECOND + 1), create(Severity::Major));
    assert_eq!(device.timer(40 * SECOND), update(Severity::Major, false));

    device.state.ended();
    assert_eq!(device.row(50 * SECOND, "t", float(25.0)), None);
    assert_eq!(device.row(55 * SECOND, "t", float(19.0)), None);
    assert_eq!(device.deadline(), None, "the condition does not hold any more");
    assert_eq!(device.row(56 * SECOND, "t", float(25.0)), None);
    assert_eq!(device.row(61 * SECOND, "t", float(25.0)), None, "it began again");
}

#[test]
fn repeating_counts_events_in_a_row() {
    let create_rules = json!({"MINOR": rule(vec![number("t", "GREATER", 20.0)], repeating(3))});
    let clear = rule(vec![number("t", "LESS", 10.0)], repeating(2));
    let mut device = Device::new(&profile(create_rules, clear));
    let mut row = {
        let mut ts = 0;
        move |value| {
            ts += 1;
            device.row(ts, "t", float(value))
        }
    };
    assert_eq!([row(25.0), row(25.0), row(15.0), row(25.0), row(25.0)], [None; 5]);
    assert_eq!(row(25.0), create(Severity::Minor));
    assert_eq!([row(5.0), row(15.0), row(5.0)], [None; 3]);
    assert_eq!(row(5.0), Some(Transition::Clear));
}

#[test]
fn attributes_do_not_ask_rules_of_telemetry() {
    let by_attribute = json!({
        "key": {"type": "ATTRIBUTE", "key": "limit"}, "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 1}},
    });
    let create_rules = json!({
        "CRITICAL": rule(vec![number("t", "GREATER", 0.0), by_attribute.clone()], simple()),
        "WARNING": rule(vec![by_attribute], simple()),
    });
    let mut device = Device::new(&profile(create_rules, Json::Null));
    assert_eq!(device.row(1, "t", float(1.0)), None, "the attribute is missing");
    assert_eq!(device.event(KeySource::Attribute, 2, "limit", ValueRef::I64(2)), create(Severity::Warning));
    assert_eq!(device.row(3, "t", float(1.0)), update(Severity::Critical, true));
}

#[test]
fn an_alarm_that_was_ended_from_outside_begins_again() {
    let mut device = Device::new(&thresholds());
    assert_eq!(device.row(1, "t", float(35.0)), create(Severity::Critical));
    assert!(device.state.ended());
    assert!(!device.state.ended());
    assert_eq!(device.row(2, "t", float(5.0)), None, "there is nothing to clear");
    assert_eq!(device.row(3, "t", float(25.0)), create(Severity::Warning));
}

#[test]
fn details_have_the_values_of_the_condition() {
    let mut with_details = rule(vec![number("t", "GREATER", 20.0)], simple());
    with_details["alarmDetails"] = "t is ${t}, u is ${u}".into();
    with_details["dashboardId"] = json!({"entityType": "DASHBOARD", "id": "d"});
    let clear = rule(vec![number("u", "GREATER", 1.0)], simple());
    let mut device = Device::new(&profile(json!({"MAJOR": with_details}), clear));
    device.row(1, "u", float(1.0));
    device.row(1, "t", float(25.0));
    let alarm = &device.rules.alarms()[0];
    let details = alarm.rule(Severity::Major).unwrap().details(&device.rules, &device.values).unwrap();
    assert_eq!(Json::from(details), json!({"data": "t is 25.0, u is ${u}", "dashboardId": "d"}));
    assert_eq!(alarm.clear_rule().unwrap().details(&device.rules, &device.values), None);
}
