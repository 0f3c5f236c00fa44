use std::sync::Arc;

use model::Blame;
use proptest::collection::vec;
use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use uuid::Uuid;

use super::*;
use crate::certificate::{Certificate, sha3_hex};

fn basic(client_id: &str, user_name: &str, password: &str) -> Credentials {
    Credentials::mqtt_basic(Some(client_id), Some(user_name), Some(password)).unwrap()
}

/// A new certificate as PEM.
fn certificate() -> String {
    let params = CertificateParams::new(["car".to_owned()]).unwrap();
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

fn add(
    registry: &Registry,
    tenant: Uuid,
    name: &str,
    credentials: &Credentials,
) -> Result<Uuid, RegistryError> {
    let new = NewDevice { credentials: Some(credentials), ..new_device(name) };
    registry.add_device(tenant, new).map(|added| added.device.id)
}

#[test]
fn credentials_of_all_kinds_survive_a_restart_and_only_their_kind_logs_in() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let (tenant, pem) = (registry.default_tenant(), certificate());
    let certificate = Certificate::from_text(&pem).unwrap();
    let all = [
        ("token", Credentials::access_token("T1").unwrap()),
        ("basic", basic("c", "u", "p")),
        ("certificate", Credentials::certificate(&pem).unwrap()),
    ];
    for (name, credentials) in &all {
        add(&registry, tenant, name, credentials).unwrap();
    }
    drop(registry);
    let registry = fixture.open();
    let names = |found: Option<&Arc<Device>>| found.map(|device| device.name.clone());
    for (name, credentials) in &all {
        let device = registry.device_by_name(tenant, name).unwrap();
        assert_eq!(registry.credentials_of(device.id).as_ref(), Some(credentials));
        let by_token = registry.device_by_token(credentials.id());
        assert_eq!(names(by_token.as_ref()), (*name == "token").then(|| "token".to_owned()));
        let by_certificate = registry.device_by_certificate(credentials.id()).map(|(device, _)| device);
        assert_eq!(
            names(by_certificate.as_ref()),
            (*name == "certificate").then(|| "certificate".to_owned())
        );
    }
    assert_eq!(registry.device_by_certificate(&certificate.fingerprint()).unwrap().0.name, "certificate");
    // The fingerprint is not a secret, so it must not be a token.
    for user_name in [certificate.fingerprint(), sha3_hex("c|u")] {
        let found = registry.device_of_client("c", Some(&user_name), Some(b"p"));
        assert_eq!(found.unwrap_err(), DeviceCredentialsFault::Unknown);
    }
    assert_eq!(registry.device_of_client("c", Some("u"), Some(b"p")).unwrap().0.name, "basic");
}

#[test]
fn credentials_of_another_device_are_refused_and_name_it_only_to_its_own_tenant() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let ours = registry.default_tenant();
    let theirs = registry.add_tenant("acme", "root@acme.example", "password").unwrap().id;
    let pem = certificate();
    for credentials in [
        Credentials::access_token("T1").unwrap(),
        basic("c", "u", "p"),
        Credentials::certificate(&pem).unwrap(),
    ] {
        let name = credentials.kind().name();
        add(&registry, ours, name, &credentials).unwrap();
        let begin = "Device credentials are already assigned to another device!";
        let here = add(&registry, ours, "second", &credentials).unwrap_err();
        assert!(here.to_string().starts_with(begin) && here.to_string().contains(name), "{here}");
        let there = add(&registry, theirs, "second", &credentials).unwrap_err();
        assert!(there.to_string().starts_with(begin) && there.to_string().contains("is taken"), "{there}");
        assert!(!there.to_string().contains(name), "{there}");
        assert_eq!(there.blame(), Blame::Caller);
        let other = registry.add_device(theirs, new_device(&format!("other {name}"))).unwrap();
        let changed = registry.set_credentials(other.device.id, credentials.clone()).unwrap_err();
        assert!(
            changed.to_string().starts_with(begin) && changed.to_string().contains("is taken"),
            "{changed}"
        );
        assert_eq!(registry.credentials_of(other.device.id), Some(other.credentials));
    }
    // The password is not part of the id: two devices would be one client.
    assert!(add(&registry, ours, "second", &basic("c", "u", "another")).is_err());
}

#[test]
fn changed_credentials_replace_the_old_ones_of_any_kind() {
    let fixture = Fixture::new();
    let registry = fixture.open();
    let device = registry.add_device(registry.default_tenant(), new_device("car")).unwrap().device;
    let kinds = [basic("", "u", "p"), Credentials::certificate(&certificate()).unwrap(), basic("c", "", "")];
    for new in kinds {
        let old = registry.credentials_of(device.id).unwrap();
        let generation = registry.generation();
        registry.set_credentials(device.id, new.clone()).unwrap();
        assert!(registry.generation() > generation, "the doors look again");
        assert_eq!(registry.credentials_of(device.id), Some(new));
        assert_eq!(registry.device_by_token(old.id()), None);
        assert!(registry.device_by_certificate(old.id()).is_none());
        add(&registry, registry.default_tenant(), &format!("heir of {}", old.id()), &old).unwrap();
    }
    let before = everything(&registry);
    drop(registry);
    assert_eq!(everything(&fixture.open()), before);
}

/// What a device has: ThingsBoard's members of its credentials.
#[derive(Debug, Clone)]
enum Has {
    Token(String),
    Basic(String, String, String),
}

impl Has {
    fn credentials(&self) -> Option<Credentials> {
        match self {
            Self::Token(token) => Credentials::access_token(token).ok(),
            Self::Basic(client, user, password) => {
                Credentials::mqtt_basic(Some(client), Some(user), Some(password)).ok()
            }
        }
    }

    /// ThingsBoard's `credentialsId`.
    fn id(&self) -> String {
        match self {
            Self::Token(token) => token.clone(),
            Self::Basic(client, user, _) => match (client.as_str(), user.as_str()) {
                ("", user) => user.to_owned(),
                (client, "") => sha3_hex(client),
                (client, user) => sha3_hex(&format!("{client}|{user}")),
            },
        }
    }
}

/// ThingsBoard's `validateMqttCredentials`: `None` if identifier or user name differ, else whether the password is right.
fn check(has: &Has, client_id: &str, user_name: &str, password: Option<&str>) -> Option<bool> {
    let Has::Basic(client, user, wanted) = has else { return None };
    let differs = |wanted: &str, sent: &str| !wanted.is_empty() && wanted != sent;
    if differs(client, client_id) || differs(user, user_name) {
        return None;
    }
    Some(wanted.is_empty() || password == Some(wanted))
}

/// ThingsBoard's answer to a CONNECT: the number of the device.
fn model(devices: &[Has], client_id: &str, user_name: &str, password: Option<&str>) -> Option<usize> {
    let find = |id: &str| devices.iter().position(|has| has.id() == id);
    let right = |at: usize| check(&devices[at], client_id, user_name, password);
    if user_name.is_empty() {
        return find(&sha3_hex(client_id)).filter(|at| right(*at) == Some(true));
    }
    // Its hash leaves out empty parts.
    let parts: Vec<_> = [client_id, user_name].into_iter().filter(|part| !part.is_empty()).collect();
    match find(&sha3_hex(&parts.join("|"))).and_then(|at| Some((at, right(at)?))) {
        Some((at, is_right)) => is_right.then_some(at),
        None => {
            find(user_name).filter(|at| matches!(devices[*at], Has::Token(_)) || right(*at) == Some(true))
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(vec!["", "a", "b", "a|b"]).prop_map(str::to_owned)
}

fn has() -> impl Strategy<Value = Has> {
    prop_oneof![
        word().prop_map(Has::Token),
        (word(), word(), word()).prop_map(|(client, user, password)| Has::Basic(client, user, password)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn clients_get_the_device_that_thingsboard_would_find(wanted in vec(has(), 1..8)) {
        let fixture = Fixture::new();
        let registry = fixture.open();
        let mut devices: Vec<Has> = Vec::new();
        for has in wanted {
            let Some(credentials) = has.credentials() else { continue };
            let is_free = devices.iter().all(|other| other.id() != has.id());
            let added = add(&registry, registry.default_tenant(), &devices.len().to_string(), &credentials);
            prop_assert_eq!(added.is_ok(), is_free);
            if is_free {
                devices.push(has);
            }
        }
        let words = ["", "a", "b", "a|b"];
        for (client_id, user_name, password) in words.into_iter().flat_map(|client_id| {
            let passwords = words.map(Some).into_iter().chain([None]);
            passwords.flat_map(move |password| words.map(|user_name| (client_id, user_name, password)))
        }) {
            let sent = Some(user_name).filter(|name| !name.is_empty());
            let found = registry.device_of_client(client_id, sent, password.map(str::as_bytes));
            let found = found.ok().map(|(device, _)| device.name.parse::<usize>().unwrap());
            prop_assert_eq!(found, model(&devices, client_id, user_name, password), "{:?} {} {} {:?}", devices, client_id, user_name, password);
        }
    }
}
