//! Provisioning over HTTP, and the terms of device profiles.

use hub::caller::Role;
use serde_json::{Value as Json, json};

use super::{Reply, Server};

async fn profile(server: &Server, name: &str, strategy: &str) -> Json {
    let body = json!({
        "name": name,
        "provisionType": strategy,
        "provisionDeviceKey": format!("key of {name}"),
        "profileData": { "provisionConfiguration": { "type": strategy, "provisionDeviceSecret": "s" }, "alarms": [] },
    });
    server.post("/api/deviceProfile", &body.to_string()).await.ok()
}

async fn ask(server: &Server, key: &str, secret: &str, device: &str) -> Reply {
    let body = json!({ "provisionDeviceKey": key, "provisionDeviceSecret": secret, "deviceName": device });
    server.request("POST", "/api/v1/provision").body(body.to_string()).send().await
}

#[tokio::test]
async fn a_device_is_added_by_its_key_and_reports_with_its_token() {
    let server = Server::start().await;
    profile(&server, "pump", "ALLOW_CREATE_NEW_DEVICES").await;
    let given = ask(&server, "key of pump", "s", "p 1").await.ok();
    assert_eq!((&given["status"], &given["credentialsType"]), (&"SUCCESS".into(), &"ACCESS_TOKEN".into()));
    let path = format!("/api/v1/{}/telemetry", given["credentialsValue"].as_str().unwrap());
    assert_eq!(server.request("POST", &path).body(r#"{"a":1}"#).send().await.status, 200);
    assert_eq!(server.get("/api/tenant/devices?deviceName=p%201").await.ok()["type"], "pump");
    assert_eq!(ask(&server, "key of pump", "s", "p 1").await.ok()["status"], "FAILURE");
    assert_eq!(ask(&server, "absent", "s", "p 2").await.ok()["status"], "NOT_FOUND");
    for (body, part) in [
        ("hello", "not a JSON object"),
        (r#"{"provisionDeviceKey":"k"}"#, "provisionDeviceSecret is missing"),
    ] {
        let refused = server.request("POST", "/api/v1/provision").body(body).send().await.refusal(400, 31);
        assert!(refused.contains(part), "{refused}");
    }
    for _ in 0..model::limits::LOGIN_FAILURES_FREE {
        ask(&server, "key of pump", "wrong", "p 2").await.ok();
    }
    let wait = ask(&server, "key of pump", "s", "p 2").await;
    wait.refusal(429, 33);
    assert_eq!(wait.headers["retry-after"], "1");
    server.stop().await;
}

#[tokio::test]
async fn the_terms_of_a_profile_are_shown_to_administrators_and_kept_until_they_are_changed() {
    let server = Server::start().await;
    let made = profile(&server, "pump", "CHECK_PRE_PROVISIONED_DEVICES").await;
    let terms = |profile: &Json| {
        let configuration = &profile["profileData"]["provisionConfiguration"];
        json!([
            profile["provisionType"],
            profile["provisionDeviceKey"],
            configuration["type"],
            configuration["provisionDeviceSecret"]
        ])
    };
    let strategy = "CHECK_PRE_PROVISIONED_DEVICES";
    assert_eq!(terms(&made), json!([strategy, "key of pump", strategy, "s"]));
    assert_eq!(made["profileData"]["alarms"], json!([]));
    let path = format!("/api/deviceProfile/{}", made["id"]["id"].as_str().unwrap());
    let viewer = server.session_of("viewer@example.org", Role::Viewer, None);
    let shown = server.request("GET", &path).session(&viewer).send().await.ok();
    assert_eq!(terms(&shown), json!([strategy, null, strategy, null]));
    // What a client reads it may write back.
    let again = server.post("/api/deviceProfile", &made.to_string()).await.ok();
    assert_eq!(terms(&again), terms(&made));
    let rest = json!({ "id": made["id"], "name": "pump 2" }).to_string();
    assert_eq!(terms(&server.post("/api/deviceProfile", &rest).await.ok()), terms(&made));
    let off = json!({ "id": made["id"], "name": "pump 2", "provisionType": "DISABLED" }).to_string();
    let off = server.post("/api/deviceProfile", &off).await.ok();
    assert_eq!(terms(&off), json!(["DISABLED", null, "DISABLED", null]));
    server.stop().await;
}

#[tokio::test]
async fn terms_that_contradict_each_other_are_refused() {
    let server = Server::start().await;
    profile(&server, "pump", "ALLOW_CREATE_NEW_DEVICES").await;
    let configuration = |kind: &str, secret: &str| json!({ "provisionConfiguration": { "type": kind, "provisionDeviceSecret": secret } });
    let new = "ALLOW_CREATE_NEW_DEVICES";
    for (body, code, part) in [
        (json!({ "name": "p", "provisionType": "X509" }), 30, "the strategies are DISABLED, ALLOW"),
        (
            json!({ "name": "p", "provisionType": "X509_CERTIFICATE_CHAIN" }),
            31,
            "provisionDeviceSecret is not an X.509 certificate",
        ),
        (
            json!({ "name": "p", "provisionType": new }),
            31,
            "needs provisionDeviceKey and provisionDeviceSecret",
        ),
        (json!({ "name": "p", "provisionDeviceKey": "k" }), 30, "provisionType is missing"),
        (
            json!({ "name": "p", "provisionType": "DISABLED", "profileData": configuration(new, "s") }),
            30,
            "they must be the same",
        ),
        (
            json!({ "name": "p", "provisionDeviceKey": "key of pump", "profileData": configuration(new, "s") }),
            31,
            "Device profile with such provision device key already exists!",
        ),
        (
            json!({ "name": "p", "profileData": { "provisionConfiguration": 7 } }),
            30,
            "provisionConfiguration",
        ),
        (json!({ "name": "p", "profileData": 7 }), 30, "profileData must be a JSON object"),
    ] {
        let refused = server.post("/api/deviceProfile", &body.to_string()).await.refusal(400, code);
        assert!(refused.contains(part), "{refused}");
    }
    server.stop().await;
}
