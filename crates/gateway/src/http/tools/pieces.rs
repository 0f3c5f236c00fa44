//! An answer in memory as several blocks, so long texts are not copied.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Shorter texts are copied: sending a piece costs more than the copy.
const PIECE_BYTES_MIN: usize = 8 * 1024;

/// The bytes of an answer.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    closed: VecDeque<Bytes>,
    closed_bytes: usize,
    open: Vec<u8>,
}

impl Pieces {
    /// The open block, to which bytes are appended.
    pub(crate) fn open(&mut self) -> &mut Vec<u8> {
        &mut self.open
    }

    /// Appends a copy.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        self.open.extend_from_slice(bytes);
    }

    /// Appends a text, without a copy if it is long.
    pub(crate) fn take(&mut self, text: Vec<u8>) {
        if text.len() < PIECE_BYTES_MIN {
            return self.copy(&text);
        }
        self.close();
        self.closed_bytes += text.len();
        self.closed.push_back(text.into());
    }

    /// Appends the pieces of another answer.
    pub(crate) fn append(&mut self, mut other: Self) {
        if other.closed.is_empty() {
            return self.take(other.open);
        }
        self.close();
        other.close();
        self.closed_bytes += other.closed_bytes;
        self.closed.append(&mut other.closed);
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.closed_bytes + self.open.len()
    }

    /// The answer's body.
    pub(crate) fn into_body(mut self) -> Body {
        self.close();
        Body { pieces: self.closed, left: self.closed_bytes as u64 }
    }

    /// A copy of all bytes.
    #[cfg(test)]
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let closed = self.closed.iter().flat_map(|piece| piece.iter());
        closed.chain(&self.open).copied().collect()
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed_bytes += self.open.len();
            self.closed.push_back(std::mem::take(&mut self.open).into());
        }
    }
}

/// A body that yields one piece after the other. Its length is known, so a client notices a truncated answer.
#[derive(Debug)]
pub(crate) struct Body {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn bytes_keep_their_order_whether_they_are_copied_or_taken() {
        let mut pieces = Pieces::default();
        let mut expected = Vec::new();
        for length in [0, 1, PIECE_BYTES_MIN, 5, PIECE_BYTES_MIN + 1, PIECE_BYTES_MIN, 7] {
            let text = vec![length as u8; length];
            expected.extend_from_slice(&text);
            pieces.take(text);
            pieces.copy(b"copy");
            expected.extend_from_slice(b"copy");
            pieces.open().push(b',');
            expected.push(b',');
            assert_eq!(pieces.len(), expected.len());
        }
        pieces.append(Pieces::default());
        let body = pieces.into_body();
        assert_eq!(body.pieces.len(), 7, "three long texts and what is between them");
        assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
        assert_eq!(body.collect().await.unwrap().to_bytes(), expected);
    }

    #[tokio::test]
    async fn pieces_are_appended_to_pieces() {
        let text = |bytes: &[usize]| {
            let mut pieces = Pieces::default();
            for length in bytes {
                pieces.take(vec![*length as u8; *length]);
            }
            pieces
        };
        let (short, long) = ([3, 2], [5, PIECE_BYTES_MIN, 7]);
        let mut all = text(&short);
        let mut expected = Vec::new();
        for other in [&short[..], &long, &long, &short] {
            all.append(text(other));
        }
        for length in [&short[..], &short, &long, &long, &short].into_iter().flatten() {
            expected.extend(vec![*length as u8; *length]);
        }
        assert_eq!(all.len(), expected.len());
        assert_eq!(all.into_body().collect().await.unwrap().to_bytes(), expected);
    }

    #[test]
    fn no_pieces_are_an_empty_answer() {
        let body = Pieces::default().into_body();
        assert!(body.is_end_stream());
        assert_eq!(body.size_hint().exact(), Some(0));
    }
}
