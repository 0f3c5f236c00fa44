//! Alarms of users.

use hub::alarms::{
    Alarm, AlarmError, AlarmQuery, AlarmSort, AlarmStatus, CommentsRequest, NewAlarm, Propagation,
    SearchStatus, Severity,
};
use hub::clock::system_now;
use hub::registry::AssetFields;
use hub::{EntityId, EntityKind};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::*;

pub(crate) fn new_alarm(fixture: &Fixture, alarm_type: &str, severity: Severity) -> NewAlarm {
    NewAlarm {
        id: None,
        originator: EntityId::device(fixture.device.id),
        alarm_type: alarm_type.to_owned(),
        severity,
        acknowledged: false,
        cleared: false,
        assignee: None,
        started_at: None,
        ended_at: None,
        acknowledged_at: None,
        cleared_at: None,
        assigned_at: None,
        details: None,
        propagation: Propagation::default(),
    }
}

/// All alarms, the oldest first.
pub(crate) fn query() -> AlarmQuery {
    AlarmQuery { page_size: 10_000, ascending: true, ..AlarmQuery::default() }
}

impl Fixture {
    async fn save(&self, new: NewAlarm) -> Arc<Alarm> {
        self.hub.save_alarm(&self.administrator(), new).await.unwrap()
    }

    pub(crate) fn alarms(&self, query: &AlarmQuery) -> Vec<Arc<Alarm>> {
        self.hub.alarms_page(&self.administrator(), query).unwrap().data
    }

    /// The texts of the comments of an alarm, the oldest first.
    fn comments(&self, alarm: Uuid) -> Vec<String> {
        let request = CommentsRequest { ascending: true, page: 0, page_size: 100 };
        let page = self.hub.alarm_comments(&self.administrator(), alarm, request).unwrap();
        let text = |comment: &str| {
            let comment: Json = serde_json::from_str(comment).unwrap();
            comment["text"].as_str().unwrap().to_owned()
        };
        page.data.iter().map(|comment| text(&comment.comment)).collect()
    }
}

#[tokio::test]
async fn an_entity_has_one_active_alarm_of_a_type() {
    let fixture = fixture();
    let first = fixture.save(new_alarm(&fixture, "hot", Severity::Minor)).await;
    assert_eq!((first.status(), &*first.details), (AlarmStatus::ActiveUnack, "{}"));
    let mut again = new_alarm(&fixture, "hot", Severity::Critical);
    again.details = Some(r#"{"by":"me"}"#.to_owned());
    let second = fixture.save(again).await;
    assert_eq!(
        (second.id, second.severity, &*second.details),
        (first.id, Severity::Critical, r#"{"by":"me"}"#)
    );
    assert_eq!(fixture.comments(first.id), ["Alarm severity was updated from MINOR to CRITICAL"]);
    let other = fixture.save(new_alarm(&fixture, "cold", Severity::Minor)).await;
    assert_ne!(other.id, first.id);
    let caller = fixture.administrator();
    let cleared = fixture.hub.clear_alarm(&caller, first.id, Some(r#"{"over":true}"#.into())).await.unwrap();
    assert_eq!((cleared.status(), &*cleared.details), (AlarmStatus::ClearedUnack, r#"{"over":true}"#));
    let third = fixture.save(new_alarm(&fixture, "hot", Severity::Warning)).await;
    assert_ne!(third.id, first.id, "a cleared alarm stays as it is");
    assert_eq!(fixture.alarms(&query()).len(), 3);
    assert_eq!(fixture.hub.alarm_types(&caller).unwrap().len(), 2);
}

#[tokio::test]
async fn an_alarm_is_acknowledged_cleared_and_assigned_once() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let id = fixture.save(new_alarm(&fixture, "hot", Severity::Minor)).await.id;
    let acknowledged = hub.acknowledge_alarm(&caller, id).await.unwrap();
    assert_eq!(acknowledged.status(), AlarmStatus::ActiveAck);
    assert!(acknowledged.acknowledged_at.is_some());
    let again = hub.acknowledge_alarm(&caller, id).await.unwrap_err();
    assert_eq!(again.to_string(), "Alarm was already acknowledged!");
    let user = hub.registry().users(fixture.device.tenant).remove(0);
    let assigned = hub.assign_alarm(&caller, id, user.id).await.unwrap();
    assert_eq!(assigned.assignee, Some(user.id));
    assert!(matches!(hub.assign_alarm(&caller, id, user.id).await, Err(AlarmError::Already(_))));
    assert!(matches!(hub.assign_alarm(&caller, id, Uuid::nil()).await, Err(AlarmError::Registry(_))));
    assert_eq!(hub.unassign_alarm(&caller, id).await.unwrap().assignee, None);
    assert!(hub.clear_alarm(&caller, id, None).await.is_ok());
    assert!(matches!(hub.clear_alarm(&caller, id, None).await, Err(AlarmError::Already("cleared"))));
    let expected = [
        "Alarm was acknowledged by user local".to_owned(),
        format!("Alarm was assigned by user local to user {}", user.login),
        "Alarm was unassigned by user local".to_owned(),
        "Alarm was cleared by user local".to_owned(),
    ];
    let mut found = fixture.comments(id);
    // Acts within a millisecond have no order.
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_user_comments_edits_and_deletes_comments() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let id = fixture.save(new_alarm(&fixture, "hot", Severity::Minor)).await.id;
    let comment = hub.add_alarm_comment(&caller, id, json!({"text": "I look"})).await.unwrap();
    let edited = hub.edit_alarm_comment(&caller, id, comment.id, json!({"text": "I looked"})).await.unwrap();
    let edited: Json = serde_json::from_str(&edited.comment).unwrap();
    assert_eq!((&edited["text"], &edited["edited"]), (&"I looked".into(), &"true".into()));
    hub.delete_alarm_comment(&caller, id, comment.id).await.unwrap();
    assert_eq!(fixture.comments(id), ["Comment was deleted by user local"]);
    let again = hub.delete_alarm_comment(&caller, id, comment.id).await.unwrap_err();
    assert!(again.to_string().contains("of the system"), "{again}");
    let unknown = hub.edit_alarm_comment(&caller, id, Uuid::nil(), json!({})).await.unwrap_err();
    assert!(matches!(unknown, AlarmError::UnknownComment { .. }), "{unknown}");
    assert!(hub.add_alarm_comment(&caller, id, json!("text")).await.is_err());
}

#[tokio::test]
async fn searches_filter_and_sort() {
    let fixture = fixture();
    let caller = fixture.administrator();
    for (alarm_type, severity) in
        [("a", Severity::Warning), ("b", Severity::Critical), ("c", Severity::Minor), ("d", Severity::Minor)]
    {
        fixture.save(new_alarm(&fixture, alarm_type, severity)).await;
    }
    let types = |query: &AlarmQuery| {
        let found = fixture.alarms(query);
        found.iter().map(|alarm| alarm.alarm_type.to_string()).collect::<Vec<_>>().join("")
    };
    let all = fixture.alarms(&AlarmQuery { sort: AlarmSort::Type, ..query() });
    fixture.hub.clear_alarm(&caller, all[0].id, None).await.unwrap();
    fixture.hub.acknowledge_alarm(&caller, all[1].id).await.unwrap();
    let by_type = || AlarmQuery { sort: AlarmSort::Type, ..query() };
    let with = |statuses: &[SearchStatus]| types(&AlarmQuery { statuses: statuses.to_vec(), ..by_type() });
    assert_eq!(with(&[]), "abcd");
    assert_eq!(with(&[SearchStatus::Any]), "abcd");
    assert_eq!(with(&[SearchStatus::Active]), "bcd");
    assert_eq!(with(&[SearchStatus::Cleared]), "a");
    assert_eq!(with(&[SearchStatus::Active, SearchStatus::Unack]), "cd");
    assert_eq!(with(&[SearchStatus::Active, SearchStatus::Cleared, SearchStatus::Ack]), "b");
    assert_eq!(types(&AlarmQuery { severities: vec![Severity::Minor], ..by_type() }), "cd");
    assert_eq!(types(&AlarmQuery { types: vec!["a".into(), "d".into()], ..by_type() }), "ad");
    assert_eq!(types(&AlarmQuery { text: Some("CRIT".into()), ..by_type() }), "b");
    assert_eq!(types(&AlarmQuery { text: Some("cleared".into()), ..by_type() }), "a");
    assert_eq!(types(&AlarmQuery { ascending: false, ..by_type() }), "dcba");
    assert_eq!(types(&AlarmQuery { sort: AlarmSort::Severity, ..query() }).chars().next(), Some('b'));
    assert_eq!(types(&AlarmQuery { to: Some(Timestamp::from_micros(1)), ..by_type() }), "");
    assert_eq!(
        types(&AlarmQuery { entities: Some([EntityId::device(Uuid::nil())].into()), ..by_type() }),
        ""
    );
    let own = [EntityId::device(fixture.device.id)];
    assert_eq!(types(&AlarmQuery { entities: Some(own.into()), ..by_type() }), "abcd");
    let page = fixture.hub.alarms_page(&caller, &AlarmQuery { page: 1, page_size: 3, ..by_type() }).unwrap();
    assert_eq!((page.data.len(), page.total_pages, page.total_elements, page.has_next), (1, 2, 4, false));
    let active = AlarmQuery { statuses: vec![SearchStatus::Active], ..query() };
    assert_eq!(fixture.hub.alarm_count(&caller, &active).unwrap(), 3);
    assert_eq!(fixture.hub.highest_severity(&caller, &active).unwrap(), Some(Severity::Critical));
}

#[tokio::test]
async fn alarms_belong_to_the_tenant_if_they_propagate_to_it() {
    let fixture = fixture();
    let tenant = EntityId::tenant(fixture.device.tenant);
    let of_tenant = AlarmQuery { entities: Some([tenant].into()), ..query() };
    fixture.save(new_alarm(&fixture, "alone", Severity::Minor)).await;
    assert!(fixture.alarms(&of_tenant).is_empty());
    let mut new = new_alarm(&fixture, "shared", Severity::Minor);
    new.propagation.tenant = true;
    fixture.save(new).await;
    assert_eq!(fixture.alarms(&of_tenant).len(), 1);
}

#[tokio::test]
async fn others_do_not_see_alarms_and_readers_do_not_change_them() {
    let fixture = fixture();
    let (hub, tenant) = (&fixture.hub, fixture.device.tenant);
    let id = fixture.save(new_alarm(&fixture, "hot", Severity::Minor)).await.id;
    let stranger = Caller::local(Uuid::from_u128(7));
    assert!(matches!(hub.alarm(&stranger, id), Err(AlarmError::Unknown(_))));
    assert!(matches!(hub.clear_alarm(&stranger, id, None).await, Err(AlarmError::Unknown(_))));
    assert_eq!(hub.alarm_count(&stranger, &query()).unwrap(), 0);
    let originator = hub.save_alarm(&stranger, new_alarm(&fixture, "hot", Severity::Minor)).await;
    assert!(matches!(originator, Err(AlarmError::Registry(_))), "{originator:?}");
    let public = Caller::public(tenant);
    assert!(hub.alarm(&public, id).is_ok());
    assert!(matches!(hub.acknowledge_alarm(&public, id).await, Err(AlarmError::Forbidden(_))));
    assert!(matches!(hub.delete_alarm(&public, id).await, Err(AlarmError::Forbidden(_))));
    assert!(matches!(hub.add_alarm_comment(&public, id, json!({})).await, Err(AlarmError::Forbidden(_))));
}

#[tokio::test]
async fn alarms_survive_a_restart_and_go_with_their_device() {
    let directory = tempfile::tempdir().unwrap();
    let kv = Arc::new(kv::MemoryStore::new());
    let start = || {
        let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
        let store = Arc::new(MemoryStore::new());
        Hub::start(store, Arc::clone(&kv) as _, registry, IngestLimits::default(), Arc::new(Metrics::new()))
            .unwrap()
    };
    let hub = start();
    let caller = Caller::local(hub.registry().default_tenant());
    let device = hub.add_device(&caller, NewDevice { name: "car", ..NewDevice::default() }).unwrap().device;
    let fixture = fixture();
    let mut new = new_alarm(&fixture, "hot", Severity::Major);
    new.originator = EntityId::device(device.id);
    new.details = Some(r#"{"a":[1]}"#.to_owned());
    new.propagation.relation_types = vec!["Contains".into()];
    let saved = hub.save_alarm(&caller, new).await.unwrap();
    let saved = hub.acknowledge_alarm(&caller, saved.id).await.unwrap();
    drop(hub);
    let hub = start();
    assert_eq!(hub.alarm(&caller, saved.id).unwrap(), saved);
    assert!(
        hub.metrics_text().contains("tacho_alarm_active{severity=\"MAJOR\"} 1"),
        "{}",
        hub.metrics_text()
    );
    hub.delete_device(&caller, device.id).unwrap();
    assert!(matches!(hub.alarm(&caller, saved.id), Err(AlarmError::Unknown(_))));
    drop(hub);
    let hub = start();
    assert_eq!(hub.alarm_count(&caller, &query()).unwrap(), 0);
    assert!(hub.metrics_text().contains("tacho_alarm_transitions_total 0"));
}

#[tokio::test]
async fn a_change_is_answered_and_told_after_it_is_durable() {
    let fixture = fixture();
    let caller = fixture.administrator();
    let mut feed = fixture.hub.alarm_feed(&caller).unwrap();
    fixture.kv.hold();
    let saving = {
        let (hub, caller, new) =
            (Arc::clone(&fixture.hub), caller.clone(), new_alarm(&fixture, "hot", Severity::Minor));
        tokio::spawn(async move { hub.save_alarm(&caller, new).await })
    };
    while fixture.alarms(&query()).is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!saving.is_finished());
    let told = tokio::time::timeout(Duration::from_millis(1), feed.changed()).await;
    assert!(told.is_err(), "nobody learns of a change before it is durable");
    fixture.kv.release();
    feed.changed().await;
    saving.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_no_alarm_can_have_is_refused() {
    let fixture = fixture();
    let caller = fixture.administrator();
    let id = fixture.save(new_alarm(&fixture, "hot", Severity::Minor)).await.id;
    let refusal = async |change: fn(&mut NewAlarm)| {
        let mut new = new_alarm(&fixture, "hot", Severity::Minor);
        change(&mut new);
        fixture.hub.save_alarm(&caller, new).await.unwrap_err().to_string()
    };
    assert!(refusal(|new| new.alarm_type.clear()).await.contains("no type"));
    assert!(refusal(|new| new.alarm_type = "x".repeat(256)).await.contains("ALARM_TYPE_BYTES_MAX"));
    let long = refusal(|new| new.details = Some(format!("\"{}\"", "x".repeat(20_000)))).await;
    assert!(long.contains("ALARM_DETAILS_BYTES_MAX"), "{long}");
    assert!(refusal(|new| new.id = Some(Uuid::nil())).await.contains("there is no alarm"));
    let mut other = new_alarm(&fixture, "cold", Severity::Minor);
    other.id = Some(id);
    let error = fixture.hub.save_alarm(&caller, other).await.unwrap_err();
    assert!(error.to_string().contains("cannot change"), "{error}");
    let mut known = new_alarm(&fixture, "hot", Severity::Major);
    (known.id, known.started_at) = (Some(id), Some(Timestamp::from_millis(5).unwrap()));
    let changed = fixture.save(known).await;
    assert_eq!((changed.id, changed.severity, changed.started_at.millis()), (id, Severity::Major, 5));
    assert!(changed.ended_at <= system_now());
}

#[tokio::test]
async fn alarms_end_with_the_entity_that_they_are_about() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let fields = AssetFields { name: "depot", ..AssetFields::default() };
    let asset = hub.add_asset(&caller, fields).unwrap();
    let mut new = new_alarm(&fixture, "empty", Severity::Minor);
    new.originator = EntityId::of(EntityKind::Asset, asset.id);
    let of_asset = fixture.save(new).await;
    let of_device = fixture.save(new_alarm(&fixture, "hot", Severity::Major)).await;
    hub.delete_asset(&caller, asset.id).unwrap();
    assert!(matches!(hub.alarm(&caller, of_asset.id), Err(AlarmError::Unknown(_))));
    assert!(hub.alarm(&caller, of_device.id).is_ok());
}
