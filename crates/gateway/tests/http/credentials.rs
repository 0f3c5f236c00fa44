//! The credentials of devices over REST.

use hub::caller::Role;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value as Json, json};

use super::Server;

/// A new certificate as PEM.
fn certificate() -> String {
    let params = CertificateParams::new(["car".to_owned()]).unwrap();
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

fn basic(client_id: &str, user_name: &str, password: &str) -> Json {
    let value = json!({ "clientId": client_id, "userName": user_name, "password": password });
    json!({ "credentialsType": "MQTT_BASIC", "credentialsValue": value.to_string() })
}

fn x509(pem: &str) -> Json {
    json!({ "credentialsType": "X509_CERTIFICATE", "credentialsValue": pem })
}

/// The body of `POST /api/device/credentials`.
fn of(device: &str, mut credentials: Json) -> String {
    credentials["deviceId"] = json!({ "entityType": "DEVICE", "id": device });
    credentials.to_string()
}

#[tokio::test]
async fn credentials_of_all_kinds_are_set_and_read_back() {
    let server = Server::start().await;
    let id = server.add_device("car");
    let path = format!("/api/device/{id}/credentials");
    let pem = certificate();
    let set = async |credentials| {
        let set = server.post("/api/device/credentials", &of(&id, credentials)).await.ok();
        assert_eq!(server.get(&path).await.ok(), set);
        assert_eq!(set["deviceId"]["id"], id);
        set
    };
    let changed = set(basic("c", "u", "p")).await;
    assert_eq!(changed["credentialsType"], "MQTT_BASIC");
    // SHA3-256 of "c|u".
    assert_eq!(changed["credentialsId"], "29cd886b96af386fd43e35097f8228b97209711642b8b65ebf118b288accb0ea");
    let value: Json = serde_json::from_str(changed["credentialsValue"].as_str().unwrap()).unwrap();
    assert_eq!(value, json!({ "clientId": "c", "userName": "u", "password": "p" }));
    assert_eq!(server.report("car", r#"{"a":1}"#).await.status, 401, "the old token is invalid");

    let changed = set(x509(&pem)).await;
    let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    assert_eq!(changed["credentialsValue"], body);
    assert_eq!(changed["credentialsId"].as_str().unwrap().len(), 64);
    // What a client reads it may write back.
    let again = server.post("/api/device/credentials", &changed.to_string()).await.ok();
    assert_eq!(again["credentialsId"], changed["credentialsId"]);

    let changed =
        set(json!({ "credentialsType": "ACCESS_TOKEN", "credentialsId": "T9", "credentialsValue": null }))
            .await;
    assert_eq!((&changed["credentialsId"], &changed["credentialsValue"]), (&"T9".into(), &Json::Null));
    server.stop().await;
}

#[tokio::test]
async fn a_device_is_added_with_credentials_of_any_kind() {
    let server = Server::start().await;
    for (name, credentials) in [("one", basic("", "u", "p")), ("two", x509(&certificate()))] {
        let body = json!({ "device": { "name": name }, "credentials": credentials });
        let added = server.post("/api/device-with-credentials", &body.to_string()).await.ok();
        let path = format!("/api/device/{}/credentials", added["id"]["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.ok()["credentialsType"], credentials["credentialsType"]);
        let taken = json!({ "device": { "name": "three" }, "credentials": credentials });
        let refused = server.post("/api/device-with-credentials", &taken.to_string()).await.refusal(400, 31);
        assert!(
            refused.starts_with("Device credentials are already assigned to another device!"),
            "{refused}"
        );
        assert_eq!(server.get("/api/tenant/devices?deviceName=three").await.status, 404);
    }
    server.stop().await;
}

#[tokio::test]
async fn wrong_credentials_are_refused_by_name_and_change_nothing() {
    let server = Server::start().await;
    let id = server.add_device("car");
    let pem = certificate();
    for (credentials, code, part) in [
        (json!({ "credentialsType": "LWM2M_CREDENTIALS" }), 30, "ACCESS_TOKEN, MQTT_BASIC, X509_CERTIFICATE"),
        (json!({ "credentialsType": "MQTT_BASIC" }), 30, "credentialsValue is missing"),
        (json!({ "credentialsType": "MQTT_BASIC", "credentialsValue": {} }), 30, "must be a string"),
        (json!({ "credentialsType": "MQTT_BASIC", "credentialsValue": "u:p" }), 31, "must be a JSON text"),
        (basic("", "", "p"), 31, "neither clientId nor userName"),
        (basic("c", "", "p"), 31, "no userName"),
        (basic("c", &"u".repeat(300), ""), 31, "SHORT_TEXT_BYTES_MAX"),
        (
            json!({ "credentialsType": "X509_CERTIFICATE", "credentialsId": "abc" }),
            30,
            "credentialsValue is missing",
        ),
        (x509("hello"), 31, "certificate"),
        (x509(&pem[..200]), 31, "no end of the PEM text"),
        (x509(&pem.repeat(2)), 31, "several certificates"),
        (x509(&KeyPair::generate().unwrap().serialize_pem()), 31, "certificate"),
        (x509(&"A".repeat(20_000)), 31, "16384"),
        (
            json!({ "credentialsType": "ACCESS_TOKEN", "credentialsValue": "x" }),
            30,
            "not part of an ACCESS_TOKEN",
        ),
    ] {
        let refused = server.post("/api/device/credentials", &of(&id, credentials)).await.refusal(400, code);
        assert!(refused.contains(part), "{refused}");
        assert!(!refused.contains(&pem[100..150]), "{refused}");
    }
    let body = basic("c", "u", "p").to_string();
    assert!(
        server.post("/api/device/credentials", &body).await.refusal(400, 30).contains("deviceId is missing")
    );
    assert_eq!(server.report("car", r#"{"a":1}"#).await.status, 200, "the token is still valid");
    server.stop().await;
}

#[tokio::test]
async fn only_an_administrator_of_the_tenant_sees_and_sets_credentials() {
    let server = Server::start().await;
    let id = server.add_device("car");
    let path = format!("/api/device/{id}/credentials");
    let other = server.hub.registry().add_tenant("acme", "root@acme.example", "password").unwrap();
    let root = server.hub.registry().users(other.id).remove(0);
    let foreign = server.hub.registry().open_session(&root, hub::clock::system_now()).token;
    let operator = server.session_of("op@example.org", Role::Operator, None);
    for (session, status, code) in [(&foreign, 404, 32), (&operator, 403, 20)] {
        server.request("GET", &path).session(session).send().await.refusal(status, code);
        let set = server.request("POST", "/api/device/credentials").session(session);
        set.body(of(&id, basic("c", "u", "p"))).send().await.refusal(status, code);
    }
    assert_eq!(server.get(&path).await.ok()["credentialsId"], "token-car");
    // Credentials that another tenant has are taken, and nothing tells whose they are.
    let body = json!({ "device": { "name": "x" }, "credentials": { "credentialsType": "ACCESS_TOKEN", "credentialsId": "token-car" } });
    let add = server.request("POST", "/api/device-with-credentials").session(&foreign).body(body.to_string());
    let refused = add.send().await.refusal(400, 31);
    assert!(refused.contains("is taken") && !refused.contains("car"), "{refused}");
    server.stop().await;
}
