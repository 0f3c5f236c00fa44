//! RPC over REST and over the device API.

use super::{Json, Reply, Server};

fn path(kind: &str, id: &str) -> String {
    format!("/api/rpc/{kind}/{id}")
}

/// The time after some milliseconds.
fn in_millis(millis: i64) -> i64 {
    hub::clock::system_now().millis() + millis
}

impl Server {
    fn poll(&self, name: &str, timeout_ms: u64) -> impl Future<Output = Reply> + use<> {
        let request = self.request("GET", &format!("/api/v1/token-{name}/rpc?timeout={timeout_ms}"));
        request.send()
    }

    /// Waits until a device polls.
    async fn polled(&self) {
        while !self.metrics().contains("tacho_device_outboxes 1") {
            tokio::task::yield_now().await;
        }
    }

    async fn answer(&self, name: &str, id: i64, answer: &str) -> Reply {
        self.request("POST", &format!("/api/v1/token-{name}/rpc/{id}")).body(answer).send().await
    }
}

#[tokio::test]
async fn a_two_way_call_brings_the_answer_of_the_device() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let poll = tokio::spawn(server.poll("d", 60_000));
    let path = path("twoway", &id);
    let body = r#"{"method":"getTemp","params":{"unit": "C"}}"#;
    let device = async {
        let call = poll.await.unwrap().ok();
        assert_eq!((&call["method"], &call["params"]["unit"]), (&"getTemp".into(), &"C".into()));
        let number = call["id"].as_i64().unwrap();
        let wrong = server.answer("d", number + 1, "0").await;
        assert_eq!((wrong.status, wrong.body.len()), (200, 0), "no call has this number");
        assert_eq!(server.answer("d", number, r#"{"temp": 21.5}"#).await.status, 200);
    };
    let (reply, ()) = tokio::join!(server.post(&path, body), device);
    assert_eq!((reply.status, reply.text()), (200, r#"{"temp": 21.5}"#));
    assert_eq!(reply.headers["content-type"], "application/json");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_not_json_is_not_acceptable_and_an_empty_one_is() {
    let server = Server::start().await;
    let id = server.add_device("d");
    for (answer, status) in [("{temp", 406), ("", 200)] {
        let poll = tokio::spawn(server.poll("d", 60_000));
        let device = async {
            let number = poll.await.unwrap().ok()["id"].as_i64().unwrap();
            server.answer("d", number, answer).await
        };
        let path = path("twoway", &id);
        let (reply, _) = tokio::join!(server.post(&path, r#"{"method":"m"}"#), device);
        assert_eq!(reply.status, status);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_one_way_call_reaches_the_next_poll() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let path = path("oneway", &id);
    let params = format!("\"{}\"", "x".repeat(1_000_000));
    let body = format!(r#"{{"method":"show","params":{params}}}"#);
    let (reply, call) = tokio::join!(server.post(&path, &body), server.poll("d", 60_000));
    assert_eq!((reply.status, reply.body.len()), (200, 0));
    assert_eq!(call.ok()["params"].as_str().unwrap().len(), 1_000_000);
    server.stop().await;
}

#[tokio::test]
async fn the_status_tells_a_silent_device_from_an_absent_one_in_version_one_only() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let body = |millis| format!(r#"{{"method":"m","params":{{}},"expirationTime":{}}}"#, in_millis(millis));
    for (path, absent, silent) in [("/api/plugins/rpc/twoway", 409, 408), ("/api/rpc/twoway", 504, 504)] {
        let path = format!("{path}/{id}");
        server.post(&path, &body(0)).await.refusal(absent, 2);
        let poll = tokio::spawn(server.poll("d", 60_000));
        server.polled().await;
        let message = server.post(&path, &body(500)).await.refusal(silent, 2);
        assert!(message.contains("did not answer"), "{message}");
        let number = poll.await.unwrap().ok()["id"].as_i64().unwrap();
        assert_eq!(server.answer("d", number, "1").await.status, 200, "too late");
    }
    assert!(server.metrics().contains("tacho_rpc_late_answers_total 2"));
    server.stop().await;
}

#[tokio::test]
async fn a_poll_without_a_call_ends_with_its_timeout() {
    let server = Server::start().await;
    server.add_device("d");
    let reply = server.poll("d", 20).await;
    assert_eq!((reply.status, reply.body.len()), (408, 0));
    server.poll("e", 20).await.refusal(401, 10);
    server.stop().await;
}

#[tokio::test]
async fn a_stopping_server_ends_polls() {
    let server = Server::start().await;
    server.add_device("d");
    let poll = tokio::spawn(server.poll("d", 300_000));
    server.polled().await;
    server.stop().await;
    assert_eq!(poll.await.unwrap().status, 408);
}

#[tokio::test]
async fn wrong_calls_are_refused() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let two_way = path("twoway", &id);
    let message = server.post(&two_way, r#"{"params":{}}"#).await.refusal(400, 31);
    assert!(message.contains("method"), "{message}");
    server.post(&two_way, r#"{"method":"","params":{}}"#).await.refusal(400, 30);
    let far = format!(r#"{{"method":"m","expirationTime":{}}}"#, in_millis(7_200_000));
    assert!(server.post(&two_way, &far).await.refusal(400, 30).contains("make the call persistent"));
    let long = format!(r#"{{"method":"m","params":"{}"}}"#, "x".repeat(1024 * 1024));
    server.post(&two_way, &long).await.refusal(400, 30);
    server.post(&path("twoway", "7"), r#"{"method":"m"}"#).await.refusal(400, 30);
    let unknown = path("twoway", "00000000-0000-0000-0000-000000000000");
    server.post(&unknown, r#"{"method":"m"}"#).await.refusal(404, 32);
    let request = server.request("POST", &two_way).session(&server.public_session());
    request.body(r#"{"method":"m"}"#).send().await.refusal(403, 20);
    server.answer("d", -1, "1").await;
    let answer = server.request("POST", "/api/v1/token-d/rpc/x").body("1").send().await;
    answer.refusal(400, 30);
    server.stop().await;
}

#[tokio::test]
async fn a_device_calls_the_server() {
    let server = Server::start().await;
    server.add_device("d");
    let call = async |body: &str| server.request("POST", "/api/v1/token-d/rpc").body(body).send().await;
    let limits = call(r#"{"method":"getSessionLimits","params":{}}"#).await.ok();
    assert_eq!(limits["rateLimits"]["messages"], "0:0,");
    assert_eq!(limits["maxPayloadSize"], 4 * 1024 * 1024);
    let unknown = call(r#"{"method":"getCurrentTime","params":{}}"#).await.ok();
    assert_eq!(unknown["error"], "the server has no procedure \"getCurrentTime\"");
    call("{").await.refusal(400, 31);
    server.request("POST", "/api/v1/nobody/rpc").body("{}").send().await.refusal(401, 10);
    assert!(server.metrics().contains("tacho_rpc_from_devices_total 2"));
    server.stop().await;
}

#[tokio::test]
async fn a_persistent_call_has_a_status_until_it_is_deleted() {
    let server = Server::start().await;
    let id = server.add_device("d");
    let end = in_millis(600_000);
    let body = format!(
        r#"{{"method":"open","params":{{"door": 2}},"persistent":true,"expirationTime":{end},"retries":2,"additionalInfo":[1]}}"#
    );
    let stored = server.post(&path("twoway", &id), &body).await.ok()["rpcId"].as_str().unwrap().to_owned();
    let stored_path = format!("/api/rpc/persistent/{stored}");
    let call = server.get(&stored_path).await.ok();
    assert_eq!((&call["status"], &call["response"]), (&"QUEUED".into(), &Json::Null));
    assert_eq!((&call["expirationTime"], &call["additionalInfo"]), (&end.into(), &serde_json::json!([1])));
    let request = &call["request"];
    assert_eq!(request["body"], serde_json::json!({"method": "open", "params": r#"{"door": 2}"#}));
    assert_eq!((&request["oneway"], &request["retries"]), (&false.into(), &2.into()));
    let number = server.poll("d", 60_000).await.ok()["id"].as_i64().unwrap();
    assert_eq!(server.get(&stored_path).await.ok()["status"], "DELIVERED");
    assert_eq!(server.poll("d", 20).await.status, 408, "a poll gets a call once");
    assert_eq!(server.answer("d", number, r#"{"open":true}"#).await.status, 200);
    let call = server.get(&stored_path).await.ok();
    assert_eq!((&call["status"], &call["response"]["open"]), (&"SUCCESSFUL".into(), &true.into()));
    let of_device = format!("/api/rpc/persistent/device/{id}?pageSize=10&page=0");
    let page = server.get(&of_device).await.ok();
    assert_eq!((&page["totalElements"], &page["data"][0]["id"]["id"]), (&1.into(), &stored.as_str().into()));
    assert_eq!(server.get(&format!("{of_device}&rpcStatus=QUEUED")).await.ok()["totalElements"], 0);
    let delete = async || server.request("DELETE", &stored_path).session(&server.session()).send().await;
    assert_eq!(delete().await.status, 200);
    delete().await.refusal(404, 32);
    server.get(&stored_path).await.refusal(404, 32);
    server.get("/api/rpc/persistent/x").await.refusal(400, 30);
    let public = server.request("GET", &of_device).session(&server.public_session()).send().await;
    public.refusal(403, 20);
    server.stop().await;
}
