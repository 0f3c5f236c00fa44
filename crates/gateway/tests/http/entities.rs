//! Devices, profiles, assets, customers, relations and entity views in ThingsBoard's shapes.

use hub::caller::Role;
use model::ValueRef;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::Server;

fn id_of(entity: &Json) -> String {
    entity["id"]["id"].as_str().unwrap().to_owned()
}

fn names(page: &Json) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

impl Server {
    async fn save(&self, path: &str, body: Json) -> Json {
        self.post(path, &body.to_string()).await.ok()
    }

    /// A customer and the session of one of its users.
    pub(super) async fn customer(&self, title: &str) -> (String, String) {
        let id = id_of(&self.save("/api/customer", json!({ "title": title })).await);
        let login = format!("user@{title}.example");
        let session = self.session_of(&login, Role::Customer, Uuid::parse_str(&id).ok());
        (id, session)
    }
}

#[tokio::test]
async fn a_device_keeps_what_a_client_sends() {
    let server = Server::start().await;
    let new = json!({
        "name": "t1",
        "type": "thermostat",
        "label": "Hall",
        "additionalInfo": { "gateway": true, "description": "x", "lastConnectedGateway": "old" },
        "customerId": { "entityType": "CUSTOMER", "id": "13814000-1dd2-11b2-8080-808080808080" },
        "deviceData": { "configuration": { "type": "DEFAULT" }, "transportConfiguration": { "type": "DEFAULT" } },
    });
    let made = server.save("/api/device", new).await;
    assert_eq!(
        (&made["type"], &made["label"], &made["version"]),
        (&"thermostat".into(), &"Hall".into(), &1.into())
    );
    assert_eq!(made["additionalInfo"], json!({ "gateway": true, "description": "x" }));
    assert_eq!(made["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
    let id = id_of(&made);
    // A client sends back what it has read.
    let mut changed = made.clone();
    changed["label"] = Json::Null;
    changed["additionalInfo"]["gateway"] = false.into();
    let changed = server.save("/api/device", changed).await;
    assert_eq!((&changed["label"], &changed["version"]), (&Json::Null, &2.into()));
    assert_eq!(changed["additionalInfo"], json!({ "description": "x" }));
    // An old version is refused, and a change without members leaves them.
    let refused = server.post("/api/device", &made.to_string()).await.refusal(409, 35);
    assert!(refused.contains("version 2 and not 1"), "{refused}");
    let renamed = server.save("/api/device", json!({ "id": { "id": id }, "name": "t2" })).await;
    assert_eq!(
        (&renamed["additionalInfo"]["description"], &renamed["type"]),
        (&"x".into(), &"thermostat".into())
    );
    for (body, status, code, part) in [
        (json!({ "name": "x", "firmwareId": { "id": id } }), 404, 32, "package"),
        (
            json!({ "name": "x", "additionalInfo": { "a": "y".repeat(70_000) } }),
            400,
            31,
            "ADDITIONAL_INFO_BYTES_MAX",
        ),
        (json!({ "name": "x", "additionalInfo": { "a": "y".repeat(600_000) } }), 413, 30, "larger than"),
        (json!({ "name": "x", "label": "y".repeat(256) }), 400, 31, "SHORT_TEXT_BYTES_MAX"),
        (json!({ "name": "x", "customerId": { "id": id } }), 404, 32, "customer"),
        (
            json!({ "name": "x", "deviceData": { "transportConfiguration": { "type": "SNMP" } } }),
            400,
            30,
            "SNMP",
        ),
    ] {
        let refused = server.post("/api/device", &body.to_string()).await.refusal(status, code);
        assert!(refused.contains(part), "{refused}");
    }
    assert!(
        server.get("/api/tenant/devices?deviceName=x").await.status == 404,
        "no device of a refused request"
    );
    let with = json!({ "device": { "name": "t3" }, "credentials": { "credentialsId": "given", "credentialsType": "ACCESS_TOKEN" } });
    let made = server.save("/api/device-with-credentials", with).await;
    let credentials = server.get(&format!("/api/device/{}/credentials", id_of(&made))).await.ok();
    assert_eq!(credentials["credentialsId"], "given");
    server.stop().await;
}

#[tokio::test]
async fn a_device_with_another_profile_reports_to_another_table() {
    let server = Server::start().await;
    let id = server.add_device("d");
    assert_eq!(server.report("d", r#"{"a":1}"#).await.status, 200);
    let profile = server
        .save(
            "/api/deviceProfile",
            json!({
                "name": "Pump (v2)", "type": "DEFAULT", "transportType": "DEFAULT", "description": "pumps",
                "profileData": { "configuration": { "type": "DEFAULT", "x": 1 }, "alarms": null },
            }),
        )
        .await;
    assert_eq!(
        (&profile["default"], &profile["profileData"]["configuration"]["x"]),
        (&false.into(), &1.into())
    );
    let change = json!({ "id": { "id": id }, "name": "d", "deviceProfileId": profile["id"] });
    assert_eq!(server.save("/api/device", change).await["type"], "Pump (v2)");
    assert_eq!(server.report("d", r#"{"b":1}"#).await.status, 200);
    let details = server.get(&format!("/api/tacho/devices/{id}")).await.ok();
    assert_eq!((&details["table"], &details["keys"]), (&"pump__v2".into(), &1.into()));

    let path = format!("/api/deviceProfile/{}", id_of(&profile));
    let refused = server.delete(&path).await.refusal(400, 31);
    assert!(refused.contains("is that of 1 devices"), "{refused}");
    let default = server.post(&format!("{path}/default"), "").await.ok();
    assert_eq!(default["default"], true);
    assert!(server.delete(&path).await.refusal(400, 31).contains("default one"));
    assert_eq!(server.save("/api/device", json!({ "name": "e" })).await["type"], "Pump (v2)");
    let found = server.get("/api/deviceProfiles?pageSize=10&page=0&textSearch=pump").await.ok();
    assert_eq!(names(&found), ["Pump (v2)"]);
    let infos =
        server.get("/api/deviceProfileInfos?pageSize=10&page=0&sortProperty=name&sortOrder=DESC").await.ok();
    assert_eq!(names(&infos), ["default", "Pump (v2)"]);
    let used = server.get("/api/deviceProfile/names?activeOnly=true").await.ok();
    assert_eq!(used, json!([{ "id": profile["id"], "name": "Pump (v2)" }]));
    assert_eq!(server.get("/api/deviceProfileInfo/default").await.ok()["name"], "Pump (v2)");
    assert_eq!(server.get("/api/device/types").await.ok()[0]["type"], "Pump (v2)");
    for (body, part) in [
        (json!({ "name": "p", "transportType": "MQTT" }), "transportType"),
        (json!({ "name": "p", "defaultRuleChainId": { "id": id } }), "defaultRuleChainId"),
    ] {
        let refused = server.post("/api/deviceProfile", &body.to_string()).await.refusal(400, 30);
        assert!(refused.contains(part), "{refused}");
    }
    server.stop().await;
}

#[tokio::test]
async fn listings_are_filtered_sorted_and_paged() {
    let server = Server::start().await;
    for (name, label) in [("b", "north"), ("a", "south"), ("c", "North 2")] {
        server.save("/api/device", json!({ "name": name, "label": label })).await;
    }
    let list = async |query: &str| server.get(&format!("/api/tenant/devices?{query}")).await;
    assert_eq!(names(&list("pageSize=10&textSearch=NORTH").await.ok()), ["b", "c"]);
    assert_eq!(names(&list("pageSize=10&sortProperty=label&sortOrder=DESC").await.ok()), ["a", "b", "c"]);
    assert_eq!(names(&list("pageSize=2&page=1&sortProperty=createdTime").await.ok()).len(), 1);
    let far = list("pageSize=10&page=2147483647").await.ok();
    assert_eq!(far, json!({ "data": [], "totalPages": 1, "totalElements": 3, "hasNext": false }));
    assert!(list("pageSize=10&sortProperty=speed").await.refusal(400, 30).contains("createdTime"));
    assert!(list("page=0").await.refusal(400, 30).contains("pageSize"));
    let info = server.get("/api/tenant/deviceInfos?pageSize=1&active=false&type=default").await.ok();
    let first = &info["data"][0];
    assert_eq!((&first["active"], &first["deviceProfileName"]), (&false.into(), &"default".into()));
    assert_eq!((&first["customerTitle"], &first["customerIsPublic"]), (&Json::Null, &false.into()));
    assert_eq!(server.get("/api/tenant/deviceInfos?pageSize=1&active=true").await.ok()["totalElements"], 0);
    let ids: Vec<_> = list("pageSize=2").await.ok()["data"].as_array().unwrap().iter().map(id_of).collect();
    let missing = Uuid::nil();
    let found = server.get(&format!("/api/devices?deviceIds={},{missing},{}", ids[1], ids[0])).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_user_of_a_customer_sees_what_is_assigned_to_it() {
    let server = Server::start().await;
    server.hub.open_sql(model::limits::QueryLimits::default()).unwrap();
    let (acme, of_acme) = server.customer("acme").await;
    let (_, of_other) = server.customer("other").await;
    let [mine, theirs] = ["mine", "theirs"].map(|name| server.add_device(name));
    for name in ["mine", "theirs"] {
        server.put(name, 1_000, "speed", ValueRef::I64(5));
    }
    let assigned = server.post(&format!("/api/customer/{acme}/device/{mine}"), "").await.ok();
    assert_eq!(assigned["customerId"]["id"], acme.as_str());
    let get = async |session: &str, path: &str| server.request("GET", path).session(session).send().await;
    // Own device: reads, values and SQL; not its credentials.
    assert_eq!(get(&of_acme, &format!("/api/device/{mine}")).await.ok()["name"], "mine");
    let info = get(&of_acme, &format!("/api/device/info/{mine}")).await.ok();
    assert_eq!(info["customerTitle"], "acme");
    get(&of_acme, &format!("/api/device/{mine}/credentials")).await.refusal(403, 20);
    let keys = |id: &str| format!("/api/plugins/telemetry/DEVICE/{id}/keys/timeseries");
    assert_eq!(get(&of_acme, &keys(&mine)).await.text(), r#"["speed"]"#);
    let sql = "/api/sql?q=SELECT%20device%20FROM%20telemetry";
    let rows = get(&of_acme, sql).await;
    assert!(rows.text().contains("mine") && !rows.text().contains("theirs"), "{}", rows.text());
    assert!(!get(&of_other, sql).await.text().contains("mine"));
    for table in ["audit", "dead_letter"] {
        let refused = get(&of_acme, &format!("/api/sql?q=SELECT%20*%20FROM%20{table}")).await;
        assert_eq!(refused.status, 400, "{table}: {}", refused.text());
    }
    // Foreign devices are unknown.
    for path in [format!("/api/device/{theirs}"), keys(&theirs), format!("/api/tacho/devices/{theirs}")] {
        get(&of_acme, &path).await.refusal(404, 32);
    }
    get(&of_other, &format!("/api/device/{mine}")).await.refusal(404, 32);
    get(&of_acme, "/api/tenant/devices?deviceName=theirs").await.refusal(404, 32);
    assert_eq!(names(&get(&of_acme, "/api/tenant/devices?pageSize=9").await.ok()), ["mine"]);
    let listed = get(&of_acme, &format!("/api/customer/{acme}/devices?pageSize=9")).await.ok();
    assert_eq!(names(&listed), ["mine"]);
    get(&of_other, &format!("/api/customer/{acme}/devices?pageSize=9")).await.refusal(404, 32);
    assert_eq!(get(&of_acme, "/api/customers?pageSize=9").await.ok()["totalElements"], 1);
    // It writes attributes and calls, and changes no device.
    let set = server.request("POST", &format!("/api/plugins/telemetry/DEVICE/{mine}/SERVER_SCOPE"));
    assert_eq!(set.session(&of_acme).body(r#"{"site":1}"#).send().await.status, 200);
    let set = server.request("POST", &format!("/api/plugins/telemetry/DEVICE/{theirs}/SERVER_SCOPE"));
    set.session(&of_acme).body(r#"{"site":1}"#).send().await.refusal(404, 32);
    let rename = json!({ "id": { "id": mine }, "name": "stolen" }).to_string();
    server.request("POST", "/api/device").session(&of_acme).body(rename).send().await.refusal(403, 20);
    // A customer of another tenant is unknown.
    let foreign = Uuid::from_u128(1);
    server.post(&format!("/api/customer/{foreign}/device/{mine}"), "").await.refusal(404, 32);
    // The end of the assignment, and of the customer.
    server.delete(&format!("/api/customer/device/{mine}")).await.ok();
    get(&of_acme, &format!("/api/device/{mine}")).await.refusal(404, 32);
    server.delete(&format!("/api/customer/device/{mine}")).await.refusal(400, 30);
    server.post(&format!("/api/customer/{acme}/device/{mine}"), "").await.ok();
    assert_eq!(server.delete(&format!("/api/customer/{acme}")).await.status, 200);
    get(&of_acme, "/api/auth/user").await.refusal(401, 10);
    let free = server.get(&format!("/api/device/{mine}")).await.ok();
    assert_eq!(free["customerId"]["id"], "13814000-1dd2-11b2-8080-808080808080");
    let refused = server.post(&format!("/api/customer/public/device/{mine}"), "").await.refusal(400, 30);
    assert!(refused.contains("no public customers"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn customers_are_added_changed_and_found() {
    let server = Server::start().await;
    let new =
        json!({ "title": "Acme", "email": "a@acme.example", "city": "Riga", "additionalInfo": { "x": 1 } });
    let made = server.save("/api/customer", new).await;
    assert_eq!(
        (&made["name"], &made["city"], &made["country"]),
        (&"Acme".into(), &"Riga".into(), &Json::Null)
    );
    let id = id_of(&made);
    let path = format!("/api/customer/{id}");
    assert_eq!(server.get(&path).await.ok(), made);
    assert_eq!(server.get("/api/tenant/customers?customerTitle=Acme").await.ok(), made);
    assert_eq!(server.get(&format!("{path}/title")).await.text(), "Acme");
    assert_eq!(
        server.get(&format!("{path}/shortInfo")).await.ok(),
        json!({ "title": "Acme", "isPublic": false })
    );
    let refused = server.post("/api/customer", r#"{"title":"Acme"}"#).await.refusal(400, 31);
    assert!(refused.contains("exists already"));
    assert!(server.post("/api/customer", r#"{"title":""}"#).await.refusal(400, 31).contains("empty"));
    let mut renamed = made.clone();
    renamed["title"] = "Zeta".into();
    assert_eq!(server.save("/api/customer", renamed).await["version"], 2);
    server.save("/api/customer", json!({ "title": "Beta" })).await;
    let listed = server.get("/api/customers?pageSize=9&sortProperty=title&sortOrder=DESC").await.ok();
    assert_eq!(names(&listed), ["Zeta", "Beta"]);
    assert_eq!(server.delete(&path).await.status, 200);
    server.get(&path).await.refusal(404, 32);
    server.stop().await;
}

#[tokio::test]
async fn assets_have_profiles_customers_and_types() {
    let server = Server::start().await;
    let (acme, of_acme) = server.customer("acme").await;
    let made =
        server.save("/api/asset", json!({ "name": "Depot", "type": "building", "label": "West" })).await;
    assert_eq!((&made["type"], &made["label"]), (&"building".into(), &"West".into()));
    let id = id_of(&made);
    let path = format!("/api/asset/{id}");
    assert_eq!(server.get(&path).await.ok(), made);
    assert_eq!(server.get("/api/tenant/assets?assetName=Depot").await.ok(), made);
    server.request("GET", &path).session(&of_acme).send().await.refusal(404, 32);
    server.post(&format!("/api/customer/{acme}/asset/{id}"), "").await.ok();
    let info = server.request("GET", &format!("/api/asset/info/{id}")).session(&of_acme).send().await.ok();
    assert_eq!((&info["customerTitle"], &info["assetProfileName"]), (&"acme".into(), &"building".into()));
    assert_eq!(
        names(&server.get(&format!("/api/customer/{acme}/assetInfos?pageSize=9")).await.ok()),
        ["Depot"]
    );
    assert_eq!(names(&server.get("/api/tenant/assets?pageSize=9&type=default").await.ok()), [""; 0]);
    assert_eq!(server.get("/api/asset/types").await.ok()[0]["type"], "building");
    assert_eq!(server.get(&format!("/api/assets?assetIds={id}")).await.ok()[0]["name"], "Depot");
    let profile = id_of(&json!({ "id": made["assetProfileId"] }));
    let refused = server.delete(&format!("/api/assetProfile/{profile}")).await.refusal(400, 31);
    assert!(refused.contains("is that of 1 assets"), "{refused}");
    assert_eq!(server.get("/api/assetProfileInfo/default").await.ok()["name"], "default");
    assert_eq!(names(&server.get("/api/assetProfiles?pageSize=9").await.ok()), ["building", "default"]);
    server.delete(&format!("/api/customer/asset/{id}")).await.ok();
    assert_eq!(server.delete(&path).await.status, 200);
    assert_eq!(server.delete(&format!("/api/assetProfile/{profile}")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn relations_lead_from_assets_to_devices() {
    let server = Server::start().await;
    let id = |kind: &str, id: &str| json!({ "entityType": kind, "id": id });
    let depot = id_of(&server.save("/api/asset", json!({ "name": "Depot" })).await);
    let hall = id_of(&server.save("/api/asset", json!({ "name": "Hall" })).await);
    let [near, far] = ["near", "far"].map(|name| server.add_device(name));
    for (from, to) in [
        (id("ASSET", &depot), id("ASSET", &hall)),
        (id("ASSET", &depot), id("DEVICE", &near)),
        (id("ASSET", &hall), id("DEVICE", &far)),
        // A ring.
        (id("ASSET", &hall), id("ASSET", &depot)),
    ] {
        let body = json!({ "from": from, "to": to, "type": "Contains", "typeGroup": "COMMON" });
        assert_eq!(server.post("/api/relation", &body.to_string()).await.status, 200);
    }
    let from = server.get(&format!("/api/relations?fromId={depot}&fromType=ASSET")).await.ok();
    assert_eq!(from.as_array().unwrap().len(), 2);
    let to = server.get(&format!("/api/relations/info?toId={far}&toType=DEVICE")).await.ok();
    assert_eq!((&to[0]["fromName"], &to[0]["toName"]), (&"Hall".into(), &"far".into()));
    let query = |level: i64, last: bool| {
        json!({
            "parameters": { "rootId": depot, "rootType": "ASSET", "direction": "FROM", "maxLevel": level, "fetchLastLevelOnly": last },
            "filters": [{ "relationType": "Contains", "entityTypes": ["DEVICE"] }],
        })
    };
    let count = async |body: Json| server.save("/api/relations", body).await.as_array().unwrap().len();
    assert_eq!(count(query(1, false)).await, 1);
    assert_eq!(count(query(0, false)).await, 2);
    assert_eq!(count(query(2, true)).await, 2);
    let search = json!({
        "parameters": { "rootId": depot, "rootType": "ASSET", "direction": "FROM", "maxLevel": 0 },
        "relationType": "Contains",
        "deviceTypes": ["default"],
    });
    assert_eq!(server.save("/api/devices", search).await.as_array().unwrap().len(), 2);
    let one = format!("fromId={hall}&fromType=ASSET&relationType=Contains&toId={far}&toType=DEVICE");
    assert_eq!(server.get(&format!("/api/relation?{one}")).await.ok()["type"], "Contains");
    assert_eq!(server.delete(&format!("/api/relation?{one}")).await.status, 200);
    server.get(&format!("/api/relation?{one}")).await.refusal(404, 32);
    // The relations of a deleted entity go with it.
    assert_eq!(server.delete(&format!("/api/asset/{hall}")).await.status, 200);
    let from = server.get(&format!("/api/relations?fromId={depot}&fromType=ASSET")).await.ok();
    assert_eq!(from.as_array().unwrap().len(), 1);
    assert_eq!(server.delete(&format!("/api/relations?entityId={depot}&entityType=ASSET")).await.status, 200);
    let unknown = json!({ "from": id("ASSET", &hall), "to": id("DEVICE", &near), "type": "Contains" });
    server.post("/api/relation", &unknown.to_string()).await.refusal(404, 32);
    let dashboard = json!({ "from": id("DASHBOARD", &hall), "to": id("DEVICE", &near), "type": "Contains" });
    server.post("/api/relation", &dashboard.to_string()).await.refusal(400, 30);
    server.stop().await;
}

/// The view shows `speed` from 5 ms on.
async fn read_through_view(server: &Server, session: &str, view: &str) {
    let get = async |path: String| {
        let path = format!("/api/plugins/telemetry/ENTITY_VIEW/{view}/{path}");
        server.request("GET", &path).session(session).send().await.ok()
    };
    let values = "values/timeseries?useStrictDataTypes=true&keys=speed,secret";
    for (ts, key) in [(3, "speed"), (4, "secret"), (7, "secret")] {
        server.put("d", ts, key, ValueRef::I64(ts));
    }
    assert_eq!(get("keys/timeseries".to_owned()).await, json!([]), "the value came before");
    server.put("d", 6, "speed", ValueRef::I64(6));
    assert_eq!(get("keys/timeseries".to_owned()).await, json!(["speed"]));
    let latest = get(values.to_owned()).await;
    assert_eq!(latest["speed"], json!([{ "ts": 6, "value": 6 }]));
    assert_eq!(latest["secret"][0]["value"], Json::Null);
    let history = get(format!("{values}&startTs=0&endTs=100&limit=10")).await;
    assert_eq!(history, json!({ "speed": [{ "ts": 6, "value": 6 }] }));
    assert_eq!(get(format!("{values}&startTs=0&endTs=5&limit=10")).await, json!({}));
    let query = json!({
        "entityFilter": { "type": "entityType", "entityType": "ENTITY_VIEW" },
        "pageLink": { "page": 0, "pageSize": 10 },
        "latestValues": [{ "type": "TIME_SERIES", "key": "speed" }, { "type": "TIME_SERIES", "key": "secret" }],
    });
    let request = server.request("POST", "/api/entitiesQuery/find").session(session);
    let found = request.body(query.to_string()).send().await.ok();
    assert_eq!(found["data"][0]["latest"]["TIME_SERIES"]["speed"], json!({ "ts": 6, "value": "6" }));
    assert_eq!(found["data"][0]["latest"]["TIME_SERIES"]["secret"]["value"], "");
    let path = format!("/api/plugins/telemetry/ENTITY_VIEW/{view}/timeseries/ANY");
    let refused = server.post(&path, r#"{"speed":1}"#).await.refusal(400, 31);
    assert!(refused.contains("no time series"), "{refused}");
}

#[tokio::test]
async fn entity_views_show_a_device_to_a_customer() {
    let server = Server::start().await;
    let (acme, of_acme) = server.customer("acme").await;
    let device = server.add_device("d");
    let new = json!({
        "entityId": { "entityType": "DEVICE", "id": device },
        "name": "view", "type": "public", "keys": { "timeseries": ["speed"], "attributes": null },
        "startTimeMs": 5, "endTimeMs": 0,
    });
    let made = server.save("/api/entityView", new.clone()).await;
    assert_eq!((&made["keys"]["timeseries"][0], &made["startTimeMs"]), (&"speed".into(), &5.into()));
    let id = id_of(&made);
    let path = format!("/api/entityView/{id}");
    server.request("GET", &path).session(&of_acme).send().await.refusal(404, 32);
    server.post(&format!("/api/customer/{acme}/entityView/{id}"), "").await.ok();
    let shown =
        server.request("GET", &format!("/api/entityView/info/{id}")).session(&of_acme).send().await.ok();
    assert_eq!(
        (&shown["customerTitle"], &shown["entityId"]["id"]),
        (&"acme".into(), &device.as_str().into())
    );
    assert_eq!(names(&server.get("/api/tenant/entityViews?pageSize=9&type=public").await.ok()), ["view"]);
    assert_eq!(server.get("/api/tenant/entityViews?entityViewName=view").await.ok()["name"], "view");
    assert_eq!(server.get("/api/entityView/types").await.ok()[0]["entityType"], "ENTITY_VIEW");
    read_through_view(&server, &of_acme, &id).await;
    for (member, value, part) in [
        ("entityId", json!({ "entityType": "CUSTOMER", "id": acme }), "devices and assets"),
        ("name", json!("view"), "exists already"),
        ("endTimeMs", json!(1), "not a range"),
        ("keys", json!("all"), "JSON object"),
    ] {
        let mut wrong = new.clone();
        wrong["name"] = "other".into();
        wrong[member] = value;
        let refused = server.post("/api/entityView", &wrong.to_string()).await.refusal(400, 31);
        assert!(refused.contains(part), "{refused}");
    }
    server.delete(&format!("/api/customer/entityView/{id}")).await.ok();
    assert_eq!(server.delete(&path).await.status, 200);
    server.stop().await;
}
