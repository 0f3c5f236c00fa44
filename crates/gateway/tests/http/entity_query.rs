//! Queries of entities over REST.

use hub::attributes::Scope;
use hub::caller::Caller;
use model::{Value, ValueRef};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::Server;

fn key(kind: &str, key: &str) -> Json {
    json!({ "type": kind, "key": key })
}

fn filter(kind: &str, name: &str, predicate: Json) -> Json {
    json!({ "key": key(kind, name), "valueType": predicate["type"], "predicate": predicate })
}

fn numeric(operation: &str, value: f64) -> Json {
    json!({ "type": "NUMERIC", "operation": operation, "value": { "defaultValue": value, "dynamicValue": null } })
}

/// A query of all devices, with other members.
fn query(members: Json) -> Json {
    let mut query = json!({
        "entityFilter": { "type": "entityType", "entityType": "DEVICE" },
        "pageLink": { "page": 0, "pageSize": 10, "textSearch": null, "dynamic": false },
        "entityFields": [key("ENTITY_FIELD", "name")]
    });
    query.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    query
}

impl Server {
    async fn find(&self, members: Json) -> Json {
        self.post("/api/entitiesQuery/find", &query(members).to_string()).await.ok()
    }

    /// The names of the found entities.
    async fn names(&self, members: Json) -> Vec<String> {
        let found = self.find(members).await;
        let data = found["data"].as_array().unwrap();
        data.iter()
            .map(|one| one["latest"]["ENTITY_FIELD"]["name"]["value"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn refused(&self, members: Json) -> String {
        self.post("/api/entitiesQuery/find", &query(members).to_string()).await.refusal(400, 30)
    }

    fn set(&self, name: &str, scope: Scope, key: &str, value: Value) {
        let registry = self.hub.registry();
        let caller = Caller::local(registry.default_tenant());
        let device = registry.device_by_name(caller.tenant(), name).unwrap();
        let entries = [(key.to_owned(), value)];
        match scope {
            Scope::Client => drop(self.hub.set_client_attributes(&device, &entries).unwrap()),
            _ => self.hub.set_attributes(&caller, &device, scope, &entries).unwrap(),
        }
    }
}

#[tokio::test]
async fn a_page_has_thingsboards_shape() {
    let server = Server::start().await;
    let id = server.add_device("car-1");
    server.add_device("bus");
    server.put("car-1", 1_000, "speed", ValueRef::F64(50.0));
    server.set("car-1", Scope::Server, "plate", Value::String("B-1".into()));
    let found = server
        .find(json!({
            "entityFilter": { "type": "deviceType", "deviceTypes": ["default"], "deviceNameFilter": "car" },
            "entityFields": [key("ENTITY_FIELD", "name"), key("ENTITY_FIELD", "type"), key("ENTITY_FIELD", "phone")],
            "latestValues": [key("TIME_SERIES", "speed"), key("ATTRIBUTE", "plate"), key("TIME_SERIES", "rpm")],
        }))
        .await;
    assert_eq!((&found["totalPages"], &found["totalElements"]), (&1.into(), &1.into()));
    assert_eq!(found["hasNext"], false);
    let car = &found["data"][0];
    assert_eq!(car["entityId"], json!({ "entityType": "DEVICE", "id": id }));
    assert_eq!((&car["timeseries"], &car["aggLatest"]), (&json!({}), &json!({})));
    assert_eq!(
        car["latest"]["TIME_SERIES"],
        json!({ "rpm": { "ts": 0, "value": "" }, "speed": { "ts": 1000, "value": "50.0" } })
    );
    assert_eq!(car["latest"]["ATTRIBUTE"]["plate"]["value"], "B-1");
    let fields = &car["latest"]["ENTITY_FIELD"];
    assert_eq!((&fields["name"]["value"], &fields["type"]["value"]), (&"car-1".into(), &"default".into()));
    assert_eq!(fields["phone"]["value"], "");
    assert!(fields["name"]["ts"].as_i64().unwrap() > 1_600_000_000_000);
    server.stop().await;
}

#[tokio::test]
async fn filters_name_sets_of_entities() {
    let server = Server::start().await;
    let (a, b) = (server.add_device("a"), server.add_device("b"));
    for (filter, expected) in [
        (json!({ "type": "singleEntity", "singleEntity": { "entityType": "DEVICE", "id": b } }), vec!["b"]),
        (
            json!({ "type": "singleEntity", "singleEntity": { "entityType": "DEVICE", "id": Uuid::nil() } }),
            vec![],
        ),
        (json!({ "type": "entityList", "entityType": "DEVICE", "entityList": [b, a, b] }), vec!["b", "a"]),
        (json!({ "type": "entityName", "entityType": "DEVICE", "entityNameFilter": "A" }), vec!["a"]),
        (json!({ "type": "entityType", "entityType": "DEVICE" }), vec!["a", "b"]),
        (json!({ "type": "deviceType", "deviceType": "default", "deviceNameFilter": "%b" }), vec!["b"]),
        (json!({ "type": "deviceType", "deviceTypes": ["truck"] }), vec![]),
    ] {
        assert_eq!(server.names(json!({ "entityFilter": filter })).await, expected, "{filter}");
    }
    for (filter, part) in [
        (json!({ "type": "entityType", "entityType": "TRUCK" }), "ENTITY_VIEW"),
        (json!({ "type": "entityList", "entityType": "DEVICE", "entityList": ["x"] }), "UUID"),
        (
            json!({ "type": "entityList", "entityType": "DEVICE", "entityList": vec![a.clone(); 10_001] }),
            "QUERY_LIST_MAX",
        ),
        (
            json!({ "type": "singleEntity", "singleEntity": { "entityType": "DEVICE" } }),
            "id of an entity is missing",
        ),
        (
            json!({ "type": "entityName", "entityType": "DEVICE", "entityNameFilter": "x".repeat(2_000) }),
            "QUERY_TEXT_BYTES_MAX",
        ),
    ] {
        let message = server.refused(json!({ "entityFilter": filter })).await;
        assert!(message.contains(part), "{message}");
    }
    for filter in [json!({ "type": "apiUsageState" }), json!({ "type": "edgeType", "edgeTypes": ["x"] })] {
        let body = query(json!({ "entityFilter": filter })).to_string();
        let message = server.post("/api/entitiesQuery/find", &body).await.refusal(400, 31);
        assert!(message.contains("is not there on this server"), "{message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn key_filters_search_and_order_choose_among_the_values() {
    let server = Server::start().await;
    for (name, speed) in [("a", Some(10)), ("b", Some(30)), ("c", None), ("d", Some(20))] {
        server.add_device(name);
        if let Some(speed) = speed {
            server.put(name, 1_000, "speed", ValueRef::I64(speed));
        }
    }
    server.set("a", Scope::Shared, "city", Value::String("Berlin".into()));
    server.set("d", Scope::Client, "city", Value::String("Bern".into()));
    let fast = filter("TIME_SERIES", "speed", numeric("GREATER_OR_EQUAL", 20.0));
    assert_eq!(server.names(json!({ "keyFilters": [fast] })).await, ["b", "d"]);
    let text = |operation: &str, text: &str| json!({ "type": "STRING", "operation": operation, "value": { "defaultValue": text }, "ignoreCase": true });
    let in_bern = filter("ATTRIBUTE", "city", text("STARTS_WITH", "bern"));
    assert_eq!(server.names(json!({ "keyFilters": [in_bern, fast] })).await, ["d"]);
    let shared = filter("SHARED_ATTRIBUTE", "city", text("CONTAINS", "ber"));
    assert_eq!(server.names(json!({ "keyFilters": [shared] })).await, ["a"]);
    let named = filter("ENTITY_FIELD", "name", text("IN", "A,c"));
    assert_eq!(server.names(json!({ "keyFilters": [named] })).await, ["a", "c"]);
    let later = filter("ENTITY_FIELD", "createdTime", numeric("GREATER", 4e12));
    assert_eq!(server.names(json!({ "keyFilters": [later] })).await, Vec::<String>::new());
    let search = |text: &str| json!({ "page": 0, "pageSize": 10, "textSearch": text });
    assert_eq!(server.names(json!({ "pageLink": search("B") })).await, ["b"]);
    let with_city = json!({ "pageLink": search("ber"), "latestValues": [key("ATTRIBUTE", "city")] });
    assert_eq!(server.names(with_city).await, ["a", "d"]);

    let ordered = |kind: &str, name: &str, direction: &str, page: usize, size: usize| {
        let order = json!({ "key": key(kind, name), "direction": direction });
        json!({ "pageLink": { "page": page, "pageSize": size, "sortOrder": order } })
    };
    assert_eq!(server.names(ordered("TIME_SERIES", "speed", "DESC", 0, 10)).await, ["b", "d", "a", "c"]);
    assert_eq!(server.names(ordered("TIME_SERIES", "speed", "ASC", 0, 3)).await, ["c", "a", "d"]);
    assert_eq!(server.names(ordered("ENTITY_FIELD", "name", "DESC", 1, 3)).await, ["a"]);
    let last = server.find(ordered("ENTITY_FIELD", "name", "DESC", 1, 3)).await;
    assert_eq!(
        (&last["totalPages"], &last["totalElements"], &last["hasNext"]),
        (&2.into(), &4.into(), &false.into())
    );
    assert_eq!(server.find(ordered("ENTITY_FIELD", "name", "ASC", 0, 3)).await["hasNext"], true);
    server.stop().await;
}

#[tokio::test]
async fn entities_are_counted_and_their_keys_listed() {
    let server = Server::start().await;
    server.add_device("a");
    server.add_device("b");
    server.put("a", 1_000, "speed", ValueRef::I64(10));
    server.set("b", Scope::Server, "plate", Value::Bool(true));
    let count = async |filters: Json| {
        let body = json!({ "entityFilter": { "type": "entityType", "entityType": "DEVICE" }, "keyFilters": filters });
        server.post("/api/entitiesQuery/count", &body.to_string()).await.ok()
    };
    assert_eq!(count(Json::Null).await, 2);
    assert_eq!(count(json!([filter("TIME_SERIES", "speed", numeric("LESS", 11.0))])).await, 1);
    let keys = async |params: &str| {
        let path = format!("/api/entitiesQuery/find/keys?{params}");
        server.post(&path, &query(json!({})).to_string()).await.ok()
    };
    assert_eq!(
        keys("timeseries=true&attributes=true").await,
        json!({ "entityTypes": ["DEVICE"], "timeseries": ["speed"], "attribute": ["plate"] })
    );
    assert_eq!(keys("timeseries=false&attributes=true&scope=CLIENT_SCOPE").await["attribute"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn wrong_queries_are_refused_in_words() {
    let server = Server::start().await;
    let alarm = json!([key("ALARM_FIELD", "status")]);
    assert!(server.refused(json!({ "latestValues": alarm })).await.contains("alarmsQuery"));
    assert!(server.refused(json!({ "pageLink": { "pageSize": 0 } })).await.contains("pageSize is 0"));
    for body in [
        "{}",
        r#"{"entityFilter":{"type":"entityType","entityType":"DEVICE"}}"#,
        r#"{"entityFilter":{"type":"x"},"pageLink":{"pageSize":1}}"#,
    ] {
        server.post("/api/entitiesQuery/find", body).await.refusal(400, 31);
    }
    let body = query(json!({})).to_string();
    assert_eq!(server.request("POST", "/api/entitiesQuery/find").body(body).send().await.status, 401);
    server.stop().await;
}
