//! The expected answer of a request, and its comparison with the actual one.

use super::json::{JsonOptions, JsonRules};
use super::template::{Data, Text};
use super::variables::Fill;
use crate::limits::HTTP_JSON_BYTES_MAX;

/// The expected answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expect {
    /// The accepted statuses.
    pub statuses: Vec<u16>,
    /// The length of the body, bytes.
    pub bytes: Option<u64>,
    /// The body; `__key__` in it stands for the key of the request and `__data__` for its data.
    pub body: Option<String>,
    /// What the JSON of the answer must have, and what the client keeps of it.
    pub json: JsonOptions,
    /// The data of keys.
    pub data: Data,
}

/// The expected answer, prepared for comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    statuses: Vec<u16>,
    bytes: Option<u64>,
    body: Option<Text>,
    /// The body if it is the same for every key.
    fixed: Option<Vec<u8>>,
    /// `None` if nobody needs the JSON: then no answer is kept or parsed.
    pub(super) json: Option<JsonRules>,
}

/// The part of an answer that has arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReceivedAnswer {
    pub(crate) status: u16,
    /// The bytes of the body so far.
    pub(crate) bytes: u64,
    differs: bool,
    /// The expected body if it depends on key or variables.
    keyed: Option<Vec<u8>>,
    /// The body if its JSON is needed, at most [`HTTP_JSON_BYTES_MAX`].
    kept: Vec<u8>,
}

impl Expected {
    pub(crate) fn new(expect: &Expect, names: &[String]) -> Result<Self, String> {
        let body = expect.body.as_deref().map(|body| Text::parse(body, expect.data, names));
        let fixed = expect.body.as_ref().filter(|_| body.as_ref().is_some_and(|text| !text.is_keyed()));
        let json = (!expect.json.is_empty()).then(|| JsonRules::new(&expect.json, expect.data, names));
        Ok(Self {
            statuses: expect.statuses.clone(),
            bytes: expect.bytes,
            fixed: fixed.map(|text| text.as_bytes().to_vec()),
            body: body.filter(Text::is_keyed),
            json: json.transpose()?,
        })
    }

    /// The variables in the expected body and JSON.
    pub(super) fn variables(&self) -> Vec<usize> {
        let body = self.body.iter().flat_map(Text::variables);
        body.chain(self.json.iter().flat_map(JsonRules::variables)).collect()
    }

    /// Starts an answer to a request with these values.
    #[inline]
    pub(crate) fn begin(&self, status: u16, fill: Fill<'_>) -> ReceivedAnswer {
        let keyed = self.body.as_ref().map(|text| {
            let mut body = Vec::new();
            text.append(&mut body, fill);
            body
        });
        ReceivedAnswer { status, bytes: 0, differs: false, keyed, kept: Vec::new() }
    }

    /// Compares a part of the body.
    #[inline]
    pub(crate) fn take(&self, seen: &mut ReceivedAnswer, part: &[u8]) {
        if let Some(body) = seen.keyed.as_ref().or(self.fixed.as_ref()) {
            let from = usize::try_from(seen.bytes).unwrap_or(usize::MAX);
            seen.differs |= body.get(from..from.saturating_add(part.len())) != Some(part);
        }
        if self.json.is_some() && seen.kept.len() + part.len() <= HTTP_JSON_BYTES_MAX {
            seen.kept.extend_from_slice(part);
        }
        seen.bytes += part.len() as u64;
    }

    /// Checks a complete answer and keeps the values that it extracts; without them their variables have no value.
    #[inline]
    pub(super) fn judge(
        &self,
        seen: &ReceivedAnswer,
        key: u64,
        variables: &mut [String],
    ) -> Result<(), String> {
        let wrong = self.wrong(seen);
        let Some(json) = &self.json else { return wrong.map_or(Ok(()), Err) };
        json.clear(variables);
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        if seen.bytes != seen.kept.len() as u64 {
            return Err(format!("an answer longer than the {HTTP_JSON_BYTES_MAX} bytes whose JSON is read"));
        }
        json.apply(&seen.kept, key, variables)
    }

    /// The difference of a complete answer from the expected one; `None` if they agree.
    #[inline]
    pub(crate) fn wrong(&self, seen: &ReceivedAnswer) -> Option<String> {
        if !self.statuses.contains(&seen.status) {
            return Some(format!("status {}", seen.status));
        }
        let body = seen.keyed.as_ref().or(self.fixed.as_ref());
        if seen.differs || body.is_some_and(|body| body.len() as u64 != seen.bytes) {
            return Some("the body is not `expect_body`".to_owned());
        }
        match self.bytes {
            Some(bytes) if bytes != seen.bytes => {
                Some(format!("a body of {} bytes instead of {bytes}", seen.bytes))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(expect: &Expect, status: u16, parts: &[&[u8]]) -> Option<String> {
        let expected = Expected::new(expect, &[]).unwrap();
        let mut seen = expected.begin(status, Fill { key: 12, variables: &[] });
        parts.iter().for_each(|part| expected.take(&mut seen, part));
        expected.wrong(&seen)
    }

    #[test]
    fn statuses_lengths_and_bodies_are_compared() {
        let mut expect = Expect { statuses: vec![200, 204], ..Expect::default() };
        assert_eq!(status(&expect, 204, &[]), None);
        assert_eq!(status(&expect, 404, &[b"no"]).as_deref(), Some("status 404"));
        expect.bytes = Some(5);
        assert_eq!(status(&expect, 200, &[b"he", b"llo"]), None);
        assert!(status(&expect, 200, &[b"hell"]).is_some_and(|text| text.contains("4 bytes instead of 5")));
        expect.body = Some("hello".to_owned());
        assert_eq!(status(&expect, 200, &[b"", b"h", b"ello"]), None);
        for wrong in [&[&b"hellp"[..]][..], &[b"hell"], &[b"hello", b"o"], &[]] {
            assert!(status(&expect, 200, wrong).is_some(), "{wrong:?}");
        }
        let keyed = Expect { body: Some("item __key__!".to_owned()), bytes: None, ..expect };
        assert_eq!(status(&keyed, 200, &[b"item 1", b"2!"]), None);
        assert!(status(&keyed, 200, &[b"item 13!"]).is_some());
    }

    #[test]
    fn the_data_of_the_key_is_known_when_it_is_read() {
        let data = Data { seed: 3, bytes: 300, ..Data::default() };
        let stored = |key| {
            let mut out = Vec::new();
            Text::parse("<__data__>", data, &[]).append(&mut out, Fill { key, variables: &[] });
            out
        };
        let expect =
            Expect { statuses: vec![200], body: Some("<__data__>".to_owned()), data, ..Expect::default() };
        assert_eq!(status(&expect, 200, &[&stored(12)]), None);
        assert!(status(&expect, 200, &[&stored(13)]).is_some());
    }
}
