//! The HTTP client of the probes: blocking, with a login.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::error::ProbeError;
use crate::limits::HTTP_BODY_BYTES_MAX;

const TIMEOUT: Duration = Duration::from_secs(30);
/// The longest part of a body to quote.
const QUOTE_CHARS: usize = 200;

/// A client of one server.
#[derive(Debug, Clone)]
pub(super) struct HttpClient {
    agent: ureq::Agent,
    /// `http://host:port`
    base: String,
    /// A header of each request, such as `Authorization`.
    login: Option<(&'static str, String)>,
}

/// An answer with any status.
#[derive(Debug, Clone)]
pub(super) struct HttpAnswer {
    /// The URL of the request.
    pub(super) url: String,
    /// The status.
    pub(super) status: u16,
    /// The header `Content-Type`.
    content_type: String,
    /// The header `Server`.
    server: String,
    /// The body.
    pub(super) body: String,
}

/// An answer without the wanted body.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// No answer.
    #[error("{url}: {cause}. Look at host and port, and whether the server runs")]
    NoAnswer {
        /// The URL of the request.
        url: String,
        /// The cause.
        cause: ureq::Error,
    },
    /// A status that is no success.
    #[error("{} has answered with status {}: {}", .0.url, .0.status, .0.quote())]
    Status(HttpAnswer),
    /// A body that is not JSON.
    #[error("{} has answered with {}, not with JSON", .0.url, .0.kind())]
    NotJson(HttpAnswer),
}

/// What a request reads, for the errors of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The values.
    pub(super) what: &'static str,
    /// The permission that the user needs for them, as a sentence.
    pub(super) remedy: &'static str,
}

impl HttpError {
    /// The error of the probe.
    pub(super) fn into_probe_error(self, target: &str, wanted: Wanted) -> ProbeError {
        let (target, reason) = (target.to_owned(), self.to_string());
        let Wanted { what, remedy } = wanted;
        match self {
            Self::NoAnswer { .. } => ProbeError::Connect { target, reason },
            Self::Status(answer) if answer.status == 401 => ProbeError::Login { target, reason },
            Self::Status(answer) if answer.status == 403 => {
                ProbeError::Permission { target, what, reason, remedy }
            }
            Self::Status(_) | Self::NotJson(_) => ProbeError::Protocol { target, what, reason },
        }
    }
}

impl HttpClient {
    /// A client of `host:port`.
    pub(super) fn new(host: &str, port: u16) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .build()
            .new_agent();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Self { agent, base: format!("http://{host}:{port}"), login: None }
    }

    /// The same client with a user and a password.
    pub(super) fn with_password(mut self, user: &str, password: &str) -> Self {
        let login = STANDARD.encode(format!("{user}:{password}"));
        self.login = Some(("Authorization", format!("Basic {login}")));
        self
    }

    /// The same client with a header that holds a token.
    pub(super) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.login = Some((name, value));
        self
    }

    /// The address, `http://host:port`.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// The answer to a GET, with any status.
    pub(super) fn get(&self, path: &str) -> Result<HttpAnswer, HttpError> {
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.get(&url);
        if let Some((name, value)) = &self.login {
            request = request.header(*name, value);
        }
        answer(url, request.call())
    }

    /// The JSON answer to a GET.
    pub(super) fn json(&self, path: &str) -> Result<Json, HttpError> {
        self.get(path)?.json()
    }

    /// The answer to a PUT of JSON, with any status.
    pub(super) fn put(&self, path: &str, body: &str) -> Result<HttpAnswer, HttpError> {
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.put(&url).header("Content-Type", "application/json");
        if let Some((name, value)) = &self.login {
            request = request.header(*name, value);
        }
        answer(url, request.send(body))
    }

    /// The JSON answer to a POST of JSON.
    pub(super) fn post(&self, path: &str, body: &Json) -> Result<Json, HttpError> {
        let url = format!("{}{path}", self.base);
        let request = self.agent.post(&url).header("Content-Type", "application/json");
        answer(url, request.send(body.to_string()))?.json()
    }
}

fn answer(
    url: String,
    answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<HttpAnswer, HttpError> {
    let read = answer.and_then(|mut answer| {
        let body =
            answer.body_mut().with_config().limit(HTTP_BODY_BYTES_MAX).lossy_utf8(true).read_to_string()?;
        Ok((answer, body))
    });
    let (answer, body) = match read {
        Ok(read) => read,
        Err(cause) => return Err(HttpError::NoAnswer { url, cause }),
    };
    let header = |name: &str| {
        let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, server) = (header("content-type"), header("server"));
    Ok(HttpAnswer { url, status: answer.status().as_u16(), content_type, server, body })
}

impl HttpAnswer {
    /// The body as JSON.
    pub(super) fn json(self) -> Result<Json, HttpError> {
        match serde_json::from_str(&self.success()?.body) {
            Ok(json) => Ok(json),
            Err(_) => Err(HttpError::NotJson(self)),
        }
    }

    /// The answer itself if its status is a success.
    pub(super) fn success(&self) -> Result<&Self, HttpError> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(HttpError::Status(self.clone())) }
    }

    /// What the answer is, in words: for an address at which another server listens.
    pub(super) fn kind(&self) -> String {
        let content_type = match self.content_type.as_str() {
            "" => "content without a type",
            content_type => content_type,
        };
        let server = match self.server.as_str() {
            "" => String::new(),
            server => format!(" of the server {server}"),
        };
        format!("status {}, {content_type}{server}: {}", self.status, self.quote())
    }

    /// The beginning of the body in one line.
    fn quote(&self) -> String {
        let line = self.body.split_whitespace().collect::<Vec<_>>().join(" ");
        let quote: String = line.chars().filter(|c| !c.is_control()).take(QUOTE_CHARS).collect();
        if quote.is_empty() { "an empty body".to_owned() } else { format!("`{quote}`") }
    }
}
