use hub::caller::Caller;
use hub::registry::{AssetFields, CustomerFields};
use model::Value;
use model::limits::QueryLimits;

use super::Server;
use super::device_api::{dead_letter, until};

async fn server() -> (Server, String) {
    let server = Server::start().await;
    let id = server.add_device("d");
    (server, format!("/api/plugins/telemetry/DEVICE/{id}"))
}

#[tokio::test]
async fn values_of_all_forms_are_stored_and_read_back() {
    let (server, base) = server().await;
    for (path, body) in [
        ("timeseries/ANY", r#"{"ts":1732540000000,"values":{"a":1,"b":"x"}}"#),
        (
            "timeseries/LATEST_TELEMETRY/0",
            r#"[{"ts":1732540001000,"values":{"a":2}},{"ts":1732540002000,"values":{"a":3}}]"#,
        ),
        ("timeseries/x", r#"{"c":true}"#),
    ] {
        let reply = server.post(&format!("{base}/{path}"), body).await;
        assert_eq!((reply.status, reply.text()), (200, ""), "{path}");
    }
    let history = format!(
        "{base}/values/timeseries/history?keys=a&startTs=0&endTs=1732540009000&useStrictDataTypes=true&orderBy=ASC"
    );
    let expected = r#"{"a":[{"ts":1732540000000,"value":1},{"ts":1732540001000,"value":2},{"ts":1732540002000,"value":3}]}"#;
    assert_eq!(server.get(&history).await.text(), expected);
    assert_eq!(server.get(&format!("{base}/keys/timeseries")).await.text(), r#"["a","b","c"]"#);
    assert!(server.metrics().contains(r#"tacho_messages_total{door="http"} 3"#), "{}", server.metrics());
    server.stop().await;
}

#[tokio::test]
async fn the_answer_waits_for_durability() {
    let (server, base) = server().await;
    server.store.hold();
    let request = server.request("POST", &format!("{base}/timeseries/ANY")).session(&server.session());
    let waiting = tokio::spawn(request.body(r#"{"a":1}"#).send());
    let series = server.series("d");
    until(|| !server.latest(series, None).unwrap().is_empty()).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished(), "answered before the data was durable");
    server.store.release();
    assert_eq!(waiting.await.unwrap().status, 200);
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_with_its_reason_and_kept() {
    let (server, base) = server().await;
    for (payload, reason) in [("{", "not valid JSON"), ("[1]", "object"), (r#"{"":1}"#, "key is empty")] {
        let message = server.post(&format!("{base}/timeseries/ANY"), payload).await.refusal(400, 30);
        assert!(message.contains(reason) && message.contains("dead_letter"), "{message}");
        let newest = dead_letter(&server, "d");
        assert!(newest.contains(&("payload".into(), Value::String(payload.into()))), "{newest:?}");
        let topic = "/api/plugins/telemetry/{entityType}/{entityId}/timeseries/{scope}";
        assert!(newest.contains(&("topic".into(), Value::String(topic.into()))), "{newest:?}");
    }
    for empty in ["{}", "[]", r#"{"a":null}"#, r#"{"ts":1732540000000,"values":{}}"#] {
        let message = server.post(&format!("{base}/timeseries/ANY"), empty).await.refusal(400, 30);
        assert!(message.contains("has no values"), "{empty}: {message}");
    }
    assert!(server.latest(server.series("d"), None).unwrap().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn wrong_requests_are_refused() {
    let server = Server::start_with(|options| options.public_read = true).await;
    let base = format!("/api/plugins/telemetry/DEVICE/{}", server.add_device("d"));
    let body = r#"{"a":1}"#;
    let message = server.post(&format!("{base}/timeseries/ANY/3600"), body).await.refusal(400, 30);
    assert!(message.contains("3600 s does not apply"), "{message}");
    let unknown = "/api/plugins/telemetry/DEVICE/00000000-0000-0000-0000-000000000001/timeseries/ANY";
    server.post(unknown, body).await.refusal(404, 32);
    let kind = base.replace("DEVICE", "TRUCK");
    assert!(server.post(&format!("{kind}/timeseries/ANY"), body).await.refusal(400, 30).contains("TRUCK"));
    let reader = server.request("POST", &format!("{base}/timeseries/ANY")).session(&server.public_session());
    let refusal = reader.body(body).send().await.refusal(403, 20);
    assert!(refusal.contains("may not write values and attributes"), "{refusal}");
    server.request("POST", &format!("{base}/timeseries/ANY")).body(body).send().await.refusal(401, 10);
    assert!(server.latest(server.series("d"), None).unwrap().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn history_is_reduced_per_unit_of_the_calendar() {
    let (server, base) = server().await;
    // Berlin: the last moment of February, the first of March, the first of April (in summer time).
    let (march, april) = (1_709_247_600_000_i64, 1_711_922_400_000_i64);
    let body = [march - 1, march, april].map(|ts| format!(r#"{{"ts":{ts},"values":{{"a":1}}}}"#)).join(",");
    assert_eq!(server.post(&format!("{base}/timeseries/ANY"), &format!("[{body}]")).await.status, 200);
    let (start, end) = (march - 1_000_000, april + 2_000_000);
    let query = format!(
        "keys=a&startTs={start}&endTs={end}&agg=COUNT&intervalType=MONTH&timeZone=Europe/Berlin&orderBy=ASC&useStrictDataTypes=true"
    );
    let middle = |start: i64, end: i64| start + (end - start) / 2;
    let point = |ts: i64| format!(r#"{{"ts":{ts},"value":1}}"#);
    let expected = [middle(start, march), middle(march, april), middle(april, end)].map(point).join(",");
    let expected = format!(r#"{{"a":[{expected}]}}"#);
    for path in ["values/timeseries", "values/timeseries/history"] {
        assert_eq!(server.get(&format!("{base}/{path}?{query}")).await.text(), expected);
    }
    let twice = server.get(&format!("{base}/values/timeseries?{query}&timeZone=x")).await;
    assert!(twice.refusal(400, 30).contains("timeZone"), "a parameter that comes twice");
    let zone = server.get(&format!("{base}/values/timeseries?{}", query.replace("Berlin", "Paradise"))).await;
    assert!(zone.refusal(400, 30).contains("Europe/Paradise"), "a zone that does not exist");
    let many = query.replace("intervalType=MONTH", "interval=1").replace(&start.to_string(), "1677711600000");
    let many = server.get(&format!("{base}/values/timeseries?{many}")).await.refusal(400, 30);
    assert!(many.contains("the number of intervals") && many.contains("longer interval"), "{many}");
    let latest = server.get(&format!("{base}/values/timeseries/history?keys=a")).await.refusal(400, 30);
    assert!(latest.contains("needs startTs and endTs"), "{latest}");
    server.stop().await;
}

#[tokio::test]
async fn assets_have_values_and_server_attributes() {
    let server = Server::start().await;
    let caller = Caller::local(server.hub.registry().default_tenant());
    server.hub.open_sql(QueryLimits::default()).unwrap();
    let fields = AssetFields { name: "depot 1", ..AssetFields::default() };
    let asset = server.hub.add_asset(&caller, fields).unwrap();
    let base = format!("/api/plugins/telemetry/ASSET/{}", asset.id);
    assert_eq!(server.get(&format!("{base}/values/timeseries")).await.text(), "{}");
    let body = r#"[{"ts":1732540000000,"values":{"load":1}},{"ts":1732540001000,"values":{"load":2}}]"#;
    assert_eq!(server.post(&format!("{base}/timeseries/ANY"), body).await.status, 200);
    let latest = server.get(&format!("{base}/values/timeseries?keys=load&useStrictDataTypes=true")).await;
    assert_eq!(latest.text(), r#"{"load":[{"ts":1732540001000,"value":2}]}"#);
    let question = server.request("POST", "/api/sql").session(&server.session());
    let query = r#"{"query":"SELECT asset, load FROM assets","format":"json"}"#;
    let rows = question.header("content-type", "application/json").body(query).send().await;
    assert!(rows.text().contains("depot 1"), "{}", rows.text());
    let refused = server.post(&format!("{base}/timeseries/ANY"), "{").await.refusal(400, 30);
    assert!(refused.contains("dead_letter"), "{refused}");
    let delete = format!("{base}/timeseries/delete?keys=load&startTs=0&endTs=1732540001000");
    let deleted = server.request("DELETE", &delete).session(&server.session()).send().await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let left = server.get(&format!("{base}/values/timeseries?keys=load&startTs=0&endTs=1832540001000")).await;
    assert_eq!(left.text(), r#"{"load":[{"ts":1732540001000,"value":"2"}]}"#);

    assert_eq!(server.post(&format!("{base}/SERVER_SCOPE"), r#"{"site":"x"}"#).await.status, 200);
    let found = server.get(&format!("{base}/values/attributes")).await.ok();
    assert_eq!((&found[0]["key"], &found[0]["value"]), (&"site".into(), &"x".into()));
    let shared = server.post(&format!("{base}/attributes/SHARED_SCOPE"), r#"{"a":1}"#).await.refusal(400, 30);
    assert!(shared.contains("SERVER_SCOPE only"), "{shared}");
    server.stop().await;
}

#[tokio::test]
async fn entities_without_time_series_have_server_attributes() {
    let server = Server::start().await;
    let caller = Caller::local(server.hub.registry().default_tenant());
    let customer =
        server.hub.add_customer(&caller, &CustomerFields { title: "north", ..CustomerFields::default() });
    let customer = customer.unwrap().id.to_string();
    let registry = server.hub.registry();
    let tenant = registry.default_tenant().to_string();
    let user = registry.users(registry.default_tenant())[0].id.to_string();
    for (kind, id) in [("CUSTOMER", &customer), ("TENANT", &tenant), ("USER", &user)] {
        let base = format!("/api/plugins/telemetry/{kind}/{id}");
        assert_eq!(server.post(&format!("{base}/SERVER_SCOPE"), r#"{"a":1}"#).await.status, 200, "{kind}");
        let found = server.get(&format!("{base}/values/attributes/SERVER_SCOPE")).await.ok();
        assert_eq!((found[0]["key"].as_str(), found[0]["value"].as_i64()), (Some("a"), Some(1)), "{kind}");
        let refused = server.post(&format!("{base}/timeseries/ANY"), r#"{"a":1}"#).await;
        assert_eq!(refused.status, 400, "{kind}");
        assert!(refused.text().contains("has no time series"), "{}", refused.text());
    }
    server.hub.delete_customer(&caller, customer.parse().unwrap()).unwrap();
    server
        .get(&format!("/api/plugins/telemetry/CUSTOMER/{customer}/values/attributes"))
        .await
        .refusal(404, 32);
    server.stop().await;
}
