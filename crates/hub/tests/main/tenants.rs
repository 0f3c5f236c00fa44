//! Tenants: devices of the same name, tables of the same name, and their ends.

use hub::registry::{NewDevice, RegistryError};
use hub::{AUDIT_TABLE, DEAD_LETTER_TABLE};

use model::{Namespace, TableName};
use uuid::Uuid;

use super::*;
use store::{Maintenance, Reader as _};

const PASSWORD: &str = "a long password";

/// A tenant with a device named `car`, which has reported `value`.
fn tenant_with_car(hub: &Hub, installation: &Caller, name: &str, value: i64) -> (Caller, Arc<Device>) {
    let tenant = hub.add_tenant(installation, name, &format!("root@{name}.example"), PASSWORD).unwrap();
    let caller = Caller::local(tenant.id);
    let new = NewDevice { name: "car", ..NewDevice::default() };
    let device = hub.add_device(&caller, new).unwrap().device;
    report(hub, &device, value);
    (caller, device)
}

fn report(hub: &Hub, device: &Device, value: i64) {
    let mut batch = Batch::new();
    let series = hub.series_of(device).unwrap();
    let mut row = batch.builder();
    row.field("speed", ValueRef::I64(value));
    row.row(series, Timestamp::from_micros(1));
    row.finish();
    hub.ingest(&batch, Durability::Memory).unwrap();
}

async fn rows(hub: &Hub, caller: &Caller, sql: &str) -> Result<usize, SqlError> {
    let answer = hub.sql(sql, Vec::new(), &Reader::from(caller.clone())).await?;
    Ok(answer.collect().await?.iter().map(|batch| batch.num_rows()).sum())
}

#[tokio::test]
async fn two_tenants_have_devices_and_tables_of_the_same_name() {
    let fixture = fixture();
    let hub = &*fixture.hub;
    hub.open_sql(QueryLimits::default()).unwrap();
    let installation = fixture.administrator();
    report(hub, &fixture.device, 1);
    let (acme, car) = tenant_with_car(hub, &installation, "acme", 2);
    for (caller, device, value) in [(&installation, &fixture.device, 1), (&acme, &car, 2)] {
        let series = hub.find_series_of(caller, device).unwrap().unwrap();
        assert_eq!(hub.latest(caller, series, None).unwrap()[0].value, Value::I64(value));
        let found = |value| format!("SELECT * FROM telemetry WHERE device = 'car' AND speed = {value}");
        assert_eq!(rows(hub, caller, &found(value)).await.unwrap(), 1);
        assert_eq!(rows(hub, caller, &found(3 - value)).await.unwrap(), 0, "the plan is cached");
        assert_eq!(rows(hub, caller, "SELECT * FROM telemetry").await.unwrap(), 1);
    }
    let dead_letter = DeadLetter { door: "mqtt", topic: "t", reason: "bad", payload: b"x" };
    let mut batch = Batch::new();
    hub.add_dead_letter(&car, dead_letter, &mut batch).unwrap();
    hub.ingest(&batch, Durability::Memory).unwrap();
    for (table, of_acme, of_installation) in [(DEAD_LETTER_TABLE, 1, 0), (AUDIT_TABLE, 1, 1)] {
        let sql = format!("SELECT * FROM {table}");
        assert_eq!(rows(hub, &acme, &sql).await.unwrap(), of_acme, "{table}");
        assert_eq!(rows(hub, &installation, &sql).await.unwrap(), of_installation, "{table}");
    }
    let columns = hub.columns(&acme, "telemetry").unwrap();
    hub.drop_key(&acme, "telemetry", "speed", false).unwrap();
    assert_eq!(hub.columns(&installation, "telemetry").unwrap(), columns);
    hub.set_ttl(&acme, "telemetry", Some(Duration::from_secs(86_400)), false).unwrap();
    assert_eq!(hub.limits_of(&fixture.device).ttl, None);
    assert_eq!(hub.limits_of(&car).ttl, Some(Duration::from_secs(86_400)));
}

#[tokio::test]
async fn a_tenant_that_was_deleted_and_added_again_inherits_nothing() {
    let fixture = fixture();
    let hub = &*fixture.hub;
    hub.open_sql(QueryLimits::default()).unwrap();
    let installation = fixture.administrator();
    let (first, car) = tenant_with_car(hub, &installation, "acme", 2);
    let token = hub.registry().credentials_of(car.id).unwrap().id().clone();
    let user = hub.registry().user_by_login("root@acme.example").unwrap();
    let session = hub.registry().open_session(&user, Timestamp::from_micros(0));
    hub.delete_tenant(&installation, "acme").unwrap();
    assert!(hub.registry().device_by_token(&token).is_none());
    assert!(hub.registry().check_session(&session.token, Timestamp::from_micros(1)).is_err());
    assert!(hub.registry().authenticate("root@acme.example", PASSWORD).unwrap().is_none());
    assert!(*hub.deletions().borrow() > 0);
    assert!(hub.drop_deleted_tables().unwrap() > 0);
    let left =
        fixture.store.tables().unwrap().into_iter().filter(|status| !status.table.is_in(&Namespace::DEFAULT));
    assert_eq!(left.count(), 0, "the tables are gone");
    assert_eq!(hub.drop_deleted_tables().unwrap(), 0);
    let again = hub.add_tenant(&installation, "acme", "root@acme.example", PASSWORD).unwrap();
    let again = Caller::local(again.id);
    assert_ne!(first.tenant(), again.tenant());
    assert_eq!(rows(hub, &again, "SELECT * FROM telemetry").await.unwrap(), 0);
    let new = NewDevice { name: "car", token: Some(&token), ..NewDevice::default() };
    let car = hub.add_device(&again, new).unwrap().device;
    assert_eq!(hub.find_series_of(&again, &car).unwrap(), None);
}

/// A registry of an older backup does not know the newest tenants. Their rows must not be lost by it.
#[test]
fn tables_of_an_unknown_tenant_stay_and_those_of_a_deleted_one_go_at_the_next_start() {
    let fixture = fixture();
    let hub = &*fixture.hub;
    let (acme, _) = tenant_with_car(hub, &fixture.administrator(), "acme", 2);
    let unknown = Namespace::new(&Uuid::from_u128(7).simple().to_string()).unwrap();
    let table = TableName::new(&unknown, "telemetry").unwrap();
    fixture.store.set_ttl(&table, None).unwrap();
    let tables =
        || fixture.store.tables().unwrap().into_iter().map(|status| status.table).collect::<Vec<_>>();
    assert_eq!(hub.drop_deleted_tables().unwrap(), 0);
    fixture.store.set_busy(Some("the disk is full"));
    hub.registry().delete_tenant("acme").unwrap();
    assert!(hub.drop_deleted_tables().is_err());
    fixture.store.set_busy(None);
    let of_acme = hub.registry().namespace(acme.tenant());
    assert!(tables().iter().any(|table| table.is_in(&of_acme)));
    assert!(hub.drop_deleted_tables().unwrap() > 0);
    assert!(!tables().iter().any(|table| table.is_in(&of_acme)));
    assert!(tables().contains(&table));
}

#[test]
fn tenants_survive_a_restart_and_the_default_one_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("registry.sqlite");
    let open = || Registry::open(&path).unwrap().0;
    let added = open().add_tenant("acme", "root@acme.example", PASSWORD).unwrap();
    let registry = open();
    let names: Vec<_> = registry.tenants().into_iter().map(|tenant| tenant.name.clone()).collect();
    assert_eq!(names, ["acme", "default"]);
    let profile = registry.profile(added.id, "default").unwrap();
    assert_eq!(
        (profile.table.name(), profile.table.namespace()),
        ("telemetry", registry.namespace(added.id))
    );
    for (name, login) in [("acme", "b@acme.example"), ("other", "ROOT@acme.example")] {
        let refused = registry.add_tenant(name, login, PASSWORD);
        assert!(matches!(refused, Err(RegistryError::Exists { .. })), "{refused:?}");
    }
    let refused = registry.delete_tenant("default");
    assert!(matches!(refused, Err(RegistryError::Invalid { what: "tenant", .. })), "{refused:?}");
    assert!(matches!(registry.delete_tenant("nobody"), Err(RegistryError::Unknown { .. })));
    registry.delete_tenant("acme").unwrap();
    drop(registry);
    let registry = open();
    assert_eq!(registry.tenants().len(), 1);
    assert!(registry.profiles(added.id).is_empty() && registry.users(added.id).is_empty());
}
