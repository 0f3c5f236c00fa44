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
async fn keys_with_commas_and_outer_blanks_are_found() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let base = format!("/api/plugins/telemetry/DEVICE/{id}");
    for (seconds, key) in (1..).zip(["a,b", " b", "b", "c ", "ä=&;%"]) {
        server.put("d", seconds * 1_000, key, ValueRef::I64(seconds));
    }
    let listed = server.get(&format!("{base}/keys/timeseries")).await.ok();
    let keys: Vec<&str> = listed.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert_eq!(keys, [" b", "a,b", "b", "c ", "ä=&;%"]);
    let all = server.get(&format!("{base}/values/timeseries")).await.ok();
    let encoded = |key: &str| form_urlencoded::byte_serialize(key.as_bytes()).collect::<String>();
    let query = keys.iter().map(|key| format!("key={}", encoded(key))).collect::<Vec<_>>().join("&");
    assert_eq!(server.get(&format!("{base}/values/timeseries?{query}")).await.ok(), all);
    let range = "startTs=0&endTs=100000";
    assert_eq!(server.get(&format!("{base}/values/timeseries?{query}&{range}")).await.ok(), all);
    let many = server.post(&format!("/api/tacho/values?{query}&{range}"), &format!("[\"{id}\"]")).await.ok();
    assert_eq!(many[&id], all);
    let sum = format!("/api/tacho/values?key=a%2Cb&{range}&agg=SUM&useStrictDataTypes=true&format=columns");
    let groups = server.post(&sum, &format!("{{\"g\":[\"{id}\"]}}")).await.ok();
    assert_eq!(groups["g"]["values"]["a,b"][0], 1);
    // In a list a comma separates, encoded or not, and blanks belong to their key.
    let found = server.get(&format!("{base}/values/timeseries?keys=b,%20b%2Cc%20")).await.ok();
    let value = |key: &str| found[key][0]["value"].as_str().unwrap().to_owned();
    assert_eq!((value("b"), value(" b"), value("c ")), ("3".into(), "2".into(), "4".into()));
    server.stop().await;
}

#[tokio::test]
async fn history_has_range_order_and_limit() {
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

#[tokio::test]
async fn many_devices_are_read_in_one_request_with_the_answers_of_each() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(server.add_device(name));
    }
    for second in 0..10 {
        let rows = format!(
            r#"{{"ts":{},"values":{{"x":{second},"y":"{second}"}}}}"#,
            1_700_000_000_000_i64 + second * 1_000
        );
        assert_eq!(server.report("a", &rows).await.status, 200);
        assert_eq!(server.report("b", &rows).await.status, 200);
    }
    let body = format!("[\"{}\"]", ids.join("\",\""));
    let range = "startTs=1700000000000&endTs=1700000009000";
    for parameters in [
        "".to_owned(),
        "useStrictDataTypes=true".to_owned(),
        format!("keys=x,y&{range}&limit=3&orderBy=ASC"),
        format!("keys=x&{range}&agg=AVG&interval=5000&useStrictDataTypes=true"),
    ] {
        let many = server.post(&format!("/api/tacho/values?{parameters}"), &body).await;
        assert_eq!(many.status, 200, "{}", many.text());
        let many: serde_json::Value = serde_json::from_str(many.text()).unwrap();
        assert_eq!(many.as_object().unwrap().len(), 3);
        for id in &ids {
            let one = server
                .get(&format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?{parameters}"))
                .await;
            assert_eq!(
                many[id],
                serde_json::from_str::<serde_json::Value>(one.text()).unwrap(),
                "{parameters}"
            );
        }
    }
    let nobody = server.post("/api/tacho/values", r#"["6a6a1f80-0000-11ee-8000-000000000000"]"#).await;
    assert_eq!(nobody.status, 404, "{}", nobody.text());
    assert!(server.post("/api/tacho/values", "7").await.refusal(400, 31).contains("sequence"));
    server.stop().await;
}

#[tokio::test]
async fn groups_of_devices_are_reduced_together() {
    let server = Server::start().await;
    let names = ["a", "b", "c", "silent"];
    let ids = names.map(|name| server.add_device(name));
    for (number, name) in names[..3].iter().enumerate() {
        for second in 0..10 {
            let x = second * (number as i64 + 1);
            let rows = format!(
                r#"{{"ts":{},"values":{{"x":{x},"f":{x}.5}}}}"#,
                1_700_000_000_000_i64 + second * 1_000
            );
            assert_eq!(server.report(name, &rows).await.status, 200);
        }
    }
    let [a, b, c, silent] = &ids;
    // A device that is named twice counts once; one may be in several groups.
    let body = format!(r#"{{"two":["{a}","{b}","{a}"],"all":["{a}","{b}","{c}","{silent}"],"none":[]}}"#);
    let range = "startTs=1700000000000&endTs=1700000010000&interval=5000&useStrictDataTypes=true&orderBy=ASC";
    let ask = async |parameters: &str, body: &str| {
        server.post(&format!("/api/tacho/values?{parameters}"), body).await
    };
    for (parameters, expected) in [
        (
            "keys=x&agg=SUM",
            r#"{"two":{"x":[{"ts":1700000002500,"value":30},{"ts":1700000007500,"value":105}]},"all":{"x":[{"ts":1700000002500,"value":60},{"ts":1700000007500,"value":210}]},"none":{}}"#,
        ),
        (
            "keys=f&agg=AVG",
            r#"{"two":{"f":[{"ts":1700000002500,"value":3.5},{"ts":1700000007500,"value":11.0}]},"all":{"f":[{"ts":1700000002500,"value":4.5},{"ts":1700000007500,"value":14.5}]},"none":{}}"#,
        ),
        (
            "keys=f,x&agg=MAX&format=columns",
            r#"{"two":{"ts":[1700000002500,1700000007500],"values":{"f":[8.5,18.5],"x":[8,18]}},"all":{"ts":[1700000002500,1700000007500],"values":{"f":[12.5,27.5],"x":[12,27]}},"none":{"ts":[],"values":{}}}"#,
        ),
        ("keys=y&agg=COUNT", r#"{"two":{},"all":{},"none":{}}"#),
    ] {
        let answer = ask(&format!("{parameters}&{range}"), &body).await;
        assert_eq!((answer.status, answer.text()), (200, expected), "{parameters}");
    }
    assert_eq!(ask(&format!("keys=x&agg=SUM&{range}"), "{}").await.text(), "{}");
    for parameters in ["", "keys=x", &format!("keys=x&{range}")] {
        assert!(ask(parameters, &body).await.refusal(400, 30).contains("give startTs, endTs and agg"));
    }
    let long = "keys=x&agg=AVG&interval=1&startTs=1700000000000&endTs=1700000400000";
    assert!(
        ask(long, &body).await.refusal(400, 30).contains("keys and groups is 1200000, the limit is 1000000")
    );
    let twice = format!(r#"{{"two":["{a}"],"two":["{b}"]}}"#);
    assert!(ask(&format!("keys=x&agg=SUM&{range}"), &twice).await.refusal(400, 31).contains("two groups"));
    let nobody = r#"{"x":["6a6a1f80-0000-11ee-8000-000000000000"]}"#;
    assert_eq!(ask(&format!("keys=x&agg=SUM&{range}"), nobody).await.status, 404);
    server.stop().await;
}

#[tokio::test]
async fn the_largest_number_of_devices_fits_into_a_body() {
    let server = Server::start().await;
    let id = server.add_device("a");
    assert_eq!(server.report("a", r#"{"x":1}"#).await.status, 200);
    let body = |count| format!("[\"{}\"]", vec![id.as_str(); count].join("\", \""));
    let answer = server.post("/api/tacho/values?keys=x", &body(10_000)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(server.post("/api/tacho/values", &body(10_001)).await.refusal(400, 30).contains("10001 devices"));
    server.stop().await;
}

#[tokio::test]
async fn columns_have_each_time_once_and_nulls_where_a_key_has_no_value() {
    let server = Server::start().await;
    let id = server.add_device("a");
    let rows = r#"[{"ts":1700000001000,"values":{"x":1.5,"y":"a"}},{"ts":1700000002000,"values":{"y":"b"}},
                   {"ts":1700000003000,"values":{"x":2.0,"other":1}},{"ts":1700000004000,"values":{"other":1}}]"#;
    assert_eq!(server.report("a", rows).await.status, 200);
    let body = format!("[\"{id}\"]");
    let range = "startTs=1700000000000&endTs=1700000009000&format=columns";
    for (parameters, expected) in [
        (
            "keys=x,y,z&orderBy=ASC",
            r#"{"ts":[1700000001000,1700000002000,1700000003000],"values":{"x":[1.5,null,2.0],"y":["a","b",null]}}"#,
        ),
        ("keys=x,y&limit=1", r#"{"ts":[1700000003000],"values":{"x":[2.0]}}"#),
        (
            "keys=x,y&agg=COUNT&interval=2500&orderBy=ASC",
            r#"{"ts":[1700000001250,1700000003750],"values":{"x":[1,1],"y":[2,null]}}"#,
        ),
        ("keys=z", r#"{"ts":[],"values":{}}"#),
    ] {
        let answer = server.post(&format!("/api/tacho/values?{parameters}&{range}"), &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.text(), format!("{{\"{id}\":{expected}}}"), "{parameters}");
    }
    let latest = server.post("/api/tacho/values?format=columns", &body).await;
    assert!(latest.refusal(400, 30).contains("is for history"));
    let other = server.post(&format!("/api/tacho/values?keys=x&{range}x"), &body).await;
    assert!(other.refusal(400, 30).contains("must be lists or columns"));
    server.stop().await;
}
