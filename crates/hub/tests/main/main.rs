//! The hub on the reference store.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod alarm_rules;
mod alarms;
mod annotations;
mod attributes;
mod claims;
mod deletion;
mod device_state;
mod gateways;
mod key_values;
mod packages;
mod permissions;
mod points;
mod provisioning;
mod rpc;
mod stored_calls;
mod tenants;

use std::sync::Arc;
use std::time::Duration;

use hub::caller::{Caller, Role};
use hub::history::{Aggregation, HistoryRequest, Interval};
use hub::registry::{Credentials, Device, NewDevice, Registry};
use hub::sql::{Reader, SqlError};
use hub::{DeadLetter, Door, Durability, Hub, Message, Metrics, Order};
use model::limits::{IngestLimits, QueryLimits};
use model::{Batch, SeriesKey, TimeRange, Timestamp, Value, ValueRef};
use store::memory::MemoryStore;
use store::{Reader as _, Store, StoreError, Ticket};

struct Fixture {
    store: Arc<MemoryStore>,
    kv: Arc<kv::MemoryStore>,
    hub: Arc<Hub>,
    device: Arc<Device>,
    _directory: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let (registry, _) = Registry::open(&directory.path().join("registry.sqlite")).unwrap();
    let new = NewDevice { name: "car", ..NewDevice::default() };
    let device = registry.add_device(registry.default_tenant(), new).unwrap().device;
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = Arc::clone(&store) as _;
    let kv = Arc::new(kv::MemoryStore::new());
    let hub =
        Hub::start(shared, Arc::clone(&kv) as _, registry, IngestLimits::default(), Arc::new(Metrics::new()))
            .unwrap();
    Fixture { store, kv, hub, device, _directory: directory }
}

impl Fixture {
    /// The administrator of the device's tenant.
    fn administrator(&self) -> Caller {
        Caller::local(self.device.tenant)
    }
}

fn one_row(fixture: &Fixture, ts: i64, value: i64) -> Batch {
    let series = fixture.hub.series_of(&fixture.device).unwrap();
    let mut batch = Batch::new();
    let mut row = batch.builder();
    row.field("speed", ValueRef::I64(value));
    row.row(series, Timestamp::from_micros(ts));
    row.finish();
    batch
}

#[tokio::test]
async fn an_ack_waits_until_its_durability_is_reached() {
    let fixture = fixture();
    fixture.store.hold();
    let batch = one_row(&fixture, 1, 50);
    let memory = fixture.hub.ingest_and_wait(&batch, Durability::Memory, Duration::ZERO).await.unwrap();
    let waiting = {
        let (hub, batch) = (Arc::clone(&fixture.hub), batch.clone());
        tokio::spawn(async move { hub.ingest_and_wait(&batch, Durability::Fsync, Duration::ZERO).await })
    };
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    fixture.store.release();
    assert!(waiting.await.unwrap().unwrap().last > memory.last);
}

#[tokio::test]
async fn a_store_that_stays_busy_is_reported_and_one_that_recovers_is_not() {
    let fixture = fixture();
    fixture.store.set_busy(Some("the disk is full"));
    let batch = one_row(&fixture, 1, 50);
    let refused = fixture.hub.ingest_and_wait(&batch, Durability::Fsync, Duration::from_millis(10)).await;
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    let patient = {
        let (hub, batch) = (Arc::clone(&fixture.hub), batch.clone());
        tokio::spawn(
            async move { hub.ingest_and_wait(&batch, Durability::Fsync, Duration::from_secs(60)).await },
        )
    };
    tokio::task::yield_now().await;
    fixture.store.set_busy(None);
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_store_that_seals_during_a_wait_is_an_error() {
    let fixture = fixture();
    fixture.store.hold();
    let waiting = {
        let (hub, batch) = (Arc::clone(&fixture.hub), one_row(&fixture, 1, 50));
        tokio::spawn(async move { hub.ingest_and_wait(&batch, Durability::Fsync, Duration::ZERO).await })
    };
    tokio::task::yield_now().await;
    fixture.store.seal("cannot sync");
    let refused = waiting.await.unwrap();
    assert!(
        matches!(refused, Err(StoreError::Sealed { ref cause }) if cause.contains("cannot sync")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_write_that_the_store_loses_is_an_error_of_its_sender_and_of_no_other() {
    let fixture = fixture();
    fixture.store.hold();
    let wait = |ts| {
        let (hub, batch) = (Arc::clone(&fixture.hub), one_row(&fixture, ts, 50));
        tokio::spawn(async move { hub.ingest_and_wait(&batch, Durability::Fsync, Duration::ZERO).await })
    };
    let (lost, kept) = (wait(1), wait(2));
    // Both tasks append before they wait.
    tokio::task::yield_now().await;
    fixture.store.lose(Ticket::of_rows(1, 1), "the shard is gone");
    fixture.store.release();
    let error = lost.await.unwrap().unwrap_err();
    assert!(matches!(&error, StoreError::Lost { cause } if cause == "the shard is gone"), "{error:?}");
    kept.await.unwrap().unwrap();
    assert!(fixture.hub.status().sealed.is_none());
}

#[tokio::test]
async fn live_values_come_after_durability() {
    let fixture = fixture();
    let tenant = fixture.hub.registry().default_tenant();
    let mut subscriber = fixture.hub.live_connection(&Caller::public(tenant)).subscriber();
    subscriber.watch(fixture.hub.series_of(&fixture.device).unwrap());
    fixture.store.hold();
    fixture.hub.ingest(&one_row(&fixture, 1, 50), Durability::Fsync).unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(50), subscriber.next()).await.is_err());
    fixture.store.release();
    let updates = subscriber.next().await;
    assert_eq!((updates.len(), &updates[0].value), (1, &Value::I64(50)));
    // Durable at once: the store's announcement comes before the row is queued.
    fixture.hub.ingest(&one_row(&fixture, 2, 51), Durability::Fsync).unwrap();
    assert_eq!(subscriber.next().await[0].value, Value::I64(51));
}

#[test]
fn a_message_with_too_many_new_keys_is_stored_up_to_the_limit() {
    let fixture = fixture();
    let most = IngestLimits::default().new_columns_per_minute_max;
    let series = fixture.hub.series_of(&fixture.device).unwrap();
    let send = |keys: &[String]| {
        let mut batch = Batch::new();
        let mut row = batch.builder();
        keys.iter().for_each(|key| row.field(key, ValueRef::I64(1)));
        row.row(series, Timestamp::from_micros(1_000));
        row.finish();
        let message = Message {
            owner: (&fixture.device).into(),
            door: Door::Mqtt,
            topic: "t",
            payload: b"the payload",
        };
        fixture.hub.ingest_message(&message, &batch, Durability::Fsync).unwrap()
    };
    let dead_letter = || {
        let key = SeriesKey::device(hub::DEAD_LETTER_TABLE, &fixture.device.name).unwrap();
        let series = fixture.store.find_series(&key).unwrap();
        let found =
            fixture.hub.latest(&fixture.administrator(), series, Some(&["payload".to_owned()])).unwrap();
        found[0].value.clone()
    };
    let keys: Vec<String> = (0..=most).map(|n| format!("k{n}")).collect();
    let kept = send(&keys);
    let refusal = kept.refusal.unwrap();
    assert!(!refusal.whole && refusal.reason.ends_with(&format!("refused keys: k{most}")), "{refusal:?}");
    assert_eq!(kept.ticket.last, 2, "a row and a dead letter");
    assert_eq!(fixture.hub.latest(&fixture.administrator(), series, None).unwrap().len(), most);
    assert_eq!(dead_letter(), Value::String(format!(r#"[{{"ts":1,"values":{{"k{most}":1}}}}]"#)));
    // The store refuses all its keys, so the dead letter has the whole payload.
    assert!(send(&keys[most..]).refusal.unwrap().whole);
    assert_eq!(dead_letter(), Value::String("the payload".into()));
    assert_eq!(send(&keys[..most]).refusal, None);
    // A batch of several messages is refused whole.
    let mut batch = Batch::new();
    let mut row = batch.builder();
    row.field("one more", ValueRef::I64(1));
    row.row(series, Timestamp::from_micros(1));
    row.finish();
    let refused = fixture.hub.ingest(&batch, Durability::Fsync).unwrap_err();
    assert!(refused.to_string().contains("the limit is 300"), "{refused}");
}

#[test]
fn refusals_before_the_start_are_read_from_the_dead_letters() {
    let fixture = fixture();
    assert_eq!(fixture.hub.refusals_of(&fixture.administrator(), &fixture.device).unwrap(), None);
    let mut batch = Batch::new();
    let dead_letter = DeadLetter { door: "mqtt", topic: "t", reason: "the key is empty", payload: b"{}" };
    fixture.hub.add_dead_letter(&fixture.device, dead_letter, &mut batch).unwrap();
    fixture.hub.ingest(&batch, Durability::Fsync).unwrap();
    let refused = fixture.hub.refusals_of(&fixture.administrator(), &fixture.device).unwrap().unwrap();
    assert_eq!((refused.messages, refused.last), (0, batch.row(0).ts()));
    assert_eq!((refused.door.as_str(), refused.reason.as_str()), ("mqtt", "the key is empty"));
    // A device that was added later under the same name has no refusals.
    let created_at = refused.last.saturating_add_micros(1);
    let later = Device { created_at, ..Device::clone(&fixture.device) };
    assert_eq!(fixture.hub.refusals_of(&fixture.administrator(), &later).unwrap(), None);
}

#[test]
fn dead_letters_keep_every_byte_and_never_overwrite_each_other() {
    let fixture = fixture();
    let mut batch = Batch::new();
    for payload in [&b"{broken"[..], b"\xff\x00", b"{broken"] {
        let dead_letter = DeadLetter { door: "mqtt", topic: "t", reason: "no", payload };
        fixture.hub.add_dead_letter(&fixture.device, dead_letter, &mut batch).unwrap();
    }
    assert_eq!(batch.len(), 3);
    let times: std::collections::HashSet<_> = batch.rows().map(|row| row.ts()).collect();
    assert_eq!(times.len(), 3);
    let field = |row: usize, key: &str| {
        batch.row(row).fields().find(|field| field.key == key).map(|field| field.value.to_owned())
    };
    assert_eq!(field(0, "payload"), Some(Value::String("{broken".into())));
    assert_eq!(field(1, "payload_base64"), Some(Value::String("/wA=".into())));
    let key = SeriesKey::device(hub::DEAD_LETTER_TABLE, "car").unwrap();
    assert_eq!(Some(batch.row(0).series()), fixture.store.find_series(&key));
}

#[tokio::test]
async fn tables_exist_before_their_first_row() {
    let fixture = fixture();
    let registry = fixture.hub.registry();
    let tenant = registry.default_tenant();
    registry.add_profile(tenant, "tram", "trams", Durability::Os).unwrap();
    fixture.hub.open_sql(QueryLimits::default()).unwrap();
    let columns = async |table: &str, reader: &Reader| {
        let answer = fixture.hub.sql(&format!("SELECT * FROM {table}"), Vec::new(), reader).await?;
        let names: Vec<_> = answer.schema.fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(answer.collect().await?, []);
        Ok::<_, SqlError>(names.join(" "))
    };
    let (user, public) = (Reader::from(Caller::local(tenant)), Reader::from(Caller::public(tenant)));
    let dead_letters = "device ts door topic reason payload payload_base64";
    for (table, names) in [
        ("telemetry", "device ts"),
        ("trams", "device ts"),
        ("dead_letter", dead_letters),
        ("audit", "login ts role act subject entity_type entity_id"),
    ] {
        assert_eq!(columns(table, &user).await.unwrap(), names);
    }
    assert_eq!(columns("trams", &public).await.unwrap(), "device ts");
    for (table, reader) in [("dead_letter", &public), ("audit", &public), ("buses", &user)] {
        assert!(matches!(columns(table, reader).await, Err(SqlError::UnknownTable { .. })), "{table}");
    }
    let batch = one_row(&fixture, 1, 50);
    fixture.hub.ingest(&batch, Durability::Memory).unwrap();
    let answer = fixture.hub.sql("SELECT speed FROM telemetry", Vec::new(), &user).await.unwrap();
    assert_eq!(answer.collect().await.unwrap()[0].num_rows(), 1);
}

#[test]
fn administrative_acts_are_rows_of_the_table_audit() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let added = hub.add_device(&caller, NewDevice { name: "van", ..NewDevice::default() }).unwrap();
    let credentials = Credentials::access_token("secret-token").unwrap();
    hub.set_credentials(&caller, added.device.id, credentials).unwrap();
    hub.add_user(&caller, "eve@example.org", "secret password", Role::Viewer).unwrap();
    hub.set_password(&caller, "eve@example.org", "another secret").unwrap();
    hub.delete_device(&Caller::public(caller.tenant()), added.device.id).unwrap_err();
    let series = fixture.store.find_series(&SeriesKey::new(hub::AUDIT_TABLE, &[("login", "local")]).unwrap());
    let request = HistoryRequest {
        keys: vec!["act".to_owned(), "subject".to_owned(), "role".to_owned()],
        range: TimeRange::ALL,
        aggregation: Aggregation::None,
        interval: Interval::WholeRange,
        limit: 10,
        order: Order::Ascending,
    };
    let columns = hub.history(&caller, series.unwrap(), &request).unwrap();
    let texts =
        |column: usize| -> Vec<_> { columns[column].1.iter().map(|(_, value)| value.clone()).collect() };
    let text = |value: &str| Value::String(value.into());
    let acts = ["add device", "replace credentials of device", "add user", "set password of user"];
    assert_eq!(texts(0), acts.map(text));
    assert_eq!(texts(1), ["van", "van", "eve@example.org as viewer", "eve@example.org"].map(text));
    assert_eq!(texts(2), ["administrator"; 4].map(text));
}

#[test]
fn an_act_is_answered_when_its_row_is_durable() {
    let fixture = fixture();
    fixture.store.hold();
    let act = {
        let (hub, caller) = (Arc::clone(&fixture.hub), fixture.administrator());
        std::thread::spawn(move || hub.add_device(&caller, NewDevice { name: "van", ..NewDevice::default() }))
    };
    let caller = fixture.administrator();
    while fixture.hub.device_by_name(&caller, "van").is_err() {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(!act.is_finished());
    fixture.store.release();
    act.join().unwrap().unwrap();
}

#[test]
fn an_act_without_a_row_is_done() {
    let fixture = fixture();
    fixture.store.seal("cannot sync");
    let caller = fixture.administrator();
    fixture.hub.add_device(&caller, NewDevice { name: "van", ..NewDevice::default() }).unwrap();
    assert!(fixture.hub.device_by_name(&caller, "van").is_ok());
}
