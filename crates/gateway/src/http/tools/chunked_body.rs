//! The body of an answer that a query of the engine sends in chunks.

use std::fmt::Display;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use hub::time_series::{Chunks, TaskError};

/// The body whose pieces the chunks are. A later error cuts it off, so no client takes it for a complete one.
///
/// # Errors
/// The query failed before its first chunk.
pub(crate) async fn chunked_body<E: Display + Send + 'static>(
    mut chunks: Chunks<Bytes, E>,
) -> Result<Body, TaskError<E>> {
    let first = chunks.next().await.transpose()?.unwrap_or_default();
    let pieces = stream::unfold((Some(first), chunks), |(first, mut chunks)| async move {
        if let Some(first) = first {
            return Some((Ok(first), (None, chunks)));
        }
        match chunks.next().await? {
            Ok(piece) => Some((Ok(piece), (None, chunks))),
            Err(error) => {
                tracing::warn!(reason = %error, "cut off an answer");
                // Without this pause the error would also drop pieces that are not sent yet.
                tokio::task::yield_now().await;
                Some((Err(std::io::Error::other(error.to_string())), (None, chunks)))
            }
        }
    });
    Ok(Body::from_stream(pieces))
}
