//! Every operation of the hub with every kind of caller. A new operation belongs into [`operations`].

use hub::Hub;
use hub::alarms::Severity;
use hub::attributes::Scope;
use hub::audit_log::AuditRequest;
use hub::bulk::{BulkError, DeleteRequest, Deleted, ExportFormat, ExportRequest, ParquetBounds};
use hub::caller::{Caller, Forbidden};
use hub::entity_query::{EntityCountQuery, EntityDataQuery};
use hub::history::HeldTextBytes;
use hub::registry::{
    AssetFields, BulkDevices, CustomerFields, Device, DeviceChange, EntityViewFields, NewApiKey, NewUser,
    PageRequest, ProfileFields, RegistryError, RelationKey, TenantFields, TenantLimits, User,
};
use hub::relations::RelationDirection;
use hub::rpc::{RpcCall, RpcError};
use hub::sql::SqlError;
use hub::{AttributeError, BackupList, EntityId, EntityKind, Error, ParquetImport};
use model::{Namespace, SeriesId};
use serde_json::json;
use timeseries::influxql::Removal;
use uuid::Uuid;

use super::alarms::{new_alarm, query};
use super::*;

/// The lowest role of a tenant that may do an operation. Users of a customer may do what operators may, within the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Public,
    Operator,
    /// Operators of the tenant, but no user of a customer.
    TenantOperator,
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
    /// The same, but customers of one tenant share it.
    HiddenFromTenants,
    /// The operation is about the caller's own tenant.
    Own,
}

type Run = Box<dyn Fn(&Arc<Hub>, &Caller) -> Result<bool, Error>>;

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
    run: impl Fn(&Arc<Hub>, &Caller) -> Result<bool, Error> + 'static,
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
fn operations(device: &Arc<Device>) -> Vec<Operation> {
    use Foreign::{Hidden, NoTable, Own, Refused, Unknown};
    use Needs::{Administrator, Operator, TenantOperator};
    let mut all = reads(device);
    all.extend(entities(device));
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
        operation("flush", Administrator, Refused, |hub, caller| hub.flush(caller).map(|_| true)),
        operation("compact", Administrator, Refused, |hub, caller| hub.compact(caller).map(|_| true)),
        operation("credentials", Administrator, Unknown, move |hub, caller| {
            Ok(!hub.credentials(caller, id)?.1.id().is_empty())
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
        operation("remove", Administrator, Own, |hub, caller| {
            let removal = Removal::of_series(Vec::new(), None, 0).unwrap();
            let empty = hub.create_database(caller, "empty")?;
            hub.remove(caller, &empty, &removal).map(|rows| rows == 0)
        }),
        operation("create_database", TenantOperator, Own, |hub, caller| {
            Ok(hub.create_database(caller, "metrics").map(|_| true)?)
        }),
        operation("drop_database", Administrator, Own, |hub, caller| {
            hub.drop_database(caller, "metrics").map(|()| true)
        }),
        operation("drop_measurement", Administrator, Own, |hub, caller| {
            hub.drop_measurement(caller, &hub.own_database(caller), "nosuch").map(|()| true)
        }),
        operation("change_device", Administrator, Unknown, move |hub, caller| {
            let change = DeviceChange { name: "car", ..DeviceChange::default() };
            hub.change_device(caller, id, change).map(|_| true)
        }),
        operation("set_credentials", Administrator, Unknown, move |hub, caller| {
            Ok(hub.set_credentials(caller, id, Credentials::random_token()).map(|_| true)?)
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
            hub.delete_user(caller, "eve@example.org").map(|_| true)
        }),
        operation("set_attributes", Operator, Refused, move |hub, caller| {
            let entries = [("site".to_owned(), Value::Bool(true))];
            Ok(hub.set_attributes(caller, &set, Scope::Server, &entries).map(|()| true)?)
        }),
        operation("delete_attributes", Operator, Refused, move |hub, caller| {
            let keys = ["other".to_owned()];
            Ok(hub.delete_attributes(caller, &deleted, Scope::Server, &keys).map(|()| true)?)
        }),
        operation("delete_device", Administrator, Unknown, move |hub, caller| {
            hub.delete_device(caller, id).map(|_| true)
        }),
        operation("ttl_of", Administrator, Own, |hub, caller| {
            hub.ttl_of(caller, Some("telemetry")).map(|ttl| ttl.is_none())
        }),
        operation("delete_series", Administrator, NoTable, |hub, caller| {
            hub.delete_series(caller, "telemetry", [], false).map(|_| true)
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
            hub.add_device(caller, NewDevice { name: "van", ..NewDevice::default() }).map(|_| true)
        }),
        operation("add_devices", Administrator, Own, |hub, caller| {
            let bulk = BulkDevices { count: 1, prefix: "bus-", ..BulkDevices::default() };
            hub.add_devices(caller, bulk).map(|_| true)
        }),
        operation("add_user", Administrator, Own, |hub, caller| {
            Ok(hub
                // A login is unique in the installation.
                .add_user(caller, &format!("bob@{}", caller.tenant()), "a long password", Role::Viewer)
                .map(|_| true)?)
        }),
    ]);
    all
}

/// The operations that read devices.
fn reads(device: &Arc<Device>) -> Vec<Operation> {
    use Foreign::{Hidden, HiddenFromTenants, Refused, Unknown};
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
        operation("profiles", Public, HiddenFromTenants, move |hub, caller| {
            Ok(hub.profiles(caller)?.iter().any(|one| one.id == profile))
        }),
        operation("default_profile", Public, HiddenFromTenants, move |hub, caller| {
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

/// The operations on entities other than devices. They are about those that [`prepare`] has added.
fn entities(device: &Arc<Device>) -> Vec<Operation> {
    use Foreign::{Hidden, HiddenFromTenants, Own, Refused, Unknown};
    use Needs::{Administrator, Public};
    let of = EntityId::device(device.id);
    let asset = |hub: &Hub| hub.registry().asset_by_name(hub.registry().default_tenant(), "depot").unwrap();
    let customer =
        |hub: &Hub| hub.registry().customer_by_title(hub.registry().default_tenant(), "acme").unwrap();
    let view =
        |hub: &Hub| hub.registry().entity_view_by_name(hub.registry().default_tenant(), "view").unwrap();
    let key = move |hub: &Hub| {
        let from = EntityId::of(EntityKind::Asset, asset(hub).id);
        RelationKey { from, type_group: "COMMON".into(), kind: "Contains".into(), to: of }
    };
    let ten = PageRequest { page_size: 10, ..PageRequest::default() };
    let named = |name| AssetFields { name, ..AssetFields::default() };
    vec![
        operation("visible_entity", Public, Unknown, move |hub, caller| {
            Ok(hub.visible_entity(caller, of)?.name() == "car")
        }),
        operation("visible_entities", Public, Hidden, |hub, caller| {
            Ok(!hub.visible_entities(caller, EntityKind::Device)?.is_empty())
        }),
        operation("customer", Public, Unknown, move |hub, caller| {
            Ok(hub.customer(caller, customer(hub).id)?.title == "acme")
        }),
        operation("customers_page", Public, Hidden, move |hub, caller| {
            Ok(hub.customers_page(caller, ten)?.data.iter().any(|one| one.title == "acme"))
        }),
        operation("asset", Public, Unknown, move |hub, caller| {
            Ok(hub.asset(caller, asset(hub).id)?.name == "depot")
        }),
        operation("assets_page", Public, Hidden, move |hub, caller| {
            Ok(!hub.assets_page(caller, ten, |_| true)?.data.is_empty())
        }),
        operation("entity_view", Public, Unknown, move |hub, caller| {
            Ok(hub.entity_view(caller, view(hub).id)?.name == "view")
        }),
        operation("entity_views_page", Public, Hidden, move |hub, caller| {
            Ok(!hub.entity_views_page(caller, ten, |_| true)?.data.is_empty())
        }),
        operation("shown_series", Public, Unknown, move |hub, caller| {
            let shown = hub.shown_series(caller, EntityId::of(EntityKind::EntityView, view(hub).id))?;
            Ok(hub.shown_latest(caller, &shown, None)?.len() == 1)
        }),
        operation("relations_of", Public, Unknown, move |hub, caller| {
            Ok(hub.relations_of(caller, of, RelationDirection::To)?.len() == 1)
        }),
        operation("relation", Public, Unknown, move |hub, caller| {
            Ok(hub.relation(caller, &key(hub)).map(|_| true)?)
        }),
        operation("profile", Public, HiddenFromTenants, |hub, caller| {
            let default = hub.registry().default_profile(hub.registry().default_tenant())?;
            match hub.profile(caller, default.id) {
                Err(RegistryError::Unknown { .. }) => Ok(false),
                found => Ok(found.map(|_| true)?),
            }
        }),
        operation("audited_acts", Administrator, Hidden, |hub, caller| {
            let request = AuditRequest { page_size: 10, ..AuditRequest::default() };
            Ok(hub.audited_acts(caller, &request, |_| true)?.data.iter().any(|act| act.subject == "acme"))
        }),
        operation("tenants_page", Administrator, Refused, move |hub, caller| {
            Ok(!hub.tenants_page(caller, ten)?.data.is_empty())
        }),
        operation("change_tenant", Administrator, Refused, |hub, caller| {
            let fields = TenantFields { name: "default", ..TenantFields::default() };
            Ok(hub.change_tenant(caller, hub.registry().default_tenant(), &fields, None).map(|_| true)?)
        }),
        operation("set_tenant_limits", Administrator, Refused, |hub, caller| {
            Ok(hub.set_tenant_limits(caller, "default", TenantLimits::default()).map(|_| true)?)
        }),
        operation("user_activation", Administrator, Unknown, |hub, caller| {
            let user = hub.registry().user_by_login("new@example.org").unwrap();
            Ok(hub.user_activation(caller, user.id).map(|_| true)?)
        }),
        operation("set_user_enabled", Administrator, Unknown, |hub, caller| {
            let user = hub.registry().user_by_login("new@example.org").unwrap();
            Ok(hub.set_user_enabled(caller, user.id, true).map(|()| true)?)
        }),
        operation("assign_device", Administrator, Unknown, move |hub, caller| {
            Ok(hub.assign_device(caller, of.id, Some(customer(hub).id)).map(|_| true)?)
        }),
        operation("assign_asset", Administrator, Unknown, move |hub, caller| {
            Ok(hub.assign_asset(caller, asset(hub).id, Some(customer(hub).id)).map(|_| true)?)
        }),
        operation("change_asset", Administrator, Unknown, move |hub, caller| {
            let fields = AssetFields { customer: Some(customer(hub).id), ..named("depot") };
            Ok(hub.change_asset(caller, asset(hub).id, fields, None).map(|_| true)?)
        }),
        operation("change_customer", Administrator, Unknown, move |hub, caller| {
            let fields = CustomerFields { title: "acme", ..CustomerFields::default() };
            Ok(hub.change_customer(caller, customer(hub).id, &fields, None).map(|_| true)?)
        }),
        operation("save_relation", Administrator, Unknown, move |hub, caller| {
            Ok(hub.save_relation(caller, key(hub), None).map(|_| true)?)
        }),
        operation("delete_relation", Administrator, Unknown, move |hub, caller| {
            Ok(hub.delete_relation(caller, &key(hub)).map(|_| true)?)
        }),
        operation("delete_relations", Administrator, Unknown, move |hub, caller| {
            Ok(hub.delete_relations(caller, of).map(|_| true)?)
        }),
        operation("delete_entity_view", Administrator, Unknown, move |hub, caller| {
            hub.delete_entity_view(caller, view(hub).id).map(|_| true)
        }),
        operation("delete_asset", Administrator, Unknown, move |hub, caller| {
            hub.delete_asset(caller, asset(hub).id).map(|_| true)
        }),
        operation("set_default_profile", Administrator, Unknown, |hub, caller| {
            let id = hub.registry().default_profile(hub.registry().default_tenant())?.id;
            Ok(hub.set_default_profile(caller, id).map(|_| true)?)
        }),
        operation("add_profile", Administrator, Own, |hub, caller| {
            let fields = ProfileFields { name: "pump", ..ProfileFields::default() };
            hub.add_profile(caller, fields).map(|_| true)
        }),
        operation("add_asset", Administrator, Own, move |hub, caller| {
            Ok(hub.add_asset(caller, named("yard")).map(|_| true)?)
        }),
        operation("add_asset_profile", Administrator, Own, |hub, caller| {
            Ok(hub.add_asset_profile(caller, "building", None).map(|_| true)?)
        }),
        operation("add_customer", Administrator, Own, |hub, caller| {
            let fields = CustomerFields { title: "short", ..CustomerFields::default() };
            Ok(hub.add_customer(caller, &fields).map(|_| true)?)
        }),
        operation("create_user", Administrator, Own, |hub, caller| {
            let login = format!("eva@{}", caller.tenant());
            let new = NewUser { login: &login, role: Role::Viewer, ..NewUser::default() };
            Ok(hub.create_user(caller, caller.tenant(), new).map(|_| true)?)
        }),
    ]
}

/// The operations on a series. A caller gets a series of its own tenant only, from an operation above.
fn check_reads_of_series(hub: &Hub, caller: &Caller, series: SeriesId) {
    let request = history_of_all();
    assert_eq!(hub.latest(caller, series, None).unwrap().len(), 1);
    assert_eq!(hub.history(caller, series, &request).unwrap()[0].1.len(), 1);
    let aggregates = HistoryRequest { aggregation: Aggregation::Count, ..request };
    hub.reduce(caller, &[series], &aggregates, &HeldTextBytes::default()).unwrap();
}

fn is_forbidden(error: &Error) -> Option<&Forbidden> {
    match error {
        Error::Forbidden(forbidden)
        | Error::Registry(RegistryError::Forbidden(forbidden))
        | Error::Attributes(AttributeError::Forbidden(forbidden)) => Some(forbidden),
        _ => None,
    }
}

/// A user of a tenant with a role.
fn user(tenant: Uuid, role: Role, customer: Option<Uuid>) -> Caller {
    let login = format!("{role}@example.org");
    Caller::user(&User { id: Uuid::from_u128(7), tenant, login, role, customer, ..User::default() })
}

/// Adds what [`entities`] is about, and assigns it and the device to a customer. Returns the device and two customers.
fn prepare(fixture: &Fixture) -> (Arc<Device>, [Uuid; 2]) {
    let (hub, admin) = (&*fixture.hub, fixture.administrator());
    let customers = ["acme", "other"].map(|title| {
        hub.add_customer(&admin, &CustomerFields { title, ..CustomerFields::default() }).unwrap().id
    });
    let customer = Some(customers[0]);
    let device = hub.assign_device(&admin, fixture.device.id, customer).unwrap();
    let asset =
        hub.add_asset(&admin, AssetFields { name: "depot", customer, ..AssetFields::default() }).unwrap();
    let entity = EntityId::device(device.id);
    let view = EntityViewFields {
        entity,
        name: "view",
        kind: "default",
        keys: None,
        start_ms: 0,
        end_ms: 0,
        additional_info: None,
        customer,
    };
    hub.add_entity_view(&admin, view).unwrap();
    let from = EntityId::of(EntityKind::Asset, asset.id);
    let key = RelationKey { from, type_group: "COMMON".into(), kind: "Contains".into(), to: entity };
    hub.save_relation(&admin, key, None).unwrap();
    let new = NewUser { login: "new@example.org", role: Role::Viewer, ..NewUser::default() };
    hub.create_user(&admin, admin.tenant(), new).unwrap();
    (device, customers)
}

#[test]
fn each_role_may_do_what_it_needs_and_sees_nothing_of_another_tenant_or_customer() {
    let fixture = fixture();
    let (hub, tenant) = (&fixture.hub, fixture.device.tenant);
    let batch = one_row(&fixture, 1, 50);
    hub.ingest(&batch, Durability::Memory).unwrap();
    let now = Timestamp::from_micros(2);
    hub.set_client_attributes(&fixture.device, &[("site".to_owned(), Value::I64(7))]).unwrap();
    hub.refusals().note(fixture.device.id, Door::Mqtt, "too long", now);
    let administrator = fixture.administrator();
    hub.add_user(&administrator, "eve@example.org", "a long password", Role::Viewer).unwrap();
    let other = hub.add_tenant(&administrator, "other", "root@other.example", "a long password").unwrap();
    let (device, [customer, stranger]) = prepare(&fixture);
    let series = hub.find_series_of(&administrator, &device).unwrap().unwrap();
    let callers = [
        Caller::public(tenant),
        user(tenant, Role::Viewer, None),
        user(tenant, Role::Operator, None),
        user(tenant, Role::Customer, Some(customer)),
    ];
    let stranger = user(tenant, Role::Customer, Some(stranger));
    for caller in callers.iter().chain([&administrator]) {
        check_reads_of_series(hub, caller, series);
    }
    for operation in operations(&device) {
        check_stranger(hub, &stranger, &operation);
        for caller in &callers {
            check_role(hub, caller, &operation);
        }
        check_foreign(hub, other.id, &operation);
        let own = (operation.run)(hub, &administrator);
        // A file that is not a Parquet file is refused for its content.
        let done = own.as_ref().map_or_else(|error| is_forbidden(error).is_none(), |shown| *shown);
        assert!(done, "{}: {own:?}", operation.name);
    }
}

fn check_role(hub: &Arc<Hub>, caller: &Caller, operation: &Operation) {
    let may = match operation.needs {
        Needs::Public => true,
        Needs::Operator => matches!(caller.role(), Role::Operator | Role::Customer),
        Needs::TenantOperator => caller.role() == Role::Operator,
        Needs::Administrator => false,
    };
    let done = (operation.run)(hub, caller);
    if may {
        assert!(done.unwrap(), "{} as {}", operation.name, caller.role());
    } else {
        let error = done.expect_err(operation.name);
        let forbidden = is_forbidden(&error).expect(operation.name);
        assert_eq!(forbidden.role, caller.role(), "{}", operation.name);
    }
}

/// A user of another customer of the same tenant.
fn check_stranger(hub: &Arc<Hub>, stranger: &Caller, operation: &Operation) {
    let done = (operation.run)(hub, stranger);
    match (operation.needs, operation.foreign, done) {
        (Needs::TenantOperator | Needs::Administrator, _, Err(error)) if is_forbidden(&error).is_some() => {}
        (Needs::Public, Foreign::HiddenFromTenants, Ok(true)) => {}
        (Needs::Public, Foreign::Hidden, Ok(false)) => {}
        (Needs::Public | Needs::Operator, Foreign::Refused, Err(error)) if is_forbidden(&error).is_some() => {
        }
        (Needs::Public, Foreign::Unknown, Err(Error::Registry(RegistryError::Unknown { .. }))) => {}
        (needs, foreign, other) => {
            panic!("{}: {needs:?}, {foreign:?}, and a stranger finds {other:?}", operation.name)
        }
    }
}

/// The administrator of another tenant.
fn check_foreign(hub: &Arc<Hub>, tenant: Uuid, operation: &Operation) {
    let caller = Caller::local(tenant);
    let done = (operation.run)(hub, &caller);
    match (operation.foreign, done) {
        (Foreign::Hidden | Foreign::HiddenFromTenants, Ok(false)) => {}
        // A file that is not a Parquet file is refused for its content.
        (Foreign::Own, Ok(true) | Err(Error::Bulk(BulkError::Data(_)))) => {}
        (Foreign::NoTable, Err(Error::Bulk(BulkError::NoTable { .. }))) => {}
        (Foreign::Refused, Err(error)) if is_forbidden(&error).is_some() => {}
        (Foreign::Unknown, Err(Error::Registry(RegistryError::Unknown { .. }))) => {}
        (expected, other) => panic!("{}: expected {expected:?}, found {other:?}", operation.name),
    }
}

#[tokio::test]
async fn calls_of_devices_are_for_operators_and_the_customer_of_the_device() {
    let fixture = fixture();
    let (device, [customer, stranger]) = prepare(&fixture);
    let call = async |caller: Caller| {
        let (method, params) = ("reboot".to_owned(), "null".to_owned());
        let expires_at = hub::clock::system_now().saturating_add_micros(1_000);
        let call = RpcCall { method, params, one_way: true, expires_at };
        fixture.hub.call_device(&caller, device.id, call).await.unwrap_err()
    };
    for caller in [
        user(device.tenant, Role::Operator, None),
        user(device.tenant, Role::Customer, Some(customer)),
        fixture.administrator(),
    ] {
        let error = call(caller).await;
        assert!(matches!(error, RpcError::NoConnection { .. } | RpcError::TooFar { .. }), "{error}");
    }
    let viewer = call(user(device.tenant, Role::Viewer, None)).await;
    assert!(matches!(viewer, RpcError::Forbidden(_)), "{viewer}");
    let stranger = call(user(device.tenant, Role::Customer, Some(stranger))).await;
    assert!(matches!(stranger, RpcError::Registry(RegistryError::Unknown { .. })), "{stranger}");
}

#[tokio::test]
async fn alarms_are_for_operators_and_the_customer_of_what_they_are_about() {
    let fixture = fixture();
    let (device, [customer, stranger]) = prepare(&fixture);
    let hub = &fixture.hub;
    let alarm = hub.save_alarm(&fixture.administrator(), new_alarm(&fixture, "hot", Severity::Major)).await;
    let id = alarm.unwrap().id;
    let role = |role, customer| user(device.tenant, role, customer);
    for (caller, sees, may) in [
        (fixture.administrator(), true, true),
        (role(Role::Operator, None), true, true),
        (role(Role::Customer, Some(customer)), true, true),
        (role(Role::Viewer, None), true, false),
        (Caller::public(device.tenant), true, false),
        (role(Role::Customer, Some(stranger)), false, false),
        (Caller::local(Uuid::from_u128(9)), false, false),
    ] {
        let who = format!("{} of {:?}", caller.role(), caller.customer());
        assert_eq!(hub.alarm(&caller, id).is_ok(), sees, "{who}");
        assert_eq!(hub.alarms_page(&caller, &query()).unwrap().data.len(), usize::from(sees), "{who}");
        assert_eq!(hub.alarm_count(&caller, &query()).unwrap(), usize::from(sees), "{who}");
        assert_eq!(hub.alarm_types(&caller).unwrap().len(), usize::from(sees), "{who}");
        let commented = hub.add_alarm_comment(&caller, id, json!({ "text": "seen" })).await;
        assert_eq!(commented.is_ok(), may, "{who}: {commented:?}");
        if !may {
            assert!(hub.acknowledge_alarm(&caller, id).await.is_err(), "{who}");
            assert!(hub.clear_alarm(&caller, id, None).await.is_err(), "{who}");
            assert!(hub.delete_alarm(&caller, id).await.is_err(), "{who}");
        }
    }
    let customers = role(Role::Customer, Some(customer));
    assert!(hub.acknowledge_alarm(&customers, id).await.is_ok());
    assert!(hub.clear_alarm(&customers, id, None).await.is_ok());
    assert!(hub.delete_alarm(&role(Role::Operator, None), id).await.is_ok());
}

#[tokio::test]
async fn sql_shows_a_customer_only_its_devices_also_when_the_plan_is_kept() {
    let fixture = fixture();
    fixture.hub.open_sql(QueryLimits::default()).unwrap();
    let van =
        fixture.hub.add_device(&fixture.administrator(), NewDevice { name: "van", ..NewDevice::default() });
    let van = Fixture { device: van.unwrap().device, ..fixture };
    let car = van.hub.device_by_name(&van.administrator(), "car").unwrap();
    van.hub.ingest(&one_row(&van, 1, 50), Durability::Memory).unwrap();
    let of_car = Fixture { device: car, ..van };
    of_car.hub.ingest(&one_row(&of_car, 1, 60), Durability::Memory).unwrap();
    let (device, [customer, stranger]) = prepare(&of_car);
    let rows = async |caller: &Caller, sql: &str| {
        let answer = match of_car.hub.sql(sql, Vec::new(), &Reader::from(caller.clone())).await {
            // The table of others does not exist for a customer without a device that writes to it.
            Err(SqlError::UnknownTable { .. }) => return (0, String::new()),
            answer => answer.unwrap(),
        };
        let batches = answer.collect().await.unwrap();
        let text = batches.iter().map(|batch| format!("{batch:?}")).collect::<String>();
        (batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), text)
    };
    let admin = of_car.administrator();
    let customer = user(device.tenant, Role::Customer, Some(customer));
    let stranger = user(device.tenant, Role::Customer, Some(stranger));
    for sql in [
        "SELECT device, speed FROM telemetry",
        "SELECT device, count(*) FROM telemetry GROUP BY device",
        "SELECT device, last(speed, ts) FROM telemetry GROUP BY device",
        "SELECT DISTINCT device FROM telemetry WHERE device >= 'a'",
    ] {
        for _ in 0..3 {
            assert_eq!(rows(&admin, sql).await.0, 2, "{sql}");
            let (count, text) = rows(&customer, sql).await;
            assert!(count == 1 && text.contains("car") && !text.contains("van"), "{sql}: {text}");
            assert_eq!(rows(&stranger, sql).await.0, 0, "{sql}");
        }
    }
    for _ in 0..3 {
        let count = async |caller: &Caller| rows(caller, "SELECT count(*) AS n FROM telemetry").await.1;
        assert!(count(&admin).await.contains('2'));
        let own = count(&customer).await;
        assert!(!own.contains('2') && own.contains('1'), "{own}");
    }
}
