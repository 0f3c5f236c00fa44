//! Scenarios of driver `es` against a small server of our own that answers as Elasticsearch does, or wrongly.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use bench::Context;
use bench::runner::{self, Options};
use load::result::Bundle;
use load::scenario::Scenario;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::tls;

/// What goes wrong with one of the bulk requests, the third.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The queue is full.
    Busy,
    /// The request is too large, and the connection ends.
    TooLarge,
    /// One document is refused.
    Item,
    /// The connection ends without an answer, and the documents are stored.
    Closed,
    /// The documents are acknowledged and not stored.
    Lost,
}

struct State {
    version: &'static str,
    fault: Fault,
    exists: AtomicBool,
    bulks: AtomicU64,
    documents: AtomicU64,
    /// The requests, but those of bulks.
    asked: Mutex<Vec<String>>,
}

/// The server. Its threads end with the test's process.
struct Server {
    address: SocketAddr,
    state: Arc<State>,
}

impl Server {
    fn start(version: &'static str, fault: Fault) -> Self {
        Self::over(version, fault, None)
    }

    fn over(version: &'static str, fault: Fault, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            version,
            fault,
            exists: AtomicBool::new(false),
            bulks: AtomicU64::new(0),
            documents: AtomicU64::new(0),
            asked: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, tls) = (Arc::clone(&shared), tls.clone());
                thread::spawn(move || match tls {
                    None => state.serve(stream),
                    Some(config) => {
                        state.serve(StreamOwned::new(ServerConnection::new(config).unwrap(), stream));
                    }
                });
            }
        });
        Self { address, state }
    }

    fn asked(&self, request: &str) -> usize {
        self.state.asked.lock().unwrap().iter().filter(|asked| asked.starts_with(request)).count()
    }
}

impl State {
    /// Answers the requests of a connection until it ends.
    fn serve(&self, stream: impl Read + Write) {
        let mut reader = BufReader::new(stream);
        while let Some((line, body)) = request(&mut reader) {
            let is_head = line.starts_with("HEAD ");
            let (answer, closes) = self.answer(&line, &body);
            let Some((status, text)) = answer else { return };
            let sent = if is_head { "" } else { text.as_str() };
            let connection = if closes { "close" } else { "keep-alive" };
            let length = text.len();
            let head = format!(
                "HTTP/1.1 {status} Some\r\nContent-Length: {length}\r\nConnection: {connection}\r\n\r\n{sent}"
            );
            let stream = reader.get_mut();
            if stream.write_all(head.as_bytes()).and_then(|()| stream.flush()).is_err() || closes {
                return;
            }
        }
    }

    /// Status and body, and whether the connection ends. `None` ends it at once.
    fn answer(&self, line: &str, body: &str) -> (Option<(u16, String)>, bool) {
        if line.contains("/_bulk ") {
            return self.bulk(body.lines().count() as u64 / 2);
        }
        self.asked.lock().unwrap().push(line.to_owned());
        let documents = self.documents.load(Ordering::SeqCst);
        let shards = r#""_shards":{"total":1,"successful":1,"failed":0}"#;
        let text = match line.split(' ').nth(1).unwrap_or_default() {
            "/" => format!(r#"{{"version":{}}}"#, self.version),
            "/test" => return (Some(self.index(line)), false),
            "/test/_count" if !self.exists.load(Ordering::SeqCst) => {
                return (Some((404, "{}".to_owned())), false);
            }
            "/test/_count" => format!(r#"{{"count":{documents}}}"#),
            "/test/_stats/merge" => r#"{"_all":{"total":{"merges":{"current":0}}}}"#.to_owned(),
            "/test/_search" => {
                let rows = vec!["{}"; documents.min(10) as usize].join(",");
                format!(r#"{{"timed_out":false,{shards},"hits":{{"total":{documents},"hits":[{rows}]}}}}"#)
            }
            path if path.starts_with("/_cluster/health") => r#"{"timed_out":false}"#.to_owned(),
            path if path.starts_with("/test/_stats/indexing") => format!(
                r#"{{"_all":{{"primaries":{{"indexing":{{"index_total":{documents}}},"docs":{{"count":{documents}}},
                "store":{{"size_in_bytes":{documents}}},"segments":{{"count":1}}}}}}}}"#
            ),
            "/test/_refresh" | "/test/_forcemerge" => format!("{{{shards}}}"),
            _ => return (Some((400, format!(r#"{{"error":"no handler found for {line}"}}"#))), false),
        };
        (Some((200, text)), false)
    }

    fn index(&self, line: &str) -> (u16, String) {
        let exists = self.exists.load(Ordering::SeqCst);
        match line.split(' ').next().unwrap_or_default() {
            "HEAD" => (if exists { 200 } else { 404 }, String::new()),
            "PUT" => {
                self.exists.store(true, Ordering::SeqCst);
                self.documents.store(0, Ordering::SeqCst);
                (200, "{}".to_owned())
            }
            _ => {
                self.exists.store(false, Ordering::SeqCst);
                (200, "{}".to_owned())
            }
        }
    }

    fn bulk(&self, documents: u64) -> (Option<(u16, String)>, bool) {
        let fault = if self.bulks.fetch_add(1, Ordering::SeqCst) == 2 { self.fault } else { Fault::None };
        let error =
            |kind: &str| format!(r#"{{"error":{{"type":"{kind}","reason":"of the test"}},"status":0}}"#);
        let refused = u64::from(fault == Fault::Item);
        let stored = match fault {
            Fault::Busy | Fault::TooLarge | Fault::Lost => 0,
            _ => documents - refused,
        };
        self.documents.fetch_add(stored, Ordering::SeqCst);
        let good = r#"{"index":{"_id":"a","status":201}}"#.to_owned();
        let bad = r#"{"index":{"_id":"a","status":400,"error":{"type":"mapper_parsing_exception","reason":"bad"}}}"#;
        let mut items = vec![good; (documents - refused) as usize];
        items.extend((0..refused).map(|_| bad.to_owned()));
        let text = format!(r#"{{"took":1,"errors":{},"items":[{}]}}"#, refused > 0, items.join(","));
        match fault {
            Fault::Busy => (Some((429, error("es_rejected_execution_exception"))), false),
            Fault::TooLarge => (Some((413, String::new())), true),
            Fault::Closed => (None, true),
            Fault::None | Fault::Item | Fault::Lost => (Some((200, text)), false),
        }
    }
}

/// The request line and the body of the next request; `None` at the end of the connection.
fn request(reader: &mut BufReader<impl Read>) -> Option<(String, String)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|count| *count > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first.trim_end().to_owned(), String::from_utf8(body).unwrap()))
}

const SCENARIO: &str = r#"
[scenario]
name = "test"
about = "indexes and searches"
driver = "es"
[dataset]
documents = 1_000
bulk_size = 100
[[operation]]
name = "bulk"
kind = "bulk"
[[operation]]
name = "first-page"
kind = "match-all"
constant = true
[[phase]]
name = "load"
kind = "load"
arrival = "closed"
connections = 2
operations = ["bulk"]
[[phase]]
name = "search"
arrival = "closed"
connections = 2
requests = 50
operations = ["first-page"]
[gates]
steal_share_max = 1
"#;

const FIVE: &str = r#"{"number":"5.5.3"}"#;
const OPENSEARCH: &str = r#"{"number":"2.19.1","distribution":"opensearch"}"#;

fn run(server: &Server, phases: &[&str], sets: &[&str]) -> bench::Result<Bundle> {
    let mut all = vec![format!("target.url=http://{}/test", server.address)];
    all.extend(sets.iter().map(|set| (*set).to_owned()));
    let scenario = Scenario::parse(SCENARIO, &all).unwrap();
    let phases = phases.iter().map(|phase| (*phase).to_owned()).collect();
    let options = Options { quiet: true, phases, ..Options::default() };
    runner::run(&scenario, &options, &Context::default(), &mut runner::alone)
}

/// Loads with a fault; returns the failures by reason, whether each check passed, and the findings.
fn loaded(fault: Fault) -> (Vec<(String, u64)>, Vec<bool>, String) {
    let server = Server::start(OPENSEARCH, fault);
    let bundle = run(&server, &["load"], &[]).unwrap();
    let errors = bundle.result.phases[0].total.counts.errors.clone().into_iter().collect();
    let checks = bundle.result.verification.iter().map(|check| check.passed).collect();
    (errors, checks, bundle.result.findings.join("\n"))
}

#[test]
fn documents_are_loaded_and_found_by_every_kind_of_server() {
    for version in [FIVE, OPENSEARCH] {
        let server = Server::start(version, Fault::None);
        let bundle = run(&server, &[], &[]).unwrap();
        assert!(bundle.result.validity().is_quotable(), "{bundle}");
        assert!(
            bundle.result.verification.len() == 2 && bundle.result.verification.iter().all(|it| it.passed)
        );
        let findings = bundle.result.findings.join("\n");
        assert!(findings.contains("load: 1000 of 1000 documents stored, 0 refused"), "{findings}");
        assert!(findings.contains("curl -X DELETE http://127.0.0.1:"), "{findings}");
        assert_eq!(bundle.result.phases[1].total.counts.completed, 100);
        assert_eq!((server.asked("POST /test/_refresh"), server.asked("POST /test/_forcemerge")), (2, 1));
        assert_eq!(server.state.bulks.load(Ordering::SeqCst), 10);
    }
}

#[test]
fn documents_are_loaded_and_found_over_tls() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("server.pem");
    let server = Server::over(OPENSEARCH, Fault::None, Some(tls::identity(&file)));
    let url =
        |parameters: &str| format!("target.url=https://localhost:{}/test{parameters}", server.address.port());
    let trusted = format!("?cafile={}", file.display());
    let bundle = run(&server, &[], &[&url(&trusted)]).unwrap();
    assert!(bundle.result.verification.iter().all(|it| it.passed), "{bundle}");
    assert_eq!(bundle.result.phases[1].total.counts.completed, 100);
    assert_eq!(bundle.result.target.tls, Some(format!("verified with {}", file.display())));
    let findings = bundle.result.findings.join("\n");
    assert!(
        findings.contains(&format!("curl --cacert {} -X DELETE https://localhost:", file.display())),
        "{findings}"
    );
    let error = run(&server, &[], &[&url("")]).unwrap_err().to_string();
    assert!(error.contains("no trusted authority signed the certificate"), "{error}");
}

#[test]
fn refused_requests_and_documents_fail_with_their_reason_and_are_not_missed() {
    for (fault, reason, stored) in [
        (
            Fault::Busy,
            "status 429: es_rejected_execution_exception: of the test",
            "900 of 1000 documents stored, 100 refused",
        ),
        (Fault::TooLarge, "status 413", "900 of 1000 documents stored, 100 refused"),
        (
            Fault::Item,
            "document refused: status 400: mapper_parsing_exception: bad",
            "999 of 1000 documents stored, 1 refused",
        ),
        (Fault::Closed, "closed by the server without an answer", "900 of 1000 documents stored, 0 refused"),
    ] {
        let (errors, checks, findings) = loaded(fault);
        assert!(
            errors.len() == 1 && errors[0].0.contains(reason) && errors[0].1 == 1,
            "{fault:?}: {errors:?}"
        );
        assert!(findings.contains(stored), "{fault:?}: {findings}");
        assert_eq!(checks, [true, true], "{fault:?}: the server has what it acknowledged");
    }
}

#[test]
fn acknowledged_documents_that_are_not_there_fail_the_checks() {
    let (errors, checks, _) = loaded(Fault::Lost);
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(checks, [false, false]);
}

#[test]
fn an_index_is_replaced_only_on_request() {
    let server = Server::start(FIVE, Fault::None);
    server.state.exists.store(true, Ordering::SeqCst);
    let error = run(&server, &["load"], &[]).unwrap_err().to_string();
    assert!(
        error.contains("the index test exists") && error.contains("dataset.if_exists=replace"),
        "{error}"
    );
    assert_eq!(server.asked("DELETE /test"), 0);
    run(&server, &["load"], &["dataset.if_exists=replace"]).unwrap();
    assert_eq!(server.asked("DELETE /test"), 1);
}

#[test]
fn a_search_needs_the_documents_of_its_scenario() {
    let server = Server::start(FIVE, Fault::None);
    let error = run(&server, &["search"], &[]).unwrap_err().to_string();
    assert!(error.contains("the index test does not exist") && error.contains("--phase load"), "{error}");
    run(&server, &["load"], &[]).unwrap();
    let error = run(&server, &["search"], &["dataset.documents=999"]).unwrap_err().to_string();
    assert!(error.contains("has 1000 documents, and test searches in 999"), "{error}");
}

#[test]
fn another_server_or_version_is_refused() {
    for (version, wrong) in [
        (r#"{"number":"2.4.6"}"#, "it is version 2.4.6; this driver needs Elasticsearch 5 or later"),
        ("{}", "it is neither Elasticsearch nor OpenSearch"),
    ] {
        let error = run(&Server::start(version, Fault::None), &[], &[]).unwrap_err().to_string();
        assert!(error.contains(wrong), "{error}");
    }
}
