//! A client of a REST interface like ThingsBoard's: login, its renewal, JSON.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::client::{Body, HttpAnswer, HttpClient, HttpError, HttpLimits, HttpRequest};
use crate::limits::{HTTP_QUOTE_CHARS, HTTP_STREAM_BEGIN_TIMEOUT};
use crate::tls::{TlsConfig, TlsFailure};

const LOGIN_PATH: &str = "/api/auth/login";
const UNAUTHORIZED: u16 = 401;

/// A client of one server. Its copies share the login. When the session expires, the client logs in again.
#[derive(Debug, Clone)]
pub struct RestClient {
    http: HttpClient,
    login: Arc<Mutex<Option<Login>>>,
}

#[derive(Debug)]
struct Login {
    user: String,
    password: String,
    /// The value of the header of each request.
    bearer: String,
}

/// An answer whose body is read as a stream.
pub struct Streamed {
    /// The size of the payload that the server announced.
    pub bytes: Option<u64>,
    /// The body. A read error means that it is incomplete.
    pub body: Box<dyn Read + Send>,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum RestError {
    /// There was no answer.
    #[error("no answer from {url}; check that the server runs and that this is the address of its HTTP door")]
    Transport {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: Box<ureq::Error>,
    },
    /// The handshake of TLS failed, or the server speaks TLS and this client does not.
    #[error("{url}: {failure}")]
    Tls {
        /// The address.
        url: String,
        /// The cause, and what to do.
        failure: TlsFailure,
    },
    /// The answer has an error status.
    #[error("{method} {url}: status {status}: {message}")]
    Status {
        /// The method.
        method: &'static str,
        /// The address.
        url: String,
        /// The status code.
        status: u16,
        /// The server's message.
        message: String,
        /// The pause before a retry that the server requests.
        retry_after: Option<Duration>,
    },
    /// The answer has an unexpected form.
    #[error("{method} {url}: {what}; is this a tacho server?")]
    Answer {
        /// The method.
        method: &'static str,
        /// The address.
        url: String,
        /// The problem.
        what: String,
    },
}

impl RestClient {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`. It sends nothing yet.
    pub fn new(base: &str, limits: HttpLimits) -> Self {
        Self { http: HttpClient::new(base.trim_end_matches('/'), limits), login: Arc::default() }
    }

    /// The same client with TLS, for an address that begins with `https`.
    pub fn with_tls(mut self, config: Option<TlsConfig>) -> Self {
        self.http = self.http.with_tls(config);
        self
    }

    /// The configuration of TLS; `None` without TLS.
    pub const fn tls(&self) -> Option<&TlsConfig> {
        self.http.tls()
    }

    /// The server's address.
    pub fn base(&self) -> &str {
        self.http.base()
    }

    /// The value of the login header, if the client is logged in.
    pub fn bearer(&self) -> Option<String> {
        self.login.lock().as_ref().map(|login| login.bearer.clone())
    }

    /// Logs in. All later requests belong to the session.
    pub fn log_in(&self, user: &str, password: &str) -> Result<(), RestError> {
        let bearer = self.token(user, password)?;
        let (user, password) = (user.to_owned(), password.to_owned());
        *self.login.lock() = Some(Login { user, password, bearer });
        Ok(())
    }

    fn token(&self, user: &str, password: &str) -> Result<String, RestError> {
        let body = json!({ "username": user, "password": password }).to_string();
        let request = HttpRequest::new("POST", LOGIN_PATH, Body::Json(&body));
        let answer = self.success(&request, self.http.send(&request))?;
        let answer = self.decoded(&request, &answer)?;
        let token = answer["token"].as_str();
        let token = token.ok_or_else(|| self.unexpected("POST", LOGIN_PATH, "no token in the answer"))?;
        Ok(format!("Bearer {token}"))
    }

    /// Sends a GET request and decodes the answer.
    pub fn get(&self, path: &str) -> Result<Value, RestError> {
        self.json(&HttpRequest::get(path))
    }

    /// Sends a DELETE request and decodes the answer; an empty answer is null.
    pub fn delete(&self, path: &str) -> Result<Value, RestError> {
        self.json(&HttpRequest::new("DELETE", path, Body::Empty))
    }

    /// Sends a POST request with a JSON value and decodes the answer; an empty answer is null.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value, RestError> {
        self.post_text(path, &body.to_string())
    }

    /// Sends a POST request with a JSON text and decodes the answer; an empty answer is null.
    pub fn post_text(&self, path: &str, body: &str) -> Result<Value, RestError> {
        self.json(&HttpRequest::new("POST", path, Body::Json(body)))
    }

    /// Sends a request and returns the body of a success.
    pub fn text(&self, request: &HttpRequest<'_>) -> Result<String, RestError> {
        let answer = self.answer(request)?;
        String::from_utf8(answer.body)
            .map_err(|_| self.unexpected(request.method, request.path, "the body is not UTF-8"))
    }

    /// Sends a POST request with any bytes. The answer is a stream of any length and duration.
    pub fn post_for_stream(&self, path: &str, body: &[u8]) -> Result<Streamed, RestError> {
        let request = HttpRequest::new("POST", path, Body::Bytes(body));
        let mut stream: Option<Box<dyn Read + Send>> = None;
        let answer = self.with_login(&request, |request| {
            let (answer, body) = self.http.stream(request, HTTP_STREAM_BEGIN_TIMEOUT)?;
            stream = Some(body);
            Ok(answer)
        })?;
        let body = stream.expect("BUG: an answer without a body");
        Ok(Streamed { bytes: answer.header("X-Tacho-Bytes").parse().ok(), body })
    }

    fn json(&self, request: &HttpRequest<'_>) -> Result<Value, RestError> {
        let answer = self.answer(request)?;
        self.decoded(request, &answer)
    }

    fn answer(&self, request: &HttpRequest<'_>) -> Result<HttpAnswer, RestError> {
        self.with_login(request, |request| self.http.send(request))
    }

    /// Sends a request with the login. Where the session has expired, it logs in and sends the request once more.
    fn with_login(
        &self,
        request: &HttpRequest<'_>,
        mut send: impl FnMut(&HttpRequest<'_>) -> Result<HttpAnswer, HttpError>,
    ) -> Result<HttpAnswer, RestError> {
        let Some(bearer) = self.bearer() else { return self.success(request, send(request)) };
        let with = |bearer: &str, send: &mut dyn FnMut(&HttpRequest<'_>) -> _| {
            send(&HttpRequest { headers: &[("X-Authorization", bearer)], ..*request })
        };
        let answer = with(&bearer, &mut send);
        if !matches!(&answer, Ok(answer) if answer.status == UNAUTHORIZED) {
            return self.success(request, answer);
        }
        let bearer = self.renewed(&bearer)?;
        self.success(request, with(&bearer, &mut send))
    }

    /// Logs in again, unless another copy of the client did after `expired`.
    fn renewed(&self, expired: &str) -> Result<String, RestError> {
        let mut login = self.login.lock();
        let login = login.as_mut().expect("BUG: a client that was logged in stays so");
        if login.bearer == expired {
            login.bearer = self.token(&login.user, &login.password)?;
        }
        Ok(login.bearer.clone())
    }

    fn success(
        &self,
        request: &HttpRequest<'_>,
        answer: Result<HttpAnswer, HttpError>,
    ) -> Result<HttpAnswer, RestError> {
        let HttpRequest { method, path, .. } = *request;
        match answer.and_then(HttpAnswer::success) {
            Ok(answer) => Ok(answer),
            Err(HttpError::NoAnswer { source, .. }) => {
                let url = self.url(path);
                match &*source {
                    ureq::Error::Io(error) if let Some(failure) = TlsFailure::of(error) => {
                        Err(RestError::Tls { url, failure: failure.clone() })
                    }
                    _ => Err(RestError::Transport { url, source }),
                }
            }
            Err(HttpError::Status(answer) | HttpError::NotJson(answer)) => {
                let retry_after = answer.header("Retry-After").parse().ok().map(Duration::from_secs);
                let (url, message, status) = (self.url(path), message_of(&answer.text()), answer.status);
                Err(RestError::Status { method, url, status, message, retry_after })
            }
        }
    }

    fn decoded(&self, request: &HttpRequest<'_>, answer: &HttpAnswer) -> Result<Value, RestError> {
        if answer.body.is_empty() {
            return Ok(Value::Null);
        }
        let HttpRequest { method, path, .. } = *request;
        serde_json::from_slice(&answer.body)
            .map_err(|error| self.unexpected(method, path, &format!("no JSON: {error}")))
    }

    /// The error for an answer of an unexpected form.
    pub fn unexpected(&self, method: &'static str, path: &str, what: &str) -> RestError {
        RestError::Answer { method, url: self.url(path), what: what.into() }
    }

    /// The address without the parts that may contain a device's token.
    pub(super) fn url(&self, path: &str) -> String {
        let base = self.base();
        match path.strip_prefix("/api/v1/").and_then(|rest| rest.split_once('/')) {
            Some((_, rest)) => format!("{base}/api/v1/TOKEN/{rest}"),
            None => format!("{base}{}", path.split('?').next().unwrap_or(path)),
        }
    }
}

/// The message of an error body: its `message`, or its beginning.
pub fn message_of(body: &str) -> String {
    let message =
        serde_json::from_str::<Value>(body).ok().and_then(|body| Some(body["message"].as_str()?.to_owned()));
    message.unwrap_or_else(|| body.chars().take(HTTP_QUOTE_CHARS).collect())
}

/// The body of a form: names and values.
pub fn form<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let field = |(name, value)| format!("{}={}", escaped(name), escaped(value));
    fields.into_iter().map(field).collect::<Vec<_>>().join("&")
}

/// Percent-encodes a text for the path or the query of a URL.
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte.into());
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
