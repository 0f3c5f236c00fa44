//! A blocking client of the REST API, with keep-alive.

use std::time::Duration;

use serde_json::{Value, json};

use crate::limits::{ANSWER_BYTES_MAX, QUOTE_CHARS, REQUEST_TIMEOUT, STREAM_BEGIN_TIMEOUT};

/// A client of one server.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    agent: ureq::Agent,
    base: String,
    bearer: Option<String>,
}

/// An answer whose body is read as a stream.
pub(crate) struct Streamed {
    /// The size of the payload that the server announced.
    pub bytes: Option<u64>,
    /// The body. A read error means that it is incomplete.
    pub body: Box<dyn std::io::Read + Send>,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// There was no answer.
    #[error("no answer from {url}; check that the server runs and that this is the address of its HTTP door")]
    Transport {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: Box<ureq::Error>,
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

impl Api {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`. It sends nothing yet.
    pub(crate) fn new(base: &str) -> Self {
        Self::with_timeout(base, REQUEST_TIMEOUT)
    }

    /// The same, with another timeout of requests.
    pub(crate) fn with_timeout(base: &str, timeout: Duration) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false);
        Self { agent: config.build().new_agent(), base: base.trim_end_matches('/').into(), bearer: None }
    }

    /// The server's address.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// The value of the login header, if the client is logged in.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.bearer.as_deref()
    }

    /// Whether the client is logged in.
    pub(crate) fn is_logged_in(&self) -> bool {
        self.bearer.is_some()
    }

    /// Logs in. All later requests belong to the session.
    pub(crate) fn log_in(&mut self, user: &str, password: &str) -> Result<(), ApiError> {
        let path = "/api/auth/login";
        let answer = self.post(path, &json!({ "username": user, "password": password }))?;
        let token = answer["token"]
            .as_str()
            .ok_or_else(|| self.unexpected("POST", path, "no token in the answer"))?;
        self.bearer = Some(format!("Bearer {token}"));
        Ok(())
    }

    /// Sends a GET request and decodes the answer.
    pub(crate) fn get(&self, path: &str) -> Result<Value, ApiError> {
        let request = self.agent.get(format!("{}{path}", self.base));
        let request = match &self.bearer {
            Some(bearer) => request.header("X-Authorization", bearer),
            None => request,
        };
        self.answer("GET", path, request.call())
    }

    /// Sends a DELETE request and decodes the answer; an empty answer is null.
    pub(crate) fn delete(&self, path: &str) -> Result<Value, ApiError> {
        let request = self.agent.delete(format!("{}{path}", self.base));
        let request = match &self.bearer {
            Some(bearer) => request.header("X-Authorization", bearer),
            None => request,
        };
        self.answer("DELETE", path, request.call())
    }

    /// Sends a POST request with a JSON value and decodes the answer; an empty answer is null.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, ApiError> {
        self.post_text(path, &body.to_string())
    }

    /// Sends a POST request with a JSON text and decodes the answer.
    pub(crate) fn post_text(&self, path: &str, body: &str) -> Result<Value, ApiError> {
        let request =
            self.agent.post(format!("{}{path}", self.base)).header("Content-Type", "application/json");
        let request = match &self.bearer {
            Some(bearer) => request.header("X-Authorization", bearer),
            None => request,
        };
        self.answer("POST", path, request.send(body))
    }

    /// Sends a POST request with any bytes. The answer is a stream of any length and duration.
    pub(crate) fn post_for_stream(&self, path: &str, body: &[u8]) -> Result<Streamed, ApiError> {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(REQUEST_TIMEOUT))
            .timeout_recv_response(Some(STREAM_BEGIN_TIMEOUT))
            .http_status_as_error(false);
        let request = config.build().new_agent().post(format!("{}{path}", self.base));
        let request = match &self.bearer {
            Some(bearer) => request.header("X-Authorization", bearer),
            None => request,
        };
        let transport = |source| ApiError::Transport { url: self.url(path), source: Box::new(source) };
        let answer = request.send(body).map_err(transport)?;
        if !answer.status().is_success() {
            self.answer("POST", path, Ok(answer))?;
            return Err(self.unexpected("POST", path, "neither a success nor an error"));
        }
        let bytes = answer.headers().get("X-Tacho-Bytes").and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(Streamed { bytes, body: Box::new(answer.into_body().into_reader()) })
    }

    fn answer(
        &self,
        method: &'static str,
        path: &str,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value, ApiError> {
        let transport = |source| ApiError::Transport { url: self.url(path), source: Box::new(source) };
        let mut answer = answer.map_err(transport)?;
        let status = answer.status();
        let retry_after =
            answer.headers().get("Retry-After").and_then(|value| value.to_str().ok()?.parse().ok());
        let text =
            answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().map_err(transport)?;
        if !status.is_success() {
            let retry_after = retry_after.map(Duration::from_secs);
            let (url, message) = (self.url(path), message_of(&text));
            return Err(ApiError::Status { method, url, status: status.as_u16(), message, retry_after });
        }
        if text.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text)
            .map_err(|error| self.unexpected(method, path, &format!("no JSON: {error}")))
    }

    /// The error for an answer of an unexpected form.
    pub(crate) fn unexpected(&self, method: &'static str, path: &str, what: &str) -> ApiError {
        ApiError::Answer { method, url: self.url(path), what: what.into() }
    }

    /// The address without the parts that may contain a device's token.
    fn url(&self, path: &str) -> String {
        match path.strip_prefix("/api/v1/").and_then(|rest| rest.split_once('/')) {
            Some((_, rest)) => format!("{}/api/v1/TOKEN/{rest}", self.base),
            None => format!("{}{}", self.base, path.split('?').next().unwrap_or(path)),
        }
    }
}

/// The message of an error body: its `message`, or its beginning.
pub(crate) fn message_of(body: &str) -> String {
    let message =
        serde_json::from_str::<Value>(body).ok().and_then(|body| Some(body["message"].as_str()?.to_owned()));
    message.unwrap_or_else(|| body.chars().take(QUOTE_CHARS).collect())
}

/// Percent-encodes a text for the path or the query of a URL.
pub(crate) fn escaped(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_quote_the_servers_message_and_hide_tokens() {
        assert_eq!(message_of(r#"{"status":400,"message":"say please"}"#), "say please");
        assert_eq!(message_of("no JSON"), "no JSON");
        let api = Api::new("http://127.0.0.1:1/");
        assert_eq!(api.url("/api/v1/secret/telemetry"), "http://127.0.0.1:1/api/v1/TOKEN/telemetry");
        assert_eq!(api.url("/api/device?accessToken=secret"), "http://127.0.0.1:1/api/device");
    }

    #[test]
    fn names_are_escaped_for_urls() {
        assert_eq!(escaped("truck 7/ä"), "truck%207%2F%C3%A4");
    }
}
