//! Requests of HTTP, on threads that may block.

use std::path::PathBuf;

use clients::http::{Body, HttpClient, HttpError, HttpLimits, HttpRequest, form};
use virtual_sensors::shown_url;

use super::blocking::blocking;
use super::failure::Failure;
use crate::limits::HTTP_TIMEOUT;

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
    /// A client that trusts the authorities of `cafile`, or those of the system. An answer has at most `body_bytes_max` bytes.
    pub(super) async fn new(cafile: Option<&str>, body_bytes_max: u64) -> Result<Self, Failure> {
        let cafile = cafile.map(PathBuf::from);
        let limits = HttpLimits { timeout: HTTP_TIMEOUT, body_bytes_max };
        blocking(move || {
            let client = HttpClient::new("", limits).with_authorities(cafile.as_deref());
            client.map(Self).map_err(|error| Failure::new(error.to_string()))
        })
        .await
    }

    /// Sends a request and reads the answer, of any status.
    pub(super) async fn send(&self, request: Request) -> Result<Answer, Failure> {
        let client = self.0.clone();
        blocking(move || send(&client, &request).map_err(|error| failure(&shown_url(request.url()), &error)))
            .await
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

fn send(client: &HttpClient, request: &Request) -> Result<Answer, HttpError> {
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
    let answer = client.send(&request)?;
    Ok(Answer { status: answer.status, body: answer.body })
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
        let error = send(&HttpClient::new("", limits), &request).unwrap_err();
        let failed = failure(&shown_url(request.url()), &error);
        assert_eq!(failed.to_string(), "no answer of /now: this is not an HTTP address");
    }
}
