//! OpenTSDB's line protocol on its port.

use std::num::NonZeroU32;
use std::time::Duration;

use hub::caller::Role;
use hub::registry::NewUser;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{GUARD, Server};

/// A client that speaks lines.
struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(server: &Server) -> Self {
        Self(BufReader::new(TcpStream::connect(server.address).await.unwrap()))
    }

    async fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        tokio::time::timeout(GUARD, self.0.read_line(&mut line)).await.expect("an answer").unwrap();
        line
    }

    /// Sends no more, and returns what still comes.
    async fn end(mut self) -> String {
        self.0.get_mut().shutdown().await.unwrap();
        let mut rest = String::new();
        tokio::time::timeout(GUARD, self.0.read_to_string(&mut rest)).await.expect("an end").unwrap();
        rest
    }
}

/// What the server lets a connection wait for (docs/protocol/opentsdb.md).
const IDLE: Duration = Duration::from_secs(30 * 60);

async fn open_server() -> Server {
    Server::start_with(|options| (options.door, options.open) = (hub::Door::OpenTsdb, Some(Role::Operator)))
        .await
}

fn rows(server: &Server) -> u64 {
    server.hub.metrics().rows.get()
}

#[tokio::test]
async fn a_busy_store_is_waited_for_and_nothing_is_lost() {
    let server = open_server().await;
    let mut client = Client::connect(&server).await;
    client.send("put m 1700000000 1 a=b\nhelp\n").await;
    assert!(client.line().await.starts_with("available"));
    server.store.set_busy(Some("the disk is full"));
    client.send("put m 1700000001 1 a=b\nhelp\n").await;
    let early = tokio::time::timeout(Duration::from_millis(200), client.line()).await;
    assert!(early.is_err(), "no answer before the store takes the line");
    assert_eq!(rows(&server), 1);
    server.store.set_busy(None);
    assert!(client.line().await.starts_with("available"));
    assert_eq!(rows(&server), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_failed_disk_is_told_and_counted() {
    let server = open_server().await;
    let mut client = Client::connect(&server).await;
    server.store.seal("cannot write the log");
    client.send("put m 1700000000 1 a=b\nput m 1700000001 1 a=b\nhelp\n").await;
    let told = client.line().await;
    assert!(told.starts_with("put: storage error: ") && told.contains("cannot write the log"), "{told}");
    assert!(client.line().await.starts_with("available"));
    let counted = r#"tacho_refusals_total{door="opentsdb",reason="sealed"} "#;
    let metrics = server.metrics();
    let line = metrics.lines().find(|line| line.starts_with(counted)).expect("a counter");
    assert!(line.ends_with(" 2") || line.ends_with(" 1"), "{line}");
    server.stop().await;
}

#[tokio::test]
async fn a_door_that_stops_stores_what_it_has_read_and_tells_what_it_cannot() {
    let mut server = open_server().await;
    let mut client = Client::connect(&server).await;
    client.send("put m 1700000000 1 a=b\nhelp\n").await;
    assert!(client.line().await.starts_with("available"));
    server.store.set_busy(Some("the disk is full"));
    client.send("put m 1700000001 1 a=b\nput m 1700000002 1 a=b\n").await;
    while !server.metrics().contains("tacho_messages_total{door=\"opentsdb\"} 3\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(server.stop.take());
    let told = client.line().await;
    assert!(told.starts_with("put: storage error: 2 lines are not stored: "), "{told}");
    assert!(told.contains("the disk is full"), "{told}");
    assert_eq!(client.line().await, "");
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed_and_one_that_sends_seldom_is_not() {
    let server = open_server().await;
    let mut client = Client::connect(&server).await;
    client.send("help\n").await;
    assert!(client.line().await.starts_with("available"));
    let minute = Duration::from_secs(60);
    for _ in 0..3 {
        tokio::time::pause();
        tokio::time::advance(IDLE - minute).await;
        tokio::time::resume();
        client.send("help\n").await;
        assert!(client.line().await.starts_with("available"));
    }
    // A paused clock jumps to the next timer whenever nothing else is to do.
    tokio::time::pause();
    let begin = tokio::time::Instant::now();
    let mut rest = String::new();
    client.0.read_to_string(&mut rest).await.unwrap();
    let waited = begin.elapsed();
    assert!(rest.is_empty() && (IDLE - minute..IDLE + minute).contains(&waited), "{waited:?} {rest:?}");
    tokio::time::resume();
    server.stop().await;
}

#[tokio::test]
async fn the_rate_of_requests_slows_lines_down_and_refuses_none() {
    let server = Server::start_with(|options| {
        (options.door, options.open) = (hub::Door::OpenTsdb, Some(Role::Operator));
        options.limits.requests_per_second_max = NonZeroU32::new(20);
    })
    .await;
    let mut client = Client::connect(&server).await;
    for n in 0..30 {
        client.send(&format!("put m {} 1 a=b\nhelp\n", 1_700_000_000 + n)).await;
        assert!(client.line().await.starts_with("available"));
    }
    assert_eq!(rows(&server), 30);
    assert!(!server.metrics().contains(r#"reason="requests_per_second_max""#));
    server.stop().await;
}

#[tokio::test]
async fn a_login_is_needed_and_ends_with_its_user() {
    let server = Server::start_with(|options| options.door = hub::Door::OpenTsdb).await;
    let mut client = Client::connect(&server).await;
    client.send("put m 1700000000 1 a=b\n").await;
    assert!(client.line().await.contains("auth basic"));
    let password = server.admin.password.clone();
    client.send(&format!("auth basic {} {password}\n", server.admin.login)).await;
    assert_eq!(client.line().await, "AUTH_SUCCESS\r\n");
    client.send("put m 1700000000 1 a=b\nhelp\n").await;
    assert!(client.line().await.starts_with("available"));
    assert_eq!(rows(&server), 1);
    server.hub.registry().set_password(&server.admin.login, "another password").unwrap();
    client.send("put m 1700000001 1 a=b\n").await;
    assert!(client.line().await.starts_with("put: illegal argument: "));
    assert_eq!(rows(&server), 1, "a new password ends the sessions");
    server.stop().await;
}

#[tokio::test]
async fn who_may_not_write_is_told() {
    let server = Server::start_with(|options| options.door = hub::Door::HiTsdb).await;
    let registry = server.hub.registry();
    let viewer = NewUser {
        login: "viewer",
        password: Some("a-good-password"),
        role: Role::Viewer,
        ..NewUser::default()
    };
    registry.create_user(registry.default_tenant(), viewer).unwrap();
    let mut client = Client::connect(&server).await;
    client.send("auth basic viewer a-good-password\nput m 1700000000 1 a=b\n").await;
    assert_eq!(client.line().await, "AUTH_SUCCESS\r\n");
    let told = client.line().await;
    assert!(told.starts_with("put: illegal argument: 1 lines are not stored: "), "{told}");
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="hitsdb",reason="permission"} 1"#));
    assert_eq!(rows(&server), 0);
    server.stop().await;
}

#[tokio::test]
async fn other_ports_speak_http_only() {
    let server = Server::start_with(|options| options.open = Some(Role::Operator)).await;
    let mut client = Client::connect(&server).await;
    client.send("put m 1700000000 1 a=b\r\n\r\n").await;
    assert!(client.end().await.starts_with("HTTP/1.1 400"));
    server.stop().await;
}
