//! Alarm rules of device profiles, on rows and attributes of devices.

use hub::EntityId;
use hub::alarms::{AlarmQuery, AlarmStatus, SearchStatus, Severity, check_profile_data};
use hub::attributes::Scope;
use hub::clock::system_now;
use hub::registry::{CustomerFields, ProfileFields};
use kv::{Direction, KeyRange, KeyValueStore, Space, WriteBatch};
use model::limits::Portion;
use serde_json::{Value as Json, json};

use super::alarms::query;
use super::*;

/// The space of the progress of the evaluation (`docs/format/alarms.md`).
const PROGRESS: Space = Space::new("alarm_progress");

/// Ends a test that hangs. No test waits this long otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

fn number(source: &str, key: &str, operation: &str, value: f64) -> Json {
    json!({
        "key": {"type": source, "key": key},
        "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": operation, "value": {"defaultValue": value}},
    })
}

fn rule(filter: Json, spec: Json) -> Json {
    json!({"condition": {"condition": [filter], "spec": spec}, "alarmDetails": "speed is ${speed}"})
}

/// Above 100 is major, below 50 the end.
fn fast(spec: Json) -> Json {
    json!({"alarms": [{
        "id": "fast", "alarmType": "Too fast",
        "createRules": {"MAJOR": rule(number("TIME_SERIES", "speed", "GREATER", 100.0), spec)},
        "clearRule": rule(number("TIME_SERIES", "speed", "LESS", 50.0), json!({"type": "SIMPLE"})),
    }]})
}

fn simple() -> Json {
    json!({"type": "SIMPLE"})
}

impl Fixture {
    fn rules(&self, profile_data: &Json) {
        let (profile, data) = (&self.device.profile, profile_data.to_string());
        let fields = ProfileFields { name: &profile.name, data: Some(&data), ..ProfileFields::default() };
        self.hub.change_profile(&self.administrator(), profile.id, fields, None).unwrap();
    }

    /// Rows of the device: times in microseconds and speeds.
    pub(super) fn rows(&self, rows: &[(i64, ValueRef<'_>)]) {
        let series = self.hub.series_of(&self.device).unwrap();
        let mut batch = Batch::new();
        let mut builder = batch.builder();
        for (ts, value) in rows {
            builder.field("speed", *value);
            builder.row(series, Timestamp::from_micros(*ts));
        }
        builder.finish();
        self.hub.ingest(&batch, Durability::Fsync).unwrap();
    }

    fn speeds(&self, first: i64, speeds: &[i64]) {
        let rows = speeds.iter().enumerate();
        let rows: Vec<_> = rows.map(|(at, speed)| (first + at as i64, ValueRef::I64(*speed))).collect();
        self.rows(&rows);
    }

    /// Waits until the rules were evaluated for a number of events, and all of it is durable.
    async fn evaluated(&self, events: u64) {
        until(|| self.hub.metrics().alarms.events.get() >= events).await;
    }

    async fn transitions(&self, transitions: u64) {
        until(|| self.hub.metrics().alarms.transitions.get() >= transitions).await;
    }
}

pub(super) async fn until(is_done: impl Fn() -> bool) {
    let wait = async {
        while !is_done() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("it happens");
}

#[tokio::test]
async fn a_condition_raises_one_alarm_until_it_is_cleared() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    fixture.speeds(1, &[90, 110, 120, 130]);
    fixture.evaluated(4).await;
    let alarms = fixture.alarms(&query());
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    let alarm = &alarms[0];
    assert_eq!((&*alarm.alarm_type, alarm.severity), ("Too fast", Severity::Major));
    assert_eq!((alarm.status(), alarm.originator.id), (AlarmStatus::ActiveUnack, fixture.device.id));
    assert!(alarm.details.starts_with(r#"{"data":"speed is 1"#), "{}", alarm.details);
    fixture.speeds(10, &[70, 40, 30, 110]);
    fixture.transitions(3).await;
    let alarms = fixture.alarms(&query());
    let statuses: Vec<_> = alarms.iter().map(|alarm| alarm.cleared).collect();
    assert_eq!(statuses.len(), 2, "{alarms:?}");
    assert_eq!(statuses.iter().filter(|cleared| **cleared).count(), 1);
}

#[tokio::test]
async fn rows_that_are_not_durable_raise_nothing() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    fixture.store.hold();
    fixture.speeds(1, &[110]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(fixture.alarms(&query()).is_empty());
    fixture.store.release();
    fixture.transitions(1).await;
}

#[tokio::test]
async fn a_duration_ends_without_an_event() {
    let fixture = fixture();
    let spec = json!({"type": "DURATION", "unit": "MILLISECONDS", "predicate": {"defaultValue": 30}});
    fixture.rules(&fast(spec));
    fixture.speeds(system_now().micros(), &[110]);
    fixture.transitions(1).await;
    assert_eq!(fixture.alarms(&query()).len(), 1);
    assert_eq!(fixture.hub.metrics().alarms.events.get(), 1);
}

#[tokio::test]
async fn repeating_conditions_count_rows() {
    let fixture = fixture();
    fixture.rules(&fast(json!({"type": "REPEATING", "predicate": {"defaultValue": 3}})));
    fixture.speeds(1, &[110, 110, 90, 110, 110]);
    fixture.evaluated(5).await;
    assert!(fixture.alarms(&query()).is_empty());
    // The engine evaluates neither the last row again nor a late row.
    fixture.speeds(5, &[110]);
    fixture.speeds(2, &[120]);
    fixture.speeds(6, &[110]);
    fixture.transitions(1).await;
    assert_eq!(fixture.hub.metrics().alarms.events.get(), 6);
}

#[tokio::test]
async fn a_schedule_without_days_raises_nothing() {
    let fixture = fixture();
    let mut data = fast(simple());
    data["alarms"][0]["createRules"]["MAJOR"]["schedule"] =
        json!({"type": "CUSTOM", "timezone": "Europe/Berlin", "items": []});
    fixture.rules(&data);
    fixture.speeds(1, &[110]);
    fixture.evaluated(1).await;
    assert!(fixture.alarms(&query()).is_empty());
}

#[tokio::test]
async fn a_text_among_numbers_is_counted_and_raises_nothing() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    fixture.rows(&[(1, ValueRef::String("n/a")), (2, ValueRef::String("120"))]);
    fixture.transitions(1).await;
    assert_eq!(&*fixture.alarms(&query())[0].details, r#"{"data":"speed is 120"}"#);
    assert_eq!(fixture.hub.metrics().alarms.mismatches.get(), 1);
}

#[tokio::test]
async fn a_flapping_condition_makes_one_record_each_time_and_stays_in_order() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    let speeds: Vec<i64> = (0..2_000).map(|at| if at % 2 == 0 { 110 } else { 40 }).collect();
    fixture.speeds(1, &speeds);
    fixture.transitions(2_000).await;
    let active = AlarmQuery { statuses: vec![SearchStatus::Active], ..query() };
    let caller = fixture.administrator();
    assert_eq!(fixture.hub.alarm_count(&caller, &query()).unwrap(), 1_000);
    assert_eq!(fixture.hub.alarm_count(&caller, &active).unwrap(), 0);
}

#[tokio::test]
async fn rows_without_room_are_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let new = NewDevice { name: "car", ..NewDevice::default() };
    let device = registry.add_device(registry.default_tenant(), new).unwrap().device;
    let (store, kv) = (Arc::new(MemoryStore::new()), Arc::new(kv::MemoryStore::new()));
    let (limits, metrics) = (IngestLimits::default(), Arc::new(Metrics::new()));
    let memory = Portion::thousandths(1);
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let hub = Hub::start_on(memory, shared, Arc::clone(&kv) as _, registry, limits, metrics).unwrap();
    let fixture = Fixture { store, kv, hub, device, _directory: directory };
    fixture.rules(&fast(simple()));
    fixture.speeds(1, &[10]);
    fixture.evaluated(1).await;
    fixture.store.hold();
    for n in 1..1_000 {
        fixture.speeds(n * 10, &[110, 40]);
    }
    fixture.speeds(1_000_000, &[110]);
    fixture.store.release();
    fixture.transitions(1_999).await;
    assert!(fixture.hub.metrics().alarms.rereads.get() > 0);
    assert_eq!(fixture.hub.alarm_count(&fixture.administrator(), &query()).unwrap(), 1_000);
    assert_eq!(fixture.hub.metrics().alarms.transitions.get(), 1_999, "nothing is evaluated twice");
}

#[tokio::test]
async fn attributes_raise_alarms_and_replace_thresholds() {
    let fixture = fixture();
    let mut data = fast(simple());
    let value =
        &mut data["alarms"][0]["createRules"]["MAJOR"]["condition"]["condition"][0]["predicate"]["value"];
    value["dynamicValue"] = json!({"sourceType": "CURRENT_DEVICE", "sourceAttribute": "limit"});
    let by_attribute = rule(number("ATTRIBUTE", "doors", "GREATER", 0.0), simple());
    data["alarms"].as_array_mut().unwrap().push(json!({
        "id": "open", "alarmType": "Open", "createRules": {"MINOR": by_attribute},
    }));
    fixture.rules(&data);
    let set = async |key: &str, value: i64| {
        let (hub, caller, device) =
            (Arc::clone(&fixture.hub), fixture.administrator(), Arc::clone(&fixture.device));
        let entries = [(key.to_owned(), Value::I64(value))];
        let set = move || hub.set_attributes(&caller, &device, Scope::Server, &entries);
        tokio::task::spawn_blocking(set).await.unwrap().unwrap();
    };
    set("doors", 2).await;
    fixture.transitions(1).await;
    assert_eq!(&*fixture.alarms(&query())[0].alarm_type, "Open");
    let events = fixture.hub.metrics().alarms.events.get();
    set("limit", 200).await;
    fixture.evaluated(events + 1).await;
    fixture.speeds(1, &[150]);
    fixture.evaluated(events + 2).await;
    assert_eq!(fixture.alarms(&query()).len(), 1, "150 is not above 200");
    fixture.speeds(2, &[250]);
    fixture.transitions(2).await;
}

#[tokio::test]
async fn attributes_of_the_customer_and_the_tenant_replace_thresholds() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let fields = CustomerFields { title: "acme", ..CustomerFields::default() };
    let customer = EntityId::customer(hub.add_customer(&caller, &fields).unwrap().id);
    let mut data = fast(simple());
    let value =
        &mut data["alarms"][0]["createRules"]["MAJOR"]["condition"]["condition"][0]["predicate"]["value"];
    value["dynamicValue"] =
        json!({"sourceType": "CURRENT_CUSTOMER", "sourceAttribute": "limit", "inherit": true});
    fixture.rules(&data);
    let set = async |entity: EntityId, limit: i64| {
        let (hub, caller) = (Arc::clone(hub), caller.clone());
        let set = move || {
            let entity = hub.visible_entity(&caller, entity).unwrap();
            hub.set_attributes(&caller, &entity, Scope::Server, &[("limit".to_owned(), Value::I64(limit))])
        };
        tokio::task::spawn_blocking(set).await.unwrap().unwrap();
    };
    // Rules learn of these attributes with some row after the change.
    let next = std::cell::Cell::new(0);
    let until_transition = async |speed: i64, transitions: u64| {
        until(|| {
            next.set(next.get() + 1);
            fixture.speeds(next.get(), &[speed]);
            hub.metrics().alarms.transitions.get() >= transitions
        })
        .await;
    };
    set(EntityId::tenant(fixture.device.tenant), 80).await;
    until_transition(90, 1).await;
    until_transition(40, 2).await;
    set(customer, 55).await;
    hub.assign_device(&caller, fixture.device.id, Some(customer.id)).unwrap();
    until_transition(60, 3).await;
    until_transition(40, 4).await;
    set(customer, 45).await;
    until_transition(49, 5).await;
}

#[tokio::test]
async fn an_alarm_that_a_user_cleared_begins_again() {
    let fixture = fixture();
    let caller = fixture.administrator();
    fixture.rules(&fast(simple()));
    fixture.speeds(1, &[110]);
    fixture.transitions(1).await;
    let first = fixture.alarms(&query())[0].id;
    fixture.hub.clear_alarm(&caller, first, None).await.unwrap();
    fixture.speeds(2, &[110]);
    fixture.transitions(2).await;
    let active = AlarmQuery { statuses: vec![SearchStatus::Active], ..query() };
    assert_ne!(fixture.alarms(&active)[0].id, first);
}

#[tokio::test]
async fn new_rules_take_over_and_rules_that_are_gone_do_nothing() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    fixture.speeds(1, &[110]);
    fixture.transitions(1).await;
    let mut slower = fast(simple());
    let filter = &mut slower["alarms"][0]["clearRule"]["condition"]["condition"][0];
    filter["predicate"]["value"]["defaultValue"] = 90.into();
    fixture.rules(&slower);
    fixture.speeds(2, &[80]);
    fixture.transitions(2).await;
    assert!(fixture.alarms(&query())[0].cleared, "the new rule cleared the alarm of the old one");
    fixture.rules(&json!({}));
    fixture.speeds(3, &[110]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(fixture.hub.metrics().alarms.transitions.get(), 2);
}

/// What a key-value store holds.
pub(super) fn copy_of(kv: &kv::MemoryStore) -> Arc<kv::MemoryStore> {
    let (snapshot, copy) = (kv.snapshot().unwrap(), kv::MemoryStore::new());
    for space in snapshot.spaces() {
        let mut batch = WriteBatch::new();
        for record in snapshot.scan(space, &KeyRange::all(), Direction::Ascending).unwrap() {
            let (key, value) = record.unwrap();
            batch.put(space, key, value);
        }
        copy.commit(&batch).unwrap();
    }
    Arc::new(copy)
}

impl Fixture {
    /// The installation after a crash that kept all rows, and of the keys those of `kv`.
    pub(super) fn crashed(self, kv: Arc<kv::MemoryStore>) -> Self {
        let Self { store, hub, device, _directory, .. } = self;
        drop(hub);
        let (registry, _) = Registry::open(&_directory.path().join("registry.sqlite")).unwrap();
        let (limits, metrics) = (IngestLimits::default(), Arc::new(Metrics::new()));
        let shared: Arc<dyn Store> = Arc::clone(&store) as _;
        let hub = Hub::start(shared, Arc::clone(&kv) as _, registry, limits, metrics).unwrap();
        Self { store, kv, hub, device, _directory }
    }
}

#[tokio::test]
async fn rows_that_were_not_evaluated_before_a_crash_are_evaluated_after_it() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    // The rules are known to the evaluation when their progress is stored.
    until(|| fixture.kv.get(PROGRESS, b"evaluated_us").unwrap().is_some()).await;
    let before = copy_of(&fixture.kv);
    fixture.speeds(1, &[110, 40, 110]);
    fixture.transitions(3).await;
    let fixture = fixture.crashed(before);
    fixture.transitions(3).await;
    let alarms = fixture.alarms(&query());
    assert_eq!(alarms.iter().filter(|alarm| alarm.cleared).count(), 1);
    assert_eq!(alarms.len(), 2);
}

#[tokio::test]
async fn what_was_evaluated_before_a_crash_is_not_evaluated_again() {
    let fixture = fixture();
    fixture.rules(&fast(simple()));
    fixture.speeds(1, &[110, 120]);
    fixture.transitions(1).await;
    let after = copy_of(&fixture.kv);
    let first = fixture.alarms(&query())[0].id;
    let fixture = fixture.crashed(after);
    fixture.speeds(3, &[130, 40]);
    fixture.transitions(1).await;
    let alarms = fixture.alarms(&query());
    assert_eq!((alarms.len(), alarms[0].id, alarms[0].cleared), (1, first, true));
}

#[tokio::test]
async fn a_count_of_events_continues_after_a_clean_end() {
    let fixture = fixture();
    fixture.rules(&fast(json!({"type": "REPEATING", "predicate": {"defaultValue": 3}})));
    fixture.speeds(1, &[110, 110]);
    fixture.evaluated(2).await;
    let kv = Arc::clone(&fixture.kv);
    let fixture = fixture.crashed(kv);
    fixture.speeds(3, &[110]);
    fixture.transitions(1).await;
    assert_eq!(fixture.hub.metrics().alarms.events.get(), 1);
}

#[tokio::test]
async fn a_count_of_events_of_rules_that_read_fields_of_the_device_continues_too() {
    let fixture = fixture();
    let mut rules = fast(json!({"type": "REPEATING", "predicate": {"defaultValue": 3}}));
    let filters = &mut rules["alarms"][0]["createRules"]["MAJOR"]["condition"]["condition"];
    filters.as_array_mut().unwrap().push(number("ENTITY_FIELD", "createdTime", "GREATER", 0.0));
    fixture.rules(&rules);
    fixture.speeds(1, &[110, 110]);
    fixture.evaluated(2).await;
    let kv = Arc::clone(&fixture.kv);
    let fixture = fixture.crashed(kv);
    fixture.speeds(3, &[110]);
    fixture.transitions(1).await;
    assert_eq!(fixture.hub.metrics().alarms.events.get(), 1);
}

#[tokio::test]
async fn a_device_that_had_reported_begins_with_its_next_row() {
    let fixture = fixture();
    fixture.speeds(1, &[110]);
    fixture.rules(&fast(simple()));
    fixture.speeds(2, &[120]);
    fixture.transitions(1).await;
    assert_eq!(fixture.hub.metrics().alarms.events.get(), 1, "the row before the rules is history");
}

#[test]
fn rules_that_cannot_work_here_are_refused() {
    let data = json!({"alarms": [{"alarmType": "a", "createRules": {
        "MINOR": rule(number("ENTITY_FIELD", "city", "EQUAL", 1.0), simple()),
    }}]});
    let refused = check_profile_data(&data.to_string()).unwrap_err().to_string();
    assert!(refused.contains("city") && refused.contains("createdTime"), "{refused}");
    let fixture = fixture();
    let data = data.to_string();
    let fields = ProfileFields { name: "default", data: Some(&data), ..ProfileFields::default() };
    let profile = fixture.device.profile.id;
    let refused = fixture.hub.change_profile(&fixture.administrator(), profile, fields, None);
    assert!(refused.unwrap_err().to_string().contains("city"));
    assert!(check_profile_data("{").unwrap_err().to_string().contains("not JSON"));
}
