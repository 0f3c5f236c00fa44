use model::ValueRef;
use model::limits::QueryLimits;
use serde_json::json;

use super::{Json, Reply, Server};

/// The bytes of a chunked body, and whether it has its end.
pub(super) fn chunks(reply: &Reply) -> (Vec<u8>, bool) {
    assert_eq!(reply.headers.get("transfer-encoding").map(String::as_str), Some("chunked"), "{reply:?}");
    let (mut rest, mut bytes) = (reply.body.as_slice(), Vec::new());
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return (bytes, false) };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return (bytes, true);
        }
        let body = &rest[end + 2..];
        if body.len() < size + 2 {
            return ([bytes, body.to_vec()].concat(), false);
        }
        bytes.extend_from_slice(&body[..size]);
        rest = &body[size + 2..];
    }
}

#[track_caller]
fn whole(reply: &Reply) -> Vec<u8> {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    let (bytes, is_whole) = chunks(reply);
    assert!(is_whole);
    bytes
}

/// A server with SQL and two values of one device.
async fn with_values(limits: QueryLimits) -> Server {
    let server = Server::start_with(|options| options.public_read = true).await;
    server.hub.open_sql(limits).unwrap();
    server.add_device("d");
    server.put("d", 1_700_000_000_000, "speed", ValueRef::F64(52.5));
    server.put("d", 1_700_000_001_000, "speed", ValueRef::F64(53.0));
    server
}

impl Server {
    async fn ask(&self, body: &Json) -> Reply {
        let request = self.request("POST", "/api/sql").session(&self.session());
        request.header("content-type", "application/json").body(body.to_string()).send().await
    }

    async fn sql(&self, query: &str, format: &str) -> Reply {
        self.ask(&json!({ "query": query, "format": format })).await
    }

    async fn rows(&self, query: &str) -> Json {
        let reply = self.sql(query, "json").await;
        serde_json::from_slice::<Json>(&whole(&reply)).unwrap()["rows"].clone()
    }
}

const QUERY: &str = "SELECT ts, device, speed FROM telemetry ORDER BY ts";

#[tokio::test]
async fn a_query_is_answered_in_every_form() {
    let server = with_values(QueryLimits::default()).await;
    let reply = server.sql(QUERY, "json").await;
    assert_eq!(reply.headers["content-type"], "application/json");
    let answer: Json = serde_json::from_slice(&whole(&reply)).unwrap();
    let expected = json!({
        "columns": [
            { "name": "ts", "type": "timestamp" },
            { "name": "device", "type": "string" },
            { "name": "speed", "type": "f64" },
        ],
        "rows": [
            ["2023-11-14T22:13:20.000000Z", "d", 52.5],
            ["2023-11-14T22:13:21.000000Z", "d", 53.0],
        ],
        "row_count": 2,
    });
    assert_eq!(answer, expected);

    let csv = server.sql(QUERY, "csv").await;
    assert!(csv.headers["content-type"].starts_with("text/csv"));
    let expected =
        "ts,device,speed\r\n2023-11-14T22:13:20.000000Z,d,52.5\r\n2023-11-14T22:13:21.000000Z,d,53.0\r\n";
    assert_eq!(String::from_utf8(whole(&csv)).unwrap(), expected);

    let arrow = server.sql(QUERY, "arrow").await;
    assert_eq!(arrow.headers["content-type"], "application/vnd.apache.arrow.stream");
    assert_eq!(whole(&arrow)[..4], [0xff; 4], "the stream begins with a continuation marker");

    let parquet = server.sql(QUERY, "parquet").await;
    assert!(parquet.headers["content-disposition"].contains("answer.parquet"));
    let bytes = whole(&parquet);
    assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (b"PAR1".as_slice(), b"PAR1".as_slice()));
    server.stop().await;
}

#[tokio::test]
async fn get_takes_the_query_in_the_address() {
    let server = with_values(QueryLimits::default()).await;
    let reply = server.get("/api/sql?q=SELECT%20count(*)%20AS%20n%20FROM%20telemetry&format=csv").await;
    assert_eq!(whole(&reply), b"n\r\n2\r\n");
    let session = server.session();
    let asked = server.request("GET", "/api/sql?q=SELECT%201%20AS%20one").session(&session);
    assert_eq!(whole(&asked.header("accept", "text/csv").send().await), b"one\r\n1\r\n");
    server.stop().await;
}

#[tokio::test]
async fn parameters_are_bound() {
    let server = with_values(QueryLimits::default()).await;
    let body = json!({
        "query": "SELECT speed FROM telemetry WHERE device = $1 AND ts > $2 AND speed > $3",
        "params": ["d", "2023-11-14T22:13:20Z", 1],
    });
    let reply = server.ask(&body).await;
    let answer: Json = serde_json::from_slice(&whole(&reply)).unwrap();
    assert_eq!(answer["rows"], json!([[53.0]]));
    server.stop().await;
}

#[tokio::test]
async fn a_refused_payload_is_hidden_from_public_sessions() {
    let server = with_values(QueryLimits::default()).await;
    assert_eq!(server.report("d", "{\"speed\": NaN}").await.status, 400);
    let rows = server.rows("SELECT device, payload FROM dead_letter").await;
    assert_eq!(rows, json!([["d", "{\"speed\": NaN}"]]));

    let public = server.public_session();
    let ask = |query: &str| {
        let body = json!({ "query": query }).to_string();
        server
            .request("POST", "/api/sql")
            .session(&public)
            .header("content-type", "application/json")
            .body(body)
    };
    assert_eq!(ask("SELECT count(*) FROM telemetry").send().await.status, 200);
    let message = ask("SELECT * FROM dead_letter").send().await.refusal(400, 30);
    assert!(message.contains("\"dead_letter\" does not exist"), "{message}");
    let names = ask("SELECT table_name FROM information_schema.tables").send().await;
    assert!(!String::from_utf8(whole(&names)).unwrap().contains("dead_letter"));
    server.stop().await;
}

#[tokio::test]
async fn errors_of_queries_have_the_common_shape_and_a_remedy() {
    let server = with_values(QueryLimits::default()).await;
    for (query, part) in [
        ("SELEKT 1", "syntax error"),
        ("SELECT * FROM telemetri", "did you mean \"telemetry\""),
        ("SELECT sped FROM telemetry", "did you mean \"speed\""),
        ("DELETE FROM telemetry", "WHERE true"),
        ("SELECT 1; SELECT 2", "one by one"),
    ] {
        let message = server.sql(query, "json").await.refusal(400, 30);
        assert!(message.contains(part), "{query}: {message}");
    }
    let nobody = server.request("GET", "/api/sql?q=SELECT%201").send().await;
    assert!(nobody.refusal(401, 10).contains("/api/auth/login"));
    assert!(server.metrics().contains(r#"tacho_refusals_total{door="http",reason="query"} 5"#));
    server.stop().await;
}

#[tokio::test]
async fn a_late_error_truncates_the_answer() {
    let server = with_values(QueryLimits::default()).await;
    let late = "SELECT 10 / (value - 20000) AS x FROM generate_series(1, 30000) AS t(value)";
    let reply = server.sql(late, "json").await;
    let answer: Json = serde_json::from_slice(&whole(&reply)).unwrap();
    assert!(!answer["rows"].as_array().unwrap().is_empty());
    assert!(answer["error"]["message"].as_str().unwrap().contains("division by zero"), "{}", answer["error"]);
    assert!(answer.get("row_count").is_none());
    for format in ["csv", "arrow"] {
        let reply = server.sql(late, format).await;
        let (bytes, is_whole) = chunks(&reply);
        assert!(!bytes.is_empty() && !is_whole, "{format}");
    }
    server.stop().await;
}

#[tokio::test]
async fn exceeded_limits_are_named() {
    let limits = QueryLimits { memory_bytes_max: 1024 * 1024, ..QueryLimits::default() };
    let server = with_values(limits).await;
    let big =
        "SELECT value, count(*) FROM generate_series(1, 1000000) AS t(value) GROUP BY value ORDER BY 1 DESC";
    let message = server.sql(big, "json").await.refusal(422, 31);
    assert!(message.contains("1 MiB"), "{message}");
    server.stop().await;
}

#[tokio::test]
async fn a_closed_connection_ends_the_query() {
    let server = with_values(QueryLimits { running_max: 1, waiting_max: 1, ..QueryLimits::default() }).await;
    // This query takes the only permit and does not end by itself within the test.
    let endless = "SELECT count(*) FROM generate_series(1, 100000000000) AS a(x)";
    let body = json!({ "query": endless }).to_string();
    let request = server.request("POST", "/api/sql").session(&server.session()).body(body);
    let asking = tokio::spawn(request.header("content-type", "application/json").send());
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    asking.abort();
    assert_eq!(server.rows("SELECT 1").await, json!([[1]]));
    server.stop().await;
}
