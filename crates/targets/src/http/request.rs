//! Prepared requests, and the check of their answers.

use load::protocol::{Answer, AnswerStatus, Completion};

use super::expect::{Expect, Expected, ReceivedAnswer};
use super::json::JsonRules;
use super::template::{Http1Template, Http2Template, Request, Text};
use super::variables::Fill;

/// A request of a scenario. Its index is its class in the recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    pub request: Request,
    /// The expected answer.
    pub expect: Expect,
}

/// An operation, prepared for sending.
pub(super) struct PreparedRequest {
    pub(super) http1: Http1Template,
    pub(super) http2: Http2Template,
    pub(super) expected: Expected,
    /// Method and path, for errors of set-up steps.
    pub(super) line: String,
    pub(super) has_key: bool,
    /// The variables that request and expectations use.
    pub(super) variables: Vec<usize>,
    /// The length of the longest body of the request.
    pub(super) body_bytes: usize,
    pub(super) is_head: bool,
}

impl PreparedRequest {
    pub(super) fn new(operation: &Operation, names: &[String]) -> Result<Self, String> {
        operation.request.check()?;
        let request = &operation.request;
        let headers = request.headers.iter().map(|(_, value)| value);
        let texts = headers.chain(request.body.iter()).chain([&request.target]);
        let texts: Vec<Text> = texts.map(|text| Text::parse(text, request.data, names)).collect();
        let expected = Expected::new(&operation.expect, names)?;
        if request.is_head() && expected.json.is_some() {
            return Err("`extract` and `expect_json`: an answer to HEAD has no body".to_owned());
        }
        let mut variables: Vec<usize> = texts.iter().flat_map(Text::variables).collect();
        variables.extend(expected.variables());
        Ok(Self {
            http1: Http1Template::new(request, names),
            http2: Http2Template::new(request, names)?,
            expected,
            line: format!("{} {}", request.method, request.target),
            has_key: texts.iter().any(Text::has_key),
            variables,
            body_bytes: request
                .body
                .as_deref()
                .map_or(0, |body| Text::parse(body, request.data, names).len_max()),
            is_head: request.is_head(),
        })
    }

    /// Whether request or expectations have places for variables.
    pub(super) fn uses_variables(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Whether its answer gives values to variables.
    pub(super) fn extracts(&self) -> bool {
        self.expected.json.as_ref().is_some_and(JsonRules::extracts)
    }

    /// Checks a complete answer.
    #[inline]
    pub(super) fn judge(
        &self,
        seen: &ReceivedAnswer,
        request: SentRequest,
        variables: &mut [String],
        answer: Answer,
        bytes: u64,
        done: &mut impl FnMut(Completion<'_>),
    ) {
        let mut wrong = self.expected.judge(seen, request.key, variables).err();
        if request.lacks_value {
            wrong = Some(
                "sent without the value of a variable, which an earlier step did not extract".to_owned(),
            );
        }
        let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
        done(Completion { answer, status, bytes: u32::try_from(bytes).unwrap_or(u32::MAX) });
    }
}

/// The class and the key of a request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentRequest {
    pub(super) class: u16,
    pub(super) key: u64,
    /// Whether a variable of the request had no value.
    pub(super) lacks_value: bool,
}

impl SentRequest {
    pub(super) fn fill(self, variables: &[String]) -> Fill<'_> {
        Fill { key: self.key, variables }
    }
}
