//! Queries and subscriptions of alarms by the entities that they belong to.

use hub::caller::Role;
use model::ValueRef;
use serde_json::json;

use super::websocket::Client;
use super::{Json, Server};

impl Server {
    /// Raises an alarm of a device; returns the alarm's id.
    async fn raise(&self, device: &str, severity: &str) -> String {
        let originator = json!({ "entityType": "DEVICE", "id": device });
        let body = json!({ "originator": originator, "type": "hot", "severity": severity });
        let saved = self.post("/api/alarm", &body.to_string()).await.ok();
        saved["id"]["id"].as_str().unwrap().to_owned()
    }

    async fn find_alarms(&self, token: &str, query: &Json) -> Json {
        let request = self.request("POST", "/api/alarmsQuery/find").session(token);
        request.body(query.to_string()).send().await.ok()
    }

    /// The session of the administrator of another tenant.
    pub(super) fn foreign_session(&self) -> String {
        let registry = self.hub.registry();
        let other = registry.add_tenant("other", "eve@example.org", "a long password").unwrap();
        let user = registry.users(other.id).remove(0);
        registry.open_session(&user, hub::clock::system_now()).token
    }
}

/// A query of the alarms of all devices.
fn query(page_link: Json) -> Json {
    let mut link = json!({ "page": 0, "pageSize": 10, "textSearch": null, "dynamic": true });
    link.as_object_mut().unwrap().extend(page_link.as_object().unwrap().clone());
    json!({
        "entityFilter": { "type": "entityType", "entityType": "DEVICE" },
        "pageLink": link,
        "alarmFields": [{ "type": "ALARM_FIELD", "key": "type" }],
        "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
        "latestValues": [{ "type": "TIME_SERIES", "key": "speed" }],
        "keyFilters": null,
    })
}

#[tokio::test]
async fn alarms_come_with_values_of_their_entities() {
    let server = Server::start().await;
    let token = server.session();
    let [truck, bus] = ["truck", "bus"].map(|name| server.add_device(name));
    server.put("truck", 1_000, "speed", ValueRef::I64(5));
    let alarm = server.raise(&truck, "MAJOR").await;
    server.raise(&bus, "MINOR").await;
    let sort = json!({ "key": { "type": "ALARM_FIELD", "key": "severity" }, "direction": "ASC" });
    let found = server.find_alarms(&token, &query(json!({ "sortOrder": sort }))).await;
    assert_eq!((&found["totalElements"], &found["hasNext"]), (&2.into(), &false.into()));
    let first = &found["data"][0];
    assert_eq!(first["id"], json!({ "entityType": "ALARM", "id": alarm }));
    assert_eq!(first["entityId"], json!({ "entityType": "DEVICE", "id": truck }));
    assert_eq!((&first["originatorName"], &first["status"]), (&"truck".into(), &"ACTIVE_UNACK".into()));
    assert_eq!(first["latest"]["TIME_SERIES"], json!({ "speed": { "ts": 1000, "value": "5" } }));
    assert_eq!(first["latest"]["ENTITY_FIELD"]["name"]["value"], "truck");
    for (link, expected) in [
        (json!({ "severityList": ["MINOR"], "statusList": ["ACTIVE"] }), 1),
        (json!({ "statusList": ["CLEARED"] }), 0),
        (json!({ "typeList": ["cold"] }), 0),
        (json!({ "textSearch": "HO" }), 2),
        (json!({ "textSearch": "MAJ" }), 0),
        (json!({ "timeWindow": 60_000, "endTs": 5 }), 2),
        (json!({ "startTs": 0, "endTs": 5 }), 0),
        (json!({ "assigneeId": { "entityType": "USER", "id": truck } }), 0),
    ] {
        let found = server.find_alarms(&token, &query(link.clone())).await;
        assert_eq!(found["totalElements"], expected, "{link}");
        let mut count = query(json!({}));
        for of_pages in ["pageLink", "alarmFields", "entityFields", "latestValues"] {
            count.as_object_mut().unwrap().remove(of_pages);
        }
        if link.get("textSearch").is_none() {
            count.as_object_mut().unwrap().extend(link.as_object().unwrap().clone());
            let counted = server.post("/api/alarmsQuery/count", &count.to_string()).await.ok();
            assert_eq!(counted, expected, "{link}");
        }
    }
    assert_eq!(server.post("/api/alarmsQuery/count", r#"{"severityList":["MAJOR"]}"#).await.ok(), 1);
    let by_colour = json!({ "key": { "type": "ALARM_FIELD", "key": "colour" } });
    for (link, part) in [
        (json!({ "sortOrder": by_colour }), "severity"),
        (json!({ "pageSize": 0 }), "pageSize is 0"),
        (json!({ "severityList": ["HIGH"] }), "CRITICAL"),
    ] {
        let refused = server.post("/api/alarmsQuery/find", &query(link).to_string()).await.refusal(400, 30);
        assert!(refused.contains(part), "{refused}");
    }
    server.stop().await;
}

#[tokio::test]
async fn text_is_searched_in_the_members_that_the_query_names() {
    let server = Server::start().await;
    let token = server.session();
    let truck = server.add_device("truck");
    server.raise(&truck, "MAJOR").await;
    for (fields, text, expected) in [
        (json!([]), "maj", 1),
        (json!(["severity", "colour"]), "maj", 1),
        (json!(["originator"]), "ruc", 1),
        (json!(["originator"]), "maj", 0),
        (json!(["status"]), "unack", 1),
        (json!(["details"]), "hot", 0),
    ] {
        let mut query = query(json!({ "textSearch": text }));
        let keys = fields.as_array().unwrap().iter();
        query["alarmFields"] = keys.map(|key| json!({ "type": "ALARM_FIELD", "key": key })).collect();
        let found = server.find_alarms(&token, &query).await;
        assert_eq!(found["totalElements"], expected, "{fields} {text}");
    }
    server.stop().await;
}

#[tokio::test]
async fn alarms_have_the_order_of_their_entities() {
    let server = Server::start().await;
    let token = server.session();
    let devices = ["bus", "truck", "car"].map(|name| server.add_device(name));
    for (name, speed) in [("bus", 30), ("truck", 10), ("car", 20)] {
        server.put(name, 1_000, "speed", ValueRef::I64(speed));
    }
    for device in &devices {
        server.raise(device, "MAJOR").await;
    }
    for (kind, key, direction, expected) in [
        ("ENTITY_FIELD", "name", "ASC", ["bus", "car", "truck"]),
        ("ENTITY_FIELD", "name", "DESC", ["truck", "car", "bus"]),
        ("TIME_SERIES", "speed", "ASC", ["truck", "car", "bus"]),
    ] {
        let sort = json!({ "key": { "type": kind, "key": key }, "direction": direction });
        let found = server.find_alarms(&token, &query(json!({ "sortOrder": sort }))).await;
        let names = found["data"].as_array().unwrap().iter().map(|alarm| alarm["originatorName"].clone());
        assert_eq!(names.collect::<Vec<_>>(), expected, "{kind} {key} {direction}");
    }
    server.stop().await;
}

#[tokio::test]
async fn alarms_propagate_along_relations() {
    let server = Server::start().await;
    let token = server.session();
    let truck = server.add_device("truck");
    let asset = async |name: &str| {
        let saved = server.post("/api/asset", &json!({ "name": name }).to_string()).await.ok();
        saved["id"]["id"].as_str().unwrap().to_owned()
    };
    let (depot, yard) = (asset("depot").await, asset("yard").await);
    let id = |kind: &str, id: &str| json!({ "entityType": kind, "id": id });
    let relate = async |from: Json, kind: &str, to: Json| {
        let relation = json!({ "from": from, "to": to, "type": kind, "typeGroup": "COMMON" });
        assert_eq!(server.post("/api/relation", &relation.to_string()).await.status, 200);
    };
    relate(id("ASSET", &yard), "Contains", id("ASSET", &depot)).await;
    relate(id("ASSET", &depot), "Contains", id("DEVICE", &truck)).await;
    relate(id("DEVICE", &truck), "Contains", id("ASSET", &yard)).await;
    let raise = async |propagate: bool, types: Json| {
        let alarm = json!({
            "originator": id("DEVICE", &truck), "type": "hot", "severity": "MAJOR",
            "propagate": propagate, "propagateRelationTypes": types,
        });
        server.post("/api/alarm", &alarm.to_string()).await.ok();
    };
    let of = async |asset: &str| {
        let path = format!("/api/alarm/ASSET/{asset}?pageSize=10&page=0");
        server.get(&path).await.ok()["totalElements"].clone()
    };
    let mut in_assets = query(json!({ "searchPropagatedAlarms": true }));
    in_assets["entityFilter"] = json!({ "type": "entityType", "entityType": "ASSET" });
    in_assets["latestValues"] = json!([]);
    for (propagate, types, expected) in [
        (false, json!([]), 0),
        (true, json!(["Manages"]), 0),
        (true, json!(["Contains"]), 1),
        (true, json!([]), 1),
    ] {
        raise(propagate, types.clone()).await;
        assert_eq!((of(&depot).await, of(&yard).await), (expected.into(), expected.into()), "{types}");
        let found = server.find_alarms(&token, &in_assets).await;
        assert_eq!(found["totalElements"], expected, "{types}");
        if expected == 1 {
            assert_eq!(found["data"][0]["entityId"], id("ASSET", &depot), "the nearest one");
        }
    }
    let alone = json!({ "entityFilter": in_assets["entityFilter"] });
    assert_eq!(
        server.post("/api/alarmsQuery/count", &alone.to_string()).await.ok(),
        0,
        "without propagation"
    );
    server.stop().await;
}

#[tokio::test]
async fn alarms_of_others_are_not_found() {
    let server = Server::start().await;
    let customer = server.post("/api/customer", r#"{"title":"acme"}"#).await.ok();
    let customer = customer["id"]["id"].as_str().unwrap().to_owned();
    let of_customer = server.session_of("u@acme.example", Role::Customer, customer.parse().ok());
    let [mine, theirs] = ["mine", "theirs"].map(|name| server.add_device(name));
    server.post(&format!("/api/customer/{customer}/device/{mine}"), "").await.ok();
    server.raise(&theirs, "MAJOR").await;
    let types = async || {
        let request = server.request("GET", "/api/alarm/types?pageSize=10&page=0");
        request.session(&of_customer).send().await.ok()["totalElements"].clone()
    };
    assert_eq!(types().await, 0);
    let alarm = server.raise(&mine, "MINOR").await;
    assert_eq!(types().await, 1);
    let found = server.find_alarms(&of_customer, &query(json!({}))).await;
    assert_eq!((&found["totalElements"], &found["data"][0]["id"]["id"]), (&1.into(), &alarm.into()));
    let foreign = server.foreign_session();
    assert_eq!(server.find_alarms(&foreign, &query(json!({}))).await["totalElements"], 0);
    let mut client = Client::to(&server, &format!("/api/ws?token={foreign}")).await;
    let status =
        json!({ "type": "ALARM_STATUS", "cmdId": 3, "originatorId": { "entityType": "DEVICE", "id": mine } });
    let count = json!({ "type": "ALARM_COUNT", "cmdId": 4, "query": {} });
    client.send(&json!({ "cmds": [status, count] })).await;
    let refused = client.next().await;
    assert_eq!((&refused["cmdId"], &refused["active"]), (&3.into(), &false.into()));
    assert!(refused["errorCode"] != 0, "{refused}");
    assert_eq!(client.next().await["count"], 0);
    server.stop().await;
}

#[tokio::test]
async fn subscriptions_of_alarms_follow_their_changes_until_they_end() {
    let server = Server::start().await;
    let device = server.add_device("truck");
    let mut client = Client::to(&server, &format!("/api/ws?token={}", server.session())).await;
    let active = json!({ "statusList": ["ACTIVE"] });
    let commands = [
        json!({ "type": "ALARM_COUNT", "cmdId": 1, "query": active }),
        json!({ "type": "ALARM_DATA", "cmdId": 2, "query": query(active.clone()) }),
        json!({ "type": "ALARM_STATUS", "cmdId": 3, "originatorId": { "entityType": "DEVICE", "id": device },
                "severityList": ["MAJOR"], "typeList": null }),
    ];
    client.send(&json!({ "cmds": commands })).await;
    let count = |count: u64| json!({ "cmdId": 1, "errorCode": 0, "errorMsg": null, "cmdUpdateType": "ALARM_COUNT_DATA", "count": count });
    let status = |active: bool| json!({ "cmdId": 3, "errorCode": 0, "errorMsg": null, "cmdUpdateType": "ALARM_STATUS", "active": active });
    assert_eq!(client.next().await, count(0));
    let page = client.next().await;
    assert_eq!((&page["cmdUpdateType"], &page["update"]), (&"ALARM_DATA".into(), &Json::Null));
    assert_eq!((&page["totalEntities"], &page["allowedEntities"]), (&1.into(), &100_000.into()));
    assert_eq!(page["data"], json!({ "data": [], "totalPages": 0, "totalElements": 0, "hasNext": false }));
    assert_eq!(client.next().await, status(false));
    let alarm = server.raise(&device, "MAJOR").await;
    let mut of = [const { Json::Null }; 4];
    for _ in 0..3 {
        let message = client.next().await;
        let id = message["cmdId"].as_u64().unwrap() as usize;
        of[id] = message;
    }
    assert_eq!((&of[1], &of[3]), (&count(1), &status(true)));
    let row = &of[2]["data"]["data"][0];
    assert_eq!((&row["id"]["id"], &row["entityId"]["id"]), (&alarm.clone().into(), &device.clone().into()));
    assert_eq!(row["latest"]["ENTITY_FIELD"]["name"]["value"], "truck");
    client.send(&json!({ "cmds": [{ "type": "ALARM_STATUS_UNSUBSCRIBE", "cmdId": 3 }] })).await;
    server.post(&format!("/api/alarm/{alarm}/clear"), "").await.ok();
    let mut seen = [client.next().await, client.next().await];
    seen.sort_by_key(|message| message["cmdId"].as_i64());
    assert_eq!(seen[0], count(0));
    assert_eq!(seen[1]["data"]["totalElements"], 0);
    // The subscription that continues is heard, those that have ended are not.
    let ended = [("ALARM_DATA_UNSUBSCRIBE", 2)].map(|(kind, id)| json!({ "type": kind, "cmdId": id }));
    client.send(&json!({ "cmds": ended })).await;
    server.raise(&device, "MAJOR").await;
    assert_eq!(client.next().await, count(1));
    server.post(&format!("/api/alarm/{alarm}/ack"), "").await.ok();
    server.raise(&server.add_device("bus"), "MAJOR").await;
    assert_eq!(client.next().await, count(2));
    server.stop().await;
}
