//! Counts answers in memory until their client has taken them: for each login and in total. Streamed answers hold only a few
//! pieces and are not counted.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::budget::{Charge, Owner};
use crate::error::ApiError;
use crate::http::limits::{ANSWER_COUNTED_BYTES_MIN, ANSWER_PIECE_BYTES};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// Counts a long answer. Refuses it if too many bytes wait already.
pub(crate) async fn count(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let response = next.run(request).await;
    // A stream has no length; its pieces are bounded.
    let bytes =
        usize::try_from(response.body().size_hint().exact().unwrap_or_default()).unwrap_or(usize::MAX);
    if bytes < ANSWER_COUNTED_BYTES_MIN {
        return response;
    }
    // Long answers without a session are files of the dashboard, which are part of the binary.
    let Ok(session) = Session::of(&state, &headers) else { return response };
    let share = state.answers.share(Owner::of(&state.hub, session.caller()));
    match share.hold(bytes) {
        Ok(charge) => {
            response.map(|body| Body::new(Counted { body, piece: Bytes::new(), piece_bytes: 0, charge }))
        }
        Err(over) => ApiError::from(over).into_response(),
    }
}

/// A body in small pieces. Bytes that the client has taken are no longer counted.
struct Counted {
    body: Body,
    piece: Bytes,
    /// Length of the whole piece.
    piece_bytes: usize,
    charge: Charge,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.piece.is_empty() {
            // The piece was sent, so its memory is free.
            let bytes = self.piece_bytes;
            drop(self.charge.split(bytes));
            self.piece_bytes = 0;
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => (self.piece_bytes, self.piece) = (piece.len(), piece),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return Poll::Ready(other),
            }
        }
        let end = self.piece.len().min(ANSWER_PIECE_BYTES);
        let part = self.piece.split_to(end);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.piece.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.body.size_hint().exact().unwrap_or_default();
        SizeHint::with_exact(left + self.piece.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use uuid::Uuid;

    use super::*;
    use crate::budget::Budget;
    use crate::http::limits::ANSWER_BUDGET;
    use crate::http::tools::pieces::Pieces;

    #[tokio::test]
    async fn bytes_are_released_piece_by_piece() {
        let budget = Budget::new(ANSWER_BUDGET);
        let mut pieces = Pieces::default();
        let long = 3 * ANSWER_PIECE_BYTES + 1;
        (0..2).for_each(|n| pieces.take(vec![n; long]));
        let charge = budget.share(Owner::login(Uuid::nil())).hold(2 * long).unwrap();
        let body = Body::new(pieces.into_body());
        let mut body = Counted { body, piece: Bytes::new(), piece_bytes: 0, charge };
        assert_eq!(body.size_hint().exact(), Some(2 * long as u64));
        let mut taken = Vec::new();
        for _ in 0..5 {
            let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(frame.len() <= ANSWER_PIECE_BYTES);
            taken.extend_from_slice(&frame);
        }
        assert_eq!(budget.total(), long, "the first of two was taken");
        assert_eq!(body.size_hint().exact(), Some((2 * long - taken.len()) as u64));
        while let Some(frame) = body.frame().await {
            taken.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert!(taken.len() == 2 * long && taken[..long].iter().all(|byte| *byte == 0));
        drop(body);
        assert_eq!(budget.total(), 0);
    }
}
