//! Clients of the HiTSDB test: each sends a request with the next points and waits for the answer.

use load::protocol::{
    Answer, AnswerStatus, Completion, DueTime, Lifetime, Opening, Protocol, Received, Started,
};
use wire::http1::{Answers, Head, Piece};

use super::request_log::{ClientRequests, Order};
use super::timelines::Timelines;
use crate::limits::{TIMESERIES_ANSWER_BYTES_MAX, TIMESERIES_SECONDS_MAX, TIMESERIES_UNKNOWN_MAX};
use crate::request::{Format, RequestHead};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// How a protocol writes points.
pub(crate) trait Writes: Sync {
    /// The path of a request.
    fn path(&self) -> String;

    /// The format of its body.
    fn format(&self) -> Format;

    /// Appends the body with points `first` and following.
    fn append(&self, timelines: &Timelines, first: u64, points: u64, body: &mut Vec<u8>);

    /// Checks that an answer acknowledges all points of a request. The error is the server's reason.
    fn check(&self, status: u16, body: &[u8], points: u64) -> Result<(), String>;
}

/// The load of a phase.
pub(crate) struct Writers<'a> {
    pub(crate) writes: &'a dyn Writes,
    pub(crate) timelines: &'a Timelines,
    pub(crate) order: Order,
    pub(crate) points_per_request: u64,
    pub(crate) head: RequestHead,
    pub(crate) path: String,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Session {
    number: u32,
    pub(crate) requests: ClientRequests,
    /// The requests that were sent in each second and acknowledged later.
    pub(crate) by_second: Vec<u32>,
    answers: Answers,
    head: Option<Head>,
    /// The body of the request that is written, or of the answer that arrives.
    body: Vec<u8>,
    bytes: u64,
    /// The index of the request in flight, and the second in which it was sent.
    current: Option<(u64, u64)>,
}

impl Session {
    /// The end of a request without an acknowledgement.
    fn unknown(&mut self, index: u64) -> Result<(), String> {
        if self.requests.unknown.len() >= TIMESERIES_UNKNOWN_MAX {
            return Err(format!("more than {TIMESERIES_UNKNOWN_MAX} requests without an acknowledgement"));
        }
        self.requests.unknown.insert(index);
        Ok(())
    }

    fn acknowledged(&mut self, second: u64) {
        let second = second.min(TIMESERIES_SECONDS_MAX as u64 - 1) as usize;
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += 1;
    }
}

impl Writers<'_> {
    /// Handles the end of an answer. Returns whether the connection has ended with it.
    fn end(&self, session: &mut Session, done: &mut impl FnMut(Completion<'_>)) -> Result<bool, String> {
        let (Some(head), Some((index, second))) = (session.head.take(), session.current.take()) else {
            return Ok(false);
        };
        let wrong = self.writes.check(head.status, &session.body, self.points_per_request).err();
        match wrong {
            None => session.acknowledged(second),
            Some(_) => session.unknown(index)?,
        }
        let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
        let bytes = u32::try_from(session.bytes).unwrap_or(u32::MAX);
        done(Completion { answer: Answer::InOrder, status, bytes });
        Ok(!head.keeps_open)
    }
}

impl Protocol for Writers<'_> {
    type Session = Session;

    fn session(&self, number: u32) -> Session {
        Session {
            number,
            requests: ClientRequests::default(),
            by_second: Vec::new(),
            answers: Answers::default(),
            head: None,
            body: Vec::new(),
            bytes: 0,
            current: None,
        }
    }

    fn lifetime(&self, _: &Session) -> Lifetime {
        Lifetime::Renewed
    }

    fn open(&self, session: &mut Session, _: &mut Vec<u8>) -> Opening {
        session.answers = Answers::default();
        session.head = None;
        Opening::Ready
    }

    fn window(&self, _: &Session) -> usize {
        1
    }

    fn start(&self, session: &mut Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        let index = session.requests.sent;
        let request = self.order.request(session.number.into(), index)?;
        session.body.clear();
        let first = request * self.points_per_request;
        self.writes.append(self.timelines, first, self.points_per_request, &mut session.body);
        self.head.append(out, "POST", &self.path, self.writes.format(), &session.body);
        session.body.clear();
        session.bytes = 0;
        session.requests.sent += 1;
        session.current = Some((index, due.sent_ns / NANOS_PER_SECOND));
        Some(Started { class: 0, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        _: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while received.used < bytes.len() || session.head.is_some() {
            if session.current.is_none() {
                return Err("an answer to nothing that was asked".to_owned());
            }
            let next = session.answers.next(&bytes[received.used..], false);
            let Some((piece, used)) = next.map_err(|error| error.to_string())? else { break };
            received.used += used;
            session.bytes += used as u64;
            match piece {
                Piece::Head(head) => session.head = Some(head),
                Piece::Body(part) if session.body.len() + part.len() > TIMESERIES_ANSWER_BYTES_MAX => {
                    return Err(format!("an answer of more than {TIMESERIES_ANSWER_BYTES_MAX} bytes"));
                }
                Piece::Body(part) => session.body.extend_from_slice(part),
                Piece::End => {
                    received.over = self.end(session, done)?;
                    if received.over {
                        break;
                    }
                }
            }
        }
        Ok(received)
    }

    fn closed(&self, session: &mut Session, done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        if session.answers.closed().map_err(|error| error.to_string())? {
            self.end(session, done)?;
        }
        match session.current {
            None => Ok(()),
            // It is not repeated: the server may have stored its points.
            Some(_) => Err("closed by the server without an answer".to_owned()),
        }
    }

    fn lost(&self, session: &mut Session) {
        session.answers = Answers::default();
        session.head = None;
        if let Some((index, _)) = session.current.take() {
            // A load without any answer ends long before the limit.
            let _ = session.unknown(index);
        }
    }
}

impl std::fmt::Debug for Writers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writers {{ path: {}, order: {:?} }}", self.path, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::super::timelines::example;
    use super::*;
    use crate::opentsdb::Put;

    const DUE: DueTime = DueTime { intended_ns: 0, wall_ms: 0, sent_ns: 1_500_000_000 };

    fn with<T>(requests: Option<u64>, use_it: impl FnOnce(&Writers<'_>) -> T) -> T {
        let (timelines, writes) = (example(), Put);
        use_it(&Writers {
            writes: &writes,
            timelines: &timelines,
            order: Order { first: 0, clients: 2, requests },
            points_per_request: 4,
            head: RequestHead { host: "h:1".to_owned(), login: None },
            path: writes.path(),
        })
    }

    fn answer(writers: &Writers<'_>, session: &mut Session, answer: &str) -> Vec<String> {
        let mut seen = Vec::new();
        let answer = answer.as_bytes();
        let received = writers.receive(session, answer, &mut Vec::new(), &mut |completion| {
            seen.push(match completion.status {
                AnswerStatus::Failed(text) => text.to_owned(),
                _ => "stored".to_owned(),
            });
        });
        assert_eq!(received.unwrap().used, answer.len());
        seen
    }

    #[test]
    fn a_client_sends_its_requests_one_after_the_other_and_ends() {
        with(Some(3), |writers| {
            let mut session = writers.session(0);
            let mut bodies = Vec::new();
            let mut out = Vec::new();
            while writers.start(&mut session, DUE, &mut out).is_some() {
                let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
                let (head, body) = text.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("POST /api/put?details HTTP/1.1\r\nHost: h:1\r\n"), "{head}");
                let points: Vec<serde_json::Value> = serde_json::from_str(body).unwrap();
                bodies.push(points[0]["tags"]["tagkeyname0"].as_str().unwrap().to_owned());
                assert_eq!(points.len(), 4);
                let seen = answer(writers, &mut session, "HTTP/1.1 204 No Content\r\n\r\n");
                assert_eq!(seen, ["stored"]);
            }
            assert_eq!(bodies, ["000000000v0", "000000000v8"], "requests 0 and 2; the other client has 1");
            assert_eq!(session.requests.sent, 2);
            assert_eq!(session.by_second, [0, 2]);
        });
    }

    #[test]
    fn a_point_that_was_refused_or_lost_with_its_connection_is_not_acknowledged() {
        with(None, |writers| {
            let mut session = writers.session(1);
            writers.start(&mut session, DUE, &mut Vec::new()).unwrap();
            let partial = "HTTP/1.1 200 OK\r\nContent-Length: 26\r\n\r\n{\"failed\":1,\"success\":3}  ";
            assert_eq!(answer(writers, &mut session, partial), ["1 of 4 points failed"]);
            writers.start(&mut session, DUE, &mut Vec::new()).unwrap();
            answer(writers, &mut session, "HTTP/1.1 204 No Content\r\n\r\n");
            writers.start(&mut session, DUE, &mut Vec::new()).unwrap();
            let mut seen = 0;
            assert!(writers.closed(&mut session, &mut |_| seen += 1).is_err());
            writers.lost(&mut session);
            assert_eq!(seen, 0);
            assert_eq!(session.requests.sent, 3);
            assert_eq!(session.requests.unknown.iter().copied().collect::<Vec<_>>(), [0, 2]);
        });
    }
}
