//! The body of a request. The door reads and discards what a handler leaves of it, while the answer is sent.
//!
//! If the server closed a connection while the client still sends, the operating system would reset the connection, and the
//! client might lose the answer. RFC 9112 §9.6 describes this.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::HttpBody;
use axum::http::{Request, header};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

use crate::http::limits::{BODY_TIMEOUT, DISCARDED_BYTES_MAX};

/// A body that is discarded when its handler drops it.
#[derive(Debug)]
pub(super) struct RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    /// `None` after the end.
    unread: Option<B>,
    /// The end of the time that the client has for the body.
    deadline: Instant,
}

/// Wraps the body of a request.
pub(super) fn discard_unread<B>(request: Request<B>) -> Request<RequestBody<B>>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    // A client that waits for an interim answer sends no body after an error (RFC 9110 §10.1.1), and reading would send that answer.
    let waits = request.headers().contains_key(header::EXPECT);
    let deadline = Instant::now() + if waits { Duration::ZERO } else { BODY_TIMEOUT };
    request.map(|body| RequestBody { unread: Some(body), deadline })
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.unread else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.unread = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.unread.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.unread.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl<B> Drop for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
{
    fn drop(&mut self) {
        let Some(body) = self.unread.take().filter(|body| !body.is_end_stream()) else { return };
        if Instant::now() < self.deadline
            && let Ok(runtime) = Handle::try_current()
        {
            // An incomplete body does not matter.
            runtime.spawn(timeout_at(self.deadline, discard(body)));
        }
    }
}

/// Reads and discards the rest of a body, as far as it is short.
async fn discard<B: HttpBody<Data = Bytes> + Unpin>(mut body: B) {
    let mut left = DISCARDED_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(bytes) {
            Some(less) => left = less,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const PIECE: Bytes = Bytes::from_static(&[b'x'; 1024 * 1024]);

    /// A body of so many pieces, which counts those that were read.
    struct Source {
        left: usize,
        read: Arc<AtomicUsize>,
    }

    impl HttpBody for Source {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            self.left -= 1;
            self.read.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(PIECE))))
        }
    }

    async fn pieces_read(request: axum::http::request::Builder, pieces: usize) -> usize {
        let read = Arc::new(AtomicUsize::new(0));
        let source = Source { left: pieces, read: Arc::clone(&read) };
        drop(discard_unread(request.body(source).unwrap()));
        tokio::task::yield_now().await;
        read.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_dropped_body_is_read_as_far_as_it_is_short() {
        let largest = DISCARDED_BYTES_MAX / PIECE.len();
        assert_eq!(pieces_read(Request::builder(), 3).await, 3);
        assert_eq!(pieces_read(Request::builder(), 10 * largest).await, largest + 1);
    }

    #[tokio::test]
    async fn a_client_that_waits_for_permission_is_not_asked_to_send() {
        assert_eq!(pieces_read(Request::builder().header("expect", "100-continue"), 3).await, 0);
    }

    #[tokio::test]
    async fn a_body_that_was_read_leaves_nothing() {
        let read = Arc::new(AtomicUsize::new(0));
        let source = Source { left: 2, read: Arc::clone(&read) };
        let body = discard_unread(Request::new(source)).into_body();
        assert_eq!(body.collect().await.unwrap().to_bytes().len(), 2 * PIECE.len());
        assert_eq!(read.load(Ordering::Relaxed), 2);
    }
}
