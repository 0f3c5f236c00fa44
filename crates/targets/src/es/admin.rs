//! Requests outside of the load: they create the index, finish it and read its numbers.

use std::time::{Duration, Instant};

use clients::http::{Body, HttpClient, HttpLimits, HttpRequest};
use clients::tls::TlsConfig;
use load::{Error, Result};
use serde_json::{Value, json};

use super::answers::refusal;
use super::server::Server;
use crate::limits::{ES_MERGE_TIMEOUT_S, HTTP_BODY_BYTES_MAX};

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between two looks at running merges.
const MERGES_PAUSE: Duration = Duration::from_millis(500);

/// A client of one index.
#[derive(Debug, Clone)]
pub(super) struct Admin {
    http: HttpClient,
    pub(super) index: String,
}

/// The numbers of an index's primary shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct IndexNumbers {
    /// Documents indexed since it was created.
    pub(super) indexed: u64,
    pub(super) documents: u64,
    /// Bytes on disk.
    pub(super) bytes: u64,
    pub(super) segments: u64,
}

/// How long the steps after a load took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finishing {
    pub(super) refresh: Duration,
    /// `None` without.
    pub(super) force_merge: Option<Duration>,
    /// From the end of the force merge to the end of all merges.
    pub(super) merges: Duration,
}

impl Admin {
    /// `base` is `http://host:port`; `login` is the value of the header `Authorization`.
    pub(super) fn new(base: &str, index: &str, login: Option<String>, tls: Option<TlsConfig>) -> Self {
        let limits = HttpLimits { timeout: TIMEOUT, body_bytes_max: HTTP_BODY_BYTES_MAX };
        let http = HttpClient::new(base, limits).with_header("Authorization", login).with_tls(tls);
        Self { http, index: index.to_owned() }
    }

    /// Asks the server what it is.
    pub(super) fn server(&self) -> Result<Server> {
        let answer = self.ask("GET", "/", None)?;
        Server::read(&answer).map_err(|what| Error::Options(format!("{}: {what}", self.http.base())))
    }

    /// Whether the index exists.
    pub(super) fn exists(&self) -> Result<bool> {
        Ok(self.send("HEAD", &format!("/{}", self.index), None, TIMEOUT)?.0 != 404)
    }

    /// Creates the index and waits until its primary shards can be written to.
    pub(super) fn create(&self, body: &Value) -> Result<()> {
        self.ask("PUT", &format!("/{}", self.index), Some(body))?;
        let path = format!("/_cluster/health/{}?wait_for_status=yellow&timeout=50s", self.index);
        let health = self.ask("GET", &path, None)?;
        match health["timed_out"].as_bool() {
            Some(false) => Ok(()),
            _ => Err(self.failed("GET", &path, "the shards of the new index are not ready within 50 s")),
        }
    }

    /// Deletes the index.
    pub(super) fn delete(&self) -> Result<()> {
        self.ask("DELETE", &format!("/{}", self.index), None).map(|_| ())
    }

    /// The number of documents; `None` if there is no such index.
    pub(super) fn count(&self) -> Result<Option<u64>> {
        let path = format!("/{}/_count", self.index);
        let (status, body) = self.send("GET", &path, None, TIMEOUT)?;
        match status {
            404 => Ok(None),
            200 => {
                let count = serde_json::from_slice::<Value>(&body).ok().and_then(|it| it["count"].as_u64());
                count.map(Some).ok_or_else(|| self.failed("GET", &path, "no `count` in the answer"))
            }
            _ => Err(self.failed("GET", &path, &refusal(status, &body))),
        }
    }

    /// The numbers of the index.
    pub(super) fn numbers(&self) -> Result<IndexNumbers> {
        let path = format!("/{}/_stats/indexing,docs,store,segments", self.index);
        let answer = self.ask("GET", &path, None)?;
        let primaries = &answer["_all"]["primaries"];
        let number = |pointer: &str| {
            let missing =
                || self.failed("GET", &path, &format!("no `_all.primaries{pointer}` in the answer"));
            primaries.pointer(pointer).and_then(Value::as_u64).ok_or_else(missing)
        };
        Ok(IndexNumbers {
            indexed: number("/indexing/index_total")?,
            documents: number("/docs/count")?,
            bytes: number("/store/size_in_bytes")?,
            segments: number("/segments/count")?,
        })
    }

    /// Makes all documents searchable, merges segments if wanted, and waits until no merge runs: the steps of esrally's
    /// tracks after their load.
    pub(super) fn finish(&self, force_merge: bool, max_num_segments: Option<u32>) -> Result<Finishing> {
        let refresh = self.timed(&format!("/{}/_refresh", self.index))?;
        let force_merge = if force_merge {
            let question = max_num_segments.map(|most| format!("?max_num_segments={most}"));
            let path = format!("/{}/_forcemerge{}", self.index, question.unwrap_or_default());
            let took = self.timed(&path)?;
            self.timed(&format!("/{}/_refresh", self.index))?;
            Some(took)
        } else {
            None
        };
        let begin = Instant::now();
        while self.merges()? > 0 {
            if begin.elapsed() > Duration::from_secs(ES_MERGE_TIMEOUT_S) {
                return Err(self.failed("GET", "/_stats/merge", "merges do not end"));
            }
            std::thread::sleep(MERGES_PAUSE);
        }
        Ok(Finishing { refresh, force_merge, merges: begin.elapsed() })
    }

    /// The number of running merges.
    fn merges(&self) -> Result<u64> {
        let path = format!("/{}/_stats/merge", self.index);
        let answer = self.ask("GET", &path, None)?;
        let running = answer["_all"]["total"]["merges"]["current"].as_u64();
        running.ok_or_else(|| self.failed("GET", &path, "no `_all.total.merges.current` in the answer"))
    }

    /// A POST without a body that may take long, and the time that it took.
    fn timed(&self, path: &str) -> Result<Duration> {
        let begin = Instant::now();
        let (status, body) = self.send("POST", path, None, Duration::from_secs(ES_MERGE_TIMEOUT_S))?;
        if status != 200 {
            return Err(self.failed("POST", path, &refusal(status, &body)));
        }
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match answer["_shards"]["failed"].as_u64() {
            Some(0) => Ok(begin.elapsed()),
            Some(failed) => Err(self.failed("POST", path, &format!("{failed} shards failed"))),
            None => Err(self.failed("POST", path, "no `_shards.failed` in the answer")),
        }
    }

    /// A request whose answer is a JSON document.
    fn ask(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<Value> {
        let (status, answer) = self.send(method, path, body, TIMEOUT)?;
        if !(200..300).contains(&status) {
            return Err(self.failed(method, path, &refusal(status, &answer)));
        }
        serde_json::from_slice(&answer)
            .map_err(|error| self.failed(method, path, &format!("no JSON: {error}")))
    }

    /// Sends a request and returns status and body.
    fn send(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        timeout: Duration,
    ) -> Result<(u16, Vec<u8>)> {
        let text = body.map(Value::to_string);
        let body = text.as_deref().map_or(Body::Empty, Body::Json);
        let request = HttpRequest { timeout: Some(timeout), ..HttpRequest::new(method, path, body) };
        let answer =
            self.http.send(&request).map_err(|error| self.failed(method, path, &error.to_string()))?;
        Ok((answer.status, answer.body))
    }

    fn failed(&self, method: &'static str, path: &str, what: &str) -> Error {
        Error::Http { method, url: format!("{}{path}", self.http.base()), what: what.to_owned() }
    }

    /// The body that creates an index.
    pub(super) fn creation(settings: Value, mappings: Value) -> Value {
        json!({ "settings": settings, "mappings": mappings })
    }
}
