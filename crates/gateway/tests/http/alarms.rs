//! Alarms over REST.

use serde_json::json;

use super::{Json, Reply, Server};

impl Server {
    async fn alarm(&self, device: &str, change: impl FnOnce(&mut Json)) -> Reply {
        let mut body = json!({
            "originator": {"entityType": "DEVICE", "id": device},
            "type": "High Temperature",
            "severity": "CRITICAL",
        });
        change(&mut body);
        self.post("/api/alarm", &body.to_string()).await
    }
}

fn id(alarm: &Json) -> String {
    assert_eq!(alarm["id"]["entityType"], "ALARM");
    alarm["id"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_alarm_has_the_members_of_thingsboard() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    let saved = server.alarm(&device, |body| body["details"] = json!({"temperature": [90.5]})).await.ok();
    let tenant = server.hub.registry().default_tenant();
    let created = saved["createdTime"].as_i64().unwrap();
    let expected = json!({
        "id": saved["id"],
        "createdTime": created,
        "tenantId": {"entityType": "TENANT", "id": tenant},
        "customerId": null,
        "type": "High Temperature",
        "originator": {"entityType": "DEVICE", "id": device},
        "severity": "CRITICAL",
        "acknowledged": false,
        "cleared": false,
        "assigneeId": null,
        "startTs": created,
        "endTs": created,
        "ackTs": 0,
        "clearTs": 0,
        "assignTs": 0,
        "details": {"temperature": [90.5]},
        "propagate": false,
        "propagateToOwner": false,
        "propagateToTenant": false,
        "propagateRelationTypes": [],
        "name": "High Temperature",
        "status": "ACTIVE_UNACK",
    });
    assert_eq!(saved, expected);
    let path = format!("/api/alarm/{}", id(&saved));
    assert_eq!(server.get(&path).await.ok(), expected);
    let info = server.get(&format!("/api/alarm/info/{}", id(&saved))).await.ok();
    assert_eq!((&info["originatorName"], &info["assignee"]), (&"truck".into(), &Json::Null));
    assert!(info.get("originatorLabel").is_some());
    server.stop().await;
}

#[tokio::test]
async fn an_alarm_is_acknowledged_cleared_assigned_and_deleted() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    let path = format!("/api/alarm/{}", id(&server.alarm(&device, |_| ()).await.ok()));
    let acknowledged = server.post(&format!("{path}/ack"), "").await.ok();
    assert_eq!(
        (&acknowledged["status"], &acknowledged["originatorName"]),
        (&"ACTIVE_ACK".into(), &"truck".into())
    );
    assert!(acknowledged["ackTs"].as_i64().unwrap() > 0);
    let again = server.post(&format!("{path}/ack"), "").await.refusal(400, 31);
    assert_eq!(again, "Alarm was already acknowledged!");
    let user = server.hub.registry().users(server.hub.registry().default_tenant()).remove(0);
    let assigned = server.post(&format!("{path}/assign/{}", user.id), "").await.ok();
    assert_eq!(assigned["assigneeId"]["id"], user.id.to_string());
    let info = server.get(&path.replace("/alarm/", "/alarm/info/")).await.ok();
    assert_eq!(info["assignee"]["email"], user.login);
    assert_eq!(server.delete(&format!("{path}/assign")).await.ok()["assigneeId"], Json::Null);
    assert_eq!(server.post(&format!("{path}/clear"), "").await.ok()["status"], "CLEARED_ACK");
    assert_eq!(server.delete(&path).await.ok(), true);
    server.get(&path).await.refusal(404, 32);
    server.delete(&path).await.refusal(404, 32);
    server.stop().await;
}

#[tokio::test]
async fn alarms_are_found_in_pages() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    for (alarm_type, severity) in [("a", "MINOR"), ("b", "MAJOR"), ("c", "MINOR")] {
        let saved = server.alarm(&device, |body| {
            body["type"] = alarm_type.into();
            body["severity"] = severity.into();
        });
        saved.await.ok();
    }
    let page = server.get("/api/alarms?pageSize=2&page=0&sortProperty=type&sortOrder=DESC").await.ok();
    let types: Vec<&str> =
        page["data"].as_array().unwrap().iter().map(|a| a["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["c", "b"]);
    assert_eq!(
        (&page["totalPages"], &page["totalElements"], &page["hasNext"]),
        (&2.into(), &3.into(), &true.into())
    );
    let count = async |path: String| server.get(&path).await.ok()["totalElements"].as_u64().unwrap();
    let of_device = format!("/api/alarm/DEVICE/{device}?pageSize=10&searchStatus=ACTIVE");
    assert_eq!(count(of_device).await, 3);
    assert_eq!(count("/api/alarms?pageSize=10&status=ACTIVE_ACK".to_owned()).await, 0);
    assert_eq!(
        count("/api/v2/alarms?pageSize=10&severityList=MINOR&statusList=ACTIVE,UNACK".to_owned()).await,
        2
    );
    let v2 = format!("/api/v2/alarm/DEVICE/{device}?pageSize=10&typeList=a&typeList=b");
    assert_eq!(count(v2).await, 2);
    let highest = server.get(&format!("/api/alarm/highestSeverity/DEVICE/{device}")).await.ok();
    assert_eq!(highest, "MAJOR");
    let types = server.get("/api/alarm/types?pageSize=10&page=0").await.ok();
    assert_eq!(types["data"][2]["type"], "c");
    assert_eq!((&types["data"][0]["entityType"], &types["totalElements"]), (&"ALARM".into(), &3.into()));
    let hidden = server.get("/api/alarms?pageSize=1&fetchOriginator=false").await.ok();
    assert_eq!(hidden["data"][0]["originatorName"], Json::Null);
    server.get("/api/alarms?page=0").await.refusal(400, 30);
    server.get("/api/alarm/DEVICE/13814000-1dd2-11b2-8080-808080808080?pageSize=1").await.refusal(404, 32);
    server.get("/api/alarm/TRUCK/13814000-1dd2-11b2-8080-808080808080?pageSize=1").await.refusal(400, 30);
    server.stop().await;
}

#[tokio::test]
async fn comments_are_added_edited_and_deleted() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    let alarm = id(&server.alarm(&device, |_| ()).await.ok());
    let path = format!("/api/alarm/{alarm}/comment");
    let saved = server.post(&path, r#"{"comment":{"text":"I look"}}"#).await.ok();
    assert_eq!((&saved["type"], &saved["comment"]["text"]), (&"OTHER".into(), &"I look".into()));
    assert_eq!(saved["alarmId"], json!({"entityType": "ALARM", "id": alarm}));
    let body = json!({"id": saved["id"], "comment": {"text": "I looked"}}).to_string();
    let edited = server.post(&path, &body).await.ok();
    assert_eq!((&edited["id"], &edited["comment"]["edited"]), (&saved["id"], &"true".into()));
    server.post(&format!("/api/alarm/{alarm}/ack"), "").await.ok();
    let page = server.get(&format!("{path}?pageSize=10&sortProperty=createdTime&sortOrder=ASC")).await.ok();
    assert_eq!(page["totalElements"], 2);
    let system = page["data"].as_array().unwrap().iter().find(|comment| comment["type"] == "SYSTEM").unwrap();
    assert_eq!(system["comment"]["subtype"], "ACK");
    assert!(system["comment"]["text"].as_str().unwrap().starts_with("Alarm was acknowledged by user"));
    let comment = saved["id"]["id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("{path}/{comment}")).await.status, 200);
    server.delete(&format!("{path}/{comment}")).await.refusal(400, 30);
    server.post(&path, r#"{"type":"SYSTEM","comment":{}}"#).await.refusal(400, 31);
    server.post(&path, "{}").await.refusal(400, 31);
    server.stop().await;
}

#[tokio::test]
async fn readers_do_not_change_alarms_and_wrong_bodies_are_refused() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    let alarm = id(&server.alarm(&device, |_| ()).await.ok());
    let path = format!("/api/alarm/{alarm}/ack");
    let public = server.request("POST", &path).session(&server.public_session()).body("").send().await;
    public.refusal(403, 20);
    server.alarm(&device, |body| body["severity"] = "HIGH".into()).await.refusal(400, 30);
    server.alarm(&device, |body| body["startTs"] = (-1).into()).await.refusal(400, 30);
    server.alarm(&device, |body| body["originator"] = json!({"id": device})).await.refusal(400, 30);
    server.alarm("13814000-1dd2-11b2-8080-808080808080", |_| ()).await.refusal(404, 32);
    server.alarm(&device, |body| drop(body.as_object_mut().unwrap().remove("type"))).await.refusal(400, 31);
    server.request("POST", &path).body("").send().await.refusal(401, 10);
    server.stop().await;
}

#[tokio::test]
async fn rules_of_a_device_profile_raise_alarms_and_wrong_rules_are_refused() {
    let server = Server::start().await;
    server.add_device("truck");
    let id = server.get("/api/deviceProfileInfo/default").await.ok()["id"]["id"].as_str().unwrap().to_owned();
    let mut profile = server.get(&format!("/api/deviceProfile/{id}")).await.ok();
    let filter = json!({
        "key": {"type": "TIME_SERIES", "key": "speed"}, "valueType": "NUMERIC",
        "predicate": {"type": "NUMERIC", "operation": "GREATER", "value": {"defaultValue": 100}},
    });
    profile["profileData"]["alarms"] = json!([{
        "id": "fast", "alarmType": "Too fast",
        "createRules": {"MAJOR": {"condition": {"condition": [filter], "spec": {"type": "SIMPLE"}}}},
    }]);
    let saved = server.post("/api/deviceProfile", &profile.to_string()).await.ok();
    assert_eq!(saved["profileData"]["alarms"], profile["profileData"]["alarms"]);
    assert_eq!(server.report("truck", r#"{"speed": 120}"#).await.status, 200);
    let found = async || server.get("/api/alarms?pageSize=10").await.ok();
    let raised = async {
        while found().await["totalElements"] == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::GUARD, raised).await.expect("an alarm");
    let alarm = &found().await["data"][0];
    assert_eq!((&alarm["type"], &alarm["originatorName"]), (&"Too fast".into(), &"truck".into()));
    let mut wrong = saved;
    wrong["profileData"]["alarms"][0]["createRules"]["MAJOR"]["condition"]["spec"]["type"] = "NEVER".into();
    let message = server.post("/api/deviceProfile", &wrong.to_string()).await.refusal(400, 31);
    assert!(message.contains("alarms[0].createRules.MAJOR.condition.spec.type"), "{message}");
    server.stop().await;
}
