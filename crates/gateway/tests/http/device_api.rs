use model::{SeriesKey, Value};
use store::Reader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Reply, Server, exchange};

/// The fields of the newest dead letter of a device.
pub(super) fn dead_letter(server: &Server, device: &str) -> Vec<(String, Value)> {
    let key = SeriesKey::device("dead_letter", device).unwrap();
    let Some(series) = server.store.find_series(&key) else { return Vec::new() };
    let latest = server.latest(series, None).unwrap();
    latest.into_iter().map(|value| (value.key, value.value)).collect()
}

pub(super) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn acked_values_can_be_read_at_once_and_are_counted() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let reply = server.report("d", r#"{"ts":1700000000123,"values":{"speed":12.5,"gear":3}}"#).await;
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    let path = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?useStrictDataTypes=true");
    let expected = r#"{"gear":[{"ts":1700000000123,"value":3}],"speed":[{"ts":1700000000123,"value":12.5}]}"#;
    assert_eq!(server.get(&path).await.text(), expected);
    let metrics = server.metrics();
    for line in [
        r#"tacho_messages_total{door="http"} 1"#,
        r#"tacho_ingest_bytes_total{door="http"} 53"#,
        r#"tacho_ack_latency_seconds_count{door="http"} 1"#,
        "tacho_points_total 2",
    ] {
        assert!(metrics.contains(line), "{line} is missing in\n{metrics}");
    }
    assert_eq!(server.report("d", "{}").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn rows_of_one_request_without_times_are_all_kept_in_their_order() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for body in [r#"[{"rssi":-50},{"rssi":-61},{"rssi":-72}]"#, "\u{feff}[{rssi:-83};{'rssi':-94}]"] {
        assert_eq!(server.report("d", body).await.status, 200);
    }
    let query = "keys=rssi&startTs=0&endTs=9000000000000&orderBy=ASC&useStrictDataTypes=true";
    let path = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?{query}");
    let found = server.get(&path).await.ok();
    let values = found["rssi"].as_array().unwrap().iter().map(|point| point["value"].as_i64().unwrap());
    assert_eq!(values.collect::<Vec<_>>(), [-50, -61, -72, -83, -94]);
    server.stop().await;
}

#[tokio::test]
async fn times_in_the_form_of_python_are_accepted() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let body = r#"[{"ts":1732540000000.0,"values":{"a":1}},{"ts":1.73254E12,"values":{"b":2}},{"ts":1732540000123.4568,"values":{"c":3}}]"#;
    assert_eq!(server.report("d", body).await.status, 200);
    let path = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?useStrictDataTypes=true");
    let expected = r#"{"a":[{"ts":1732540000000,"value":1}],"b":[{"ts":1732540000000,"value":2}],"c":[{"ts":1732540000123,"value":3}]}"#;
    assert_eq!(server.get(&path).await.text(), expected);
    let latest = server.latest(server.series("d"), Some(&["c".to_owned()])).unwrap();
    assert_eq!(latest[0].ts.micros(), 1_732_540_000_123_456);
    server.stop().await;
}

#[tokio::test]
async fn the_ack_waits_for_durability() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.hold();
    let address = server.address;
    let waiting = tokio::spawn(async move {
        let request = "POST /api/v1/token-d/telemetry HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: 7\r\n\r\n{\"a\":1}";
        exchange(address, request.as_bytes()).await
    });
    let series = server.series("d");
    until(|| !server.latest(series, None).unwrap().is_empty()).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished(), "acked before the data was durable");
    server.store.release();
    assert_eq!(waiting.await.unwrap().status, 200);
    server.stop().await;
}

#[tokio::test]
async fn an_unknown_token_is_refused() {
    let server = Server::start().await;
    let refused = server.report("nobody", r#"{"a":1}"#).await;
    assert!(refused.refusal(401, 10).contains("access token"));
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="token"} 1"#));
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_payload_is_refused_with_its_reason_and_kept() {
    let server = Server::start().await;
    server.add_device("d");
    for (payload, reason, label) in [
        (r#"{"a":"#, "not valid JSON", "payload_format"),
        ("42", "object or an array", "payload_format"),
        (r#"{"":1}"#, "key is empty", "key"),
        (r#"{"ts":1700000000,"values":{"a":1}}"#, "ts 1700000000", "timestamp"),
    ] {
        let message = server.report("d", payload).await.refusal(400, 30);
        assert!(message.contains(reason) && message.contains("dead_letter"), "{message}");
        let newest = dead_letter(&server, "d");
        assert!(newest.contains(&("payload".into(), Value::String(payload.into()))), "{newest:?}");
        assert!(newest.contains(&("door".into(), Value::String("http".into()))), "{newest:?}");
        let topic = Value::String("/api/v1/{token}/telemetry".into());
        assert!(newest.contains(&("topic".into(), topic)), "{newest:?}");
        let kept_reason = newest.iter().find(|(key, _)| key == "reason").unwrap();
        assert!(matches!(&kept_reason.1, Value::String(text) if text.contains(reason)), "{newest:?}");
        let counted = format!(r#"tacho_refusals_total{{door="http",reason="{label}"}}"#);
        assert!(server.metrics().contains(&counted), "{counted}");
    }
    assert!(server.latest(server.series("d"), None).unwrap().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_message_whose_table_cannot_be_created_is_kept_or_refused() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.set_tables_max(0);
    let sent = r#"{"a":1}"#;
    let reply = server.report("d", sent).await;
    assert_eq!(reply.headers["retry-after"], "30");
    let message = reply.refusal(503, 2);
    assert!(message.contains("not kept") && message.contains("tables is 1, the limit is 0"), "{message}");
    // Room for the device's table and that of dead letters, and then for no other.
    server.store.set_tables_max(2);
    server.report("d", "42").await.refusal(400, 30);
    let registry = server.hub.registry();
    registry.set_profile(registry.default_tenant(), "default", "elsewhere", hub::Durability::Fsync).unwrap();
    let message = server.report("d", sent).await.refusal(400, 30);
    assert!(message.contains("tables is 3, the limit is 2") && message.contains("dead_letter"), "{message}");
    let newest = dead_letter(&server, "d");
    assert!(newest.contains(&("payload".into(), Value::String(sent.into()))), "{newest:?}");
    let counted = server.metrics();
    assert!(counted.contains(r#"tacho_refusals_total{door="http",reason="store_limit"} 2"#), "{counted}");
    server.stop().await;
}

#[tokio::test]
async fn a_row_that_its_table_would_not_keep_is_refused_with_that_reason_and_kept() {
    let server = Server::start().await;
    server.add_device("d");
    let old = r#"{"ts":1700000000123,"values":{"a":1}}"#;
    assert_eq!(server.report("d", old).await.status, 200);
    let set = async |body: &str| server.post("/api/tacho/tables", body).await;
    assert!(set(r#"{"table":"telemetri","ttlS":86400}"#).await.refusal(404, 32).contains("no table"));
    assert_eq!(set(r#"{"table":"telemetry","ttlS":86400}"#).await.status, 200);
    let message = server.report("d", old).await.refusal(400, 30);
    assert!(message.contains("keeps rows for 1d"), "{message}");
    let newest = dead_letter(&server, "d");
    assert!(newest.contains(&("payload".into(), Value::String(old.into()))), "{newest:?}");
    assert_eq!(server.report("d", r#"{"a":1}"#).await.status, 200);
    assert_eq!(server.hub.drop_expired().unwrap(), 1, "the row that came before the time was set");
    assert_eq!(set(r#"{"table":"telemetry","ttlS":0}"#).await.status, 200);
    assert_eq!(server.report("d", old).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn bytes_that_are_not_utf8_are_kept_unchanged() {
    let server = Server::start().await;
    server.add_device("d");
    let request = server.request("POST", "/api/v1/token-d/telemetry").body(vec![b'{', 0xff, 0x00]);
    assert!(request.send().await.refusal(400, 30).contains("not UTF-8 at byte 1"));
    let expected = ("payload_base64".to_owned(), Value::String("e/8A".into()));
    assert!(dead_letter(&server, "d").contains(&expected));
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_its_length() {
    let server = Server::start_with(|options| options.body_bytes_max = 1_000).await;
    server.add_device("d");
    let payload = format!(r#"{{"a":"{}"}}"#, "x".repeat(1_000));
    let message = server.report("d", &payload).await.refusal(413, 30);
    assert!(message.contains("1000 bytes") && message.contains("body_bytes_max"), "{message}");
    let chunked = format!(
        "POST /api/v1/token-d/telemetry HTTP/1.1\r\nhost: t\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{payload}\r\n0\r\n\r\n",
        payload.len()
    );
    exchange(server.address, chunked.as_bytes()).await.refusal(413, 30);
    let fits = format!(r#"{{"a":"{}"}}"#, "x".repeat(992));
    assert_eq!((fits.len(), server.report("d", &fits).await.status), (1_000, 200));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_a_refused_body_reads_the_answer() {
    let server = Server::start_with(|options| options.body_bytes_max = 1_000).await;
    server.add_device("d");
    let payload = format!(r#"{{"a":"{}"}}"#, "x".repeat(8 * 1024 * 1024));
    for (device, status) in [("d", 413), ("nobody", 401)] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head =
            format!("POST /api/v1/token-{device}/telemetry HTTP/1.1\r\nhost: t\r\nconnection: close\r\n");
        let announced = format!("{head}content-length: {}\r\n\r\n", payload.len());
        stream.write_all(announced.as_bytes()).await.unwrap();
        stream.write_all(payload.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(Reply::parse(&answer).status, status);
        // A client that sends `Expect: 100-continue` gets the refusal before it sends the body.
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let asking = format!("{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n", payload.len());
        stream.write_all(asking.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert_eq!(Reply::parse(&answer).status, status);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_chunked_body_is_joined() {
    let server = Server::start().await;
    server.add_device("d");
    let request = "POST /api/v1/token-d/telemetry HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\
                   transfer-encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n2\r\n:7\r\n1\r\n}\r\n0\r\n\r\n";
    assert_eq!(exchange(server.address, request.as_bytes()).await.status, 200);
    assert_eq!(server.latest(server.series("d"), None).unwrap()[0].value, Value::I64(7));
    server.stop().await;
}

#[tokio::test]
async fn a_request_waits_for_a_busy_store() {
    let server = Server::start().await;
    server.add_device("d");
    server.series("d");
    server.store.set_busy(Some("memtable full"));
    let waiting = tokio::spawn({
        let request = server.request("POST", "/api/v1/token-d/telemetry").body(r#"{"a":1}"#);
        request.send()
    });
    until(|| server.metrics().contains(r#"tacho_messages_total{door="http"} 1"#)).await;
    assert!(!waiting.is_finished());
    server.store.set_busy(None);
    assert_eq!(waiting.await.unwrap().status, 200);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_busy_is_answered_with_429() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.set_busy(Some("memtable full"));
    let refused = server.report("d", r#"{"a":1}"#).await;
    assert!(refused.refusal(429, 33).contains("memtable full"));
    assert_eq!(refused.headers["retry-after"], "1");
    server.stop().await;
}

#[tokio::test]
async fn a_sealed_store_is_answered_with_503_and_still_reads() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.report("d", r#"{"ts":1700000000000,"values":{"a":1}}"#).await;
    server.store.seal("cannot sync the log: input/output error");
    for payload in [r#"{"a":2}"#, "not even JSON"] {
        let refused = server.report("d", payload).await;
        assert!(refused.refusal(503, 2).contains("cannot sync the log"), "{payload}");
        assert_eq!(refused.headers["retry-after"], "30");
    }
    let path = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries?keys=a");
    assert_eq!(server.get(&path).await.text(), r#"{"a":[{"ts":1700000000000,"value":"1"}]}"#);
    server.stop().await;
}

#[tokio::test]
async fn a_store_that_seals_before_the_sync_sends_no_ack() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.hold();
    let waiting = tokio::spawn(server.request("POST", "/api/v1/token-d/telemetry").body(r#"{"a":1}"#).send());
    let series = server.series("d");
    until(|| !server.latest(series, None).unwrap().is_empty()).await;
    server.store.seal("disk gone");
    assert!(waiting.await.unwrap().refusal(503, 2).contains("disk gone"));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_body_times_out() {
    let server = Server::start().await;
    server.add_device("d");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let begin = "POST /api/v1/token-d/telemetry HTTP/1.1\r\nhost: t\r\nconnection: close\r\ncontent-length: 7\r\n\r\n{";
    stream.write_all(begin.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(Reply::parse(&answer).refusal(408, 31).contains("send it faster"));
    server.stop().await;
}
