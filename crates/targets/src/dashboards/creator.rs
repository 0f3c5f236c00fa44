//! A client that creates devices, one after the other, over one HTTP connection.

use load::protocol::{Answer, AnswerStatus, Completion, Received};
use serde_json::{Value, json};

use crate::exchange::{Answered, Exchange};
use crate::request::{Format, RequestHead};

const PATH: &str = "/api/device";

/// The common parts of all clients.
#[derive(Debug, Clone)]
pub(super) struct CreatorConfig {
    /// Host and login.
    pub(super) head: RequestHead,
    /// The beginning of the names of all devices of the phase.
    pub(super) prefix: String,
    /// The class of a creation.
    pub(super) class: u16,
}

/// One client.
#[derive(Debug)]
pub(super) struct Creator {
    number: u32,
    exchange: Exchange,
    /// The name of the device that is asked for.
    waiting: Option<String>,
    /// Requests that were sent, and devices that were answered.
    pub(super) asked: u64,
    pub(super) created: u64,
}

impl Creator {
    pub(super) fn new(number: u32) -> Self {
        Self { number, exchange: Exchange::default(), waiting: None, asked: 0, created: 0 }
    }

    /// A new connection.
    pub(super) fn open(&mut self) {
        self.exchange = Exchange::default();
        self.lost();
    }

    pub(super) fn lost(&mut self) {
        self.waiting = None;
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Appends the request for the next device.
    pub(super) fn start(&mut self, config: &CreatorConfig, out: &mut Vec<u8>) {
        let name = format!("{}{}-{}", config.prefix, self.number, self.asked);
        let body = json!({ "name": name, "type": "default", "label": null }).to_string();
        config.head.append(out, "POST", PATH, Format::Json, body.as_bytes());
        self.waiting = Some(name);
        self.asked += 1;
    }

    pub(super) fn receive(
        &mut self,
        bytes: &[u8],
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let Self { exchange, waiting, created, .. } = self;
        exchange.receive(bytes, |answered| {
            let name = waiting.take().ok_or("an answer to nothing that was asked")?;
            let wrong = answered.refusal().or_else(|| other_device(&answered, &name));
            *created += u64::from(wrong.is_none());
            let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
            done(Completion { answer: Answer::InOrder, status, bytes: answered.bytes });
            Ok(())
        })
    }
}

/// The fault of the device of an answer; `None` if it is the one that was asked for.
fn other_device(answered: &Answered<'_>, name: &str) -> Option<String> {
    let device: Value = serde_json::from_slice(answered.body).unwrap_or_default();
    let is_right = device["name"] == name && device["id"]["id"].is_string();
    (!is_right).then(|| "the answer is not the device that was asked for".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_device_that_was_asked_for_is_created() {
        let head = RequestHead { host: "h:1".to_owned(), login: Some("Bearer x".to_owned()) };
        let config = CreatorConfig { head, prefix: "bench-1-".to_owned(), class: 0 };
        let mut creator = Creator::new(3);
        for (status, body, expected) in [
            ("200 OK", r#"{"id":{"id":"a"},"name":"bench-1-3-0"}"#, "Good"),
            ("200 OK", r#"{"id":{"id":"a"},"name":"bench-1-3-0"}"#, "not the device"),
            ("200 OK", r#"{"name":"bench-1-3-2"}"#, "not the device"),
            ("429 Too Many Requests", "slow down", "status 429: slow down"),
        ] {
            let mut out = Vec::new();
            creator.start(&config, &mut out);
            let request = String::from_utf8(out).unwrap();
            assert!(
                request.starts_with("POST /api/device HTTP/1.1") && request.contains("Bearer x"),
                "{request}"
            );
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let mut result = String::new();
            let mut done = |completion: Completion<'_>| result = format!("{:?}", completion.status);
            creator.receive(answer.as_bytes(), &mut done).unwrap();
            assert!(result.contains(expected), "{result}");
        }
        assert_eq!((creator.asked, creator.created), (4, 1));
    }
}
