//! Attributes over REST and over the device API.

use serde_json::json;

use super::{Reply, Request, Server};

impl Server {
    fn attributes(&self, method: &str, name: &str, rest: &str) -> Request {
        self.request(method, &format!("/api/v1/token-{name}/attributes{rest}"))
    }

    async fn publish(&self, name: &str, payload: &str) -> Reply {
        self.attributes("POST", name, "").body(payload).send().await
    }

    async fn own(&self, name: &str, query: &str) -> String {
        self.attributes("GET", name, query).send().await.text().to_owned()
    }

    /// Waits until a device waits for a message.
    async fn waits(&self) {
        while !self.metrics().contains("tacho_device_outboxes 1") {
            tokio::task::yield_now().await;
        }
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("/api/plugins/telemetry/DEVICE/{id}/{rest}")
}

#[tokio::test]
async fn a_device_sets_its_attributes_and_reads_them_with_the_shared_ones() {
    let server = Server::start().await;
    let id = server.add_device("d");
    assert_eq!(server.own("d", "").await, "{}");
    let published =
        server.publish("d", r#"{"fw":"1.2","n":5,"f":5.0,"ok":true,"j":{"a": [1]},"none":null}"#).await;
    assert_eq!((published.status, published.body.len()), (200, 0));
    assert_eq!(server.publish("d", "{'fw':1.3}").await.status, 200, "relaxed JSON");
    assert_eq!(server.publish("d", "{}").await.status, 200);
    let shared = server.post(&path(&id, "attributes/SHARED_SCOPE"), r#"{"rate":10,"site":"x"}"#).await;
    assert_eq!((shared.status, shared.body.len()), (200, 0), "{}", shared.text());
    assert_eq!(server.post(&path(&id, "SERVER_SCOPE"), r#"{"secret":1}"#).await.status, 200);
    let all =
        r#"{"client":{"f":5.0,"fw":1.3,"j":{"a": [1]},"n":5,"ok":true},"shared":{"rate":10,"site":"x"}}"#;
    assert_eq!(server.own("d", "").await, all);
    assert_eq!(server.own("d", "?clientKeys=&sharedKeys=").await, all);
    for (query, expected) in [
        ("?clientKeys=n,x,fw", r#"{"client":{"fw":1.3,"n":5}}"#),
        ("?sharedKeys=rate", r#"{"shared":{"rate":10}}"#),
        ("?clientKeys=n&sharedKeys=site,secret", r#"{"client":{"n":5},"shared":{"site":"x"}}"#),
        ("?clientKeys=unknown", "{}"),
    ] {
        assert_eq!(server.own("d", query).await, expected, "{query}");
    }
    server.stop().await;
}

#[tokio::test]
async fn users_read_set_and_delete_attributes_in_thingsboards_shapes() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.publish("d", r#"{"fw":"1.2","both":1}"#).await;
    let before = hub::clock::system_now().millis();
    assert_eq!(server.post(&path(&id, "SHARED_SCOPE"), r#"{"rate":10,"both":2}"#).await.status, 200);
    let older = format!("/api/plugins/telemetry/{id}/SERVER_SCOPE");
    assert_eq!(server.post(&older, r#"{"note":{"a":1}}"#).await.status, 200);
    let get = async |rest: &str| server.get(&path(&id, rest)).await.ok();
    assert_eq!(get("keys/attributes").await, json!(["both", "fw", "note", "rate"]));
    assert_eq!(get("keys/attributes/SHARED_SCOPE").await, json!(["both", "rate"]));
    let found = get("values/attributes/SHARED_SCOPE?keys=rate").await;
    let ts = found[0]["lastUpdateTs"].as_i64().unwrap();
    assert!((before..=hub::clock::system_now().millis()).contains(&ts), "{ts}");
    assert_eq!(found, json!([{ "lastUpdateTs": ts, "key": "rate", "value": 10 }]));
    let both = get("values/attributes?keys=both,unknown").await;
    let values: Vec<_> = both.as_array().unwrap().iter().map(|one| one["value"].as_i64().unwrap()).collect();
    assert_eq!(values, [1, 2]);
    assert_eq!(get("values/attributes").await.as_array().unwrap().len(), 5);
    let delete =
        async |path: String| server.request("DELETE", &path).session(&server.session()).send().await.status;
    assert_eq!(delete(path(&id, "SHARED_SCOPE?keys=both,never")).await, 200);
    assert_eq!(delete(format!("{older}?keys=note")).await, 200);
    assert_eq!(delete(path(&id, "CLIENT_SCOPE?keys=fw")).await, 200);
    assert_eq!(get("keys/attributes").await, json!(["both", "rate"]));
    server.stop().await;
}

#[tokio::test]
async fn a_waiting_device_gets_the_next_change_of_a_shared_attribute() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let updates = |timeout: u64| server.attributes("GET", "d", &format!("/updates?timeout={timeout}")).send();
    let poll = tokio::spawn(updates(60_000));
    server.waits().await;
    server.publish("d", r#"{"own":1}"#).await;
    server.post(&path(&id, "SERVER_SCOPE"), r#"{"secret":1}"#).await;
    server.post(&path(&id, "SHARED_SCOPE"), r#"{"rate":10,"j":[1, 2]}"#).await;
    let reply = poll.await.unwrap();
    assert_eq!((reply.status, reply.text()), (200, r#"{"j":[1, 2],"rate":10}"#));
    let poll = tokio::spawn(updates(0));
    server.waits().await;
    let gone = server.request("DELETE", &path(&id, "SHARED_SCOPE?keys=rate")).session(&server.session());
    assert_eq!(gone.send().await.status, 200);
    assert_eq!(poll.await.unwrap().text(), r#"{"deleted":["rate"]}"#);
    let none = updates(1).await;
    assert_eq!((none.status, none.body.len()), (408, 0));
    server.stop().await;
}

#[tokio::test]
async fn devices_that_wait_are_bounded_and_end_with_the_server() {
    let server = Server::start().await;
    server.add_device("d");
    let updates = || server.attributes("GET", "d", "/updates?timeout=60000").send();
    let polls: Vec<_> = (0..8).map(|_| tokio::spawn(updates())).collect();
    while !server.metrics().contains("tacho_device_outboxes 8") {
        tokio::task::yield_now().await;
    }
    let refused = updates().await;
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("POLLS_PER_DEVICE_MAX"), "{}", refused.text());
    server.stop().await;
    for poll in polls {
        assert_eq!(poll.await.unwrap().status, 408);
    }
}

#[tokio::test]
async fn what_is_refused_is_named_and_changes_nothing() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for (payload, part) in [
        ("[]", "the payload must be an object, found an array"),
        ("{\"a\":1,\"b\":NaN}", "NaN"),
        (r#"{"a":1,"":2}"#, "the key is empty"),
        (&format!(r#"{{"a":1,"{}":2}}"#, "k".repeat(10_000)), "the key has 10000 bytes, the limit is 255"),
    ] {
        let refused = server.publish("d", payload).await;
        assert_eq!(refused.status, 400, "{payload}");
        assert!(refused.text().contains(part), "{}", refused.text());
    }
    assert_eq!(server.own("d", "").await, "{}");
    assert!(server.metrics().contains("tacho_device_outboxes 0"));
    assert_eq!(server.attributes("GET", "nobody", "").send().await.status, 401);
    assert_eq!(server.attributes("POST", "nobody", "").body("{}").send().await.status, 401);
    assert_eq!(server.attributes("GET", "nobody", "/updates").send().await.status, 401);
    let unknown = "/api/plugins/telemetry/DEVICE/00000000-0000-0000-0000-000000000001/SHARED_SCOPE";
    for (request, body, status, part) in [
        (path(&id, "CLIENT_SCOPE"), r#"{"a":1}"#, 400, "only the device"),
        (path(&id, "attributes/LATEST_TELEMETRY"), r#"{"a":1}"#, 400, "LATEST_TELEMETRY"),
        (path(&id, "SHARED_SCOPE"), "{}", 400, "no attributes"),
        (path(&id, "SHARED_SCOPE"), r#"{"a":null}"#, 400, "no attributes"),
        (path(&id, "SHARED_SCOPE"), "[1]", 400, "must be an object"),
        (path("7", "SHARED_SCOPE"), r#"{"a":1}"#, 400, "not the id of a device"),
        (unknown.to_owned(), r#"{"a":1}"#, 404, "there is no device"),
        (path(&id, "SHARED_SCOPE").replace("DEVICE", "ASSET"), r#"{"a":1}"#, 404, "asset"),
    ] {
        let refused = server.post(&request, body).await;
        assert_eq!(refused.status, status, "{request} {}", refused.text());
        assert!(refused.text().contains(part), "{request}: {}", refused.text());
    }
    let keys = server.request("DELETE", &path(&id, "SHARED_SCOPE")).session(&server.session()).send().await;
    assert_eq!(keys.status, 400);
    assert_eq!(server.get(&path(&id, "keys/attributes/X")).await.status, 400);
    assert_eq!(server.get(&path(&id, "values/attributes").replace("DEVICE", "ASSET")).await.status, 404);
    assert_eq!(server.get(&path(&id, "keys/attributes")).await.ok(), json!([]));
    server.stop().await;
}

#[tokio::test]
async fn a_caller_without_the_permission_reads_and_writes_nothing() {
    let server = Server::start_with(|options| options.public_read = true).await;
    let id = server.add_device("d");
    server.publish("d", r#"{"a":1}"#).await;
    let public = server.public_session();
    let ask = |method: &str, rest: &str| server.request(method, &path(&id, rest)).session(&public);
    assert_eq!(ask("GET", "keys/attributes").send().await.ok(), json!(["a"]));
    assert_eq!(ask("POST", "SHARED_SCOPE").body(r#"{"a":1}"#).send().await.status, 403);
    assert_eq!(ask("DELETE", "CLIENT_SCOPE?keys=a").send().await.status, 403);
    assert_eq!(server.request("GET", &path(&id, "keys/attributes")).send().await.status, 401);
    server.stop().await;
}
