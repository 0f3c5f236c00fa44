//! One request and its answer.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};

use super::resolver::CheckedResolver;
use crate::limits::HTTP_QUOTE_CHARS;
use crate::outgoing::AllowedTargets;
use crate::tls::{PemError, TlsConfig, TlsConnector, TlsFailure};

const USER_AGENT: &str = concat!("tachograph/", env!("CARGO_PKG_VERSION"));

/// What an answer may take.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// The time from the connection to the end of the body.
    pub timeout: Duration,
    /// Bytes of the body.
    pub body_bytes_max: u64,
}

/// A client of one server: blocking, with keep-alive. It follows redirects.
#[derive(Debug, Clone)]
pub struct HttpClient {
    agent: ureq::Agent,
    tls: Option<TlsConfig>,
    /// Which addresses it may connect to; all without a list.
    targets: Option<Arc<AllowedTargets>>,
    /// The beginning of every URL, such as `http://host:port`.
    base: String,
    limits: HttpLimits,
    follows_redirects: bool,
    /// A header of each request, such as `Authorization`.
    header: Option<(&'static str, String)>,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct HttpRequest<'a> {
    /// The method.
    pub method: &'static str,
    /// The end of the URL; all of it if the client has no base.
    pub path: &'a str,
    /// The body.
    pub body: Body<'a>,
    /// Headers of this request, after the one of the client.
    pub headers: &'a [(&'a str, &'a str)],
    /// The time for it, if not that of the client.
    pub timeout: Option<Duration>,
}

/// The body of a request.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    /// None.
    Empty,
    /// A JSON text.
    Json(&'a str),
    /// An encoded form ([`super::form`]).
    Form(&'a str),
    /// Any bytes.
    Bytes(&'a [u8]),
}

/// An answer with any status.
#[derive(Debug, Clone)]
pub struct HttpAnswer {
    /// The URL of the request.
    pub url: String,
    /// The status.
    pub status: u16,
    /// The body. It is empty while it is read as a stream.
    pub body: Vec<u8>,
    headers: ureq::http::HeaderMap,
}

/// There is no answer, or another one than wanted.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// No answer, or none within the limits.
    #[error("{url}: {source}. Look at host and port, and whether the server runs")]
    NoAnswer {
        /// The URL of the request.
        url: String,
        /// The cause.
        source: Box<ureq::Error>,
    },
    /// A status that is not success.
    #[error("{} has answered with status {}: {}", .0.url, .0.status, .0.quote())]
    Status(Box<HttpAnswer>),
    /// A body that is not JSON.
    #[error("{} has answered with {}, not with JSON", .0.url, .0.kind())]
    NotJson(Box<HttpAnswer>),
}

impl HttpError {
    /// Why there is no answer, or no usable one. Unlike the error itself, it does not have the URL, which may have secrets.
    pub fn reason(&self) -> String {
        match self {
            Self::NoAnswer { source, .. } => match &**source {
                ureq::Error::BodyExceedsLimit(limit) => format!("the answer has more than {limit} bytes"),
                // The library's text has the whole URL.
                ureq::Error::BadUri(_) => "this is not an HTTP address".to_owned(),
                ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    error.to_string()
                }
                ureq::Error::Io(error) if let Some(failure) = TlsFailure::of(error) => failure.to_string(),
                error => error.to_string(),
            },
            Self::Status(answer) | Self::NotJson(answer) => answer.kind(),
        }
    }
}

impl<'a> HttpRequest<'a> {
    /// A GET.
    pub const fn get(path: &'a str) -> Self {
        Self::new("GET", path, Body::Empty)
    }

    /// A request.
    pub const fn new(method: &'static str, path: &'a str, body: Body<'a>) -> Self {
        Self { method, path, body, headers: &[], timeout: None }
    }
}

impl HttpClient {
    /// A client of the server whose URLs begin with `base`. It sends nothing yet. `base` may be empty: then each request has a
    /// whole URL.
    pub fn new(base: impl Into<String>, limits: HttpLimits) -> Self {
        let base = base.into();
        let agent = agent(None, None);
        Self { agent, base, tls: None, targets: None, limits, follows_redirects: true, header: None }
    }

    /// The same client with TLS for addresses that begin with `https`. Without it such addresses are an error.
    pub fn with_tls(mut self, config: Option<TlsConfig>) -> Self {
        self.agent = agent(config.clone(), self.targets.clone());
        self.tls = config;
        self
    }

    /// The same client, which connects only to addresses that are allowed. They are checked after the name was looked up, for each
    /// connection.
    pub fn with_targets(mut self, targets: Arc<AllowedTargets>) -> Self {
        self.targets = Some(targets);
        self.agent = agent(self.tls.clone(), self.targets.clone());
        self
    }

    /// The same client with TLS for addresses that begin with `https`, whose certificates the authorities of `file` signed, or
    /// those of the system ([`TlsConfig::of_authorities`]).
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn with_authorities(self, file: Option<&Path>) -> Result<Self, PemError> {
        Ok(self.with_tls(Some(TlsConfig::of_authorities(file)?)))
    }

    /// The same client, for which a redirect is an answer like any other.
    pub fn without_redirects(mut self) -> Self {
        self.follows_redirects = false;
        self
    }

    /// The configuration of TLS; `None` without TLS.
    pub const fn tls(&self) -> Option<&TlsConfig> {
        self.tls.as_ref()
    }

    /// The same client with a header in each request, if there is a value.
    pub fn with_header(mut self, name: &'static str, value: Option<String>) -> Self {
        self.header = value.map(|value| (name, value));
        self
    }

    /// The beginning of all URLs.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The answer to a GET, with any status.
    pub fn get(&self, path: &str) -> Result<HttpAnswer, HttpError> {
        self.send(&HttpRequest::get(path))
    }

    /// The JSON answer to a GET.
    pub fn json(&self, path: &str) -> Result<Value, HttpError> {
        self.get(path)?.json()
    }

    /// The answer to a request, with any status.
    pub fn send(&self, request: &HttpRequest<'_>) -> Result<HttpAnswer, HttpError> {
        let timeout = Timeout::Whole(request.timeout.unwrap_or(self.limits.timeout));
        let (mut answer, body) = self.begin(request, timeout)?;
        self.read(&mut answer, body)?;
        Ok(answer)
    }

    /// The status of the answer to a request. The body is not read and may have any size.
    pub fn status(&self, request: &HttpRequest<'_>) -> Result<u16, HttpError> {
        let timeout = Timeout::Whole(request.timeout.unwrap_or(self.limits.timeout));
        Ok(self.begin(request, timeout)?.0.status)
    }

    /// The beginning of an answer, whose body has no limits. An answer without success is read at once. `begin_timeout` is
    /// the longest time to its head.
    pub fn stream(
        &self,
        request: &HttpRequest<'_>,
        begin_timeout: Duration,
    ) -> Result<(HttpAnswer, Box<dyn Read + Send>), HttpError> {
        let timeout = Timeout::Begin { connect: self.limits.timeout, answer: begin_timeout };
        let (mut answer, body) = self.begin(request, timeout)?;
        if answer.is_success() {
            return Ok((answer, Box::new(body.into_reader())));
        }
        self.read(&mut answer, body)?;
        Ok((answer, Box::new(std::io::empty())))
    }

    fn begin(
        &self,
        request: &HttpRequest<'_>,
        timeout: Timeout,
    ) -> Result<(HttpAnswer, ureq::Body), HttpError> {
        let url = format!("{}{}", self.base, request.path);
        let mut head = ureq::http::Request::builder().method(request.method).uri(&url);
        let (content_type, bytes) = request.body.parts();
        let content_type = content_type.map(|content_type| ("Content-Type", content_type));
        let own = self.header.as_ref().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in content_type.into_iter().chain(own).chain(request.headers.iter().copied()) {
            head = head.header(name, value);
        }
        let sent = match request.body {
            // POST and PUT have an empty body of a known length. Otherwise the library sends one in chunks, which simple servers do
            // not read.
            Body::Empty if !matches!(request.method, "POST" | "PUT") => self.run(head.body(()), timeout),
            _ => self.run(head.body(bytes), timeout),
        };
        match sent {
            Ok(answer) => {
                let (head, body) = answer.into_parts();
                let status = head.status.as_u16();
                Ok((HttpAnswer { url, status, body: Vec::new(), headers: head.headers }, body))
            }
            Err(error) => Err(HttpError::NoAnswer { url, source: Box::new(error) }),
        }
    }

    fn run<S: ureq::AsSendBody>(
        &self,
        request: Result<ureq::http::Request<S>, ureq::http::Error>,
        timeout: Timeout,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = self.agent.configure_request(request?);
        let request = if self.follows_redirects { request } else { request.max_redirects(0) };
        let request = match timeout {
            Timeout::Whole(time) => request.timeout_global(Some(time)),
            Timeout::Begin { connect, answer } => {
                request.timeout_connect(Some(connect)).timeout_recv_response(Some(answer))
            }
        };
        self.agent.run(request.build())
    }

    fn read(&self, answer: &mut HttpAnswer, mut body: ureq::Body) -> Result<(), HttpError> {
        let read = body.with_config().limit(self.limits.body_bytes_max).read_to_vec();
        let failed = |error| HttpError::NoAnswer { url: answer.url.clone(), source: Box::new(error) };
        answer.body = read.map_err(failed)?;
        Ok(())
    }
}

fn agent(tls: Option<TlsConfig>, targets: Option<Arc<AllowedTargets>>) -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).user_agent(USER_AGENT).build();
    // Not the default connector: if a crate of the program turns on its TLS, it checks certificates without our options.
    let connector =
        ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(TlsConnector(tls));
    ureq::Agent::with_parts(config, connector, CheckedResolver::new(targets))
}

impl<'a> Body<'a> {
    /// The media type, and the bytes.
    fn parts(self) -> (Option<&'static str>, &'a [u8]) {
        match self {
            Self::Empty => (None, &[]),
            Self::Json(text) => (Some("application/json"), text.as_bytes()),
            Self::Form(text) => (Some("application/x-www-form-urlencoded"), text.as_bytes()),
            Self::Bytes(bytes) => (Some("application/octet-stream"), bytes),
        }
    }
}

enum Timeout {
    Whole(Duration),
    Begin { connect: Duration, answer: Duration },
}

impl HttpAnswer {
    /// Whether the status is a success.
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// The answer itself if its status is a success.
    pub fn success(self) -> Result<Self, HttpError> {
        if self.is_success() { Ok(self) } else { Err(HttpError::Status(Box::new(self))) }
    }

    /// The body of a success as JSON.
    pub fn json(self) -> Result<Value, HttpError> {
        let answer = self.success()?;
        serde_json::from_slice(&answer.body).map_err(|_| HttpError::NotJson(Box::new(answer)))
    }

    /// A header; empty if it is missing or no text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as text. Bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// What the answer is, in words: for an address at which another server listens.
    pub fn kind(&self) -> String {
        let content_type = match self.header("content-type") {
            "" => "content without a type",
            content_type => content_type,
        };
        let server = match self.header("server") {
            "" => String::new(),
            server => format!(" of the server {server}"),
        };
        format!("status {}, {content_type}{server}: {}", self.status, self.quote())
    }

    /// The beginning of the body in one line.
    fn quote(&self) -> String {
        let line = self.text().split_whitespace().collect::<Vec<_>>().join(" ");
        let quote: String = line.chars().filter(|c| !c.is_control()).take(HTTP_QUOTE_CHARS).collect();
        if quote.is_empty() { "an empty body".to_owned() } else { format!("`{quote}`") }
    }
}
