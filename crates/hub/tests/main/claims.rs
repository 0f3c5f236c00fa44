//! Claiming of devices.

use hub::attributes::Scope;
use hub::caller::Forbidden;
use hub::claims::limits::{CLAIM_DURATION_MAX, CLAIM_SECRET_BYTES_MAX};
use hub::claims::{ClaimError, Claimed};
use hub::registry::{CustomerFields, DeviceChange, RegistryError, User};
use uuid::Uuid;

use super::*;

/// A user of a new customer.
fn customer(fixture: &Fixture, title: &str) -> Caller {
    let fields = CustomerFields { title, ..CustomerFields::default() };
    let customer = fixture.hub.add_customer(&fixture.administrator(), &fields).unwrap().id;
    user(fixture.device.tenant, Role::Customer, Some(customer))
}

fn user(tenant: Uuid, role: Role, customer: Option<Uuid>) -> Caller {
    Caller::user(&User { tenant, role, customer, login: "ann".into(), ..User::default() })
}

fn claim(fixture: &Fixture, caller: &Caller, secret: &str) -> Result<Claimed, ClaimError> {
    fixture.hub.claim_device(caller, None, "car", secret)
}

fn offer(fixture: &Fixture, secret: &str) {
    let device = fixture.hub.registry().device_by_id(fixture.device.id).unwrap();
    fixture.hub.offer_claim(&device, secret, None).unwrap();
}

fn set(fixture: &Fixture, key: &str, value: Value) {
    let entries = [(key.to_owned(), value)];
    fixture.hub.set_attributes(&fixture.administrator(), &fixture.device, Scope::Server, &entries).unwrap();
}

#[test]
fn a_customer_claims_an_offered_device_with_its_secret_once() {
    let fixture = fixture();
    let (ann, bob) = (customer(&fixture, "acme"), customer(&fixture, "other"));
    assert_eq!(claim(&fixture, &ann, "s").unwrap(), Claimed::Failure, "no offer");
    offer(&fixture, "s");
    let Claimed::Success(device) = claim(&fixture, &ann, "s").unwrap() else { panic!("not claimed") };
    assert_eq!(device.customer, ann.customer());
    assert_eq!(claim(&fixture, &bob, "s").unwrap(), Claimed::Already);
    let refused = fixture.hub.offer_claim(&device, "s", None).unwrap_err();
    assert!(matches!(refused, ClaimError::Assigned { .. }), "{refused}");
    let stranger = fixture.hub.reclaim_device(&bob, "car").unwrap_err();
    assert!(matches!(stranger, ClaimError::Registry(RegistryError::Unknown { .. })), "{stranger}");
    fixture.hub.reclaim_device(&ann, "car").unwrap();
    offer(&fixture, "t");
    assert!(matches!(claim(&fixture, &bob, "t").unwrap(), Claimed::Success(_)));
    fixture.hub.reclaim_device(&fixture.administrator(), "car").unwrap();
    assert_eq!(fixture.hub.device_by_name(&fixture.administrator(), "car").unwrap().customer, None);
}

#[test]
fn a_wrong_secret_and_the_end_of_its_time_end_an_offer() {
    let fixture = fixture();
    let ann = customer(&fixture, "acme");
    offer(&fixture, "s");
    assert_eq!(claim(&fixture, &ann, "wrong").unwrap(), Claimed::Failure);
    assert_eq!(claim(&fixture, &ann, "s").unwrap(), Claimed::Failure, "the guess ended the offer");
    fixture.hub.offer_claim(&fixture.device, "s", Some(1)).unwrap();
    let later = hub::clock::system_now().saturating_add_micros(5_000);
    while hub::clock::system_now() < later {
        std::hint::spin_loop();
    }
    assert_eq!(claim(&fixture, &ann, "s").unwrap(), Claimed::Failure);
    // An assigned device ends its offer too.
    offer(&fixture, "s");
    let change = DeviceChange { name: "car", customer: Some(ann.customer()), ..DeviceChange::default() };
    fixture.hub.change_device(&fixture.administrator(), fixture.device.id, change).unwrap();
    assert_eq!(claim(&fixture, &ann, "s").unwrap(), Claimed::Already);
}

#[test]
fn attributes_forbid_offers_and_make_them() {
    let fixture = fixture();
    let ann = customer(&fixture, "acme");
    set(&fixture, "claimingAllowed", Value::Bool(false));
    let refused = fixture.hub.offer_claim(&fixture.device, "s", None).unwrap_err();
    assert!(matches!(refused, ClaimError::NotAllowed { .. }), "{refused}");
    set(&fixture, "claimingAllowed", Value::Bool(true));
    set(&fixture, "claimingData", Value::Json(r#"{"secretKey":"k","expirationTime":4102444800000}"#.into()));
    assert_eq!(claim(&fixture, &ann, "").unwrap(), Claimed::Failure);
    assert!(matches!(claim(&fixture, &ann, "k").unwrap(), Claimed::Success(_)), "an attribute stays");
    let left =
        fixture.hub.attributes(&fixture.administrator(), &fixture.device, Scope::Server, None).unwrap();
    assert!(!left.iter().any(|one| one.key.starts_with("claiming")), "{left:?}");
}

#[test]
fn only_users_of_customers_claim_and_guesses_are_limited() {
    let fixture = fixture();
    offer(&fixture, "s");
    let tenant = fixture.device.tenant;
    for role in [Role::Operator, Role::Administrator] {
        let refused = claim(&fixture, &user(tenant, role, None), "s").unwrap_err();
        assert!(matches!(refused, ClaimError::NoCustomer { .. }), "{role}: {refused}");
    }
    for caller in [Caller::public(tenant), user(tenant, Role::Viewer, None)] {
        let refused = claim(&fixture, &caller, "s").unwrap_err();
        assert!(matches!(refused, ClaimError::Forbidden(Forbidden { .. })), "{refused}");
        assert!(fixture.hub.reclaim_device(&caller, "car").is_err());
    }
    assert!(fixture.hub.reclaim_device(&user(tenant, Role::Operator, None), "car").is_err());
    let other = user(Uuid::from_u128(9), Role::Customer, Some(Uuid::from_u128(8)));
    assert!(matches!(claim(&fixture, &other, "s").unwrap_err(), ClaimError::Registry(_)));
    let ann = customer(&fixture, "acme");
    set(
        &fixture,
        "claimingData",
        Value::String(r#"{"secretKey":"k","expirationTime":4102444800000}"#.into()),
    );
    let guess =
        |_| claim(&fixture, &ann, "wrong").is_err_and(|error| matches!(error, ClaimError::TooManyGuesses(_)));
    assert!((0..100).any(guess), "a user may guess forever");
}

#[test]
fn offers_have_limits() {
    let fixture = fixture();
    let long = "s".repeat(CLAIM_SECRET_BYTES_MAX + 1);
    let far = u64::try_from(CLAIM_DURATION_MAX.as_millis()).unwrap() + 1;
    for (secret, duration, part) in
        [(long.as_str(), None, "CLAIM_SECRET_BYTES_MAX"), ("s", Some(far), "CLAIM_DURATION_MAX")]
    {
        let refused = fixture.hub.offer_claim(&fixture.device, secret, duration).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
}
