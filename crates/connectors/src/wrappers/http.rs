//! Requests of HTTP, on threads that may block.

use tokio::task::spawn_blocking;
use ureq::{Agent, Error};

use super::sink::Failure;
use crate::limits::HTTP_TIMEOUT;

/// A client that keeps its connections.
#[derive(Clone)]
pub(super) struct Client {
    agent: Agent,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// What a request sends.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Get { url: String, authorization: Option<String> },
    PostForm { url: String, form: Vec<(&'static str, String)> },
}

impl Client {
    pub(super) fn new() -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(HTTP_TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("tachograph/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { agent: config.new_agent() }
    }

    /// Sends a request and reads the answer, of any status.
    pub(super) async fn send(&self, request: Request, body_bytes_max: u64) -> Result<Answer, Failure> {
        let agent = self.agent.clone();
        let url = request.url().to_owned();
        let sent = spawn_blocking(move || send(&agent, &request, body_bytes_max)).await;
        let answer = sent.map_err(|error| Failure::while_("the request was given up", error))?;
        answer.map_err(|error| match error {
            Error::BodyExceedsLimit(limit) => {
                Failure::new(format!("the answer of {} has more than {limit} bytes", without_query(&url)))
            }
            error => Failure::while_(format_args!("no answer of {}", without_query(&url)), error),
        })
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
        let (status, url) = (self.status, without_query(url));
        Err(Failure::new(format!("{url} answers {status}: {}", beginning.trim())))
    }
}

fn send(agent: &Agent, request: &Request, body_bytes_max: u64) -> Result<Answer, Error> {
    let mut answer = match request {
        Request::Get { url, authorization: Some(authorization) } => {
            agent.get(url.as_str()).header("Authorization", authorization.as_str()).call()?
        }
        Request::Get { url, authorization: None } => agent.get(url.as_str()).call()?,
        Request::PostForm { url, form } => {
            agent.post(url.as_str()).send_form(form.iter().map(|(key, value)| (*key, value.as_str())))?
        }
    };
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(body_bytes_max).read_to_vec()?;
    Ok(Answer { status, body })
}

/// An address may have secrets in its query.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(path, _)| path)
}
