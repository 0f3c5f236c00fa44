//! Writers of the time-series interfaces: a busy store, slow disks, and packed answers.

use std::io::Read;
use std::time::Duration;

use flate2::read::GzDecoder;
use hub::caller::Role;
use model::limits::QueryLimits;
use wire::prometheus::{end_series, push_label, push_sample, start_series};

use super::{Reply, Server};

const DAY_MS: i64 = 1_700_000_000_000;

/// A request of remote write with one sample. A literal block of snappy has at most 60 bytes.
fn remote_write() -> Vec<u8> {
    let mut request = Vec::new();
    let mark = start_series(&mut request);
    push_label(&mut request, "__name__", "up");
    push_sample(&mut request, 1.0, DAY_MS);
    end_series(&mut request, mark);
    let length = u8::try_from(request.len()).unwrap();
    assert!(length <= 60);
    [&[length, (length - 1) << 2], &request[..]].concat()
}

impl Server {
    async fn write(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        self.request("POST", path).session(&self.session()).body(body).send().await
    }

    /// A new series through each of the interfaces.
    async fn write_each(&self) -> [Reply; 5] {
        let point = r#"{"metric":"tsdb","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
        let fields = r#"{"metric":"hitsdb","timestamp":1700000000,"fields":{"f":1},"tags":{"a":"b"}}"#;
        let replies = tokio::join!(
            self.write("/write?db=tacho", "influx,a=b f=1 1700000000000000000\ninflux f= 1"),
            self.write("/api/v2/write?bucket=tacho", "bucket,a=b f=1 1700000000000000000"),
            self.write("/api/put?details", point),
            self.write("/api/mput?ignoreErrors", fields),
            self.write("/api/v1/write", remote_write()),
        );
        replies.into()
    }
}

#[tokio::test]
async fn a_store_that_makes_no_series_now_is_not_a_fault_of_a_point() {
    let server = Server::start().await;
    server.store.set_series_busy(Some("the log is full"));
    for (reply, status) in server.write_each().await.into_iter().zip([503, 429, 429, 429, 429]) {
        assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (status, "1"), "{}", reply.text());
        assert!(reply.text().contains("the log is full"), "{}", reply.text());
    }
    assert_eq!(server.hub.metrics().rows.get(), 0, "no point, and no dead letter");
    server.store.set_series_busy(None);
    let statuses = server.write_each().await.map(|reply| reply.status);
    assert_eq!(statuses, [400, 204, 200, 200, 204], "one line is bad on its own account");
    server.stop().await;
}

#[tokio::test]
async fn a_store_that_makes_series_again_in_time_takes_the_request() {
    let server = Server::start().await;
    server.store.set_series_busy(Some("the log is full"));
    let freed = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.store.set_series_busy(None);
    };
    let ((), written) = tokio::join!(freed, server.write("/write?db=tacho", "m,a=b f=1\nm,a=c f=1"));
    assert_eq!(written.status, 204, "{}", written.text());
    assert_eq!(server.hub.metrics().rows.get(), 2);
    server.stop().await;
}

#[tokio::test]
async fn points_that_are_late_are_told_after_the_time_that_the_sender_gives() {
    let server = Server::start().await;
    server.store.hold();
    let point = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    let body = format!("[{point},{point}]");
    let put = async |query: &str| server.write(&format!("/api/put?{query}"), body.clone()).await;
    let late = put("sync&sync_timeout=30&details").await;
    assert_eq!(late.status, 400);
    let told = late.json();
    assert_eq!((&told["success"], &told["failed"], &told["timeouts"]), (&0.into(), &0.into(), &2.into()));
    assert_eq!(told["errors"][1]["error"], "Write timedout");
    assert!(
        put("sync_timeout=30").await.json()["error"]["message"].as_str().unwrap().contains("sync_timeout")
    );
    assert_eq!(put("sync_timeout=soon").await.status, 400);
    server.store.release();
    assert_eq!(put("sync&sync_timeout=60000").await.status, 204);
    server.stop().await;
}

#[tokio::test]
async fn an_operator_creates_databases_and_drops_none() {
    let server = Server::start().await;
    let (operator, viewer) =
        (server.session_of("o@x", Role::Operator, None), server.session_of("v@x", Role::Viewer, None));
    let query = async |session: &str, statement: &str| {
        let request = server.request("POST", &format!("/query?q={}", statement.replace(' ', "%20")));
        request.session(session).send().await
    };
    assert_eq!(query(&viewer, "CREATE DATABASE telegraf").await.status, 403);
    for _ in 0..2 {
        assert_eq!(query(&operator, "CREATE DATABASE telegraf").await.status, 200);
    }
    let written = server.request("POST", "/write?db=telegraf").session(&operator).body("m f=1").send().await;
    assert_eq!(written.status, 204, "{}", written.text());
    assert_eq!(query(&operator, "DROP DATABASE telegraf").await.status, 403);
    assert_eq!(query(&server.session(), "DROP DATABASE telegraf").await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_body_of_several_batches_is_stored_as_a_whole_and_its_bad_lines_are_counted() {
    let server = Server::start().await;
    let lines = model::limits::BATCH_ROWS_MAX + 10;
    let mut body: String = (0..lines).map(|n| format!("long f={n} {}\n", DAY_MS + n as i64)).collect();
    body = format!("long f= 1\n{body}long f=x 1");
    let reply = server.write("/write?db=tacho&precision=ms", body).await;
    assert_eq!(reply.status, 400);
    let text = reply.text();
    assert!(text.contains("(line 1)") && text.contains(&format!("(line {})", lines + 2)), "{text}");
    assert!(text.contains("dropped=2"), "{text}");
    assert_eq!(server.hub.metrics().rows.get(), lines as u64 + 2, "with two dead letters");
    server.stop().await;
}

#[tokio::test]
async fn long_answers_are_packed_for_clients_that_accept_it() {
    let server = Server::start().await;
    server.hub.open_sql(QueryLimits::default()).unwrap();
    let lines: String = (0..500).map(|n| format!("m,a=b value={n} {}000000\n", DAY_MS + n * 1_000)).collect();
    assert_eq!(server.write("/write?db=tacho", lines).await.status, 204);
    for path in [
        "/query?db=tacho&q=SELECT%20value%20FROM%20m",
        "/query?db=tacho&chunked=true&chunk_size=100&q=SELECT%20value%20FROM%20m",
        "/api/query?start=1699999999&end=1700001000&m=sum:m",
    ] {
        let plain = server.get(path).await;
        assert!(!plain.headers.contains_key("content-encoding"), "{path}");
        let request = server.request("GET", path).session(&server.session());
        let packed = request.header("accept-encoding", "gzip").send().await;
        assert_eq!(packed.headers["content-encoding"], "gzip", "{path}");
        assert!(dechunked(&packed).len() * 2 < dechunked(&plain).len(), "{path}");
        let mut text = Vec::new();
        GzDecoder::new(&dechunked(&packed)[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text, dechunked(&plain), "{path}");
    }
    let short = server.request("GET", "/query?db=tacho&q=SHOW%20DATABASES").session(&server.session());
    let short = short.header("accept-encoding", "gzip").send().await;
    assert!(!short.headers.contains_key("content-encoding"));
    server.stop().await;
}

/// The body without the lengths of its chunks.
fn dechunked(reply: &Reply) -> Vec<u8> {
    if reply.headers.get("transfer-encoding").is_none_or(|coding| coding != "chunked") {
        return reply.body.clone();
    }
    let (mut rest, mut body) = (&reply.body[..], Vec::new());
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..][..length]);
        rest = &rest[end + 2 + length + 2..];
    }
}
