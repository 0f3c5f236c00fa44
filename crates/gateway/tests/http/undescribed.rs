//! Parameters and members that an operation does not have are refused, and entities come back as they were answered.

use hub::caller::Role;
use serde_json::{Value as Json, json};

use super::Server;

#[tokio::test]
async fn what_no_operation_describes_is_refused_with_a_remedy() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let values = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries");
    for (path, part) in [
        ("/api/alarms?pageSize=1&typeList=NOPE".to_owned(), "no parameter \"typeList\""),
        ("/api/v2/alarms?pageSize=1&searchStatus=CLEARED".to_owned(), "no parameter \"searchStatus\""),
        ("/api/alarms?pageSize=1&searchStatus=OPEN".to_owned(), "ANY, ACTIVE, CLEARED, ACK or UNACK"),
        ("/api/alarms?pageSize=1&pageSize=2".to_owned(), "pageSize is given twice"),
        ("/api/tenant/devices?pagesize=1".to_owned(), "did you mean \"pageSize\"?"),
        ("/api/tenant/devices?pageSize=1&nonsense".to_owned(), "leave it out"),
        (format!("{values}?keys=a&startTS=1"), "did you mean \"startTs\"?"),
        (format!("{values}?keys=a&useStrictDataTypes=1"), "true or false"),
        ("/api/tacho/tables?x=1".to_owned(), "GET /api/tacho/tables has no parameter \"x\""),
        ("/api/sql?q=SELECT%201&fromat=csv".to_owned(), "did you mean \"format\"?"),
    ] {
        let message = server.get(&path).await.refusal(400, 30);
        assert!(message.contains(part), "{path}: {message}");
    }
    for (path, body, part) in [
        ("/api/device", json!({ "name": "x", "lable": "y" }), "did you mean \"label\"?"),
        (
            "/api/device?entityGroupId=7",
            json!({ "name": "x" }),
            "entityGroupId is \"7\", which this server does not have",
        ),
        (
            "/api/device",
            json!({ "name": "x", "deviceData": { "speed": 1 } }),
            "deviceData has no member \"speed\"",
        ),
        ("/api/alarmsQuery/count", json!({ "statusLst": ["ACTIVE"] }), "did you mean \"statusList\"?"),
        (&format!("/api/rpc/oneway/{id}"), json!({ "method": "m", "param": 1 }), "did you mean \"params\"?"),
        ("/api/auth/login", json!({ "username": "a", "password": "b", "otp": 1 }), "no member \"otp\""),
        ("/api/tacho/tables", json!({ "table": "t", "ttl": 1 }), "did you mean \"ttlS\"?"),
    ] {
        let message = server.post(path, &body.to_string()).await.refusal(400, 30);
        assert!(message.contains(part), "{path}: {message}");
    }
    assert_eq!(
        server.get("/api/tenant/devices?pageSize=9").await.ok()["totalElements"],
        1,
        "nothing was added"
    );
    // An unknown type of alarms finds none, as in ThingsBoard.
    assert_eq!(server.get("/api/v2/alarms?pageSize=1&typeList=NOPE").await.ok()["totalElements"], 0);
    // Telemetry and attributes have any names, and health checks any parameters.
    server.report("d", r#"{"nonsense":1}"#).await.ok_empty();
    let attributes = format!("/api/plugins/telemetry/DEVICE/{id}/SERVER_SCOPE");
    server.post(&attributes, r#"{"nonsense":1}"#).await.ok_empty();
    assert_eq!(server.get("/healthz?from=balancer").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_caller_without_a_permission_is_told_that_first() {
    let server = Server::start().await;
    let viewer = server.session_of("viewer@example", Role::Viewer, None);
    let body = json!({ "name": "x", "nonsense": 1 }).to_string();
    for path in
        ["/api/device?nonsense=1", "/api/device", "/api/customer", "/api/tenant", "/api/user", "/api/alarm"]
    {
        let send = |session: Option<&str>| {
            let request = server.request("POST", path).body(body.as_str());
            match session {
                Some(token) => request.session(token),
                None => request,
            }
        };
        send(None).send().await.refusal(401, 10);
        send(Some(&viewer)).send().await.refusal(403, 20);
        send(Some(&server.session())).send().await.refusal(400, 30);
    }
    server.stop().await;
}

#[tokio::test]
async fn entities_come_back_as_they_were_answered() {
    let server = Server::start().await;
    let id = |json: &Json| json["id"]["id"].as_str().unwrap().to_owned();
    for (save, info, new) in [
        ("/api/customer", None, json!({ "title": "Acme" })),
        ("/api/deviceProfile", None, json!({ "name": "Pump" })),
        ("/api/assetProfile", None, json!({ "name": "Hall" })),
        ("/api/device", Some("/api/device/info/"), json!({ "name": "d" })),
        ("/api/asset", Some("/api/asset/info/"), json!({ "name": "a" })),
        ("/api/tenant", Some("/api/tenant/info/"), json!({ "title": "Other" })),
        ("/api/user", None, json!({ "email": "z@example", "authority": "CUSTOMER_USER" })),
    ] {
        let made = server.post(save, &new.to_string()).await.ok();
        let again = server.post(save, &made.to_string()).await.ok();
        let info = match info {
            Some(path) => server.get(&format!("{path}{}", id(&made))).await.ok(),
            None => again,
        };
        server.post(save, &info.to_string()).await.ok();
    }
    let device = server.get("/api/tenant/devices?deviceName=d").await.ok();
    let view = json!({ "name": "v", "type": "t", "entityId": device["id"], "keys": { "timeseries": ["a"] } });
    let view = server.post("/api/entityView", &view.to_string()).await.ok();
    let view = server.get(&format!("/api/entityView/info/{}", id(&view))).await.ok();
    server.post("/api/entityView", &view.to_string()).await.ok();
    let alarm = json!({ "type": "Hot", "originator": device["id"], "severity": "MAJOR" });
    let alarm = server.post("/api/alarm", &alarm.to_string()).await.ok();
    let alarm = server.get(&format!("/api/alarm/info/{}", id(&alarm))).await.ok();
    server.post("/api/alarm", &alarm.to_string()).await.ok();
    let comments = format!("/api/alarm/{}/comment", id(&alarm));
    server.post(&comments, r#"{"comment":{"text":"x"}}"#).await.ok();
    let comment = server.get(&format!("{comments}?pageSize=1")).await.ok()["data"][0].clone();
    server.post(&comments, &comment.to_string()).await.ok();
    let credentials = server.get(&format!("/api/device/{}/credentials", id(&device))).await.ok();
    server.post("/api/device/credentials", &credentials.to_string()).await.ok();
    let relation = json!({ "from": device["id"], "to": alarm["originator"], "type": "Is" });
    server.post("/api/v2/relation", &relation.to_string()).await.ok();
    let relations = format!("/api/relations/info?fromType=DEVICE&fromId={}", id(&device));
    let relation = server.get(&relations).await.ok()[0].clone();
    server.post("/api/relation", &relation.to_string()).await.ok_empty();
    server.stop().await;
}
