//! Devices that ask for credentials.

use std::net::IpAddr;

use hub::attributes::Scope;
use hub::provisioning::{ProvisionRefused, ProvisionRequest};
use hub::registry::{Profile, ProfileFields, ProvisionStrategy, ProvisionTerms};

use super::*;

const PEER: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

fn profile(fixture: &Fixture, name: &str, strategy: ProvisionStrategy) -> Arc<Profile> {
    let (key, secret) = (format!("key of {name}"), format!("secret of {name}"));
    let terms = ProvisionTerms::new(strategy, Some(&key), Some(&secret)).unwrap();
    let fields = ProfileFields { name, provision: Some(&terms), ..ProfileFields::default() };
    fixture.hub.add_profile(&fixture.administrator(), fields).unwrap()
}

fn allow_gateways(fixture: &Fixture, profile: &Profile) {
    let data = Some(r#"{"tachoProvisionGateways":true}"#);
    let fields = ProfileFields { name: &profile.name, data, ..ProfileFields::default() };
    fixture.hub.change_profile(&fixture.administrator(), profile.id, fields, None).unwrap();
}

fn request<'a>(key: &'a str, secret: &'a str, device: Option<&'a str>) -> ProvisionRequest<'a> {
    ProvisionRequest { key, secret, device, credentials: None, gateway: false }
}

fn refused(fixture: &Fixture, request: &ProvisionRequest<'_>) -> ProvisionRefused {
    fixture.hub.provision(PEER, request).unwrap_err()
}

fn state(fixture: &Fixture, device: &Device) -> Vec<Value> {
    let keys = ["provisionState".to_owned()];
    let found = fixture.hub.attributes(&fixture.administrator(), device, Scope::Server, Some(&keys)).unwrap();
    found.into_iter().map(|attribute| attribute.value).collect()
}

#[test]
fn a_new_device_is_added_once_with_what_it_wants() {
    let fixture = fixture();
    let profile = profile(&fixture, "pump", ProvisionStrategy::AllowCreateNewDevices);
    allow_gateways(&fixture, &profile);
    let wanted = Credentials::mqtt_basic(Some("c"), Some("u"), Some("p")).unwrap();
    let new = ProvisionRequest {
        credentials: Some(&wanted),
        gateway: true,
        ..request("key of pump", "secret of pump", Some("p 1"))
    };
    let (device, credentials) = fixture.hub.provision(PEER, &new).unwrap();
    assert_eq!((device.name.as_str(), device.profile.id, device.gateway), ("p 1", profile.id, true));
    assert_eq!((device.tenant, &credentials), (fixture.device.tenant, &wanted));
    assert_eq!(state(&fixture, &device), [Value::String("provisioned".into())]);
    assert!(refused(&fixture, &new).to_string().contains("exists already"));
    let other = ProvisionRequest { device: Some("p 2"), ..new };
    assert!(refused(&fixture, &other).to_string().contains("already assigned to another device!"));
    assert!(fixture.hub.registry().device_by_name(device.tenant, "p 2").is_none());

    let nameless = request("key of pump", "secret of pump", None);
    let (device, credentials) = fixture.hub.provision(PEER, &nameless).unwrap();
    assert_eq!((device.name.len(), credentials.token().unwrap().len()), (20, 20));
}

#[test]
fn a_key_makes_no_gateways_unless_the_profile_says_so() {
    let fixture = fixture();
    let profile = profile(&fixture, "pump", ProvisionStrategy::AllowCreateNewDevices);
    let ask = ProvisionRequest { gateway: true, ..request("key of pump", "secret of pump", Some("p 1")) };
    let refusal = refused(&fixture, &ask).to_string();
    assert!(refusal.contains("tachoProvisionGateways"), "{refusal}");
    assert!(fixture.hub.registry().device_by_name(profile.tenant, "p 1").is_none());
    allow_gateways(&fixture, &profile);
    assert!(fixture.hub.provision(PEER, &ask).unwrap().0.gateway);
}

#[test]
fn a_key_gives_credentials_at_a_limited_rate() {
    let fixture = fixture();
    profile(&fixture, "pump", ProvisionStrategy::CheckPreProvisionedDevices);
    let ask = request("key of pump", "secret of pump", Some("absent"));
    let too_many = (0..2_000).any(|_| {
        let refused = refused(&fixture, &ask);
        matches!(refused, ProvisionRefused::TooManyDevices { max: 100, .. })
    });
    assert!(too_many);
}

#[test]
fn a_known_device_of_the_profile_gets_its_credentials_unless_its_state_forbids_it() {
    let fixture = fixture();
    profile(&fixture, "pump", ProvisionStrategy::CheckPreProvisionedDevices);
    let admin = fixture.administrator();
    let new = NewDevice { name: "p 1", profile: Some("pump"), token: Some("T1"), ..NewDevice::default() };
    let device = fixture.hub.add_device(&admin, new).unwrap().device;
    let ask = request("key of pump", "secret of pump", Some("p 1"));
    for _ in 0..2 {
        assert_eq!(&**fixture.hub.provision(PEER, &ask).unwrap().1.id(), "T1");
    }
    for device in [None, Some("absent"), Some("car")] {
        let refused = refused(&fixture, &ProvisionRequest { device, ..ask });
        assert!(matches!(refused, ProvisionRefused::Device(_)), "{device:?}: {refused}");
    }
    assert_eq!(fixture.hub.registry().device_count(), 2, "none is added");
    let locked = [("provisionState".to_owned(), Value::String("locked".into()))];
    fixture.hub.set_attributes(&admin, &*device, Scope::Server, &locked).unwrap();
    assert!(refused(&fixture, &ask).to_string().contains("provisionState"));
    assert_eq!(state(&fixture, &device), [Value::String("locked".into())]);
}

#[test]
fn wrong_keys_and_secrets_and_disabled_profiles_give_nothing() {
    let fixture = fixture();
    profile(&fixture, "pump", ProvisionStrategy::AllowCreateNewDevices);
    profile(&fixture, "old", ProvisionStrategy::Disabled);
    for (key, secret) in [
        ("absent", "secret of pump"),
        ("key of pump", "wrong"),
        ("key of pump", ""),
        ("key of pump", "secret of old"),
        ("key of old", "secret of old"),
        ("", ""),
    ] {
        let refused = refused(&fixture, &request(key, secret, Some("x")));
        assert!(matches!(refused, ProvisionRefused::NotFound), "{key:?} {secret:?}: {refused}");
    }
    assert_eq!(fixture.hub.registry().device_count(), 1);
}

#[test]
fn guesses_must_wait_and_other_addresses_do_not() {
    let fixture = fixture();
    profile(&fixture, "pump", ProvisionStrategy::AllowCreateNewDevices);
    let guess = request("key of pump", "wrong", None);
    for _ in 0..model::limits::LOGIN_FAILURES_FREE {
        assert!(matches!(refused(&fixture, &guess), ProvisionRefused::NotFound));
    }
    let right = request("key of pump", "secret of pump", None);
    assert!(matches!(refused(&fixture, &right), ProvisionRefused::TooManyGuesses(_)));
    let elsewhere = Some(IpAddr::from([192, 0, 2, 1]));
    assert!(fixture.hub.provision(elsewhere, &right).is_ok());
}

#[test]
fn the_profile_decides_the_tenant_and_its_key_belongs_to_one_profile_of_all_tenants() {
    let fixture = fixture();
    let (hub, installation) = (&fixture.hub, fixture.administrator());
    let acme = hub.registry().add_tenant("acme", "root@acme.example", "password").unwrap().id;
    let terms = ProvisionTerms::new(ProvisionStrategy::AllowCreateNewDevices, Some("k"), Some("s")).unwrap();
    let fields = ProfileFields { name: "pump", provision: Some(&terms), ..ProfileFields::default() };
    hub.add_profile(&Caller::local(acme), fields).unwrap();
    let taken = hub.add_profile(&installation, fields).unwrap_err().to_string();
    assert!(taken.starts_with("Device profile with such provision device key already exists!"), "{taken}");
    // A device of this name is in the other tenant too.
    let (device, _) = hub.provision(PEER, &request("k", "s", Some("car"))).unwrap();
    assert_eq!(device.tenant, acme);
    hub.delete_tenant(&installation, "acme").unwrap();
    assert!(matches!(refused(&fixture, &request("k", "s", Some("car"))), ProvisionRefused::NotFound));
    hub.add_profile(&installation, fields).unwrap();
}
