//! nginx' own counters, from the page of its module `stub_status`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clients::http::{HttpAnswer, HttpClient, HttpLimits};
use clients::tls::TlsConfig;

use load::sampling::ValueKind::{Counter, Gauge};
use load::sampling::{Readings, Source};

/// The usual length of the page is about a hundred bytes.
const LIMITS: HttpLimits = HttpLimits { timeout: Duration::from_secs(2), body_bytes_max: 4 * 1024 };

/// The numbers of the page. Counters count from the start of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StubStatus {
    /// Open connections.
    pub active: u64,
    /// Connections accepted so far.
    pub accepts: u64,
    /// Connections handled so far; fewer than accepted if a limit was reached.
    pub handled: u64,
    /// Requests so far, including those for the page.
    pub requests: u64,
    /// Connections with a request that is being read.
    pub reading: u64,
    /// Connections with an answer that is being written.
    pub writing: u64,
    /// Idle connections.
    pub waiting: u64,
}

/// The number of requests for the page, because the server counts them as well.
#[derive(Debug, Default)]
pub(crate) struct PollCount {
    answered: AtomicU64,
    unanswered: AtomicU64,
}

impl PollCount {
    /// The number of requests with an answer, and without one. The server may have counted the latter.
    pub(crate) fn so_far(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.unanswered.load(Ordering::Relaxed))
    }
}

/// The status page of one nginx.
pub(crate) struct Nginx {
    page: HttpClient,
    polls: Arc<PollCount>,
}

impl Nginx {
    /// `url` is the address of the page. `polls` counts the requests for it.
    pub(crate) fn new(url: &str, polls: Arc<PollCount>) -> Self {
        Self { page: HttpClient::new(url, LIMITS), polls }
    }

    /// The same with TLS, for an address that begins with `https`.
    pub(crate) fn with_tls(self, tls: Option<TlsConfig>) -> Self {
        Self { page: self.page.with_tls(tls), ..self }
    }

    /// Reads the page.
    pub(crate) fn status(&self) -> Result<StubStatus, String> {
        let asked = self.page.get("").and_then(HttpAnswer::success);
        let counter = if asked.is_ok() { &self.polls.answered } else { &self.polls.unanswered };
        counter.fetch_add(1, Ordering::Relaxed);
        let answer = asked.map_err(|error| error.to_string())?;
        parse(&answer.text()).ok_or_else(|| {
            let url = &answer.url;
            format!("{url}: no page of nginx' stub_status (`location = /status {{ stub_status; }}`)")
        })
    }
}

impl Source for Nginx {
    fn prefix(&self) -> &str {
        "nginx"
    }

    fn read(&mut self) -> Result<Readings, String> {
        let status = self.status()?;
        let named = [
            ("active", Gauge, status.active),
            ("accepts", Counter, status.accepts),
            ("handled", Counter, status.handled),
            ("requests", Counter, status.requests),
            ("reading", Gauge, status.reading),
            ("writing", Gauge, status.writing),
            ("waiting", Gauge, status.waiting),
        ];
        Ok(named.map(|(name, kind, value)| (name.to_owned(), kind, value as f64)).to_vec())
    }
}

/// Parses seven numbers between words, whose order has never changed.
fn parse(text: &str) -> Option<StubStatus> {
    if !text.starts_with("Active connections:") {
        return None;
    }
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [active, accepts, handled, requests, reading, writing, waiting] = numbers[..] else { return None };
    Some(StubStatus { active, accepts, handled, requests, reading, writing, waiting })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_read() {
        let page = "Active connections: 291 \nserver accepts handled requests\n 16630948 16630947 31070465 \n\
                    Reading: 6 Writing: 179 Waiting: 106 \n";
        let expected = StubStatus {
            active: 291,
            accepts: 16_630_948,
            handled: 16_630_947,
            requests: 31_070_465,
            reading: 6,
            writing: 179,
            waiting: 106,
        };
        assert_eq!(parse(page), Some(expected));
        assert_eq!(parse("<html>Active connections: 1 2 3 4 5 6 7</html>"), None);
        assert_eq!(parse("Active connections: 1"), None);
    }
}
