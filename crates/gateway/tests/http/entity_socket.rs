//! `/api/ws`: subscriptions by queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::{Batch, Timestamp, ValueRef};
use serde_json::{Value as Json, json};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::Server;
use super::websocket::Client;

/// A client with the administrator's session.
async fn connect(server: &Server) -> Client {
    Client::to(server, &format!("/api/ws?token={}", server.session())).await
}

fn key(kind: &str, key: &str) -> Json {
    json!({ "type": kind, "key": key })
}

/// A query of all devices with the selected keys.
fn devices(page_size: usize, latest: Json) -> Json {
    json!({
        "entityFilter": { "type": "entityType", "entityType": "DEVICE" },
        "pageLink": { "page": 0, "pageSize": page_size, "dynamic": false },
        "entityFields": [key("ENTITY_FIELD", "name")],
        "latestValues": latest,
    })
}

fn entity_data(cmd_id: i64, members: Json) -> Json {
    let mut command = json!({ "type": "ENTITY_DATA", "cmdId": cmd_id });
    command.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!({ "cmds": [command] })
}

/// The times of a time series in a reply or an update.
fn times(row: &Json, key: &str) -> Vec<i64> {
    let points = row["timeseries"][key].as_array();
    points.into_iter().flatten().map(|point| point["ts"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn the_first_message_may_have_the_token_and_commands() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.put("d", 1_000, "a", ValueRef::I64(1));
    let mut client = Client::to(&server, "/api/ws").await;
    let mut message = entity_data(1, json!({ "query": devices(10, json!([key("TIME_SERIES", "a")])) }));
    message["authCmd"] = json!({ "cmdId": 0, "token": server.session() });
    client.send(&message).await;
    let reply = client.next().await;
    assert_eq!((&reply["cmdId"], &reply["errorCode"]), (&1.into(), &0.into()));
    assert_eq!((&reply["cmdUpdateType"], &reply["update"]), (&"ENTITY_DATA".into(), &Json::Null));
    assert_eq!(reply["allowedEntities"], 10_000);
    let data = &reply["data"];
    assert_eq!((&data["totalElements"], &data["hasNext"]), (&1.into(), &false.into()));
    assert_eq!(data["data"][0]["entityId"], json!({ "entityType": "DEVICE", "id": id }));
    assert_eq!(data["data"][0]["latest"]["TIME_SERIES"], json!({ "a": { "ts": 1000, "value": "1" } }));
    assert_eq!(data["data"][0]["latest"]["ENTITY_FIELD"]["name"]["value"], "d");
    client.send(&message).await;
    assert!(client.next().await["errorMsg"].as_str().unwrap().contains("authenticated"));
    server.stop().await;
}

#[tokio::test]
async fn a_socket_without_a_valid_token_is_closed() {
    let server = Server::start().await;
    for (message, part) in [
        (json!({ "cmds": [] }), "no authCmd"),
        (json!({ "authCmd": { "cmdId": 0, "token": "x" } }), "token"),
        (json!({ "tsSubCmds": [] }), "authCmd"),
    ] {
        let mut client = Client::to(&server, "/api/ws").await;
        client.send(&message).await;
        let (code, reason) = client.closing().await;
        assert!(code == CloseCode::Policy && reason.contains(part), "{reason}");
    }
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_closed_after_ten_seconds() {
    let server = Server::start().await;
    let mut client = Client::to(&server, "/api/ws").await;
    let (code, reason) = client.closing().await;
    assert!(code == CloseCode::Policy && reason.contains("10 s"), "{reason}");
    server.stop().await;
}

#[tokio::test]
async fn latest_values_continue_live_and_a_second_command_extends_the_first() {
    let server = Server::start().await;
    for name in ["a", "b"] {
        server.add_device(name);
        server.put(name, 1_000, "speed", ValueRef::I64(1));
    }
    let mut client = connect(&server).await;
    client.send(&entity_data(5, json!({ "query": devices(10, json!([])) }))).await;
    assert_eq!(client.next().await["data"]["totalElements"], 2);
    // Not live yet.
    server.put("a", 2_000, "speed", ValueRef::I64(2));
    let keys = json!([key("TIME_SERIES", "speed"), key("ENTITY_FIELD", "name")]);
    client.send(&entity_data(5, json!({ "latestCmd": { "keys": keys } }))).await;
    let reply = client.next().await;
    assert_eq!(reply["data"], Json::Null);
    let speeds: Vec<&Json> = reply["update"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["latest"]["TIME_SERIES"]["speed"]["value"])
        .collect();
    assert_eq!(speeds, ["2", "1"]);
    server.put("b", 3_000, "speed", ValueRef::F64(2.5));
    let live = client.next().await;
    let rows = live["update"].as_array().unwrap();
    assert_eq!((rows.len(), &live["cmdId"]), (1, &5.into()));
    assert_eq!(rows[0]["latest"], json!({ "TIME_SERIES": { "speed": { "ts": 3000, "value": "2.5" } } }));
    assert_eq!(rows[0]["timeseries"], json!({}));
    // The session sends no older values and no other keys.
    server.put("b", 2_500, "speed", ValueRef::I64(9));
    server.put("b", 4_000, "rpm", ValueRef::I64(9));
    server.put("a", 4_000, "speed", ValueRef::I64(4));
    assert_eq!(client.next().await["update"][0]["latest"]["TIME_SERIES"]["speed"]["ts"], 4000);
    client.send(&json!({ "cmds": [{ "type": "ENTITY_DATA_UNSUBSCRIBE", "cmdId": 5 }] })).await;
    client.send(&entity_data(5, json!({ "latestCmd": { "keys": keys } }))).await;
    let gone = client.next().await;
    assert_eq!((&gone["errorCode"], &gone["data"]), (&2.into(), &Json::Null));
    assert!(gone["errorMsg"].as_str().unwrap().contains("no subscription 5"), "{gone}");
    server.stop().await;
}

#[tokio::test]
async fn time_series_have_history_and_live_values() {
    let server = Server::start().await;
    server.add_device("a");
    for ts in [1_000, 2_000, 3_000] {
        server.put("a", ts, "speed", ValueRef::I64(ts));
    }
    let mut client = connect(&server).await;
    let part =
        json!({ "keys": ["speed"], "startTs": 2000, "timeWindow": 60_000, "limit": 10, "agg": "NONE" });
    client.send(&entity_data(1, json!({ "query": devices(10, json!([])), "tsCmd": part }))).await;
    let reply = client.next().await;
    assert_eq!(times(&reply["data"]["data"][0], "speed"), [3_000, 2_000]);
    server.put("a", 4_000, "speed", ValueRef::I64(4));
    let live = client.next().await;
    assert_eq!(live["update"][0]["timeseries"], json!({ "speed": [{ "ts": 4000, "value": "4" }] }));
    assert_eq!(live["update"][0]["latest"], json!({}));

    let history = json!({
        "keys": ["speed"], "startTs": 2_500, "endTs": 3_500, "limit": 10, "agg": "NONE",
        "fetchLatestPreviousPoint": true
    });
    client.send(&entity_data(2, json!({ "query": devices(10, json!([])), "historyCmd": history }))).await;
    let reply = client.next().await;
    assert_eq!((&reply["cmdId"], times(&reply["data"]["data"][0], "speed")), (&2.into(), vec![3_000, 2_000]));

    let sum = json!({ "id": 7, "key": "speed", "agg": "SUM", "previousStartTs": 0, "previousEndTs": 2_000 });
    let only = json!({ "id": 8, "key": "speed", "agg": "COUNT", "previousStartTs": 0, "previousEndTs": 9_000,
                       "previousValueOnly": true });
    let aggregates = json!({ "keys": [sum, only], "startTs": 2_000, "endTs": 9_000 });
    client
        .send(&entity_data(3, json!({ "query": devices(10, json!([])), "aggHistoryCmd": aggregates })))
        .await;
    let reply = client.next().await;
    let found = &reply["data"]["data"][0]["aggLatest"];
    assert_eq!(
        (&found["7"]["current"]["value"], &found["7"]["previous"]["value"]),
        (&"5004".into(), &"1000".into())
    );
    assert_eq!((&found["8"]["current"], &found["8"]["previous"]["value"]), (&Json::Null, &"4".into()));
    server.stop().await;
}

/// Values come in while a client subscribes: it gets each of them once, in the history or live.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_seam_between_history_and_live_values_has_no_gap_and_no_double() {
    let server = Server::start().await;
    server.add_device("a");
    let series = server.series("a");
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (hub, stop) = (Arc::clone(&server.hub), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut ts = 0;
            while !stop.load(Ordering::Relaxed) {
                ts += 1;
                let mut batch = Batch::new();
                let mut row = batch.builder();
                row.field("n", ValueRef::I64(ts));
                row.row(series, Timestamp::from_millis(ts).unwrap());
                row.finish();
                hub.ingest(&batch, hub::Durability::Fsync).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            ts
        })
    };
    for _ in 0..20 {
        let mut client = connect(&server).await;
        let part =
            json!({ "keys": ["n"], "startTs": 0, "timeWindow": 3_600_000, "limit": 100_000, "agg": "NONE" });
        client.send(&entity_data(1, json!({ "query": devices(10, json!([])), "tsCmd": part }))).await;
        let reply = client.next().await;
        let mut seen = times(&reply["data"]["data"][0], "n");
        seen.reverse();
        let enough = seen.last().copied().unwrap_or(0) + 50;
        while seen.last().is_none_or(|last| *last < enough) {
            let live = client.next().await;
            for row in live["update"].as_array().unwrap() {
                seen.extend(times(row, "n"));
            }
        }
        let expected: Vec<i64> = (1..=*seen.last().unwrap()).collect();
        assert_eq!(seen, expected);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(writer.join().unwrap() > 0);
    server.stop().await;
}

#[tokio::test]
async fn a_device_that_reports_for_the_first_time_joins() {
    let server = Server::start().await;
    server.add_device("a");
    let mut client = connect(&server).await;
    let keys = json!([key("TIME_SERIES", "speed")]);
    client
        .send(&entity_data(1, json!({ "query": devices(10, json!([])), "latestCmd": { "keys": keys } })))
        .await;
    let reply = client.next().await;
    assert_eq!(
        reply["data"]["data"][0]["latest"]["TIME_SERIES"],
        json!({ "speed": { "ts": 0, "value": "" } })
    );
    let device = server.hub.registry().device_by_name(server.hub.registry().default_tenant(), "a").unwrap();
    let caller = hub::caller::Caller::local(device.tenant);
    assert_eq!(server.hub.find_series_of(&caller, &device).unwrap(), None, "a reader creates no series");
    server.put("a", 1_000, "speed", ValueRef::I64(5));
    let joined = client.next().await;
    assert_eq!(
        joined["data"]["data"][0]["latest"]["TIME_SERIES"],
        json!({ "speed": { "ts": 1000, "value": "5" } })
    );
    server.put("a", 2_000, "speed", ValueRef::I64(6));
    assert_eq!(client.next().await["update"][0]["latest"]["TIME_SERIES"]["speed"]["value"], "6");
    server.stop().await;
}

#[tokio::test]
async fn counts_and_dynamic_pages_follow_changes() {
    let server = Server::start().await;
    server.add_device("a");
    let mut client = connect(&server).await;
    let all = json!({ "entityFilter": { "type": "entityType", "entityType": "DEVICE" } });
    client.send(&json!({ "cmds": [{ "type": "ENTITY_COUNT", "cmdId": 4, "query": all }] })).await;
    let count = |count: usize| json!({ "cmdId": 4, "errorCode": 0, "errorMsg": null, "cmdUpdateType": "COUNT_DATA", "count": count });
    assert_eq!(client.next().await, count(1));
    let mut query = devices(10, json!([]));
    query["pageLink"]["dynamic"] = true.into();
    client.send(&entity_data(5, json!({ "query": query }))).await;
    assert_eq!(client.next().await["data"]["totalElements"], 1);
    tokio::time::pause();
    server.add_device("b");
    let mut messages = [client.next().await, client.next().await];
    messages.sort_by_key(|message| message["cmdId"].as_i64());
    assert_eq!(messages[0], count(2));
    assert_eq!(messages[1]["data"]["totalElements"], 2);
    assert_eq!(messages[1]["data"]["data"][1]["latest"]["ENTITY_FIELD"]["name"]["value"], "b");
    server.stop().await;
}

#[tokio::test]
async fn wrong_commands_are_refused_one_by_one() {
    let server = Server::start().await;
    let id = server.add_device("d");
    server.put("d", 1_000, "a", ValueRef::I64(1));
    let mut client = connect(&server).await;
    client
        .send(&json!({ "cmds": [
            { "type": "FLY", "cmdId": 1 },
            { "type": "NOTIFICATIONS", "cmdId": 2, "limit": 1 },
            { "type": "ENTITY_DATA", "cmdId": 3, "query": { "entityFilter": { "type": "x" }, "pageLink": { "pageSize": 1 } } },
            { "type": "ENTITY_DATA", "cmdId": 4 },
            { "type": "ENTITY_COUNT", "cmdId": 5, "query": { "entityFilter": { "type": "apiUsageState" } } },
            { "type": "TIMESERIES", "cmdId": 6, "entityType": "DEVICE", "entityId": id, "scope": "LATEST_TELEMETRY" },
        ] }))
        .await;
    let unknown = client.next().await;
    assert_eq!((&unknown["subscriptionId"], &unknown["errorCode"]), (&1.into(), &2.into()));
    for (id, kind, part) in [
        (2, "NOTIFICATIONS", "not there"),
        (3, "ENTITY_DATA", "relationsQuery"),
        (4, "ENTITY_DATA", "neither a query"),
        (5, "COUNT_DATA", "is not there on this server"),
    ] {
        let refused = client.next().await;
        assert_eq!((&refused["cmdId"], &refused["cmdUpdateType"]), (&id.into(), &kind.into()), "{refused}");
        assert_eq!(refused["errorCode"], 2, "{refused}");
        assert!(refused["errorMsg"].as_str().unwrap().contains(part), "{refused}");
    }
    assert_eq!(client.next().await["data"], json!({ "a": [[1000, "1"]] }));
    let many = json!({ "cmds": vec![json!({ "type": "FLY" }); 10_001] });
    client.send(&many).await;
    let refused = client.next().await;
    assert_eq!(refused["subscriptionId"], i64::from(i32::MIN));
    assert!(refused["errorMsg"].as_str().unwrap().contains("SOCKET_COMMANDS_MAX"), "{refused}");
    let keys: Vec<Json> = (0..1_001).map(|n| key("TIME_SERIES", &n.to_string())).collect();
    client.send(&entity_data(7, json!({ "query": devices(10, Json::Array(keys)) }))).await;
    let refused = client.next().await;
    assert!(refused["errorMsg"].as_str().unwrap().contains("QUERY_KEYS_MAX"), "{refused}");
    server.stop().await;
}

#[tokio::test]
async fn another_tenants_entities_are_not_found() {
    let server = Server::start().await;
    let id = server.add_device("secret");
    let registry = server.hub.registry();
    let other = registry.add_tenant("other", "eve@example.org", "a long password").unwrap();
    let user = registry.users(other.id).remove(0);
    let token = registry.open_session(&user, hub::clock::system_now()).token;
    let mut client = Client::to(&server, &format!("/api/ws?token={token}")).await;
    let mut query = devices(10, json!([]));
    query["entityFilter"] =
        json!({ "type": "singleEntity", "singleEntity": { "entityType": "DEVICE", "id": id } });
    client.send(&entity_data(1, json!({ "query": query }))).await;
    assert_eq!(client.next().await["data"]["totalElements"], 0);
    let command = json!({ "type": "TIMESERIES", "cmdId": 2, "entityType": "DEVICE", "entityId": id });
    client.send(&json!({ "cmds": [command] })).await;
    let refused = client.next().await;
    assert_eq!((&refused["errorCode"], &refused["data"]), (&2.into(), &json!({})));
    server.stop().await;
}
