use std::io::Read;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use flate2::read::DeflateDecoder;
use futures_util::{SinkExt, StreamExt};
use model::ValueRef;
use serde_json::{Value as Json, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::{GUARD, Server};

/// A client that speaks ThingsBoard's commands.
pub(super) struct Client(WebSocketStream<TcpStream>);

impl Client {
    async fn connect(server: &Server, token: &str) -> Self {
        let stream = TcpStream::connect(server.address).await.unwrap();
        Self::on(stream, token).await
    }

    async fn on(stream: TcpStream, token: &str) -> Self {
        Self::of(stream, &format!("/api/ws/plugins/telemetry?token={token}")).await
    }

    async fn of(stream: TcpStream, path: &str) -> Self {
        Self(tokio_tungstenite::client_async(format!("ws://localhost{path}"), stream).await.unwrap().0)
    }

    /// Connects to a path.
    pub(super) async fn to(server: &Server, path: &str) -> Self {
        Self::of(TcpStream::connect(server.address).await.unwrap(), path).await
    }

    pub(super) async fn send(&mut self, message: &Json) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    /// Subscribes to one device, without any member but `members`.
    async fn subscribe(&mut self, cmd_id: i64, device: &str, members: Json) {
        self.send(&json!({ "tsSubCmds": [command(cmd_id, device, members)] })).await;
    }

    async fn next_frame(&mut self) -> Message {
        guarded(self.0.next()).await.expect("an open connection").unwrap()
    }

    pub(super) async fn next(&mut self) -> Json {
        loop {
            match self.next_frame().await {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The rows of the next message of a watch that has some.
    async fn next_rows(&mut self) -> Json {
        loop {
            let message = self.next().await;
            if message["rows"] != json!([]) {
                return message["rows"].clone();
            }
        }
    }

    /// Skips other frames and returns the close frame.
    pub(super) async fn closing(&mut self) -> (CloseCode, String) {
        loop {
            if let Message::Close(frame) = self.next_frame().await {
                let frame = frame.unwrap();
                return (frame.code, frame.reason.to_string());
            }
        }
    }
}

/// Waits for at most [`GUARD`] of real time: the clock of some tests runs ahead while all tasks are idle.
async fn guarded<T>(work: impl Future<Output = T>) -> T {
    let (late, is_late) = tokio::sync::oneshot::channel();
    let (_done, is_done) = mpsc::channel::<()>();
    thread::spawn(move || {
        if is_done.recv_timeout(GUARD) == Err(RecvTimeoutError::Timeout) {
            let _ = late.send(());
        }
    });
    tokio::select! {
        biased;
        result = work => result,
        _ = is_late => panic!("nothing came for {GUARD:?}"),
    }
}

fn command(cmd_id: i64, device: &str, members: Json) -> Json {
    let mut command = json!({
        "entityType": "DEVICE", "entityId": device, "scope": "LATEST_TELEMETRY", "cmdId": cmd_id
    });
    command.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    command
}

fn update(id: i64, data: Json, latest: Json) -> Json {
    json!({ "subscriptionId": id, "errorCode": 0, "errorMsg": null, "data": data, "latestValues": latest })
}

#[tokio::test]
async fn a_subscription_begins_with_the_latest_values_and_continues_live_until_it_ends() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.put("d", 1_000, "a", ValueRef::I64(1));
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(7, &id, json!({})).await;
    assert_eq!(client.next().await, update(7, json!({ "a": [[1000, "1"]] }), json!({ "a": 1000 })));

    server.report("d", r#"{"ts":1700000000000,"values":{"a":2.5,"b":[1]}}"#).await;
    let (data, latest) = (
        json!({ "a": [[1_700_000_000_000_i64, "2.5"]], "b": [[1_700_000_000_000_i64, "[1]"]] }),
        json!({ "a": 1_700_000_000_000_i64, "b": 1_700_000_000_000_i64 }),
    );
    assert_eq!(client.next().await, update(7, data, latest));

    client.send(&json!({ "tsSubCmds": [{ "cmdId": 7, "unsubscribe": true }] })).await;
    // The reply to a second subscription shows that the session has handled the first one.
    client.subscribe(8, &id, json!({ "keys": "a" })).await;
    assert_eq!(client.next().await["subscriptionId"], 8);
    server.put("d", 1_700_000_001_000, "a", ValueRef::I64(3));
    let data = json!({ "a": [[1_700_000_001_000_i64, "3"]] });
    assert_eq!(client.next().await, update(8, data, json!({ "a": 1_700_000_001_000_i64 })));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn values_arrive_live_only_after_they_are_durable() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(1, &id, json!({})).await;
    assert_eq!(client.next().await, update(1, json!({}), json!({})));
    server.store.hold();
    server.put("d", 1_000, "a", ValueRef::I64(1));
    // The answer to a later command overtakes the value, which is not durable.
    client.send(&json!({ "attrSubCmds": [{ "cmdId": 5 }] })).await;
    assert_eq!(client.next().await["subscriptionId"], 5);
    server.store.release();
    assert_eq!(client.next().await, update(1, json!({ "a": [[1000, "1"]] }), json!({ "a": 1000 })));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_sends_the_newest_values_of_its_devices_and_keys_in_one_message() {
    let server = Server::start().await;
    let ids = ["a", "b", "c"].map(|name| server.add_device(name));
    let mut client = Client::connect(&server, &server.session()).await;
    let watch = json!({ "cmdId": 5, "entityIds": &ids[..2], "keys": ["speed", "rpm"], "interval": 200 });
    client.send(&json!({ "watchCmds": [watch] })).await;
    assert_eq!(client.next().await, json!({ "watchId": 5, "rows": [] }), "in force");
    server.put("b", 1_000, "speed", ValueRef::F64(42.5));
    server.put("b", 1_000, "other", ValueRef::I64(1));
    server.put("c", 1_000, "speed", ValueRef::I64(1));
    assert_eq!(client.next_rows().await, json!([[1, 1_000, { "speed": "42.5" }]]));
    server.put("a", 2_000, "rpm", ValueRef::I64(900));
    let rows = client.next_rows().await;
    assert_eq!(rows, json!([[0, 2_000, { "rpm": "900" }]]), "only what is new");

    client.send(&json!({ "watchCmds": [{ "cmdId": 5, "unsubscribe": true }] })).await;
    client
        .send(&json!({ "watchCmds": [{ "cmdId": 6, "entityIds": ids, "interval": 200, "deflate": true }] }))
        .await;
    let bytes = loop {
        match client.next_frame().await {
            Message::Binary(bytes) => break bytes,
            Message::Text(text) => assert!(text.contains("\"watchId\":5"), "{text}"),
            other => panic!("{other:?}"),
        }
    };
    let mut text = String::new();
    DeflateDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    assert_eq!(text, r#"{"watchId":6,"rows":[]}"#);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_watch_of_unknown_or_too_many_devices_is_refused() {
    let server = Server::start().await;
    let ids = ["a", "b"].map(|name| server.add_device(name));
    let mut client = Client::connect(&server, &server.session()).await;
    client.send(&json!({ "watchCmds": [{ "cmdId": 1, "entityIds": ["no-id"] }] })).await;
    let refusal = client.next().await;
    assert!(refusal["errorMsg"].as_str().unwrap().contains("no-id"), "{refusal}");
    assert_eq!((&refusal["subscriptionId"], &refusal["errorCode"]), (&json!(1), &json!(2)));
    client.send(&json!({ "watchCmds": [{ "cmdId": 1, "entityIds": ids, "interval": 1 }] })).await;
    assert!(client.next().await["errorMsg"].as_str().unwrap().contains("200 to 60000"));
    client.send(&json!({ "watchCmds": [{ "cmdId": 1, "entityIds": ids, "interval": 200 }] })).await;
    assert_eq!(client.next().await["rows"], json!([]));
    server.put("b", 1_000, "n", ValueRef::I64(1));
    assert_eq!(client.next_rows().await, json!([[1, 1_000, { "n": "1" }]]));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn only_the_named_keys_are_sent() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.put("d", 1_000, "other", ValueRef::I64(1));
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(1, &id, json!({ "keys": "a,b" })).await;
    assert_eq!(client.next().await, update(1, json!({}), json!({})));
    server.put("d", 2_000, "other", ValueRef::I64(2));
    server.put("d", 3_000, "b", ValueRef::I64(3));
    assert_eq!(client.next().await, update(1, json!({ "b": [[3000, "3"]] }), json!({ "b": 3000 })));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_latest_value_never_goes_back_in_time_and_history_takes_late_values() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.put("d", 10_000, "a,b", ValueRef::I64(1));
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(1, &id, json!({ "keys": ["a,b"] })).await;
    assert_eq!(client.next().await, update(1, json!({ "a,b": [[10_000, "1"]] }), json!({ "a,b": 10_000 })));
    client.subscribe(2, &id, json!({ "keys": ["a,b"], "startTs": 1_000 })).await;
    assert_eq!(client.next().await["subscriptionId"], 2);
    for (ts, value) in [(9_000, 2), (11_000, 3), (10_500, 4), (11_000, 5)] {
        server.put("d", ts, "a,b", ValueRef::I64(value));
    }
    let (mut latest, mut history) = (Vec::new(), Vec::new());
    while latest.len() < 2 || history.len() < 4 {
        let told = client.next().await;
        let values =
            told["data"]["a,b"].as_array().unwrap().iter().map(|pair| pair[1].as_str().unwrap().to_owned());
        if told["subscriptionId"] == 1 { latest.extend(values) } else { history.extend(values) }
    }
    assert_eq!(latest, ["3", "5"]);
    history.sort();
    assert_eq!(history, ["2", "3", "4", "5"]);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_subscription_may_begin_with_history() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for n in 0..5 {
        server.put("d", 10_000 + n * 1_000, "a", ValueRef::I64(n));
    }
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(1, &id, json!({ "startTs": 11_000, "timeWindow": 60_000, "limit": 3 })).await;
    let data = json!({ "a": [[12_000, "2"], [13_000, "3"], [14_000, "4"]] });
    assert_eq!(client.next().await, update(1, data, json!({ "a": 14_000 })));
    client
        .subscribe(
            2,
            &id,
            json!({
                "keys": "a", "startTs": 10_000, "timeWindow": 4_000, "interval": 2_000, "agg": "SUM"
            }),
        )
        .await;
    let data = json!({ "a": [[11_000, "1"], [13_000, "5"]] });
    assert_eq!(client.next().await, update(2, data, json!({ "a": 13_000 })));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn history_commands_are_answered_once() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for n in 0..5 {
        server.put("d", 10_000 + n * 1_000, "a", ValueRef::I64(n));
    }
    let mut client = Client::connect(&server, &server.session()).await;
    let history = command(3, &id, json!({ "keys": "a", "startTs": 11_000, "endTs": 13_000 }));
    client.send(&json!({ "historyCmds": [history] })).await;
    let data = json!({ "a": [[11_000, "1"], [12_000, "2"]] });
    assert_eq!(client.next().await, update(3, data, json!({ "a": 12_000 })));
    server.put("d", 12_500, "a", ValueRef::I64(9));
    client.send(&json!({ "attrSubCmds": [{ "cmdId": 4 }] })).await;
    assert_eq!(client.next().await["subscriptionId"], 4, "no update for the history command");
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn invalid_commands_are_refused_and_the_session_continues() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let mut client = Client::connect(&server, &server.session()).await;
    let no_subscription = i64::from(i32::MIN);
    for (message, id, part) in [
        (json!({ "attrSubCmds": [{ "cmdId": 5, "entityId": id, "scope": "X" }] }), 5, "scope"),
        (json!({ "tsSubCmds": [{ "cmdId": 6, "entityId": "x" }] }), 6, "UUID"),
        (json!({ "tsSubCmds": [{ "cmdId": 6 }] }), 6, "entityId"),
        (json!({ "tsSubCmds": [{ "cmdId": 7, "entityType": "ASSET", "entityId": id }] }), 7, "only DEVICE"),
        (
            json!({ "tsSubCmds": [{ "cmdId": 8, "entityId": "00000000-0000-0000-0000-000000000001" }] }),
            8,
            "no device",
        ),
        (
            json!({ "historyCmds": [{ "cmdId": 9, "entityId": id, "startTs": 0, "endTs": 1, "agg": "X" }] }),
            9,
            "agg",
        ),
        (json!({ "cmds": [] }), no_subscription, "tsSubCmds"),
        (json!([1]), no_subscription, "tsSubCmds"),
    ] {
        client.send(&message).await;
        let error = client.next().await;
        assert_eq!(
            (&error["subscriptionId"], &error["errorCode"]),
            (&id.into(), &2.into()),
            "{message}: {error}"
        );
        assert!(error["errorMsg"].as_str().unwrap().contains(part), "{message}: {error}");
        assert_eq!(error["data"], json!({}));
    }
    client.0.send(Message::binary(vec![1, 2])).await.unwrap();
    assert!(client.next().await["errorMsg"].as_str().unwrap().contains("text messages only"));
    client.subscribe(1, &id, json!({})).await;
    assert_eq!(client.next().await["errorCode"], 0);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn an_invalid_token_closes_the_socket_with_1008() {
    let server = Server::start().await;
    for token in ["", "nonsense", &server.public_session()] {
        let mut client = Client::connect(&server, token).await;
        let (code, reason) = client.closing().await;
        assert_eq!(code, CloseCode::Policy);
        assert!(reason.contains("log in"), "{reason}");
    }
    server.stop().await;
}

#[tokio::test]
async fn public_sessions_may_watch() {
    let server = Server::start_with(|options| options.public_read = true).await;
    let id = server.add_device("d");
    let mut client = Client::connect(&server, &server.public_session()).await;
    client.subscribe(1, &id, json!({})).await;
    assert_eq!(client.next().await["errorCode"], 0);
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_message_over_the_limit_closes_the_socket() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, &server.session()).await;
    let _ = client.0.send(Message::text("x".repeat(2 * 1024 * 1024))).await;
    // The close frame, unless unread bytes of the client reset the connection before it arrives.
    while let Some(Ok(frame)) = client.0.next().await {
        if let Message::Close(Some(frame)) = frame {
            assert_eq!(frame.code, CloseCode::Size);
            assert!(frame.reason.contains("1048576"), "{}", frame.reason);
        }
    }
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="too_large"} 1"#));
    while !server.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_closes_with_1001() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, &server.session()).await;
    client.send(&json!({ "attrSubCmds": [{ "cmdId": 5 }] })).await;
    client.next().await;
    let stopping = tokio::spawn(server.stop());
    assert_eq!(client.closing().await.0, CloseCode::Away);
    drop(client);
    stopping.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_closed_and_one_that_answers_pings_is_not() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let silent = Client::connect(&server, &server.session()).await;
    let mut lively = Client::connect(&server, &server.session()).await;
    lively.subscribe(1, &id, json!({})).await;
    assert_eq!(lively.next().await["errorCode"], 0);
    let mut pings = 0;
    // A client that reads also answers pings. The test does not read from the silent client.
    while !server.metrics().contains(r#"tacho_refusals_total{door="http",reason="silence"} 1"#) {
        assert!(matches!(lively.next_frame().await, Message::Ping(_)));
        pings += 1;
        assert!(pings < 100, "the silent client is still connected");
    }
    server.put("d", 1_000, "a", ValueRef::I64(1));
    assert_eq!(lively.next().await["data"], json!({ "a": [[1000, "1"]] }));
    drop((silent, lively));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn deleting_a_device_ends_its_subscriptions_and_a_new_table_moves_them() {
    let server = Server::start().await;
    let (gone, moved) = (server.add_device("gone"), server.add_device("moved"));
    // A device that has not reported has no table that it could leave.
    server.series("moved");
    let mut client = Client::connect(&server, &server.session()).await;
    client.send(&json!({ "tsSubCmds": [command(1, &gone, json!({})), command(2, &moved, json!({}))] })).await;
    assert_eq!(client.next().await["subscriptionId"], 1);
    assert_eq!(client.next().await["subscriptionId"], 2);
    let registry = server.hub.registry();
    registry.delete_device(gone.parse().unwrap()).unwrap();
    let tenant = registry.default_tenant();
    registry.set_profile(tenant, "default", "elsewhere", hub::Durability::Fsync).unwrap();
    let ended = client.next().await;
    assert_eq!((&ended["subscriptionId"], &ended["errorCode"]), (&1.into(), &2.into()));
    assert_eq!(client.next().await, update(2, json!({}), json!({})), "begins again in the new table");
    server.put("moved", 1_000, "a", ValueRef::I64(1));
    assert_eq!(client.next().await, update(2, json!({ "a": [[1000, "1"]] }), json!({ "a": 1000 })));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_thousand_devices_are_watched_with_one_message() {
    let server = Server::start().await;
    server.post("/api/tacho/devices", r#"{"count":1000,"prefix":"dev-"}"#).await.ok();
    let registry = server.hub.registry();
    let id = |n: usize| {
        registry.device_by_name(registry.default_tenant(), &format!("dev-{n}")).unwrap().id.to_string()
    };
    let commands: Vec<Json> = (0..1_000).map(|n| command(n as i64, &id(n), json!({}))).collect();
    for n in 0..1_000 {
        server.put(&format!("dev-{n}"), 1_000, "a", ValueRef::I64(n));
    }
    let mut client = Client::connect(&server, &server.session()).await;
    client.send(&json!({ "tsSubCmds": commands })).await;
    for n in 0..1_000 {
        let expected = update(n, json!({ "a": [[1000, n.to_string()]] }), json!({ "a": 1000 }));
        assert_eq!(client.next().await, expected);
    }
    for n in 0..1_000 {
        server.put(&format!("dev-{n}"), 2_000, "a", ValueRef::I64(-n));
    }
    for n in 0..1_000 {
        assert_eq!(client.next().await["data"], json!({ "a": [[2000, (-n).to_string()]] }), "{n}");
    }
    drop(client);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_no_gap_between_the_initial_reply_and_the_updates() {
    const VALUES: i64 = 3_000;
    let server = std::sync::Arc::new(Server::start().await);
    let id = server.add_device("d");
    let mut client = Client::connect(&server, &server.session()).await;
    let writing = tokio::task::spawn_blocking({
        let server = std::sync::Arc::clone(&server);
        move || (1..=VALUES).for_each(|n| server.put("d", n, "a", ValueRef::I64(n)))
    });
    while server.hub.status().rows_appended < 100 {
        tokio::task::yield_now().await;
    }
    client.subscribe(1, &id, json!({})).await;
    let mut seen: Vec<i64> = Vec::new();
    while !seen.contains(&VALUES) {
        let update = client.next().await;
        let samples = update["data"]["a"].as_array().unwrap().iter();
        seen.extend(samples.map(|sample| sample[0].as_i64().unwrap()));
    }
    // The initial reply holds the newest value of its moment; those before it may still come after it.
    seen.sort_unstable();
    assert!(seen.iter().copied().eq(seen[0]..=VALUES), "a gap or a repetition after {}", seen[0]);
    drop(client);
    writing.await.unwrap();
    std::sync::Arc::into_inner(server).unwrap().stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_delays_no_other_and_ends_with_the_newest_value() {
    const TEXT_BYTES: usize = 8 * 1024;
    let server = Server::start().await;
    let id = server.add_device("d");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut slow = Client::on(socket.connect(server.address).await.unwrap(), &server.session()).await;
    slow.subscribe(1, &id, json!({})).await;
    assert_eq!(slow.next().await["errorCode"], 0);
    let mut last = 0;
    // The server accepts each of these, although the subscriber does not read the updates.
    while server.hub.metrics().live_coalesced.get() == 0 {
        last += 1;
        assert!(last < 200_000, "nothing was coalesced");
        server.put("d", 1_000, "a", ValueRef::String(&format!("{last}:{}", "x".repeat(TEXT_BYTES))));
    }
    last += 1;
    server.put("d", 2_000, "a", ValueRef::String(&format!("{last}:")));
    let newest = format!("{last}:");
    let mut told = 0;
    loop {
        let update = slow.next().await;
        let samples = update["data"]["a"].as_array().unwrap();
        told += samples.len();
        if samples.last().unwrap()[1] == newest {
            break;
        }
    }
    assert!(told < last, "{told} of {last} values were told");
    drop(slow);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_vanishes_is_not_a_refusal() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let mut client = Client::connect(&server, &server.session()).await;
    client.subscribe(1, &id, json!({})).await;
    client.next().await;
    drop(client);
    while !server.metrics().contains("tacho_connections{door=\"http\"} 0\n") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(!server.metrics().contains("tacho_refusals_total{"));
    server.put("d", 1_000, "a", ValueRef::I64(1));
    server.stop().await;
}

#[tokio::test]
async fn frames_that_break_the_protocol_close_the_socket_with_1002() {
    let server = Server::start().await;
    let mut client = Client::connect(&server, &server.session()).await;
    // A text frame without a mask, which only servers may send (RFC 6455 §5.1).
    client.0.get_mut().write_all(&[0x81, 1, b'x']).await.unwrap();
    assert_eq!(client.closing().await.0, CloseCode::Protocol);
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="websocket"} 1"#));
    drop(client);
    server.stop().await;
}

#[tokio::test]
async fn a_client_with_too_many_unread_bytes_is_closed_with_the_limit() {
    /// A device may not have more new keys in a minute.
    const KEYS: usize = 250;
    const DEVICES: usize = 40;
    let server = Server::start().await;
    let mut client = Client::connect(&server, &server.session()).await;
    for device in 0..DEVICES {
        let name = format!("d{device}");
        let id = server.add_device(&name);
        server.series(&name);
        client.subscribe(device as i64 + 1, &id, json!({})).await;
        assert_eq!(client.next().await["errorCode"], 0);
    }
    // Each key once, so that the mailbox cannot reduce the updates.
    let text = "x".repeat(64_000);
    let given_up = r#"tacho_refusals_total{door="http",reason="live_unread"} 1"#;
    let mut keys = 0;
    while !server.metrics().contains(given_up) {
        let device = format!("d{}", keys / KEYS);
        server.put(&device, 1, &format!("key {}", keys % KEYS), ValueRef::String(&text));
        keys += 1;
        assert!(keys < KEYS * DEVICES, "the client still has its place");
        // This gives the session time to run.
        tokio::task::yield_now().await;
    }
    let (code, reason) = client.closing().await;
    assert_eq!(code, CloseCode::Again);
    assert!(reason.contains("LIVE_CONNECTION_BYTES_MAX is 33554432"), "{reason}");
    server.stop().await;
}
