//! The client that writes: each connection has its share of the streams, and writes the next rows of one after the other by REST v3.

use clients::CancelHandle;
use clients::http::{Body, HttpClient, HttpRequest, escaped};
use load::protocol::{Blocking, Done, DueTime, Failure};

use super::streams::Streams;
use crate::timeseries::refusal::quoted;

/// The load of a phase.
pub(super) struct Uploads<'a> {
    pub(super) http: &'a HttpClient,
    pub(super) streams: &'a Streams,
    pub(super) connections: u64,
    pub(super) rows_per_request: u64,
    /// The rows of each stream at which the phase ends.
    pub(super) rows: Option<u64>,
    /// For each stream the number of its rows so far.
    pub(super) begin: &'a [u64],
    pub(super) class: u16,
}

/// A client.
pub(super) struct Session {
    http: HttpClient,
    /// Its streams with the number of their acknowledged rows.
    pub(super) streams: Vec<(u64, u64)>,
    /// The stream whose turn it is.
    turn: usize,
    /// The next request. It is made in advance, because its making is not the server's time.
    next: Option<Upload>,
}

struct Upload {
    path: String,
    body: String,
    rows: u64,
}

impl Uploads<'_> {
    /// The next request of the stream whose turn it is, or of one after it that has rows left.
    fn upload(&self, session: &mut Session) -> Option<Upload> {
        for _ in 0..session.streams.len() {
            let (stream, written) = session.streams[session.turn];
            let end = self.rows.map_or(u64::MAX, |rows| self.begin[stream as usize] + rows);
            let rows = self.rows_per_request.min(end - written);
            if rows > 0 {
                let path = format!("/api/sensors/{}/data", escaped(&self.streams.name(stream)));
                return Some(Upload { path, body: self.streams.body(stream, written, rows), rows });
            }
            session.turn = (session.turn + 1) % session.streams.len();
        }
        None
    }
}

impl Blocking for Uploads<'_> {
    type Session = Session;

    fn open(&self, number: u32) -> Result<Session, String> {
        let streams = (u64::from(number)..self.streams.count).step_by(self.connections as usize);
        let streams: Vec<(u64, u64)> = streams.map(|stream| (stream, self.begin[stream as usize])).collect();
        let mut session = Session { http: self.http.clone(), streams, turn: 0, next: None };
        session.next = self.upload(&mut session);
        Ok(session)
    }

    /// The HTTP client reconnects by itself.
    fn reopen(&self, _: &mut Session) -> Result<(), String> {
        Ok(())
    }

    fn cancel_handle(&self, _: &Session) -> Option<CancelHandle> {
        None
    }

    fn next(&self, session: &mut Session) -> Option<u16> {
        session.next.as_ref().map(|_| self.class)
    }

    fn run(&self, session: &mut Session, _: u16, _: DueTime) -> Result<Done, Failure> {
        let Some(Upload { path, body, .. }) = &session.next else { return Ok(Done::default()) };
        let request = HttpRequest::new("POST", path, Body::Json(body));
        let answer = session.http.send(&request).map_err(|error| Failure::Refused(error.to_string()))?;
        match answer.status {
            200..300 => Ok(Done { bytes_out: body.len() as u64, ..Done::default() }),
            429 | 503 => Err(Failure::Again(quoted(answer.status, &answer.body))),
            status => Err(Failure::Refused(quoted(status, &answer.body))),
        }
    }

    /// Counts the acknowledged rows, and makes the next request. After a failure the same rows are sent again.
    fn check(&self, session: &mut Session) -> Result<(), String> {
        if let Some(upload) = session.next.take() {
            session.streams[session.turn].1 += upload.rows;
            session.turn = (session.turn + 1) % session.streams.len();
        }
        session.next = self.upload(session);
        Ok(())
    }

    fn close(&self, _: &mut Session) {}
}
