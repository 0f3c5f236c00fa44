//! Prepared requests, and the check of their answers.

use super::expect::{Expect, Expected, Seen};
use super::template::{Http1Template, Http2Template, Request, Text};
use crate::protocol::{Answer, AnswerStatus, Completion};

/// A request of a scenario. Its index is its class in the recorder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The request.
    pub request: Request,
    /// The expected answer.
    pub expect: Expect,
}

/// An operation, prepared for sending.
pub(super) struct PreparedRequest {
    pub(super) http1: Http1Template,
    pub(super) http2: Http2Template,
    pub(super) expected: Expected,
    pub(super) has_key: bool,
    /// The length of the longest body of the request.
    pub(super) body_bytes: usize,
    pub(super) is_head: bool,
}

impl PreparedRequest {
    pub(super) fn new(operation: &Operation) -> Result<Self, String> {
        operation.request.check()?;
        let request = &operation.request;
        let is_keyed = |text: &str| Text::parse(text, request.data).is_keyed();
        Ok(Self {
            http1: Http1Template::new(request),
            http2: Http2Template::new(request)?,
            expected: Expected::new(&operation.expect),
            has_key: is_keyed(&request.target) || request.body.as_deref().is_some_and(is_keyed),
            body_bytes: request
                .body
                .as_deref()
                .map_or(0, |body| Text::parse(body, request.data).len(u64::MAX)),
            is_head: request.is_head(),
        })
    }

    /// Checks a complete answer.
    #[inline]
    pub(super) fn judge(
        &self,
        seen: &Seen,
        answer: Answer,
        bytes: u64,
        done: &mut impl FnMut(Completion<'_>),
    ) {
        let wrong = self.expected.wrong(seen);
        let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
        done(Completion { answer, status, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) });
    }
}

/// The class and the key of a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub(super) class: u16,
    pub(super) key: u64,
}
