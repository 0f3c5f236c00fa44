//! Requests of HTTP, on threads that may block.

use ureq::{Agent, Error};
use virtual_sensors::shown_url;

use super::blocking::blocking;
use super::failure::Failure;
use crate::http;
use crate::limits::HTTP_TIMEOUT;

/// A client that keeps its connections.
#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
}

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
    /// A client that trusts the authorities of `cafile`, or those of the system.
    pub(super) async fn new(cafile: Option<&str>) -> Result<Self, Failure> {
        let cafile = cafile.map(str::to_owned);
        blocking(move || {
            let config = Agent::config_builder().timeout_global(Some(HTTP_TIMEOUT));
            let agent = http::agent(config, cafile.as_deref()).map_err(Failure::new)?;
            Ok(Self { agent })
        })
        .await
    }

    /// Sends a request and reads the answer, of any status.
    pub(super) async fn send(&self, request: Request, body_bytes_max: u64) -> Result<Answer, Failure> {
        let agent = self.agent.clone();
        blocking(move || {
            send(&agent, &request, body_bytes_max).map_err(|error| failure(&shown_url(request.url()), error))
        })
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

fn send(agent: &Agent, request: &Request, body_bytes_max: u64) -> Result<Answer, Error> {
    let mut answer = match request {
        Request::Get { url, authorization: Some(authorization) } => {
            agent.get(url.as_str()).header("Authorization", authorization.as_str()).call()?
        }
        Request::Get { url, authorization: None } => agent.get(url.as_str()).call()?,
        Request::PostForm { url, form, authorization } => {
            let mut post = agent.post(url.as_str());
            if let Some(authorization) = authorization {
                post = post.header("Authorization", authorization.as_str());
            }
            post.send_form(form.iter().map(|(key, value)| (*key, value.as_str())))?
        }
    };
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(body_bytes_max).read_to_vec()?;
    Ok(Answer { status, body })
}

/// `url` is an address without secrets.
fn failure(url: &str, error: Error) -> Failure {
    match error {
        Error::BodyExceedsLimit(limit) => {
            Failure::new(format!("the answer of {url} has more than {limit} bytes"))
        }
        // The error has the whole address.
        Error::BadUri(_) => Failure::new(format!("{url} is not an HTTP address")),
        error => Failure::while_(format_args!("no answer of {url}"), http::explain(error, url)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_name_the_address_without_secrets() {
        let answer = Answer { status: 404, body: b"not here\n".to_vec() };
        let failed = answer.success("http://ann:secret@h/now?key=secret").unwrap_err();
        assert_eq!(failed.to_string(), "http://h/now answers 404: not here");
        let failed = failure("http://h/now", Error::BadUri("http://ann:secret@/ is missing host".to_owned()));
        assert_eq!(failed.to_string(), "http://h/now is not an HTTP address");
        let failed = failure("http://h/now", Error::HostNotFound);
        assert_eq!(failed.to_string(), "no answer of http://h/now: host not found");
    }
}
