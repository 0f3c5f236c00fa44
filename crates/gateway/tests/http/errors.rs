use super::{Server, exchange};

#[tokio::test]
async fn every_refusal_has_the_same_shape_and_a_remedy() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.report("d", r#"{"a":1}"#).await;
    let unknown = "00000000-0000-0000-0000-000000000001";
    let values = format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries");
    for (method, path, body, status, code, part) in [
        ("GET", "/api/nothing", "", 404, 32, "/api/nothing"),
        ("GET", "/fleet", "", 404, 32, "/fleet"),
        ("DELETE", "/api/auth/login", "", 405, 31, "DELETE"),
        ("PUT", "/", "", 405, 31, "GET only"),
        ("POST", "/api/auth/login", "{", 400, 31, "not the JSON wanted"),
        ("POST", "/api/auth/login", r#"{"username":"x"}"#, 400, 31, "missing field `password`"),
        ("GET", "/api/device/car-1", "", 400, 30, "UUID"),
        ("GET", &format!("/api/device/{unknown}"), "", 404, 32, "GET /api/tenant/devices"),
        ("GET", "/api/device/%ff", "", 400, 31, "path"),
        ("GET", &format!("/api/plugins/telemetry/ASSET/{id}/keys/timeseries"), "", 404, 32, "asset"),
        ("GET", &format!("/api/plugins/telemetry/TRUCK/{id}/keys/timeseries"), "", 400, 30, "ENTITY_VIEW"),
        (
            "GET",
            &format!("{values}?keys=a&startTs=0&endTs=1&limit=2000000"),
            "",
            400,
            30,
            "the limit is 1000000",
        ),
        (
            "GET",
            &format!("{values}?keys=a&startTs=0&endTs=9999999999&agg=SUM&interval=1"),
            "",
            400,
            30,
            "interval",
        ),
        ("GET", &format!("{values}?keys=a&startTs=0&endTs=1&intervalType=DAY"), "", 400, 30, "MILLISECONDS"),
        ("GET", &format!("{values}?keys=a&startTs=0"), "", 400, 30, "belong together"),
        ("GET", "/api/ws/plugins/telemetry?token=x", "", 400, 31, "WebSocket"),
    ] {
        let request = server.request(method, path).session(&server.session()).body(body);
        let message = request.send().await.refusal(status, code);
        assert!(message.contains(part), "{method} {path}: {message}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_wrong_method_names_the_right_ones() {
    let server = Server::start().await;
    let reply = server.request("PUT", "/api/tenant/devices").send().await;
    assert_eq!((reply.status, reply.headers["allow"].as_str()), (405, "GET,HEAD"));
    server.stop().await;
}

#[tokio::test]
async fn requests_without_a_session_read_nothing_of_a_tenant() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for path in [
        "/api/tenant/devices?pageSize=10&page=0".to_owned(),
        "/api/tenant/devices?deviceName=d".to_owned(),
        format!("/api/device/{id}"),
        format!("/api/device/{id}/credentials"),
        format!("/api/plugins/telemetry/DEVICE/{id}/keys/timeseries"),
        format!("/api/plugins/telemetry/DEVICE/{id}/values/timeseries"),
        "/api/auth/user".to_owned(),
        "/api/deviceProfileInfo/default".to_owned(),
    ] {
        let refused = server.request("GET", &path).send().await;
        assert!(refused.refusal(401, 10).contains("X-Authorization"), "{path}");
    }
    server.request("DELETE", &format!("/api/device/{id}")).send().await.refusal(401, 10);
    server.stop().await;
}

#[tokio::test]
async fn a_request_head_over_its_limits_is_refused() {
    let server = Server::start().await;
    let long = format!("GET /healthz?{} HTTP/1.1\r\nhost: t\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET /healthz HTTP/1.1\r\nhost: t\r\n{}\r\n", "a: b\r\n".repeat(1_000));
    for request in [long, many] {
        let status = exchange(server.address, request.as_bytes()).await.status;
        assert!(matches!(status, 414 | 431), "{status}");
    }
    server.request("GET", "/healthz").send().await.ok();
    server.stop().await;
}
