//! The answers of an HTTP connection with one request at a time.

use clients::limits::HTTP_QUOTE_CHARS;
use load::protocol::Received;
use wire::http1::{Answers, Piece};

use crate::limits::EXCHANGE_BODY_BYTES_MAX;

const SUCCESS: std::ops::Range<u16> = 200..300;

/// The answer that is read.
#[derive(Debug)]
pub(crate) struct Exchange {
    answers: Answers,
    status: u16,
    keeps_open: bool,
    body: Vec<u8>,
    bytes: usize,
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answered<'a> {
    pub(crate) status: u16,
    /// Its body up to the limit.
    pub(crate) body: &'a [u8],
    /// The length of the whole answer.
    pub(crate) bytes: u32,
}

impl Default for Exchange {
    fn default() -> Self {
        Self { answers: Answers::default(), status: 0, keeps_open: true, body: Vec::new(), bytes: 0 }
    }
}

impl Exchange {
    /// Reads what has arrived, and tells `answered` each whole answer. Its error ends the connection.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        mut answered: impl FnMut(Answered<'_>) -> Result<(), String>,
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while let Some((piece, used)) =
            self.answers.next(&bytes[received.used..], false).map_err(|error| error.to_string())?
        {
            received.used += used;
            self.bytes += used;
            match piece {
                Piece::Head(head) => (self.status, self.keeps_open) = (head.status, head.keeps_open),
                Piece::Body(part) => {
                    let room = EXCHANGE_BODY_BYTES_MAX.saturating_sub(self.body.len());
                    self.body.extend_from_slice(&part[..part.len().min(room)]);
                }
                Piece::End => {
                    let bytes_in = std::mem::take(&mut self.bytes) as u32;
                    answered(Answered { status: self.status, body: &self.body, bytes: bytes_in })?;
                    self.body.clear();
                    received.over = !self.keeps_open;
                    if received.over || received.used == bytes.len() {
                        break;
                    }
                }
            }
        }
        Ok(received)
    }
}

impl Answered<'_> {
    /// The reason of a status that is not success, with the beginning of the body.
    pub(crate) fn refusal(&self) -> Option<String> {
        (!SUCCESS.contains(&self.status)).then(|| {
            let text: String = String::from_utf8_lossy(self.body).chars().take(HTTP_QUOTE_CHARS).collect();
            format!("status {}: {text}", self.status)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_however_it_arrives() {
        let text = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngoneHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        for cut in 0..text.len() {
            let (mut exchange, mut seen) = (Exchange::default(), Vec::new());
            let mut note = |answered: Answered<'_>| {
                seen.push((answered.refusal(), answered.body.to_vec(), answered.bytes));
                Ok(())
            };
            let first = exchange.receive(&text[..cut], &mut note).unwrap();
            let second = exchange.receive(&text[first.used..], &mut note).unwrap();
            assert_eq!(first.used + second.used, text.len(), "{cut}");
            assert!(second.over);
            let [refused, taken] = &seen[..] else { panic!("{seen:?}") };
            assert_eq!((refused.0.as_deref(), &refused.1[..]), (Some("status 404: gone"), &b"gone"[..]));
            assert_eq!((&taken.0, taken.1.len()), (&None, 0));
            assert_eq!(refused.2 + taken.2, text.len() as u32);
        }
    }
}
