//! Every operation of the hub with every kind of caller. A new operation belongs into [`operations`].

use hub::Hub;
use hub::attributes::Scope;
use hub::bulk::{BulkError, DeleteRequest, Deleted, ExportFormat, ExportRequest, ParquetBounds};
use hub::caller::{Caller, Forbidden};
use hub::entity_query::{EntityCountQuery, EntityDataQuery};
use hub::history::TextHeld;
use hub::registry::{BulkDevices, Device, DeviceChange, NewApiKey, PageRequest, RegistryError, User};
use hub::{AttributeError, BackupList, Error, ParquetImport};
use model::{Namespace, SeriesId};
use serde_json::json;
use uuid::Uuid;

use super::*;

/// The lowest role that may do an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Public,
    Administrator,
}

/// What an operation shows to a caller of another tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// The operation refuses the caller.
    Refused,
    /// The device or user is unknown.
    Unknown,
    /// There is no such table.
    NoTable,
    /// The answer shows nothing of the other tenant.
    Hidden,
    /// The operation is about the caller's own tenant.
    Own,
}

type Run = Box<dyn Fn(&Hub, &Caller) -> Result<bool, Error>>;

struct Operation {
    name: &'static str,
    needs: Needs,
    foreign: Foreign,
    /// Returns whether the answer shows something of the default tenant.
    run: Run,
}

fn operation(
    name: &'static str,
    needs: Needs,
    foreign: Foreign,
    run: impl Fn(&Hub, &Caller) -> Result<bool, Error> + 'static,
) -> Operation {
    Operation { name, needs, foreign, run: Box::new(run) }
}

fn history_of_all() -> HistoryRequest {
    HistoryRequest {
        keys: vec!["speed".to_owned()],
        range: TimeRange::ALL,
        aggregation: Aggregation::None,
        interval: Interval::WholeRange,
        limit: 10,
        order: Order::Ascending,
    }
}

/// All operations. Those that change something come last, and those that end a thing after all others.
fn operations(device: &Arc<Device>, series: SeriesId) -> Vec<Operation> {
    use Foreign::{Hidden, NoTable, Own, Refused, Unknown};
    use Needs::Administrator;
    let mut all = reads(device, series);
    let (id, of_values) = (device.id, Arc::clone(device));
    let (set, deleted) = (Arc::clone(device), Arc::clone(device));
    all.extend([
        operation("users", Administrator, Hidden, |hub, caller| {
            Ok(hub.users(caller)?.iter().any(|user| user.login == "eve@example.org"))
        }),
        operation("tables", Administrator, Hidden, |hub, caller| {
            Ok(hub.tables(caller)?.iter().any(|status| status.table.is_in(&Namespace::DEFAULT)))
        }),
        operation("tenants", Administrator, Refused, |hub, caller| Ok(!hub.tenants(caller)?.is_empty())),
        operation("columns", Administrator, NoTable, |hub, caller| {
            Ok(!hub.columns(caller, "telemetry")?.is_empty())
        }),
        operation("expiring", Administrator, NoTable, |hub, caller| {
            hub.expiring(caller, "telemetry", None, false).map(|_| true)
        }),
        operation("export", Administrator, NoTable, |hub, caller| {
            let format = ExportFormat::Csv;
            let request = ExportRequest { matchers: Vec::new(), range: TimeRange::ALL, format };
            Ok(hub.export(caller, "telemetry", &request)?.rows_max() > 0)
        }),
        operation("check", Administrator, Refused, |hub, caller| {
            hub.check(caller, &mut |_, _| std::ops::ControlFlow::Continue(())).map(|_| true)
        }),
        operation("backup", Administrator, Refused, |hub, caller| {
            hub.backup(caller, BackupList::default()).map(|_| true)
        }),
        operation("credentials", Administrator, Unknown, move |hub, caller| {
            Ok(!hub.credentials(caller, id)?.1.is_empty())
        }),
        operation("import_parquet", Administrator, Own, |hub, caller| {
            let bounds = ParquetBounds { held_bytes_max: 1 << 20, rows_max: 10 };
            let import = ParquetImport { bounds, zone: None, any_time: false, busy_timeout: Duration::ZERO };
            hub.import_parquet(caller, "t", bytes::Bytes::from_static(b"no"), &import).map(|_| true)
        }),
        operation("set_ttl", Administrator, NoTable, |hub, caller| {
            hub.set_ttl(caller, "telemetry", None, false).map(|()| true)
        }),
        operation("drop_key", Administrator, NoTable, |hub, caller| {
            hub.drop_key(caller, "telemetry", "speed", true).map(|_| true)
        }),
        operation("delete_values", Administrator, Refused, move |hub, caller| {
            let keys = ["speed".to_owned()];
            Ok(hub.delete_values(caller, &of_values, Some(&keys), TimeRange::ALL)? == 1)
        }),
        operation("delete_rows", Administrator, NoTable, |hub, caller| {
            let what = Deleted::Rows { keys: None, range: TimeRange::ALL };
            let request = DeleteRequest { matchers: Vec::new(), what };
            Ok(hub.delete_rows(caller, "telemetry", &request, false)? == 1)
        }),
        operation("change_device", Administrator, Unknown, move |hub, caller| {
            let change = DeviceChange { name: "car", ..DeviceChange::default() };
            Ok(hub.change_device(caller, id, change).map(|_| true)?)
        }),
        operation("set_token", Administrator, Unknown, move |hub, caller| {
            Ok(hub.set_token(caller, id, None).map(|_| true)?)
        }),
        operation("set_password", Administrator, Unknown, |hub, caller| {
            Ok(hub.set_password(caller, "eve@example.org", "a new password").map(|()| true)?)
        }),
        operation("set_role", Administrator, Unknown, |hub, caller| {
            Ok(hub.set_role(caller, "eve@example.org", Role::Viewer).map(|_| true)?)
        }),
        operation("add_api_key", Administrator, Unknown, |hub, caller| {
            let (login, role) = ("eve@example.org", Role::Viewer);
            let new = NewApiKey { login, name: "reports", role, expires_at: None };
            Ok(hub.add_api_key(caller, new).map(|_| true)?)
        }),
        operation("delete_api_key", Administrator, Unknown, |hub, caller| {
            let eve = hub.registry().user_by_login("eve@example.org").unwrap();
            let id = hub.registry().api_keys(eve.id)[0].id;
            Ok(hub.delete_api_key(caller, id).map(|_| true)?)
        }),
        operation("delete_user", Administrator, Unknown, |hub, caller| {
            Ok(hub.delete_user(caller, "eve@example.org").map(|_| true)?)
        }),
        operation("set_attributes", Administrator, Refused, move |hub, caller| {
            let entries = [("site".to_owned(), Value::Bool(true))];
            Ok(hub.set_attributes(caller, &set, Scope::Server, &entries).map(|()| true)?)
        }),
        operation("delete_attributes", Administrator, Refused, move |hub, caller| {
            let keys = ["other".to_owned()];
            Ok(hub.delete_attributes(caller, &deleted, Scope::Server, &keys).map(|()| true)?)
        }),
        operation("delete_device", Administrator, Unknown, move |hub, caller| {
            hub.delete_device(caller, id).map(|_| true)
        }),
        operation("drop_table", Administrator, NoTable, |hub, caller| {
            hub.drop_table(caller, "telemetry", false).map(|()| true)
        }),
        operation("rotate_session_key", Administrator, Refused, |hub, caller| {
            Ok(hub.rotate_session_key(caller).map(|()| true)?)
        }),
    ]);
    all.extend([
        operation("add_tenant", Administrator, Refused, |hub, caller| {
            Ok(hub.add_tenant(caller, "short", "root@short.example", "a long password").map(|_| true)?)
        }),
        operation("delete_tenant", Administrator, Refused, |hub, caller| {
            hub.delete_tenant(caller, "short").map(|_| true)
        }),
        operation("add_device", Administrator, Own, |hub, caller| {
            Ok(hub.add_device(caller, NewDevice { name: "van", ..NewDevice::default() }).map(|_| true)?)
        }),
        operation("add_devices", Administrator, Own, |hub, caller| {
            let bulk = BulkDevices { count: 1, prefix: "bus-", ..BulkDevices::default() };
            Ok(hub.add_devices(caller, bulk).map(|_| true)?)
        }),
        operation("add_user", Administrator, Own, |hub, caller| {
            Ok(hub
                // A login is unique in the installation.
                .add_user(
                    caller,
                    &format!("bob@{}", caller.tenant()),
                    "a long password",
                    Role::Viewer,
                )
                .map(|_| true)?)
        }),
    ]);
    all
}

/// The operations that read devices.
fn reads(device: &Arc<Device>, series: SeriesId) -> Vec<Operation> {
    use Foreign::{Hidden, Refused, Unknown};
    use Needs::Public;
    let (id, profile, of) = (device.id, device.profile.id, || Arc::clone(device));
    let (found, refused, attributes, state) = (of(), of(), of(), of());
    let all_devices = || -> EntityDataQuery {
        let all = json!({ "type": "entityType", "entityType": "DEVICE" });
        serde_json::from_value(json!({ "entityFilter": all, "pageLink": { "pageSize": 10 } })).unwrap()
    };
    let (page, keys) = (all_devices(), all_devices());
    let count = EntityCountQuery { entity_filter: all_devices().entity_filter, key_filters: Vec::new() };
    vec![
        operation("device_state", Public, Refused, move |hub, caller| {
            Ok(!hub.device_state(caller, &state)?.active)
        }),
        operation("attributes", Public, Refused, move |hub, caller| {
            Ok(hub.attributes(caller, &attributes, Scope::Client, None)?.len() == 1)
        }),
        operation("device", Public, Unknown, move |hub, caller| Ok(hub.device(caller, id)?.name == "car")),
        operation("device_by_name", Public, Unknown, |hub, caller| {
            Ok(hub.device_by_name(caller, "car")?.name == "car")
        }),
        operation("devices_page", Public, Hidden, |hub, caller| {
            let request = PageRequest { page_size: 10, ..PageRequest::default() };
            Ok(!hub.devices_page(caller, request)?.data.is_empty())
        }),
        operation("profiles", Public, Hidden, move |hub, caller| {
            Ok(hub.profiles(caller)?.iter().any(|one| one.id == profile))
        }),
        operation("default_profile", Public, Hidden, move |hub, caller| {
            Ok(hub.default_profile(caller)?.id == profile)
        }),
        operation("find_series_of", Public, Refused, move |hub, caller| {
            Ok(hub.find_series_of(caller, &found)?.is_some())
        }),
        operation("find_entities", Public, Hidden, move |hub, caller| {
            Ok(!hub.find_entities(caller, &page).unwrap().page.data.is_empty())
        }),
        operation("count_entities", Public, Hidden, move |hub, caller| {
            Ok(hub.count_entities(caller, &count).unwrap() > 0)
        }),
        operation("keys_of_entities", Public, Hidden, move |hub, caller| {
            let keys = hub.keys_of_entities(caller, &keys, true, Some(&Scope::ALL)).unwrap();
            Ok(!keys.time_series.unwrap().is_empty())
        }),
        operation("refusals_of", Public, Refused, move |hub, caller| {
            hub.refusals_of(caller, &refused).map(|_| true)
        }),
        operation("refused_devices", Public, Hidden, |hub, caller| {
            Ok(!hub.refused_devices(caller, 10)?.is_empty())
        }),
    ]
}

/// The operations on a series. A caller gets a series of its own tenant only, from an operation above.
fn check_reads_of_series(hub: &Hub, caller: &Caller, series: SeriesId) {
    let request = history_of_all();
    assert_eq!(hub.latest(caller, series, None).unwrap().len(), 1);
    assert_eq!(hub.history(caller, series, &request).unwrap()[0].1.len(), 1);
    let aggregates = HistoryRequest { aggregation: Aggregation::Count, ..request };
    hub.reduce(caller, &[series], &aggregates, &TextHeld::default()).unwrap();
}

fn is_forbidden(error: &Error) -> Option<&Forbidden> {
    match error {
        Error::Forbidden(forbidden)
        | Error::Registry(RegistryError::Forbidden(forbidden))
        | Error::Attributes(AttributeError::Forbidden(forbidden)) => Some(forbidden),
        _ => None,
    }
}

fn viewer(tenant: Uuid) -> Caller {
    Caller::user(&User {
        id: Uuid::from_u128(7),
        tenant,
        login: "viewer@example.org".to_owned(),
        role: Role::Viewer,
        ..User::default()
    })
}

#[test]
fn each_role_may_do_what_it_needs_and_sees_nothing_of_another_tenant() {
    let fixture = fixture();
    let (hub, tenant) = (&*fixture.hub, fixture.device.tenant);
    let batch = one_row(&fixture, 1, 50);
    hub.ingest(&batch, Durability::Memory).unwrap();
    let now = Timestamp::from_micros(2);
    hub.set_client_attributes(&fixture.device, &[("site".to_owned(), Value::I64(7))]).unwrap();
    hub.refusals().note(fixture.device.id, Door::Mqtt, "too long", now);
    let administrator = fixture.administrator();
    hub.add_user(&administrator, "eve@example.org", "a long password", Role::Viewer).unwrap();
    let other = hub.add_tenant(&administrator, "other", "root@other.example", "a long password").unwrap();
    let series = hub.find_series_of(&administrator, &fixture.device).unwrap().unwrap();
    for caller in [&Caller::public(tenant), &viewer(tenant), &administrator] {
        check_reads_of_series(hub, caller, series);
    }
    for operation in operations(&fixture.device, series) {
        check_roles_below(hub, tenant, &operation);
        check_foreign(hub, other.id, &operation);
        let own = (operation.run)(hub, &administrator);
        // A file that is no Parquet file is refused for its content.
        assert!(own.as_ref().map_or_else(|error| is_forbidden(error).is_none(), |shown| *shown), "{own:?}");
    }
}

fn check_roles_below(hub: &Hub, tenant: Uuid, operation: &Operation) {
    for caller in [Caller::public(tenant), viewer(tenant)] {
        let done = (operation.run)(hub, &caller);
        match operation.needs {
            Needs::Public => assert!(done.unwrap(), "{} as {}", operation.name, caller.role()),
            Needs::Administrator => {
                let error = done.expect_err(operation.name);
                let forbidden = is_forbidden(&error).expect(operation.name);
                assert_eq!(forbidden.role, caller.role(), "{}", operation.name);
            }
        }
    }
}

/// The administrator of another tenant.
fn check_foreign(hub: &Hub, tenant: Uuid, operation: &Operation) {
    let caller = Caller::local(tenant);
    let done = (operation.run)(hub, &caller);
    match (operation.foreign, done) {
        (Foreign::Hidden, Ok(false)) => {}
        // A file that is no Parquet file is refused for its content.
        (Foreign::Own, Ok(true) | Err(Error::Bulk(BulkError::Data(_)))) => {}
        (Foreign::NoTable, Err(Error::Bulk(BulkError::NoTable { .. }))) => {}
        (Foreign::Refused, Err(error)) if is_forbidden(&error).is_some() => {}
        (Foreign::Unknown, Err(Error::Registry(RegistryError::Unknown { .. }))) => {}
        (expected, other) => panic!("{}: expected {expected:?}, found {other:?}", operation.name),
    }
}
