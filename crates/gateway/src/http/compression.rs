//! Compresses answers with gzip for clients that accept it: counters and lists of devices, which are long, repetitive and
//! requested often.

use std::io::Write;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;

use super::limits::{COMPRESSED_BYTES_MAX, COMPRESSED_BYTES_MIN};
use crate::error::ApiError;

/// Compresses an answer in memory, if the client accepts gzip and the length is within bounds.
pub(crate) async fn gzip(request: Request, next: Next) -> Response {
    let taken = takes_gzip(request.headers());
    let mut response = next.run(request).await;
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    let worth_it = (COMPRESSED_BYTES_MIN..=COMPRESSED_BYTES_MAX).contains(&bytes);
    if !taken || !worth_it || response.status() != StatusCode::OK {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let compressed = match body.collect().await {
        Ok(body) => compress(body.to_bytes()).await,
        Err(error) => Err(ApiError::internal(error.to_string())),
    };
    match compressed {
        Ok(bytes) => {
            parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(bytes))
        }
        Err(error) => error.into_response(),
    }
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
}
