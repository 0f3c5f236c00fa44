//! Every operation on virtual sensors with every kind of caller. A new operation belongs into [`operations`].

use ::virtual_sensors::{Begin, ExternalSource, ExternalWrapper, FollowRequest, SourceState};
use hub::Error;
use hub::caller::Forbidden;
use hub::registry::{CustomerFields, RegistryError, User};
use uuid::Uuid;

use super::*;

/// The lowest role of a tenant that may do an operation. Users of a customer may do what operators may, within the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Public,
    Operator,
    Administrator,
}

/// What an operation shows to a caller of another tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    /// The operation refuses the caller.
    Refused,
    /// The answer shows nothing of the other tenant.
    Hidden,
    /// The same, but customers of one tenant share it.
    HiddenFromTenants,
}

type Run = Box<dyn Fn(&VirtualSensors, &Caller) -> Result<bool, Error>>;

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
    run: impl Fn(&VirtualSensors, &Caller) -> Result<bool, Error> + 'static,
) -> Operation {
    Operation { name, needs, foreign, run: Box::new(run) }
}

/// All operations with a caller.
fn operations(device: &Arc<Device>) -> Vec<Operation> {
    use Foreign::{Hidden, HiddenFromTenants, Refused};
    use Needs::{Administrator, Operator, Public};
    let (place, placed) = (Arc::clone(device), Arc::clone(device));
    let source = ExternalSource {
        sensor: "mean".to_owned(),
        stream: "s".to_owned(),
        alias: "a".to_owned(),
        external: ExternalWrapper::Udp { port: 1 },
        fields: Vec::new(),
        device: Arc::clone(device),
    };
    vec![
        operation("sensors", Public, Hidden, |sensors, caller| {
            Ok(sensors.sensors(caller)?.iter().any(|sensor| sensor.name == "mean"))
        }),
        operation("sensor", Public, Hidden, |sensors, caller| Ok(sensors.sensor(caller, "Mean")?.is_some())),
        operation("container", Public, HiddenFromTenants, |sensors, caller| {
            Ok(sensors.container(caller)?.is_some())
        }),
        operation("outputs", Administrator, Refused, |sensors, caller| {
            Ok(sensors.outputs(caller)?.borrow().iter().any(|output| output.sensor == "mean"))
        }),
        operation("follow_output", Administrator, Refused, |sensors, caller| {
            let request = FollowRequest {
                sensor: "mean".to_owned(),
                follower: "storage".to_owned(),
                target: "nowhere".to_owned(),
                begin: Begin::Oldest,
            };
            // No sensor of the fixture has a follower.
            Ok(sensors.follow_output(caller, request)?.is_none())
        }),
        operation("external_sources", Administrator, Refused, |sensors, caller| {
            sensors.external_sources(caller).map(|_| true)
        }),
        operation("receive_pushes", Administrator, Refused, |sensors, caller| {
            sensors.receive_pushes(caller).map(|_| true)
        }),
        operation("source_place", Public, Refused, move |sensors, caller| {
            Ok(sensors.source_place(caller, &place)?.is_none_or(|place| place == b"7"))
        }),
        operation("set_source_place", Operator, Refused, move |sensors, caller| {
            sensors.set_source_place(caller, &placed, b"7").map(|()| true)
        }),
        operation("report_source", Administrator, Refused, move |sensors, caller| {
            sensors.report_source(caller, &source, SourceState::default()).map(|()| true)
        }),
    ]
}

fn is_forbidden(error: &Error) -> Option<&Forbidden> {
    match error {
        Error::Forbidden(forbidden) | Error::Registry(RegistryError::Forbidden(forbidden)) => Some(forbidden),
        _ => None,
    }
}

/// A user of a tenant with a role.
fn user(tenant: Uuid, role: Role, customer: Option<Uuid>) -> Caller {
    let login = format!("{role}@example.org");
    Caller::user(&User { id: Uuid::from_u128(7), tenant, login, role, customer, ..User::default() })
}

/// Assigns the device and a sensor to the first of two customers. Returns the device and the customers.
fn prepare(fixture: &Fixture) -> (Arc<Device>, [Uuid; 2]) {
    let (hub, admin) = (&*fixture.hub, fixture.administrator());
    let customers = ["acme", "other"].map(|title| {
        hub.add_customer(&admin, &CustomerFields { title, ..CustomerFields::default() }).unwrap().id
    });
    let device = hub.assign_device(&admin, fixture.device.id, Some(customers[0])).unwrap();
    hub.assign_device(&admin, fixture.one_sensor(), Some(customers[0])).unwrap();
    (device, customers)
}

#[test]
fn each_role_may_do_what_it_needs_and_sees_nothing_of_another_tenant_or_customer() {
    let fixture = fixture();
    let (sensors, tenant, administrator) =
        (&*fixture.sensors, fixture.device.tenant, fixture.administrator());
    let other =
        fixture.hub.add_tenant(&administrator, "other", "root@other.example", "a long password").unwrap();
    let (device, [customer, stranger]) = prepare(&fixture);
    let callers = [
        Caller::public(tenant),
        user(tenant, Role::Viewer, None),
        user(tenant, Role::Operator, None),
        user(tenant, Role::Customer, Some(customer)),
    ];
    let stranger = user(tenant, Role::Customer, Some(stranger));
    for operation in operations(&device) {
        check_stranger(sensors, &stranger, &operation);
        for caller in &callers {
            check_role(sensors, caller, &operation);
        }
        check_foreign(sensors, other.id, &operation);
        let own = (operation.run)(sensors, &administrator);
        assert!(matches!(own, Ok(true)), "{}: {own:?}", operation.name);
    }
}

fn check_role(sensors: &VirtualSensors, caller: &Caller, operation: &Operation) {
    let may = match operation.needs {
        Needs::Public => true,
        Needs::Operator => matches!(caller.role(), Role::Operator | Role::Customer),
        Needs::Administrator => false,
    };
    let done = (operation.run)(sensors, caller);
    if may {
        assert!(done.unwrap(), "{} as {}", operation.name, caller.role());
    } else {
        let error = done.expect_err(operation.name);
        let forbidden = is_forbidden(&error).expect(operation.name);
        assert_eq!(forbidden.role, caller.role(), "{}", operation.name);
    }
}

/// A user of another customer of the same tenant.
fn check_stranger(sensors: &VirtualSensors, stranger: &Caller, operation: &Operation) {
    let done = (operation.run)(sensors, stranger);
    match (operation.needs, operation.foreign, done) {
        (Needs::Administrator, _, Err(error)) if is_forbidden(&error).is_some() => {}
        (Needs::Public, Foreign::HiddenFromTenants, Ok(true)) => {}
        (Needs::Public, Foreign::Hidden, Ok(false)) => {}
        (Needs::Public | Needs::Operator, Foreign::Refused, Err(error)) if is_forbidden(&error).is_some() => {
        }
        (needs, foreign, other) => {
            panic!("{}: {needs:?}, {foreign:?}, and a stranger finds {other:?}", operation.name)
        }
    }
}

/// The administrator of another tenant.
fn check_foreign(sensors: &VirtualSensors, tenant: Uuid, operation: &Operation) {
    let done = (operation.run)(sensors, &Caller::local(tenant));
    match (operation.foreign, done) {
        (Foreign::Hidden | Foreign::HiddenFromTenants, Ok(false)) => {}
        (Foreign::Refused, Err(error)) if is_forbidden(&error).is_some() => {}
        (expected, other) => panic!("{}: expected {expected:?}, found {other:?}", operation.name),
    }
}
