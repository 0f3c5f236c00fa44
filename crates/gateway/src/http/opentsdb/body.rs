//! The body of a request, plain or packed.

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;

use super::limits::PUT_BYTES_MAX;
use crate::error::{ApiError, ErrorCode};
use crate::http::bodies::{HeldBytes, Sender};
use crate::http::packed::unpack_gzip;
use crate::http::request::{HeldBody, discard_body, read_body};
use crate::http::state::HttpState;

/// The bytes of a body, with the accounts that they are on.
pub(super) struct Plain {
    pub(super) bytes: Bytes,
    _accounts: (HeldBody, HeldBytes),
}

impl Plain {
    /// Reads a body and unpacks it.
    pub(super) async fn read(state: &HttpState, request: Request, sender: Sender) -> Result<Self, ApiError> {
        let is_packed = match is_gzip(request.headers()) {
            Ok(is_packed) => is_packed,
            Err(refused) => {
                discard_body(request).await;
                return Err(refused);
            }
        };
        let body = read_body(request, PUT_BYTES_MAX, "", state.bodies.begin(sender)).await?;
        let mut account = state.bodies.begin(sender);
        if !is_packed {
            return Ok(Self { bytes: body.bytes.clone(), _accounts: (body, account) });
        }
        let work = move || {
            let bytes = unpack_gzip(&body.bytes, PUT_BYTES_MAX, &mut account)?;
            Ok(Self { bytes: bytes.into(), _accounts: (body, account) })
        };
        state.reads.run(work).await?
    }
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default()) {
        None | Some("identity") => Ok(false),
        Some("gzip" | "x-gzip") => Ok(true),
        Some(other) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::BadRequest,
            "encoding",
            format!("the content encoding {other:?} is not supported; send gzip or none"),
        )),
    }
}
