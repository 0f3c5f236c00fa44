//! The text of an answer on its way to the client.

use std::ops::ControlFlow;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hub::caller::Caller;
use hub::registry::OWN_DATABASE;
use hub::sql::Reader;
use hub::time_series::ChunkSender;
use timeseries::{Source, SourceError};

use super::limits::PIECE_BYTES;
use super::refusal::{Refusal, refused_task};
use crate::http::tools::chunked_body::chunked_body;
use crate::http::tools::state::HttpState;

/// Text that is sent in pieces.
pub(super) struct AnswerText<'a> {
    pub(super) text: Vec<u8>,
    send: &'a mut dyn FnMut(Vec<u8>) -> ControlFlow<()>,
}

impl<'a> AnswerText<'a> {
    /// `send` gets the pieces. `Break` means that nobody takes more.
    pub(super) fn new(send: &'a mut dyn FnMut(Vec<u8>) -> ControlFlow<()>) -> Self {
        Self { text: Vec::new(), send }
    }

    /// Sends the text if it is long. Call it after each row.
    #[inline]
    pub(super) fn send_full(&mut self) -> ControlFlow<()> {
        if self.text.len() < PIECE_BYTES { ControlFlow::Continue(()) } else { self.flush() }
    }

    /// Sends the text.
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        if self.text.is_empty() {
            return ControlFlow::Continue(());
        }
        // The next piece is about as long.
        let next = Vec::with_capacity(self.text.len() + self.text.len() / 8);
        (self.send)(std::mem::replace(&mut self.text, next))
    }
}

/// An answer that `write` writes while it is sent. It has the admission, the time limit and the bound on memory of a statement. An
/// error before the first piece is a refusal, a later one cuts the answer off.
pub(super) async fn streamed(
    state: &HttpState,
    caller: Caller,
    content_type: &'static str,
    write: impl FnOnce(&dyn Source, &mut AnswerText<'_>) -> Result<(), SourceError> + Send + 'static,
) -> Result<Response, Refusal> {
    let database = state.hub.database(&caller, OWN_DATABASE)?;
    let run = move |source: &dyn Source, sender: &ChunkSender<Bytes>| {
        let mut send = |piece: Vec<u8>| match sender.send(Bytes::from(piece)) {
            Ok(()) => ControlFlow::Continue(()),
            // The engine knows why; the read ends.
            Err(_) => ControlFlow::Break(()),
        };
        let mut out = AnswerText::new(&mut send);
        write(source, &mut out)?;
        // Nobody waits for what a closed receiver does not take.
        let _ = out.flush();
        Ok::<_, SourceError>(())
    };
    let chunks = state.hub.stream_time_series(&Reader::from(caller), &database, run)?;
    let body = chunked_body(chunks).await.map_err(refused_task)?;
    let headers = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
    Ok((StatusCode::OK, headers, body).into_response())
}
