use model::ValueRef;

use super::Server;

/// A device with one value per second in `speed`, and a few values of other types.
async fn server() -> (Server, String) {
    let server = Server::start().await;
    let id = server.add_device("d");
    for n in 0..10 {
        server.put("d", 10_000 + n * 1_000, "speed", ValueRef::I64(n));
    }
    server.put("d", 19_500, "on", ValueRef::Bool(true));
    server.put("d", 19_600, "text", ValueRef::String("say \"hi\""));
    server.put("d", 19_700, "half", ValueRef::F64(0.5));
    server.put("d", 19_800, "faults", ValueRef::Json(r#"["P0300", 1.50]"#));
    (server, format!("/api/plugins/telemetry/DEVICE/{id}"))
}

#[tokio::test]
async fn keys_are_listed() {
    let (server, base) = server().await;
    let silent = server.add_device("silent");
    let keys = server.get(&format!("{base}/keys/timeseries")).await;
    assert_eq!(keys.text(), r#"["faults","half","on","speed","text"]"#);
    let none = server.get(&format!("/api/plugins/telemetry/DEVICE/{silent}/keys/timeseries")).await;
    assert_eq!(none.text(), "[]");
    server.stop().await;
}

#[tokio::test]
async fn latest_values_are_strings_unless_strict() {
    let (server, base) = server().await;
    let all = server.get(&format!("{base}/values/timeseries")).await;
    let expected = r#"{"faults":[{"ts":19800,"value":"[\"P0300\", 1.50]"}],"half":[{"ts":19700,"value":"0.5"}],"on":[{"ts":19500,"value":"true"}],"speed":[{"ts":19000,"value":"9"}],"text":[{"ts":19600,"value":"say \"hi\""}]}"#;
    assert_eq!(all.text(), expected);
    let strict = server
        .get(&format!("{base}/values/timeseries?useStrictDataTypes=true&keys=on,faults&keys=half"))
        .await;
    let expected = r#"{"faults":[{"ts":19800,"value":["P0300", 1.50]}],"half":[{"ts":19700,"value":0.5}],"on":[{"ts":19500,"value":true}]}"#;
    assert_eq!(strict.text(), expected);
    server.stop().await;
}

#[tokio::test]
async fn a_key_that_was_never_sent_is_null_now() {
    let (server, base) = server().await;
    let before = hub::clock::system_now().millis();
    let found = server.get(&format!("{base}/values/timeseries?keys=speed,never")).await.ok();
    assert_eq!(found["speed"][0]["value"], "9");
    assert!(found["never"][0]["value"].is_null());
    assert!(found["never"][0]["ts"].as_i64().unwrap() >= before);
    let silent = server.add_device("silent");
    let path = format!("/api/plugins/telemetry/DEVICE/{silent}/values/timeseries");
    assert_eq!(server.get(&path).await.text(), "{}");
    assert!(server.get(&format!("{path}?keys=a")).await.ok()["a"][0]["value"].is_null());
    server.stop().await;
}

#[tokio::test]
async fn history_obeys_range_order_and_limit() {
    let (server, base) = server().await;
    let get = async |query: &str| {
        server.get(&format!("{base}/values/timeseries?keys=speed,never&{query}")).await.text().to_owned()
    };
    let newest = r#"{"speed":[{"ts":13000,"value":"3"},{"ts":12000,"value":"2"}]}"#;
    assert_eq!(get("startTs=10000&endTs=14000&limit=2").await, newest);
    let oldest = r#"{"speed":[{"ts":10000,"value":0},{"ts":11000,"value":1}]}"#;
    assert_eq!(get("startTs=0&endTs=14000&limit=2&orderBy=ASC&useStrictDataTypes=true").await, oldest);
    assert_eq!(get("startTs=19001&endTs=30000").await, "{}");
    assert_eq!(get("startTs=20000&endTs=10000").await, "{}");
    let all = get("startTs=0&endTs=9223372036854775807&agg=NONE&orderBy=ASC").await;
    assert_eq!(all.matches("\"ts\"").count(), 10);
    server.stop().await;
}

#[tokio::test]
async fn history_is_reduced_per_interval() {
    let (server, base) = server().await;
    let get = async |agg: &str| {
        let query = format!("keys=speed&startTs=10000&endTs=20000&interval=5000&orderBy=ASC&agg={agg}");
        server.get(&format!("{base}/values/timeseries?{query}")).await.text().to_owned()
    };
    for (agg, first, second) in [
        ("MIN", "0", "5"),
        ("MAX", "4", "9"),
        ("AVG", "2.0", "7.0"),
        ("SUM", "10", "35"),
        ("COUNT", "5", "5"),
    ] {
        let expected =
            format!(r#"{{"speed":[{{"ts":12500,"value":"{first}"}},{{"ts":17500,"value":"{second}"}}]}}"#);
        assert_eq!(get(agg).await, expected, "{agg}");
    }
    server.stop().await;
}
