//! Clients: each writes the next request of the data, or asks one query after the other.

use std::sync::atomic::{AtomicU64, Ordering};

use clients::CancelHandle;
use clients::http::{self, HttpClient, HttpRequest, escaped};
use load::dataset::Random;
use load::protocol::{Blocking, Done, DueTime, Failure};
use parking_lot::Mutex;
use serde_json::Value;

use super::lines::{Body, Feed};
use super::queries::{Subject, query};
use crate::timeseries::refusal::quoted;

/// The load of a segment: all clients write, or all ask the same query.
pub(super) struct Clients<'a> {
    pub(super) http: &'a HttpClient,
    pub(super) database: &'a str,
    pub(super) work: Work<'a>,
    /// The class of the operation.
    pub(super) class: u16,
    pub(super) seed: u64,
}

/// The operation of the clients.
pub(super) enum Work<'a> {
    /// They write all data.
    Load(&'a Mutex<Feed>),
    /// They ask a query.
    Ask { name: &'a str, subject: &'a Subject, rows: &'a Rows },
}

/// The rows of answers.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) answers: AtomicU64,
    pub(super) rows: AtomicU64,
}

/// One client.
pub(super) struct Session {
    http: HttpClient,
    random: Random,
    /// The next request of a load. It is made in advance, because its making is not the server's time.
    body: Option<Body>,
    /// The latest answer, which is not checked yet.
    answer: Option<Vec<u8>>,
}

impl Clients<'_> {
    fn next_body(&self) -> Option<Body> {
        match self.work {
            Work::Load(feed) => feed.lock().next(),
            Work::Ask { .. } => None,
        }
    }

    fn write(&self, session: &mut Session) -> Result<Done, Failure> {
        let Some(body) = &session.body else { return Ok(Done::default()) };
        let path = format!("/write?db={}&precision=ms", escaped(self.database));
        let request = HttpRequest::new("POST", &path, http::Body::Bytes(body.text.as_bytes()));
        let answer = session.http.send(&request).map_err(|error| Failure::Refused(error.to_string()))?;
        match answer.status {
            204 => Ok(Done { bytes_out: body.text.len() as u64, ..Done::default() }),
            429 | 503 => Err(Failure::Again(quoted(answer.status, &answer.body))),
            status => Err(Failure::Refused(quoted(status, &answer.body))),
        }
    }

    fn ask(&self, session: &mut Session, name: &str, subject: &Subject) -> Result<Done, Failure> {
        let text = query(name, subject, &mut session.random);
        let path = format!("/query?db={}&epoch=ms&q={}", escaped(self.database), escaped(&text));
        // TSBS sends statements that write with POST too.
        let method = if subject.compat { "POST" } else { "GET" };
        let request = HttpRequest::new(method, &path, http::Body::Empty);
        let answer = session.http.send(&request).map_err(|error| Failure::Refused(error.to_string()))?;
        if !answer.is_success() {
            return Err(Failure::Refused(quoted(answer.status, &answer.body)));
        }
        let bytes_in = answer.body.len() as u64;
        session.answer = Some(answer.body);
        Ok(Done { bytes_in, ..Done::default() })
    }
}

impl Blocking for Clients<'_> {
    type Session = Session;

    fn open(&self, number: u32) -> Result<Session, String> {
        let random = Random::keyed(self.seed, u64::from(self.class) + 100, number.into());
        Ok(Session { http: self.http.clone(), random, body: self.next_body(), answer: None })
    }

    /// The HTTP client reconnects by itself.
    fn reopen(&self, _: &mut Session) -> Result<(), String> {
        Ok(())
    }

    fn cancel_handle(&self, _: &Session) -> Option<CancelHandle> {
        None
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        match self.work {
            Work::Load(_) => session.body.as_ref().map(|_| self.class),
            Work::Ask { .. } => Some(self.class),
        }
    }

    fn run(&self, session: &mut Session, _: u16, _: DueTime) -> Result<Done, Failure> {
        match &self.work {
            Work::Load(_) => self.write(session),
            Work::Ask { name, subject, .. } => self.ask(session, name, subject),
        }
    }

    fn check(&self, session: &mut Session) -> Result<(), String> {
        match &self.work {
            Work::Load(_) => session.body = self.next_body(),
            Work::Ask { rows, .. } => {
                let Some(answer) = session.answer.take() else { return Ok(()) };
                rows.rows.fetch_add(rows_of(&answer)?, Ordering::Relaxed);
                rows.answers.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn close(&self, _: &mut Session) {}
}

/// The number of rows of an answer.
fn rows_of(answer: &[u8]) -> Result<u64, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| format!("no JSON: {error}"))?;
    let Some(results) = answer["results"].as_array() else { return Err(format!("no results: {answer}")) };
    let mut rows = 0;
    for result in results {
        if let Some(error) = result["error"].as_str() {
            return Err(error.to_owned());
        }
        let series = result["series"].as_array().into_iter().flatten();
        rows += series.map(|one| one["values"].as_array().map_or(0, Vec::len) as u64).sum::<u64>();
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_all_series_and_results_count_and_an_error_is_one() {
        let answer =
            br#"{"results":[{"series":[{"values":[[0,1],[1,1]]},{"values":[[0,1]]}]},{"statement_id":1}]}"#;
        assert_eq!(rows_of(answer), Ok(3));
        let answer = br#"{"results":[{"series":[]},{"error":"database not found: x"}]}"#;
        assert_eq!(rows_of(answer), Err("database not found: x".to_owned()));
        assert!(rows_of(b"{}").is_err() && rows_of(b"no").is_err());
    }
}
