//! Attributes of devices on the reference key-value store.

use std::collections::BTreeSet;

use hub::attributes::limits::{ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_BYTES_MAX, ATTRIBUTES_PER_SCOPE_MAX};
use hub::attributes::{Changes, Scope};
use hub::device_messages::{Attribute, DeviceMessage, DeviceOutbox, Interests, NotifyWake};
use hub::registry::{AssetFields, CustomerFields, RegistryError};
use hub::{AttributeError, EntityId, EntityKind, OwnAttributes};
use kv::KeyValueStore;

use super::*;

fn entries(pairs: &[(&str, i64)]) -> Vec<(String, Value)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::I64(*value))).collect()
}

fn names(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// Keys and numbers.
fn numbers(found: &[Attribute]) -> Vec<(&str, i64)> {
    let number = |attribute: &Attribute| match attribute.value {
        Value::I64(number) => number,
        ref other => panic!("{other:?}"),
    };
    found.iter().map(|attribute| (&*attribute.key, number(attribute))).collect()
}

fn connect(fixture: &Fixture) -> DeviceOutbox {
    let interests = Interests { shared_attributes: true, rpc: false };
    fixture.hub.open_outbox(&fixture.device, interests, Arc::new(NotifyWake::default()))
}

/// The messages of an outbox, each as a line.
fn taken(outbox: &DeviceOutbox) -> Vec<String> {
    let line = |message: &Arc<DeviceMessage>| match &**message {
        DeviceMessage::AttributesChanged { entries } => format!("{:?}", numbers(entries)),
        DeviceMessage::AttributesDeleted { keys } => format!("deleted {keys:?}"),
        other => panic!("{other:?}"),
    };
    outbox.take(100).iter().map(line).collect()
}

#[test]
fn scopes_are_separate_and_a_device_sees_no_server_attributes() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    hub.set_client_attributes(device, &entries(&[("a", 1), ("b", 2)])).unwrap();
    hub.set_attributes(&caller, device, Scope::Shared, &entries(&[("a", 3)])).unwrap();
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("a", 4)])).unwrap();
    for (scope, expected) in [
        (Scope::Client, vec![("a", 1), ("b", 2)]),
        (Scope::Shared, vec![("a", 3)]),
        (Scope::Server, vec![("a", 4)]),
    ] {
        assert_eq!(numbers(&hub.attributes(&caller, device, scope, None).unwrap()), expected, "{scope}");
    }
    let own = |client: Option<&[&str]>, shared: Option<&[&str]>| {
        let (client, shared) = (client.map(names), shared.map(names));
        let OwnAttributes { client, shared } =
            hub.attributes_for_device(device, client.as_deref(), shared.as_deref()).unwrap();
        format!("{:?} {:?}", numbers(&client), numbers(&shared))
    };
    assert_eq!(own(None, None), r#"[("a", 1), ("b", 2)] [("a", 3)]"#);
    assert_eq!(own(Some(&["b", "b", "x", ""]), None), r#"[("b", 2)] []"#);
    assert_eq!(own(None, Some(&["a"])), r#"[] [("a", 3)]"#);
    assert_eq!(own(Some(&[]), Some(&["b", "a"])), r#"[] [("a", 3)]"#);
}

#[test]
fn the_same_value_again_is_an_update_and_the_last_of_equal_keys_counts() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let outbox = connect(&fixture);
    for _ in 0..2 {
        hub.set_attributes(&caller, device, Scope::Shared, &entries(&[("a", 1), ("a", 2)])).unwrap();
    }
    assert_eq!(taken(&outbox), [r#"[("a", 2)]"#, r#"[("a", 2)]"#]);
    let found = hub.attributes(&caller, device, Scope::Shared, None).unwrap();
    assert_eq!(found[0].ts.micros() % 1_000, 0, "clients see the same time");
}

#[test]
fn deleted_attributes_are_gone_and_the_device_learns_it() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let outbox = connect(&fixture);
    hub.set_attributes(&caller, device, Scope::Shared, &entries(&[("a", 1), ("b", 2)])).unwrap();
    hub.delete_attributes(&caller, device, Scope::Shared, &names(&["a", "never"])).unwrap();
    hub.delete_attributes(&caller, device, Scope::Shared, &names(&["never"])).unwrap();
    assert_eq!(taken(&outbox), [r#"[("a", 1), ("b", 2)]"#, r#"deleted ["a"]"#]);
    assert_eq!(numbers(&hub.attributes(&caller, device, Scope::Shared, None).unwrap()), [("b", 2)]);
    hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap();
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("a", 1)])).unwrap();
    hub.delete_attributes(&caller, device, Scope::Client, &names(&["a"])).unwrap();
    assert!(taken(&outbox).is_empty(), "only shared attributes are told");
}

#[tokio::test]
async fn a_change_is_acked_and_pushed_when_it_is_durable_and_in_order() {
    let fixture = fixture();
    let (hub, device) = (&fixture.hub, &fixture.device);
    let outbox = connect(&fixture);
    fixture.kv.hold();
    let writers: Vec<_> = (1..=3)
        .map(|value| {
            let (hub, device, caller) = (Arc::clone(hub), Arc::clone(device), fixture.administrator());
            let seen = fixture.kv.progress().committed;
            let writer = std::thread::spawn(move || {
                hub.set_attributes(&caller, &device, Scope::Shared, &entries(&[("a", value)]))
            });
            while fixture.kv.progress().committed == seen {
                std::thread::yield_now();
            }
            writer
        })
        .collect();
    let sequence = hub.set_client_attributes(device, &entries(&[("c", 1)])).unwrap();
    let acked = {
        let hub = Arc::clone(hub);
        tokio::spawn(async move { hub.kv_durable(sequence).await })
    };
    tokio::task::yield_now().await;
    assert!(!acked.is_finished() && taken(&outbox).is_empty());
    fixture.kv.release();
    assert_eq!(taken(&outbox), [r#"[("a", 1)]"#, r#"[("a", 2)]"#, r#"[("a", 3)]"#]);
    acked.await.unwrap().unwrap();
    for writer in writers {
        writer.join().unwrap().unwrap();
    }
}

#[test]
fn a_refused_write_names_device_scope_limit_and_value_and_changes_nothing() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let refused = |key: &str, value: Value| {
        let both = vec![("good".to_owned(), Value::I64(1)), (key.to_owned(), value)];
        hub.set_attributes(&caller, device, Scope::Shared, &both).unwrap_err().to_string()
    };
    let text = |bytes: usize| Value::String("x".repeat(bytes));
    let who = r#"attributes of the device "car" in SHARED_SCOPE: "#;
    for (refusal, part) in [
        (refused(&"k".repeat(10_000), Value::I64(1)), "the key has 10000 bytes, the limit is 255"),
        (refused("", Value::I64(1)), "the key is empty"),
        (refused(" \u{a0}", Value::I64(1)), "blanks"),
        (refused("a\0", Value::I64(1)), "control character"),
        (
            refused("a", text(ATTRIBUTE_VALUE_BYTES_MAX + 1)),
            "the bytes of a value is 65536, the limit is 65535 (ATTRIBUTE_VALUE_BYTES_MAX)",
        ),
    ] {
        assert!(refusal.starts_with(who) && refusal.contains(part), "{refusal}");
    }
    assert!(hub.attributes(&caller, device, Scope::Shared, None).unwrap().is_empty());
    let client = hub.set_attributes(&caller, device, Scope::Client, &entries(&[("a", 1)])).unwrap_err();
    assert!(matches!(client, AttributeError::OnlyDevice { .. }), "{client}");
}

#[test]
fn the_attributes_of_a_scope_are_bounded_in_number_and_bytes() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let many: Vec<_> = (0..ATTRIBUTES_PER_SCOPE_MAX).map(|n| (format!("k{n}"), Value::Bool(true))).collect();
    hub.set_client_attributes(device, &many).unwrap();
    hub.set_client_attributes(device, &many).unwrap();
    let one_more = hub.set_client_attributes(device, &entries(&[("more", 1)])).unwrap_err().to_string();
    assert!(one_more.contains("the number of attributes is 1025, the limit is 1024"), "{one_more}");
    hub.delete_attributes(&caller, device, Scope::Client, &names(&["k7"])).unwrap();
    hub.set_client_attributes(device, &entries(&[("more", 1)])).unwrap();

    let long = |n: usize| (format!("k{n}"), Value::String("x".repeat(ATTRIBUTE_VALUE_BYTES_MAX)));
    let fitting = ATTRIBUTES_BYTES_MAX / (ATTRIBUTE_VALUE_BYTES_MAX + 16);
    let longs: Vec<_> = (0..fitting).map(long).collect();
    for _ in 0..2 {
        hub.set_attributes(&caller, device, Scope::Server, &longs).unwrap();
    }
    let refused = hub.set_attributes(&caller, device, Scope::Server, &[long(fitting)]).unwrap_err();
    assert!(refused.to_string().contains("(ATTRIBUTES_BYTES_MAX)"), "{refused}");
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("k0", 1)])).unwrap();
    hub.set_attributes(&caller, device, Scope::Server, &[long(fitting)]).unwrap();
}

#[test]
fn a_store_without_room_takes_nothing_and_can_be_asked_again() {
    let fixture = fixture();
    let (hub, device) = (&fixture.hub, &fixture.device);
    fixture.kv.set_busy(Some("the disk is full"));
    let busy = hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap_err();
    assert_eq!(busy.blame(), hub::Blame::Busy, "{busy}");
    fixture.kv.set_busy(None);
    hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap();
    assert_eq!(hub.attributes_for_device(device, None, None).unwrap().client.len(), 1);
}

#[test]
fn attributes_go_with_their_device_and_it_can_write_no_more() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let new = NewDevice { name: "other", ..NewDevice::default() };
    let other = hub.add_device(&caller, new).unwrap().device;
    for of in [device, &other] {
        hub.set_client_attributes(of, &entries(&[("a", 1)])).unwrap();
        hub.set_attributes(&caller, of, Scope::Shared, &entries(&[("b", 2)])).unwrap();
    }
    hub.delete_device(&caller, device.id).unwrap();
    assert_eq!(hub.attributes_for_device(device, None, None).unwrap(), OwnAttributes::default());
    assert_eq!(numbers(&hub.attributes_for_device(&other, None, None).unwrap().client), [("a", 1)]);
    let late = hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap_err();
    assert!(matches!(late, AttributeError::Registry(RegistryError::Unknown { .. })), "{late}");
}

#[test]
fn attributes_go_with_their_tenant() {
    let fixture = fixture();
    let (hub, installation) = (&fixture.hub, fixture.administrator());
    let tenant = hub.add_tenant(&installation, "acme", "root@acme.example", "a long password").unwrap();
    let acme = Caller::local(tenant.id);
    let new = NewDevice { name: "car", ..NewDevice::default() };
    let car = hub.add_device(&acme, new).unwrap().device;
    for device in [&car, &fixture.device] {
        hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap();
    }
    hub.delete_tenant(&installation, "acme").unwrap();
    hub.drop_deleted_tables().unwrap();
    assert_eq!(hub.attributes_for_device(&car, None, None).unwrap(), OwnAttributes::default());
    assert_eq!(hub.attributes_for_device(&fixture.device, None, None).unwrap().client.len(), 1);
}

#[tokio::test]
async fn acts_of_users_are_in_the_audit_table() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    hub.open_sql(QueryLimits::default()).unwrap();
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("b", 1), ("a", 1)])).unwrap();
    let many: Vec<String> = (0..20).map(|n| format!("k{n:02}")).collect();
    hub.delete_attributes(&caller, device, Scope::Server, &many).unwrap();
    let answer = hub.sql("SELECT subject FROM audit ORDER BY ts", Vec::new(), &Reader::from(caller)).await;
    let batches = answer.unwrap().collect().await.unwrap();
    let text = format!("{batches:?}");
    assert!(text.contains("car SERVER_SCOPE: b, a"), "{text}");
    assert!(text.contains("k15 and 4 more"), "{text}");
}

#[tokio::test]
async fn subscribers_learn_changes_of_all_scopes_when_they_are_durable() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let watch = hub.watch_attributes(&caller).unwrap();
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("before", 1)])).unwrap();
    assert_eq!(watch.take(), Changes::default(), "it watches nothing yet");
    let id = EntityId::device(device.id);
    watch.watch(id).unwrap();
    fixture.kv.hold();
    hub.set_client_attributes(device, &entries(&[("a", 1)])).unwrap();
    hub.set_client_attributes(device, &entries(&[("b", 2)])).unwrap();
    assert_eq!(watch.take(), Changes::default(), "they are not durable");
    fixture.kv.release();
    assert_eq!(watch.next().await.of, BTreeSet::from([(id, Scope::Client)]));
    hub.set_attributes(&caller, device, Scope::Shared, &entries(&[("c", 3)])).unwrap();
    hub.delete_attributes(&caller, device, Scope::Server, &names(&["before", "never"])).unwrap();
    let expected = BTreeSet::from([(id, Scope::Server), (id, Scope::Shared)]);
    assert_eq!(watch.next().await.of, expected);
    hub.delete_attributes(&caller, device, Scope::Server, &names(&["never"])).unwrap();
    assert_eq!(watch.take(), Changes::default(), "nothing has changed");
}

#[test]
fn entities_of_other_kinds_have_server_attributes_which_end_with_them() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    let fields = AssetFields { name: "depot", ..AssetFields::default() };
    let asset = hub.add_asset(&caller, fields).unwrap();
    let profile = hub.add_asset_profile(&caller, "yard", None).unwrap();
    let customer = hub.add_customer(&caller, &CustomerFields { title: "north", ..CustomerFields::default() });
    let customer = customer.unwrap();
    let ids = [
        EntityId { kind: EntityKind::Asset, id: asset.id },
        EntityId { kind: EntityKind::AssetProfile, id: profile.id },
        EntityId { kind: EntityKind::Customer, id: customer.id },
        EntityId { kind: EntityKind::DeviceProfile, id: fixture.device.profile.id },
        EntityId { kind: EntityKind::Tenant, id: caller.tenant() },
    ];
    for id in ids {
        let entity = hub.visible_entity(&caller, id).unwrap();
        hub.set_attributes(&caller, &entity, Scope::Server, &entries(&[("active", 1)])).unwrap();
        let found = hub.attributes(&caller, &entity, Scope::Server, None).unwrap();
        assert_eq!(numbers(&found), [("active", 1)], "{id}");
        for scope in [Scope::Shared, Scope::Client] {
            let refused = hub.set_attributes(&caller, &entity, scope, &entries(&[("a", 1)])).unwrap_err();
            assert!(matches!(refused, AttributeError::NoScope { .. }), "{refused}");
        }
        let foreign = Caller::local(uuid::Uuid::from_u128(9));
        hub.attributes(&foreign, &entity, Scope::Server, None).unwrap_err();
    }
    let before = stored_keys(&fixture);
    // A profile that is used stays, with its attributes.
    hub.delete_profile(&caller, fixture.device.profile.id).unwrap_err();
    assert_eq!(stored_keys(&fixture), before);
    hub.delete_asset(&caller, asset.id).unwrap();
    hub.delete_asset_profile(&caller, profile.id).unwrap();
    hub.delete_customer(&caller, customer.id).unwrap();
    // An attribute and a tally of each of the three.
    assert_eq!(stored_keys(&fixture), before - 6);
}

fn stored_keys(fixture: &Fixture) -> usize {
    let space = kv::Space::named("attributes").unwrap();
    fixture.kv.scan(space, &kv::KeyRange::all(), kv::Direction::Ascending).unwrap().count()
}

/// What the server keeps itself has room beside the attributes of users.
#[test]
fn a_full_scope_has_room_for_the_state_of_the_device() {
    let fixture = fixture();
    let (hub, device, caller) = (&fixture.hub, &fixture.device, fixture.administrator());
    let many: Vec<_> = (0..ATTRIBUTES_PER_SCOPE_MAX).map(|n| (format!("a{n}"), Value::I64(0))).collect();
    hub.set_attributes(&caller, device, Scope::Server, &many).unwrap();
    hub.start_device_states(Duration::from_secs(3_600));
    hub.device_heard(device);
    while hub.attributes(&caller, device, Scope::Server, Some(&names(&["active"]))).unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // An attribute that is there can change; another one finds no room.
    hub.set_attributes(&caller, device, Scope::Server, &entries(&[("a1", 5)])).unwrap();
    let refused = hub.set_attributes(&caller, device, Scope::Server, &entries(&[("more", 5)])).unwrap_err();
    assert!(refused.to_string().contains("ATTRIBUTES_PER_SCOPE_MAX"), "{refused}");
}
