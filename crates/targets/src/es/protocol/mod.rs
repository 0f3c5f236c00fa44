//! Clients of Elasticsearch and OpenSearch: bulk requests and searches over HTTP/1.1, one at a time per connection.

use load::dataset::Random;
use load::protocol::{
    Answer, AnswerStatus, Completion, DueTime, Lifetime, Opening, OperationChoice, Protocol, Received,
    Started,
};
use wire::http1::{Answers, Head, Piece};

use super::answers;
use super::corpus::Corpus;
use super::queries::{Query, SCROLL_TIME, Search};
use crate::limits::ES_ANSWER_BYTES_MAX;
use crate::request::{Format, RequestHead};

/// The line before each document. The server chooses the identifier.
const ACTION: &[u8] = b"{\"index\":{}}\n";
/// The domain of the random numbers of connections.
const DOMAIN: u64 = 0x6573_6373;

/// What the operations of a class do.
#[derive(Debug)]
pub(super) enum Operation {
    /// Indexes the next documents.
    Bulk,
    Search(Search),
}

/// The load of a phase.
#[derive(Debug)]
pub(super) struct Es<'a> {
    pub(super) corpus: &'a Corpus,
    /// The number of documents of the index.
    pub(super) documents: u64,
    pub(super) bulk_size: u32,
    pub(super) head: RequestHead,
    pub(super) bulk_path: String,
    /// By class.
    pub(super) operations: Vec<Operation>,
    pub(super) choice: OperationChoice,
    /// The requests of each connection, by group.
    pub(super) requests: Vec<(u32, Option<u64>)>,
    pub(super) seed: u64,
}

/// The documents of a connection, or of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Documents that were sent.
    pub(super) sent: u64,
    /// Documents that the server has stored.
    pub(super) stored: u64,
    /// Documents that the server has refused, alone or with their request.
    pub(super) refused: u64,
}

impl std::ops::Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            stored: self.stored + other.stored,
            refused: self.refused + other.refused,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    number: u32,
    random: Random,
    /// The documents that are still to be sent.
    documents: std::ops::Range<u64>,
    requests: u64,
    pub(super) tally: Tally,
    answers: Answers,
    head: Option<Head>,
    /// The body of the request that is written, or of the answer that arrives.
    body: Vec<u8>,
    /// The bytes of the answers of the operation so far.
    bytes: u64,
    current: Option<Current>,
}

/// The operation in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Bulk { documents: u32 },
    Search { class: u16, query: usize },
    Page { class: u16, query: usize, page: u32 },
    EndOfScroll,
}

/// What follows an answer.
enum Next {
    /// The operation is over; the text is its failure.
    Over(Option<String>),
    /// The operation continues with a request.
    More(Current),
}

impl Es<'_> {
    /// The documents of a connection: the corpus in equal parts.
    fn share(&self, number: u32) -> std::ops::Range<u64> {
        let all = u128::from(self.choice.connections().max(1));
        let at = |number: u32| (u128::from(self.documents) * u128::from(number) / all) as u64;
        at(number)..at(number + 1)
    }

    fn requests_of(&self, number: u32) -> Option<u64> {
        let mut upto = 0;
        let group = self.requests.iter().find(|(connections, _)| {
            upto += connections;
            number < upto
        });
        group.and_then(|(_, requests)| *requests)
    }

    fn start_bulk(&self, session: &mut Session, out: &mut Vec<u8>) -> Option<Current> {
        let first = session.documents.start;
        let end = session.documents.end.min(first + u64::from(self.bulk_size));
        if first == end {
            return None;
        }
        session.body.clear();
        for index in first..end {
            session.body.extend_from_slice(ACTION);
            self.corpus.append(index, &mut session.body);
            session.body.push(b'\n');
        }
        self.head.append(out, "POST", &self.bulk_path, Format::Lines, &session.body);
        session.documents.start = end;
        session.tally.sent += end - first;
        Some(Current::Bulk { documents: (end - first) as u32 })
    }

    fn query(&self, class: u16, query: usize) -> (&Search, &Query) {
        match &self.operations[usize::from(class)] {
            Operation::Search(search) => (search, &search.queries[query]),
            Operation::Bulk => unreachable!("BUG: a bulk request is not a search"),
        }
    }

    /// Handles a whole answer, whose body is in the session.
    fn answered(&self, session: &mut Session, current: Current, status: u16, out: &mut Vec<u8>) -> Next {
        if let Current::Bulk { documents } = current {
            return Next::Over(session.judge_bulk(documents, status));
        }
        if current == Current::EndOfScroll {
            return Next::Over((status != 200).then(|| answers::refusal(status, &session.body)));
        }
        if status != 200 {
            return Next::Over(Some(answers::refusal(status, &session.body)));
        }
        self.searched(session, current, out).unwrap_or_else(|wrong| Next::Over(Some(wrong)))
    }

    /// Compares a search answer with the corpus, and asks for the next page of a scroll.
    fn searched(&self, session: &Session, current: Current, out: &mut Vec<u8>) -> Result<Next, String> {
        let (class, query, page) = match current {
            Current::Search { class, query } => (class, query, 0),
            Current::Page { class, query, page } => (class, query, page),
            Current::Bulk { .. } | Current::EndOfScroll => unreachable!("BUG: no search"),
        };
        let (search, expected) = self.query(class, query);
        let answer = answers::search(&session.body)?;
        let Some(scroll) = search.scroll else {
            check(&answer, expected, expected.rows, search.is_grouped)?;
            return Ok(Next::Over(None));
        };
        let before = u64::from(page) * u64::from(scroll.page_size);
        let rows = expected.total.saturating_sub(before).min(scroll.page_size.into());
        check(&answer, expected, rows, false)?;
        let id = answer.scroll_id.ok_or("an answer without `_scroll_id`")?;
        let is_last = page + 1 == scroll.pages || before + rows >= expected.total;
        self.append_scroll(&id, is_last, out);
        let next = Current::Page { class, query, page: page + 1 };
        Ok(Next::More(if is_last { Current::EndOfScroll } else { next }))
    }

    /// Appends the request for the next page, or the one that ends a scroll.
    fn append_scroll(&self, id: &str, is_last: bool, out: &mut Vec<u8>) {
        let (method, body) = match is_last {
            true => ("DELETE", serde_json::json!({ "scroll_id": [id] })),
            false => ("POST", serde_json::json!({ "scroll": SCROLL_TIME, "scroll_id": id })),
        };
        self.head.append(out, method, "/_search/scroll", Format::Json, body.to_string().as_bytes());
    }

    /// Handles the end of an answer. Returns whether the connection has ended with it.
    fn end(&self, session: &mut Session, out: &mut Vec<u8>, done: &mut impl FnMut(Completion<'_>)) -> bool {
        let (Some(head), Some(current)) = (session.head.take(), session.current.take()) else { return false };
        let wrong = match self.answered(session, current, head.status, out) {
            Next::Over(wrong) => wrong,
            Next::More(next) if head.keeps_open => {
                session.current = Some(next);
                return false;
            }
            Next::More(_) => Some("closed by the server in the middle of a scroll".to_owned()),
        };
        let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
        let bytes = u32::try_from(session.bytes).unwrap_or(u32::MAX);
        done(Completion { answer: Answer::InOrder, status, bytes });
        !head.keeps_open
    }
}

impl Session {
    /// Counts the documents of a bulk answer and returns the reason of a failure.
    fn judge_bulk(&mut self, documents: u32, status: u16) -> Option<String> {
        if status != 200 {
            self.tally.refused += u64::from(documents);
            return Some(answers::refusal(status, &self.body));
        }
        let answer = match answers::bulk(&self.body) {
            Ok(answer) => answer,
            Err(wrong) => return Some(wrong),
        };
        if answer.stored + answer.refused != documents {
            return Some(format!("{} items for {documents} documents", answer.stored + answer.refused));
        }
        self.tally.stored += u64::from(answer.stored);
        self.tally.refused += u64::from(answer.refused);
        answer.reason
    }
}

/// Compares an answer with the expected numbers.
fn check(
    answer: &answers::SearchAnswer,
    expected: &Query,
    rows: u64,
    is_grouped: bool,
) -> Result<(), String> {
    let total = answer.total;
    let is_right = if answer.is_lower_bound { total <= expected.total } else { total == expected.total };
    if !is_right {
        return Err(format!("{total} hits instead of {}", expected.total));
    }
    if u64::from(answer.rows) != rows {
        return Err(format!("{} documents returned instead of {rows}", answer.rows));
    }
    if is_grouped && answer.grouped != Some(expected.total) {
        let grouped = answer.grouped.unwrap_or(0);
        return Err(format!("{grouped} documents in groups instead of {}", expected.total));
    }
    Ok(())
}

impl Protocol for Es<'_> {
    type Session = Session;

    fn session(&self, number: u32) -> Session {
        Session {
            number,
            random: Random::keyed(self.seed, DOMAIN, number.into()),
            documents: self.share(number),
            requests: 0,
            tally: Tally::default(),
            answers: Answers::default(),
            head: None,
            body: Vec::new(),
            bytes: 0,
            current: None,
        }
    }

    fn reseed(&self, session: &mut Session, seed: u64) {
        session.random = Random::keyed(seed, DOMAIN, session.number.into());
    }

    fn lifetime(&self, _: &Session) -> Lifetime {
        Lifetime::Renewed
    }

    fn open(&self, session: &mut Session, _: &mut Vec<u8>) -> Opening {
        self.lost(session);
        Opening::Ready
    }

    fn window(&self, _: &Session) -> usize {
        1
    }

    fn start(&self, session: &mut Session, _: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        if self.requests_of(session.number).is_some_and(|requests| session.requests >= requests) {
            return None;
        }
        let class = self.choice.next(session.number, &mut session.random)?;
        let current = match &self.operations[usize::from(class)] {
            Operation::Bulk => self.start_bulk(session, out)?,
            Operation::Search(search) => {
                let query = search.draw(&mut session.random);
                out.extend_from_slice(&search.queries[query].request);
                Current::Search { class, query }
            }
        };
        session.body.clear();
        session.bytes = 0;
        session.requests += 1;
        session.current = Some(current);
        Some(Started { class, answer: Answer::InOrder })
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
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
                Piece::Head(head) => {
                    session.body.clear();
                    session.head = Some(head);
                }
                Piece::Body(part) if session.body.len() + part.len() > ES_ANSWER_BYTES_MAX => {
                    return Err(format!("an answer of more than {ES_ANSWER_BYTES_MAX} bytes"));
                }
                Piece::Body(part) => session.body.extend_from_slice(part),
                Piece::End => {
                    received.over = self.end(session, out, done);
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
            self.end(session, &mut Vec::new(), done);
        }
        match session.current {
            None => Ok(()),
            // A bulk request is not repeated: the server may have stored its documents.
            Some(_) => Err("closed by the server without an answer".to_owned()),
        }
    }

    fn lost(&self, session: &mut Session) {
        session.answers = Answers::default();
        session.head = None;
        session.current = None;
    }
}

#[cfg(test)]
mod tests;
