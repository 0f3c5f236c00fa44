//! One HTTP/1.1 connection: answers in the order of requests, with every kind of framing.

use std::collections::VecDeque;

use load::protocol::{Answer, Completion, Opening, Received};
use wire::http1::{Answers, Head, Piece};

use super::expect::ReceivedAnswer;
use super::request::{PreparedRequest, SentRequest};

/// The error of a server that closes a connection without an answer.
const NO_ANSWER: &str = "closed by the server without an answer";

/// The answer that is arriving.
#[derive(Debug)]
struct Current {
    seen: ReceivedAnswer,
    head: Head,
    /// Its bytes so far, including head and framing.
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct Http1Connection {
    answers: Answers,
    /// Requests in flight, oldest first.
    in_flight: VecDeque<SentRequest>,
    current: Option<Current>,
    /// Whether every request has its own connection.
    close: bool,
    /// The number of complete answers on this connection.
    answered: u64,
}

impl Http1Connection {
    pub(super) fn new(close: bool) -> Self {
        Self { answers: Answers::default(), in_flight: VecDeque::new(), current: None, close, answered: 0 }
    }

    pub(super) fn open(&mut self) -> Opening {
        self.lost();
        self.answered = 0;
        Opening::Ready
    }

    pub(super) fn lost(&mut self) {
        self.answers = Answers::default();
        self.in_flight.clear();
        self.current = None;
    }

    #[inline]
    pub(super) fn start(
        &mut self,
        prepared: &PreparedRequest,
        request: SentRequest,
        variables: &[String],
        out: &mut Vec<u8>,
    ) -> Answer {
        prepared.http1.append(out, request.fill(variables));
        self.in_flight.push_back(request);
        Answer::InOrder
    }

    #[inline]
    pub(super) fn receive(
        &mut self,
        operations: &[PreparedRequest],
        bytes: &[u8],
        variables: &mut [String],
        again: &mut VecDeque<SentRequest>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while received.used < bytes.len() || self.current.is_some() {
            let Some(&request) = self.in_flight.front() else {
                return Err("an answer to nothing that was asked".to_owned());
            };
            let prepared = &operations[usize::from(request.class)];
            let next = self.answers.next(&bytes[received.used..], prepared.is_head);
            let Some((piece, used)) = next.map_err(|error| error.to_string())? else { break };
            received.used += used;
            match piece {
                Piece::Head(head) => {
                    let seen = prepared.expected.begin(head.status, request.fill(variables));
                    self.current = Some(Current { seen, head, bytes: used as u64 });
                }
                Piece::Body(part) => {
                    if let Some(current) = &mut self.current {
                        current.bytes += used as u64;
                        prepared.expected.take(&mut current.seen, part);
                    }
                }
                Piece::End => {
                    received.over = self.end(prepared, used, variables, done);
                    if received.over {
                        again.extend(self.in_flight.drain(..));
                        break;
                    }
                }
            }
        }
        Ok(received)
    }

    /// Handles a complete answer. Returns whether it was the last one of the connection.
    #[inline]
    fn end(
        &mut self,
        prepared: &PreparedRequest,
        used: usize,
        variables: &mut [String],
        done: &mut impl FnMut(Completion<'_>),
    ) -> bool {
        let Some(current) = self.current.take() else { return false };
        let Some(request) = self.in_flight.pop_front() else { return false };
        self.answered += 1;
        prepared.judge(&current.seen, request, variables, Answer::InOrder, current.bytes + used as u64, done);
        self.close || !current.head.keeps_open
    }

    pub(super) fn closed(
        &mut self,
        operations: &[PreparedRequest],
        variables: &mut [String],
        again: &mut VecDeque<SentRequest>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        if self.answers.closed().map_err(|error| error.to_string())?
            && let Some(request) = self.in_flight.front()
        {
            self.end(&operations[usize::from(request.class)], 0, variables, done);
        }
        // A server may close an idle connection while a request is on its way, and a client then repeats the request
        // (RFC 9112, 9.3.1). A server that answered nothing on this connection gets no repetition, because that would
        // never end.
        if self.in_flight.is_empty() || self.answered > 0 {
            again.extend(self.in_flight.drain(..));
            return Ok(());
        }
        Err(NO_ANSWER.to_owned())
    }
}
