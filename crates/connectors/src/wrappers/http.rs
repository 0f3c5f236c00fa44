//! Requests of HTTP, on threads that may block.

use std::path::PathBuf;
use std::sync::Arc;

use clients::http::{Body, HttpAnswer, HttpClient, HttpError, HttpLimits, HttpRequest, form};
use clients::outgoing::AllowedTargets;
use virtual_sensors::shown_url;

use super::blocking::blocking;
use super::failure::Failure;
use crate::limits::{HTTP_TIMEOUT, REDIRECTS_MAX};

/// A client that keeps its connections.
#[derive(Clone)]
pub(super) struct Client(HttpClient);

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What a request sends.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Get { url: String, authorization: Option<String> },
    PostForm { url: String, form: Vec<(&'static str, String)>, authorization: Option<String> },
}

impl Client {
    /// A client of servers that `targets` allows. It trusts the authorities of `cafile`, or those of the system. An answer has at most
    /// `body_bytes_max` bytes.
    pub(super) async fn new(
        targets: &Arc<AllowedTargets>,
        cafile: Option<&str>,
        body_bytes_max: u64,
    ) -> Result<Self, Failure> {
        let targets = Arc::clone(targets);
        let cafile = cafile.map(PathBuf::from);
        let limits = HttpLimits { timeout: HTTP_TIMEOUT, body_bytes_max };
        blocking(move || {
            let client = HttpClient::new("", limits).without_redirects().with_targets(targets);
            let client = client.with_authorities(cafile.as_deref());
            client.map(Self).map_err(|error| Failure::new(error.to_string()))
        })
        .await
    }

    /// Sends a request and reads the answer, of any status.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let client = self.0.clone();
        blocking(move || send(&client, &request)).await
    }
}

impl Request {
    fn url(&self) -> &str {
        match self {
            Self::Get { url, .. } | Self::PostForm { url, .. } => url,
        }
    }
}

impl Answer {
    /// The body of an answer with a status of success.
    pub(super) fn success(self, url: &str) -> Result<Vec<u8>, Failure> {
        if (200..300).contains(&self.status) {
            return Ok(self.body);
        }
        let text = String::from_utf8_lossy(&self.body);
        let beginning: String = text.chars().take(200).collect();
        let (status, url) = (self.status, shown_url(url));
        Err(Failure::new(format!("{url} answers {status}: {}", beginning.trim())))
    }
}

/// Sends a request. Follows the redirects of a GET, but not to another server: its owner could make us ask servers that only we
/// reach, and would get our credentials.
fn send(client: &HttpClient, request: &Request) -> Result<Answer, Failure> {
    let mut request = request.clone();
    for _ in 0..=REDIRECTS_MAX {
        let answer =
            send_once(client, &request).map_err(|error| failure(&shown_url(request.url()), &error))?;
        let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
        match (&mut request, answer.header("location")) {
            (Request::Get { url, .. }, target) if is_redirect && !target.is_empty() => {
                *url = redirected(url, target)?;
            }
            _ => return Ok(Answer { status: answer.status, body: answer.body }),
        }
    }
    let url = shown_url(request.url());
    Err(Failure::new(format!("{url} redirects more than {REDIRECTS_MAX} times")))
}

/// The address of a redirect on the same server.
fn redirected(url: &str, target: &str) -> Result<String, Failure> {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let origin = &url[..url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at)];
    let is_path = target.starts_with('/') && !target.starts_with("//");
    let rest = target.strip_prefix(origin).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    match (is_path, rest) {
        (true, _) => Ok(format!("{origin}{target}")),
        (false, Some(_)) => Ok(target.to_owned()),
        (false, None) => Err(Failure::new(format!(
            "{} redirects to {}, which is another server; name that address if it is the right one",
            shown_url(url),
            shown_url(target)
        ))),
    }
}

fn send_once(client: &HttpClient, request: &Request) -> Result<HttpAnswer, HttpError> {
    let (method, url, form, authorization) = match request {
        Request::Get { url, authorization } => ("GET", url, None, authorization),
        Request::PostForm { url, form: fields, authorization } => {
            let fields = fields.iter().map(|(key, value)| (*key, value.as_str()));
            ("POST", url, Some(form(fields)), authorization)
        }
    };
    let body = form.as_deref().map_or(Body::Empty, Body::Form);
    let authorization = authorization.as_ref().map(|value| ("Authorization", value.as_str()));
    let request = HttpRequest { headers: authorization.as_slice(), ..HttpRequest::new(method, url, body) };
    client.send(&request)
}

/// `url` is an address without secrets.
fn failure(url: &str, error: &HttpError) -> Failure {
    Failure::while_(format_args!("no answer of {url}"), error.reason())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_address_without_secrets() {
        let answer = Answer { status: 404, body: b"not here\n".to_vec() };
        let failed = answer.success("http://ann:secret@h/now?key=secret").unwrap_err();
        assert_eq!(failed.to_string(), "http://h/now answers 404: not here");
        let limits = HttpLimits { timeout: HTTP_TIMEOUT, body_bytes_max: 1 };
        let request = Request::Get { url: "/now?key=secret".to_owned(), authorization: None };
        let failed = send(&HttpClient::new("", limits), &request).unwrap_err();
        assert_eq!(failed.to_string(), "no answer of /now: this is not an HTTP address");
    }

    #[test]
    fn a_redirect_stays_on_its_server() {
        for (url, target, to) in [
            ("http://h:1/a?b", "/c?d", "http://h:1/c?d"),
            ("https://h?x", "https://h/c", "https://h/c"),
            ("http://h", "/", "http://h/"),
        ] {
            assert_eq!(redirected(url, target).unwrap(), to);
        }
        for (url, target) in [
            ("http://h/a", "http://169.254.169.254/latest"),
            ("http://h/a", "//other/a"),
            ("http://h/a", "http://h:81/a"),
            ("http://h/a", "http://h.evil/a"),
            ("http://h/a", "http://h@evil/a"),
            ("https://h/a", "http://h/a"),
            ("http://h/a", "b"),
        ] {
            let refused = redirected(url, target).unwrap_err().to_string();
            assert!(refused.contains("another server"), "{target}: {refused}");
        }
    }
}
