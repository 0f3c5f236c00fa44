//! Compresses answers with gzip for clients that accept it: counters, lists of devices and points, which are long, repetitive and
//! requested often.

use std::io::{self, Write};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{iter, unfold};
use futures_util::{Stream, StreamExt};
use http_body_util::BodyExt;

use crate::error::ApiError;
use crate::http::limits::{COMPRESSED_BYTES_MAX, COMPRESSED_BYTES_MIN};

/// Compresses an answer if the client accepts gzip: one in memory whose length is within bounds, or a stream whose first piece is
/// long enough.
pub(crate) async fn gzip(request: Request, next: Next) -> Response {
    let taken = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    if !taken || response.status() != StatusCode::OK {
        return response;
    }
    match response.body().size_hint().exact() {
        Some(bytes) if (COMPRESSED_BYTES_MIN..=COMPRESSED_BYTES_MAX).contains(&bytes) => {
            in_memory(response).await
        }
        Some(_) => response,
        None => streamed(response).await,
    }
}

async fn in_memory(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let compressed = match body.collect().await {
        Ok(body) => compress(body.to_bytes()).await,
        Err(error) => Err(ApiError::internal(error.to_string())),
    };
    match compressed {
        Ok(bytes) => encoded(Response::from_parts(parts, Body::from(bytes))),
        Err(error) => error.into_response(),
    }
}

/// An answer that is made while it is sent. A short first piece is most often the whole answer.
async fn streamed(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let mut pieces = body.into_data_stream();
    let Some(first) = pieces.next().await else { return Response::from_parts(parts, Body::empty()) };
    let is_long = first.as_ref().is_ok_and(|first| first.len() as u64 >= COMPRESSED_BYTES_MIN);
    let pieces = iter([first]).chain(pieces);
    match is_long {
        true => encoded(Response::from_parts(parts, Body::from_stream(compressed(pieces)))),
        false => Response::from_parts(parts, Body::from_stream(pieces)),
    }
}

fn encoded(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// Compresses a stream piece by piece. The client can read each piece before the next one is made.
fn compressed(
    pieces: impl Stream<Item = Result<Bytes, axum::Error>> + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    unfold(Some((pieces, encoder)), |state| async move {
        let (mut pieces, encoder) = state?;
        match pieces.next().await {
            Some(Ok(piece)) => match add(encoder, piece).await {
                Ok((encoder, bytes)) => Some((Ok(bytes), Some((pieces, encoder)))),
                Err(error) => Some((Err(error), None)),
            },
            Some(Err(error)) => Some((Err(io::Error::other(error)), None)),
            None => Some((encoder.finish().map(Bytes::from), None)),
        }
    })
}

async fn add(mut encoder: GzEncoder<Vec<u8>>, piece: Bytes) -> io::Result<(GzEncoder<Vec<u8>>, Bytes)> {
    let work = move || {
        encoder.write_all(&piece)?;
        encoder.flush()?;
        let bytes = std::mem::take(encoder.get_mut());
        Ok((encoder, Bytes::from(bytes)))
    };
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Compresses on a blocking thread: a list of ten thousand devices takes some milliseconds.
async fn compress(bytes: Bytes) -> Result<Vec<u8>, ApiError> {
    let work = move || {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&bytes).and_then(|()| encoder.finish())
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(compressed) => compressed.map_err(|error| ApiError::internal(error.to_string())),
        Err(error) => Err(ApiError::internal(error.to_string())),
    }
}

/// Whether `Accept-Encoding` names gzip and does not exclude it (RFC 9110 §12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight != Some(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_clients_that_accept_it() {
        let takes = |value: &'static str| {
            takes_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]))
        };
        assert!(takes("gzip") && takes("deflate, GZIP;q=0.5, br"));
        assert!(!takes("") && !takes("br") && !takes("gzip;q=0") && !takes_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn each_piece_of_a_stream_can_be_read_before_the_next_one_is_made() {
        let pieces = ["a".repeat(5_000), "b".repeat(3), String::new()];
        let all: Vec<Result<Bytes, axum::Error>> =
            pieces.iter().map(|piece| Ok(Bytes::from(piece.clone()))).collect();
        let mut stream = Box::pin(compressed(iter(all)));
        let (mut decoder, mut read) = (flate2::write::GzDecoder::new(Vec::new()), 0);
        for piece in &pieces {
            decoder.write_all(&stream.next().await.unwrap().unwrap()).unwrap();
            decoder.flush().unwrap();
            read += piece.len();
            assert_eq!(decoder.get_ref().len(), read);
        }
        decoder.write_all(&stream.next().await.unwrap().unwrap()).unwrap();
        assert_eq!(decoder.finish().unwrap(), pieces.concat().into_bytes());
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn an_error_cuts_a_compressed_stream_off() {
        let pieces = [Ok(Bytes::from_static(b"a")), Err(axum::Error::new(io::Error::other("late")))];
        let sent: Vec<_> = compressed(iter(pieces)).collect().await;
        assert!(sent.len() == 2 && sent[0].is_ok() && sent[1].is_err(), "{sent:?}");
    }
}
