//! InfluxDB's interface for queries.

use hub::caller::Role;
use model::ValueRef;
use model::limits::QueryLimits;
use serde_json::json;

use super::{Json, Reply, Server};

/// A server with points of two hosts in the tenant's own database.
async fn with_points() -> Server {
    let server = Server::start().await;
    server.hub.open_sql(QueryLimits::default()).unwrap();
    let lines = "cpu,host=a usage=1.5,up=true 1700000000\ncpu,host=a usage=2 1700000010\n\
                 cpu,host=b usage=8,note=\"x \\\"y\\\"\" 1700000005\nmem,host=a free=7i 1700000000";
    server.influx_write("tacho", lines).await;
    server
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl Server {
    async fn influx_write(&self, database: &str, lines: &str) {
        let path = format!("/write?db={database}&precision=s");
        let reply = self.request("POST", &path).session(&self.session()).body(lines).send().await;
        assert_eq!(reply.status, 204, "{}", reply.text());
    }

    /// A GET request for answers, in seconds and from the tenant's own database.
    async fn influx(&self, query: &str, more: &str) -> Reply {
        self.get(&format!("/query?db=tacho&epoch=s&q={}{more}", encoded(query))).await
    }

    /// A POST request with a form.
    async fn influx_form(&self, session: &str, database: &str, query: &str) -> Reply {
        let body = format!("db={database}&q={}", encoded(query));
        let request = self.request("POST", "/query").session(session);
        request.header("content-type", "application/x-www-form-urlencoded").body(body).send().await
    }

    /// The only result of a query.
    async fn influx_result(&self, query: &str) -> Json {
        let answer = self.influx(query, "").await.ok();
        assert_eq!(answer["results"].as_array().unwrap().len(), 1, "{answer}");
        answer["results"][0].clone()
    }

    async fn influx_values(&self, query: &str) -> Json {
        self.influx_result(query).await["series"][0]["values"].clone()
    }
}

#[tokio::test]
async fn rows_are_answered_in_the_shape_of_influxdb() {
    let server = with_points().await;
    let reply = server.influx("SELECT usage, note FROM cpu GROUP BY host; SHOW DATABASES", "").await;
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.headers["x-influxdb-version"], "1.8.10");
    let expected = r#"{"results":[{"statement_id":0,"series":[{"name":"cpu","tags":{"host":"a"},"columns":["time","usage","note"],"values":[[1700000000,1.5,null],[1700000010,2,null]]},{"name":"cpu","tags":{"host":"b"},"columns":["time","usage","note"],"values":[[1700000005,8,"x \"y\""]]}]},{"statement_id":1,"series":[{"name":"databases","columns":["name"],"values":[["tacho"]]}]}]}"#;
    assert_eq!(reply.text(), format!("{expected}\n"));
    let times = server.get(&format!("/query?db=tacho&q={}", encoded("SELECT free FROM mem"))).await.ok();
    assert_eq!(times["results"][0]["series"][0]["values"], json!([["2023-11-14T22:13:20Z", 7]]));
    let empty = server.influx("SELECT usage FROM nosuch", "").await;
    assert_eq!(empty.text(), "{\"results\":[{\"statement_id\":0}]}\n");
    assert_eq!(server.influx(";", "").await.text(), "{}\n");
}

#[tokio::test]
async fn chunks_csv_and_indented_json_are_other_forms_of_an_answer() {
    let server = with_points().await;
    let select = "SELECT usage FROM cpu";
    let chunked = server.influx(select, "&chunked=true&chunk_size=2").await;
    let text = String::from_utf8_lossy(&chunked.body);
    let documents: Vec<Json> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(Json::is_object).collect();
    assert_eq!(documents.len(), 2, "{text}");
    assert_eq!(documents[0]["results"][0]["partial"], true);
    assert_eq!(documents[1]["results"][0]["series"][0]["values"], json!([[1_700_000_010, 2]]));
    let pretty = server.influx(select, "&pretty=true").await;
    assert!(pretty.text().starts_with("{\n    \"results\": [\n        {\n            \"statement_id\": 0,"));
    assert_eq!(pretty.json(), server.influx(select, "").await.json());
    let path =
        format!("/query?db=tacho&q={}", encoded("SELECT usage FROM cpu WHERE host = 'b'; SHOW DATABASES"));
    let csv = server.request("GET", &path).session(&server.session()).header("accept", "text/csv");
    let csv = csv.send().await;
    assert_eq!(csv.headers["content-type"], "text/csv");
    assert_eq!(
        csv.text(),
        "name,tags,time,usage\ncpu,,1700000005000000000,8\n\nname,tags,name\ndatabases,,tacho\n"
    );
}

#[tokio::test]
async fn errors_are_where_clients_look_for_them() {
    let server = with_points().await;
    let wrong = server.influx("SELEKT 1", "").await;
    assert_eq!(wrong.status, 400);
    let message = wrong.json()["error"].as_str().unwrap().to_owned();
    assert!(message.starts_with("error parsing query: found SELEKT, expected SELECT"), "{message}");
    assert_eq!(wrong.headers["x-influxdb-error"], message);
    assert_eq!(
        server.get("/query?db=tacho").await.json(),
        json!({"error": "missing required parameter \"q\""})
    );
    let results = server
        .influx("SHOW DATABASES; SELECT f(usage) FROM cpu; SELECT usage FROM cpu; SHOW SERIES", "")
        .await
        .ok();
    let errors: Vec<&str> =
        results["results"].as_array().unwrap().iter().filter_map(|result| result["error"].as_str()).collect();
    assert_eq!(errors, ["undefined function f()", "not executed", "not executed"]);
    for (query, error) in [
        ("SELECT v FROM nosuch..m", "database not found: nosuch"),
        ("SELECT v FROM week.m", "retention policy not found: week"),
        ("SHOW STATS", "SHOW STATS is not supported: `GET /metrics` has the counters of the server"),
        ("SELECT usage FROM (SELECT usage INTO x FROM cpu)", "INTO is not supported in a subquery"),
    ] {
        assert_eq!(server.influx_result(query).await["error"], error, "{query}");
    }
    let unknown = server.request("GET", "/query?q=SHOW+DATABASES").send().await;
    assert_eq!(unknown.status, 401);
    assert!(unknown.json()["error"].is_string());
    let viewer = server.session_of("viewer@example.org", Role::Viewer, None);
    let refused = server.influx_form(&viewer, "tacho", "CREATE DATABASE x").await;
    assert_eq!(refused.status, 403);
    assert!(refused.json()["error"].as_str().unwrap().starts_with("error authorizing query: "));
    let flux = server.request("POST", "/api/v2/query?org=o").body("from(bucket: \"b\")").send().await;
    assert_eq!((flux.status, &flux.json()["code"]), (501, &"not implemented".into()));
}

#[tokio::test]
async fn hostile_queries_are_answered_or_refused() {
    let server = with_points().await;
    assert_eq!(server.influx_values(r"SELECT usage FROM cpu WHERE note = 'x \'y'").await, Json::Null);
    assert_eq!(
        server.influx_values("SELECT usage FROM cpu WHERE note = 'x \"y\"'").await,
        json!([[1_700_000_005, 8]])
    );
    assert_eq!(
        server.influx_values("SELECT usage FROM cpu WHERE host =~ /^(a+)+$/").await.as_array().unwrap().len(),
        2
    );
    let huge = server.influx("SELECT usage FROM cpu WHERE host =~ /((a{100}){100}){100}/", "").await;
    assert_eq!(huge.status, 400, "{}", huge.text());
    let long = format!("SELECT usage FROM cpu WHERE host = '{}'", "a".repeat(1024 * 1024));
    let refused = server.influx_form(&server.session(), "tacho", &long).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let long = format!("SELECT usage FROM cpu WHERE host = '{}'", "a".repeat(1024 * 1024 - 100));
    assert_eq!(
        server.influx_form(&server.session(), "tacho", &long).await.text(),
        "{\"results\":[{\"statement_id\":0}]}\n"
    );
    let params = server.influx("SELECT usage FROM cpu WHERE host = $h", "&params=h").await;
    assert!(params.json()["error"].as_str().unwrap().starts_with("error parsing query parameters: "));
    let bound = format!("&params={}", encoded(r#"{"h": "a' OR host != '"}"#));
    assert_eq!(
        server.influx("SELECT usage FROM cpu WHERE host = $h", &bound).await.ok(),
        json!({"results": [{"statement_id": 0}]})
    );
    let many = "SHOW DATABASES;".repeat(1_001);
    assert!(server.influx_form(&server.session(), "tacho", &many).await.text().contains("1000 statements"));
}

#[tokio::test]
async fn databases_are_created_and_dropped() {
    let server = with_points().await;
    let admin = server.session();
    let created = server.influx_form(&admin, "", "CREATE DATABASE metrics WITH REPLICATION 1").await;
    assert_eq!(created.text(), "{\"results\":[{\"statement_id\":0}]}\n");
    server.influx_write("metrics", "other v=1 1700000000").await;
    assert_eq!(server.influx_values("SHOW DATABASES").await, json!([["tacho"], ["metrics"]]));
    assert_eq!(server.influx_values("SELECT v FROM metrics..other").await, json!([[1_700_000_000, 1]]));
    assert_eq!(server.influx_values("SHOW MEASUREMENTS ON metrics").await, json!([["other"]]));
    assert_eq!(server.influx_result("SELECT v FROM other").await, json!({"statement_id": 0}));
    assert_eq!(
        server.influx_values("SHOW RETENTION POLICIES ON metrics").await,
        json!([["autogen", "0s", "168h0m0s", 1, true]])
    );
    let dropped = server.influx_result("DROP DATABASE metrics").await;
    let text =
        "deprecated use of 'DROP DATABASE metrics' in a read only context, please use a POST request instead";
    assert_eq!(dropped["messages"], json!([{"level": "warning", "text": text}]));
    assert_eq!(server.influx_values("SHOW DATABASES").await, json!([["tacho"]]));
    for refused in [
        "CREATE DATABASE x WITH DURATION 1d",
        "CREATE DATABASE x WITH NAME week",
        "DROP DATABASE tacho",
        "CREATE RETENTION POLICY week ON tacho DURATION 7d REPLICATION 1",
        "CREATE USER x WITH PASSWORD 'y'",
    ] {
        assert!(server.influx_result(refused).await["error"].is_string(), "{refused}");
    }
}

#[tokio::test]
async fn rows_series_and_measurements_are_deleted() {
    let server = with_points().await;
    let admin = server.session();
    for (change, query, left) in [
        (
            "DELETE FROM cpu WHERE host = 'a' AND time < 1700000005s",
            "SELECT usage FROM cpu",
            json!([[1_700_000_005, 8], [1_700_000_010, 2]]),
        ),
        ("DROP SERIES FROM /c.u/ WHERE host = 'b'", "SHOW SERIES FROM cpu", json!([["cpu,host=a"]])),
        ("DROP MEASUREMENT mem", "SHOW MEASUREMENTS WITH MEASUREMENT =~ /cpu|mem/", json!([["cpu"]])),
        ("DROP MEASUREMENT mem", "SELECT usage FROM cpu", json!([[1_700_000_010, 2]])),
        ("DELETE WHERE time > 0", "SELECT usage FROM cpu", Json::Null),
    ] {
        let done = server.influx_form(&admin, "tacho", change).await;
        assert_eq!(done.text(), "{\"results\":[{\"statement_id\":0}]}\n", "{change}");
        assert_eq!(server.influx_values(query).await, left, "{change}");
    }
    let audit = server.influx_values("SELECT act FROM audit WHERE act =~ /delete|drop/").await;
    assert!(audit.as_array().is_some_and(|acts| acts.len() >= 4), "the traces of the acts stay: {audit}");
    let refused = server.influx_form(&admin, "tacho", "DELETE FROM audit").await.ok();
    assert!(refused["results"][0]["error"].as_str().unwrap().contains("nobody can delete"));
    server.influx_write("tacho", "cpu,host=b usage=9 1700000020").await;
    assert_eq!(server.influx_values("SELECT usage FROM cpu").await, json!([[1_700_000_020, 9]]));
}

#[tokio::test]
async fn a_caller_sees_what_is_its_own() {
    let server = with_points().await;
    let (acme, of_acme) = server.customer("acme").await;
    let [mine, _] = ["mine", "theirs"].map(|name| server.add_device(name));
    for name in ["mine", "theirs"] {
        server.put(name, 1_700_000_000_000, "speed", ValueRef::I64(5));
    }
    server.post(&format!("/api/customer/{acme}/device/{mine}"), "").await.ok();
    let as_customer = async |query: &str| {
        let path = format!("/query?db=tacho&epoch=s&q={}", encoded(query));
        server.request("GET", &path).session(&of_acme).send().await.ok()["results"][0].clone()
    };
    for query in [
        "SELECT speed FROM telemetry GROUP BY device",
        "SELECT speed FROM (SELECT speed FROM telemetry) GROUP BY device",
    ] {
        let seen = as_customer(query).await;
        assert_eq!(seen["series"].as_array().unwrap().len(), 1, "{seen}");
        assert_eq!(seen["series"][0]["tags"], json!({"device": "mine"}));
    }
    assert_eq!(
        as_customer("SHOW TAG VALUES WITH KEY = device").await["series"][0]["values"],
        json!([["device", "mine"]])
    );
    assert_eq!(as_customer("SHOW SERIES").await["series"][0]["values"], json!([["telemetry,device=mine"]]));
    assert_eq!(as_customer("SHOW SERIES CARDINALITY").await["series"][0]["values"], json!([[1]]));
    for query in ["SELECT usage FROM cpu", "SELECT * FROM audit", "SHOW TAG KEYS FROM cpu"] {
        assert_eq!(as_customer(query).await, json!({"statement_id": 0}), "{query}");
    }
    server.influx_form(&server.session(), "", "CREATE DATABASE metrics").await;
    server.influx_write("metrics", "m,device=theirs v=1 1700000000\nm,device=mine v=2 1700000000").await;
    assert_eq!(
        as_customer("SELECT v FROM metrics..m").await["series"][0]["values"],
        json!([[1_700_000_000, 2]])
    );
    let deleted = server.influx_form(&of_acme, "tacho", "DELETE FROM telemetry").await;
    assert_eq!(deleted.status, 403);

    let eve = server.foreign_session();
    for (query, expected) in [
        ("SHOW DATABASES", json!([["tacho"]])),
        ("SHOW SERIES", Json::Null),
        ("SELECT speed FROM telemetry", Json::Null),
    ] {
        let path = format!("/query?db=tacho&q={}", encoded(query));
        let seen = server.request("GET", &path).session(&eve).send().await.ok();
        assert_eq!(seen["results"][0]["series"][0]["values"], expected, "{query}: {seen}");
    }
    let foreign = server.influx_form(&eve, "metrics", "SELECT v FROM m").await.ok();
    assert_eq!(foreign["results"][0]["error"], "database not found: metrics");
    server.influx_form(&eve, "", "DROP DATABASE metrics").await.ok();
    assert_eq!(
        server.influx_values("SELECT v FROM metrics..m WHERE device = 'mine'").await,
        json!([[1_700_000_000, 2]])
    );
}

#[tokio::test]
async fn a_query_over_a_limit_says_so_in_its_result() {
    let server = with_points().await;
    let buckets = server.influx_result("SELECT mean(usage) FROM cpu WHERE time > 0 GROUP BY time(1s)").await;
    assert!(buckets["error"].as_str().unwrap().starts_with("max-select-buckets limit exceeded"), "{buckets}");
}
