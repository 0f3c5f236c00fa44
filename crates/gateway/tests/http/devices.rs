use super::Server;

#[tokio::test]
async fn a_device_is_created_found_and_deleted() {
    let server = Server::start().await;
    let new = "\u{feff}{\"name\":\"car 1\",\"type\":\"default\"}";
    let created = server.post("/api/device?accessToken=T1", new).await.ok();
    let id = created["id"]["id"].as_str().unwrap().to_owned();
    assert_eq!((&created["id"]["entityType"], &created["name"]), (&"DEVICE".into(), &"car 1".into()));
    assert_eq!(created["type"], "default");
    assert!(created["createdTime"].as_i64().unwrap() > 1_600_000_000_000);
    assert_eq!(server.get(&format!("/api/device/{id}")).await.ok(), created);
    assert_eq!(server.get("/api/tenant/devices?deviceName=car%201").await.ok(), created);

    let credentials = server.get(&format!("/api/device/{id}/credentials")).await.ok();
    assert_eq!(
        (&credentials["credentialsType"], &credentials["credentialsId"]),
        (&"ACCESS_TOKEN".into(), &"T1".into())
    );
    assert_eq!(credentials["deviceId"], created["id"]);
    let report = || server.request("POST", "/api/v1/T1/telemetry").body(r#"{"a":1}"#);
    assert_eq!(report().send().await.status, 200);

    let deleted =
        server.request("DELETE", &format!("/api/device/{id}")).session(&server.session()).send().await;
    assert_eq!((deleted.status, deleted.body.len()), (200, 0));
    server.get(&format!("/api/device/{id}")).await.refusal(404, 32);
    report().send().await.refusal(401, 10);
    server.stop().await;
}

#[tokio::test]
async fn a_device_is_renamed_and_gets_another_token() {
    let server = Server::start().await;
    let id = server.add_device("old");
    server.add_device("taken");
    assert_eq!(server.report("old", r#"{"a":1}"#).await.status, 200);
    let rename = |name: &str| format!(r#"{{"id":{{"entityType":"DEVICE","id":"{id}"}},"name":"{name}"}}"#);
    assert!(server.post("/api/device", &rename("taken")).await.refusal(400, 31).contains("exists already"));
    assert!(server.post("/api/device", &rename("")).await.refusal(400, 31).contains("empty"));
    let with_token = server.post("/api/device?accessToken=x", &rename("new")).await.refusal(400, 30);
    assert!(with_token.contains("/api/device/credentials"), "{with_token}");
    assert_eq!(server.post("/api/device", &rename("new")).await.ok()["name"], "new");
    server.get("/api/tenant/devices?deviceName=old").await.refusal(404, 32);
    // Its rows stay under the old name; the same token reports under the new one.
    assert_eq!(server.get(&format!("/api/tacho/devices/{id}")).await.ok()["keys"], 0);
    assert_eq!(server.report("old", r#"{"b":1}"#).await.status, 200);
    assert_eq!(
        server.get(&format!("/api/plugins/telemetry/DEVICE/{id}/keys/timeseries")).await.text(),
        r#"["b"]"#
    );

    let change = |token: &str| format!(r#"{{"deviceId":{{"id":"{id}"}},"credentialsId":{token}}}"#);
    let set = async |token: &str| server.post("/api/device/credentials", &change(token)).await;
    assert_eq!(set("\"chosen\"").await.ok()["credentialsId"], "chosen");
    assert_eq!(server.report("old", r#"{"a":1}"#).await.status, 401);
    assert!(set("\"token-taken\"").await.refusal(400, 31).contains("every device needs its own"));
    let random = set("null").await.ok()["credentialsId"].as_str().unwrap().to_owned();
    assert_eq!(random.len(), 20);
    server.stop().await;
}

#[tokio::test]
async fn refusals_are_listed_per_device_and_reasons_need_a_login() {
    let server = Server::start_with(|options| options.public_read = true).await;
    let id = server.add_device("d");
    let details = format!("/api/tacho/devices/{id}");
    let fresh = server.get(&details).await.ok();
    assert_eq!((&fresh["refused"], &fresh["lastTs"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    assert_eq!((&fresh["table"], &fresh["durability"]), (&"telemetry".into(), &"fsync".into()));
    let before = hub::clock::system_now().millis();
    for payload in [r#"{"a":"#, r#"{"":1}"#, r#"{"ts":1700000000000,"values":{"a":1}}"#] {
        server.report("d", payload).await;
    }
    let found = server.get(&details).await.ok();
    let refused = &found["refused"];
    assert_eq!((&refused["messages"], &refused["door"]), (&2.into(), &"http".into()));
    assert!(refused["reason"].as_str().unwrap().contains("the key is empty"));
    assert!(refused["lastTs"].as_i64().unwrap() >= before && refused["since"].as_i64().unwrap() <= before);
    assert_eq!((&found["keys"], &found["lastTs"]), (&1.into(), &1_700_000_000_000_i64.into()));
    let listed = server.get("/api/tacho/refusals").await.ok();
    assert_eq!((&listed["devices"][0]["name"], &listed["devices"][0]["messages"]), (&"d".into(), &2.into()));
    let public = server.request("GET", &details).session(&server.public_session()).send().await.ok();
    assert_eq!(
        (&public["refused"]["messages"], &public["refused"]["reason"]),
        (&2.into(), &serde_json::Value::Null)
    );
    server.request("DELETE", &format!("/api/device/{id}")).session(&server.session()).send().await;
    assert_eq!(server.get("/api/tacho/refusals").await.text(), r#"{"devices":[]}"#);
    // Another device of the same name has none of them.
    let again = server.add_device("d");
    assert_eq!(
        server.get(&format!("/api/tacho/devices/{again}")).await.ok()["refused"],
        serde_json::Value::Null
    );
    server.stop().await;
}

#[tokio::test]
async fn a_device_that_cannot_be_created_is_refused_with_the_reason() {
    let server = Server::start().await;
    server.add_device("taken");
    for (path, body, status, code, part) in [
        ("/api/device", r#"{"name":"taken"}"#, 400, 31, "exists already"),
        ("/api/device?accessToken=token-taken", r#"{"name":"new"}"#, 400, 31, "every device needs its own"),
        ("/api/device", r#"{"name":""}"#, 400, 31, "empty"),
        (
            "/api/device",
            r#"{"name":"new","deviceProfileId":{"id":"784f394c-42b6-435a-983c-b7beff2784f9"}}"#,
            404,
            32,
            "device profile",
        ),
        ("/api/device", r#"{"type":"default"}"#, 400, 31, "missing field `name`"),
        (
            "/api/device",
            r#"{"name":"new","id":{"entityType":"DEVICE","id":"x"}}"#,
            400,
            31,
            "not the JSON wanted here",
        ),
    ] {
        let message = server.post(path, body).await.refusal(status, code);
        assert!(message.contains(part), "{body}: {message}");
    }
    let profile = server.get("/api/deviceProfileInfo/default").await.ok();
    let body = serde_json::json!({ "name": "by id", "deviceProfileId": profile["id"] }).to_string();
    assert_eq!(server.post("/api/device", &body).await.ok()["type"], profile["name"]);
    server.stop().await;
}

#[tokio::test]
async fn listings_have_pages_filters_and_orders() {
    let server = Server::start().await;
    for name in ["truck-2", "car-3", "car-1", "Car-2", "truck-1"] {
        server.add_device(name);
    }
    let list = async |query: &str| {
        let page = server.get(&format!("/api/tenant/devices?{query}")).await.ok();
        let names = page["data"].as_array().unwrap().iter().map(|device| device["name"].as_str().unwrap());
        (
            names.collect::<Vec<_>>().join(" "),
            page["totalPages"].clone(),
            page["totalElements"].clone(),
            page["hasNext"].clone(),
        )
    };
    let page = |names: &str, pages: u64, elements: u64, next: bool| {
        (names.to_owned(), pages.into(), elements.into(), next.into())
    };
    assert_eq!(list("pageSize=2&page=0").await, page("Car-2 car-1", 3, 5, true));
    assert_eq!(list("pageSize=2&page=2").await, page("truck-2", 3, 5, false));
    assert_eq!(list("pageSize=2&page=9").await, page("", 3, 5, false));
    assert_eq!(list("pageSize=10&page=0&textSearch=CAR").await, page("Car-2 car-1 car-3", 1, 3, false));
    assert_eq!(
        list("pageSize=2&page=1&textSearch=car&sortProperty=name&sortOrder=DESC").await,
        page("Car-2", 2, 3, false)
    );
    let by_time = list("pageSize=10&sortProperty=createdTime&sortOrder=DESC").await;
    assert_eq!((by_time.2, by_time.3), (5.into(), false.into()));
    assert!(server.get("/api/tenant/devices").await.refusal(400, 30).contains("pageSize"));
    server.get("/api/tenant/devices?pageSize=0&page=0").await.refusal(400, 31);
    server.get("/api/tenant/devices?pageSize=0&sortOrder=DESC").await.refusal(400, 31);
    assert_eq!(
        list("pageSize=999999999&page=0").await.1,
        serde_json::Value::from(1),
        "a page has as many as it can"
    );
    let absent = server.get("/api/device/credentials_of_all").await.refusal(404, 32);
    assert!(absent.contains("no endpoint"), "{absent}");
    server.get("/api/device/7").await.refusal(400, 30);
    server.get("/api/tenant/devices?deviceName=nobody").await.refusal(404, 32);
    server.stop().await;
}

#[tokio::test]
async fn many_devices_are_created_in_one_request() {
    let server = Server::start().await;
    let body = r#"{"count":1000,"prefix":"dev-","tokenPrefix":"tok"}"#;
    assert_eq!(server.post("/api/tacho/devices", body).await.text(), r#"{"created":1000,"existing":0}"#);
    let report = server.request("POST", "/api/v1/tok999/telemetry").body(r#"{"a":1}"#).send().await;
    assert_eq!(report.status, 200);

    let again = server.post("/api/tacho/devices", body).await.refusal(400, 31);
    assert!(again.contains("dev-0"), "{again}");
    let more =
        r#"{"count":3,"startIndex":998,"prefix":"dev-","tokenPrefix":"tok","existingOk":true,"list":true}"#;
    let expected = r#"{"created":1,"existing":2,"devices":[{"name":"dev-998","token":"tok998"},{"name":"dev-999","token":"tok999"},{"name":"dev-1000","token":"tok1000"}]}"#;
    assert_eq!(server.post("/api/tacho/devices", more).await.text(), expected);
    let too_many = r#"{"count":1000001,"prefix":"x"}"#;
    assert!(
        server.post("/api/tacho/devices", too_many).await.refusal(400, 31).contains("the limit is 1000000")
    );
    server.stop().await;
}
