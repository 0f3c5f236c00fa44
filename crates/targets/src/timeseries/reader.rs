//! Reading back: how many timelines a server has, how many points, and which.

use clients::http::{Body, HttpAnswer, HttpClient, HttpLimits, HttpRequest};
use clients::tls::TlsConfig;
use load::{Error, Result};
use serde_json::Value;

use super::refusal::quoted;
use super::timelines::Timelines;
use crate::limits::{HTTP_BODY_BYTES_MAX, TIMESERIES_READ_TIMEOUT};

/// A time in milliseconds since the epoch, and a value.
pub(crate) type Point = (i64, f64);

/// A server that can be asked for what it has stored.
pub(crate) trait ReadBack {
    /// Waits until all that was acknowledged can be read.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// The number of timelines of the server; `None` if the server cannot be asked for it.
    fn timelines(&self, timelines: &Timelines) -> Result<Option<u64>>;

    /// The number of points of a metric in the timelines of the cell, up to a time.
    fn count(&self, timelines: &Timelines, metric: u64, until_ms: i64) -> Result<u64>;

    /// The points of a timeline between two times, both included, in the order of time.
    fn points(&self, timelines: &Timelines, timeline: u64, from_ms: i64, until_ms: i64)
    -> Result<Vec<Point>>;
}

/// Requests for JSON.
#[derive(Debug, Clone)]
pub(crate) struct Http(HttpClient);

impl Http {
    /// `base` is `http://host:port`; `login` is the value of the header `Authorization`.
    pub(crate) fn new(base: &str, login: Option<String>, tls: Option<TlsConfig>) -> Self {
        let limits = HttpLimits { timeout: TIMESERIES_READ_TIMEOUT, body_bytes_max: HTTP_BODY_BYTES_MAX };
        Self(HttpClient::new(base, limits).with_header("Authorization", login).with_tls(tls))
    }

    /// The answer to a GET, with any status.
    pub(crate) fn answer(&self, path: &str) -> Result<HttpAnswer> {
        self.0.get(path).map_err(|error| self.failed("GET", path, &error.to_string()))
    }

    /// The JSON of a GET.
    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.json("GET", path, &self.answer(path)?)
    }

    /// The same; `None` if the server does not know the path.
    pub(crate) fn get_if_there(&self, path: &str) -> Result<Option<Value>> {
        let answer = self.answer(path)?;
        match answer.status {
            400 | 404 | 405 | 501 => Ok(None),
            _ => self.json("GET", path, &answer).map(Some),
        }
    }

    /// The JSON of a POST.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let text = body.to_string();
        let request = HttpRequest::new("POST", path, Body::Json(&text));
        let answer = self.0.send(&request).map_err(|error| self.failed("POST", path, &error.to_string()))?;
        self.json("POST", path, &answer)
    }

    /// Sends a POST without a body and returns the text of a success.
    pub(crate) fn post_empty(&self, path: &str) -> Result<String> {
        let request = HttpRequest::new("POST", path, Body::Empty);
        let answer = self.0.send(&request).map_err(|error| self.failed("POST", path, &error.to_string()))?;
        self.success("POST", path, &answer)
    }

    /// The text of a GET with success.
    pub(crate) fn text(&self, path: &str) -> Result<String> {
        self.success("GET", path, &self.answer(path)?)
    }

    /// The error for an answer of an unexpected form.
    pub(crate) fn wrong(&self, path: &str, what: &str) -> Error {
        self.failed("GET", path, what)
    }

    fn success(&self, method: &'static str, path: &str, answer: &HttpAnswer) -> Result<String> {
        match answer.is_success() {
            true => Ok(answer.text().into_owned()),
            false => Err(self.failed(method, path, &quoted(answer.status, &answer.body))),
        }
    }

    fn json(&self, method: &'static str, path: &str, answer: &HttpAnswer) -> Result<Value> {
        let text = self.success(method, path, answer)?;
        serde_json::from_str(&text).map_err(|error| self.failed(method, path, &format!("no JSON: {error}")))
    }

    fn failed(&self, method: &'static str, path: &str, what: &str) -> Error {
        Error::Http { method, url: format!("{}{path}", self.0.base()), what: what.to_owned() }
    }
}
