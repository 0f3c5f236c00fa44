use std::io::Read;
use std::num::NonZeroU32;
use std::time::Duration;

use flate2::read::GzDecoder;
use gateway::door::{DoorLimits, Networks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Reply, Server};

#[tokio::test]
async fn health_readiness_and_status_are_reported() {
    let server = Server::start().await;
    assert_eq!(server.request("GET", "/healthz").send().await.ok()["status"], "ok");
    assert_eq!(server.request("GET", "/readyz").send().await.ok()["status"], "ready");
    let status = server.request("GET", "/api/status").send().await.ok();
    assert_eq!((&status["version"], &status["durability"]), (&"9.8.7".into(), &"fsync".into()));
    assert!(status["uptime_s"].is_u64() && status["store"]["sealed"].is_null(), "{status}");

    server.store.set_busy(Some("the disk is full"));
    server.store.seal("cannot write the log");
    let message = server.request("GET", "/readyz").send().await.refusal(503, 2);
    assert!(message.contains("the disk is full") && message.contains("cannot write the log"), "{message}");
    assert_eq!(
        server.request("GET", "/api/status").send().await.ok()["store"]["sealed"],
        "cannot write the log"
    );
    server.request("GET", "/healthz").send().await.ok();
    server.stop().await;
}

#[tokio::test]
async fn metrics_have_the_format_that_the_client_names() {
    let server = Server::start().await;
    let open = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let reply = server.request("GET", "/metrics").header("Accept", open).send().await;
    assert_eq!(reply.headers["content-type"], open);
    assert!(reply.text().ends_with("# EOF\n") && reply.text().contains("# TYPE tacho_points counter\n"));
    let reply = server.request("GET", "/metrics").send().await;
    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert!(!reply.text().contains("# EOF") && reply.text().contains("# TYPE tacho_points_total counter\n"));
    assert!(reply.text().contains("tacho_connections{door=\"http\"} 1\n"), "this connection is open");
    assert!(
        reply.text().contains("\nprocess_open_fds ") && reply.text().contains("\ntacho_build_info{version=")
    );
    server.stop().await;
}

#[tokio::test]
async fn metrics_are_compressed_for_clients_that_accept_it() {
    let server = Server::start().await;
    let plain = server.request("GET", "/metrics").send().await;
    assert!(!plain.headers.contains_key("content-encoding") && plain.headers["vary"] == "Accept-Encoding");
    let reply = server.request("GET", "/metrics").header("Accept-Encoding", "br, gzip").send().await;
    assert_eq!(reply.headers["content-encoding"], "gzip");
    assert!(reply.body.len() * 2 < plain.body.len(), "{} of {} bytes", reply.body.len(), plain.body.len());
    let mut text = String::new();
    GzDecoder::new(reply.body.as_slice()).read_to_string(&mut text).unwrap();
    assert!(text.contains("\ntacho_points_total 0\n"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn answers_carry_protective_headers() {
    let server = Server::start().await;
    let page = server.request("GET", "/").send().await;
    assert_eq!((page.status, page.headers["cache-control"].as_str()), (200, "no-cache"));
    assert!(page.headers["content-security-policy"].contains("frame-ancestors 'none'"));
    for reply in
        [page, server.request("GET", "/api/status").send().await, server.request("GET", "/x").send().await]
    {
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
    }
    assert_eq!(server.request("GET", "/api/status").send().await.headers["cache-control"], "no-store");
    server.stop().await;
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::start().await;
    server.add_device("d");
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for n in 0..3 {
        let body = format!(r#"{{"a":{n}}}"#);
        let request = format!(
            "POST /api/v1/token-d/telemetry HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert_eq!(Reply::parse(&answer).status, 200);
    }
    assert!(server.metrics().contains(r#"tacho_connections_opened_total{door="http"} 1"#));
    server.stop().await;
}

#[tokio::test]
async fn a_connection_over_the_limit_is_refused_and_the_others_continue() {
    let server = Server::start_with(|options| options.limits = DoorLimits::of_connections(2)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n").await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'H');
        held.push(stream);
    }
    let refused = server.request("GET", "/api/status").send().await;
    assert!(refused.refusal(503, 33).contains("all 2 connections"));
    assert!(refused.headers.contains_key("retry-after"));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = server.request("GET", path).send().await;
        assert_eq!(answer.status, 200, "{path}: who watches the server gets an answer");
        assert_eq!(answer.headers["connection"], "close");
    }
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="connections_max"} 1"#));
    held.clear();
    while !server.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.request("GET", "/healthz").send().await.ok();
    server.stop().await;
}

#[tokio::test]
async fn one_address_has_its_share_of_the_connections() {
    let server = Server::start_with(|options| options.limits.connections_per_address_max = 2).await;
    let held = [
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    ];
    while !server.metrics().contains("tacho_connections{door=\"http\"} 2\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = server.request("GET", "/healthz").send().await;
    assert!(refused.refusal(503, 33).contains("127.0.0.1 has 2 connections"));
    assert!(
        server
            .metrics()
            .contains(r#"tacho_refusals_total{door="http",reason="connections_per_address_max"} 1"#)
    );
    drop(held);
    while !server.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.request("GET", "/healthz").send().await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn requests_above_the_rate_are_refused_and_those_who_watch_the_server_are_not() {
    let server =
        Server::start_with(|options| options.limits.requests_per_second_max = NonZeroU32::new(1)).await;
    // A slow machine may take longer than a second for a request.
    let refused = loop {
        let reply = server.request("GET", "/api/status").send().await;
        if reply.status != 200 {
            break reply;
        }
    };
    let message = refused.refusal(429, 33);
    assert!(message.contains("1 requests a second (http.requests_per_second_max)"), "{message}");
    assert_eq!(refused.headers["retry-after"], "1");
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.request("GET", path).send().await.status, 200, "{path}");
    }
    assert!(
        server.metrics().contains(r#"tacho_refusals_total{door="http",reason="requests_per_second_max"} 1"#)
    );
    server.stop().await;
}

#[tokio::test]
async fn connections_that_come_too_fast_are_refused() {
    let server =
        Server::start_with(|options| options.limits.connections_per_second_max = NonZeroU32::new(1)).await;
    let message = loop {
        let reply = server.request("GET", "/api/status").send().await;
        if reply.status != 200 {
            break reply.refusal(503, 33);
        }
    };
    assert!(message.contains("http.connections_per_second_max"), "{message}");
    server.stop().await;
}

/// Sends a header of the PROXY protocol and a request. Returns what comes back.
async fn through_balancer(server: &Server, header: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("{header}GET {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The server resets a connection whose request it has not read.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_load_balancer_announces_its_clients() {
    let server = Server::start_with(|options| {
        options.proxies = Networks::parse(["127.0.0.1"]).unwrap();
        options.limits.connections_per_address_max = 1;
    })
    .await;
    let header = |client: &str| format!("PROXY TCP4 {client} 192.0.2.1 50000 80\r\n");
    // This client keeps its connection.
    let mut held = TcpStream::connect(server.address).await.unwrap();
    held.write_all(format!("{}GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n", header("203.0.113.1")).as_bytes())
        .await
        .unwrap();
    assert_eq!(held.read_u8().await.unwrap(), b'H');

    let other = through_balancer(&server, &header("203.0.113.2"), "/api/status").await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
    let same = through_balancer(&server, &header("203.0.113.1"), "/api/status").await;
    assert!(same.starts_with("HTTP/1.1 503") && same.contains("203.0.113.1 has 1 connections"), "{same}");
    for bad in ["", "PROXY TCP4 nonsense\r\n", "GARBAGE\r\n"] {
        assert_eq!(through_balancer(&server, bad, "/api/status").await, "", "{bad:?} gets no answer");
    }
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="proxy_protocol"} 3"#));
    drop(held);
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_sends_no_header_is_closed() {
    let server =
        Server::start_with(|options| options.proxies = Networks::parse(["127.0.0.1"]).unwrap()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="proxy_protocol"} 1"#));
    server.stop().await;
}

/// Requests are sent one after the other and no answer is read: the answers fill the sockets, and the server waits.
#[tokio::test]
async fn a_client_that_reads_no_answers_is_closed() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let requests = b"GET /metrics HTTP/1.1\r\nhost: t\r\n\r\n".repeat(1_000);
    let closed = async {
        // Ends with an error when the server has closed the connection.
        while stream.write_all(&requests).await.is_ok() {}
    };
    let time_passes = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(40)).await;
    };
    tokio::join!(closed, time_passes);
    tokio::time::resume();
    while !server.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_head_closes_the_connection() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: ").await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    server.stop().await;
}

#[tokio::test]
async fn stopping_lets_requests_in_flight_finish() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.hold();
    let waiting = tokio::spawn(server.request("POST", "/api/v1/token-d/telemetry").body(r#"{"a":1}"#).send());
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let series = server.series("d");
    while server.latest(series, None).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (store, address) = (server.store.clone(), server.address);
    let stopping = tokio::spawn(server.stop());
    // The server closes the idle connection and accepts no new ones; the request in flight still waits.
    let mut nothing = Vec::new();
    let _ = idle.read_to_end(&mut nothing).await;
    assert!(nothing.is_empty() && !stopping.is_finished());
    assert!(TcpStream::connect(address).await.is_err());
    store.release();
    assert_eq!(waiting.await.unwrap().status, 200);
    stopping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_after_its_timeout() {
    let server = Server::start().await;
    server.add_device("d");
    server.store.hold();
    let waiting = tokio::spawn(server.request("POST", "/api/v1/token-d/telemetry").body(r#"{"a":1}"#).send());
    let series = server.series("d");
    while server.latest(series, None).unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.stop().await;
    assert!(waiting.await.is_err(), "cut off without an answer, and so without an ack");
}
