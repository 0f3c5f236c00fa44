//! Bodies that their senders may have compressed.

use std::io::Read;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use super::bodies::{HeldBytes, Sender};
use super::request::{HeldBody, read_body};
use super::state::HttpState;
use crate::error::{ApiError, ErrorCode};

/// Bytes that are unpacked between two looks at the limits.
const STEP_BYTES: usize = 64 * 1024;

/// The bytes of a body, with the accounts that they are on.
pub(crate) struct PlainBody {
    pub(crate) bytes: Bytes,
    _accounts: (HeldBody, HeldBytes),
}

impl PlainBody {
    /// Reads a body and unpacks it. It may have `limit` bytes, before and after.
    pub(crate) async fn read(
        state: &HttpState,
        request: Request,
        limit: usize,
        sender: Sender,
    ) -> Result<Self, ApiError> {
        let is_packed = is_gzip(request.headers())?;
        let body = read_body(request, limit, "", state.body_account(sender)).await?;
        let mut account = state.body_account(sender);
        // InfluxDB's client in Python says gzip for requests without a body, too.
        if !is_packed || body.bytes.is_empty() {
            return Ok(Self { bytes: body.bytes.clone(), _accounts: (body, account) });
        }
        let work = move || {
            let bytes = unpack_gzip(&body.bytes, limit, &mut account)?;
            Ok(Self { bytes: bytes.into(), _accounts: (body, account) })
        };
        state.reads.run(work).await?
    }
}

/// Whether a body is packed with gzip.
fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default()) {
        None | Some("" | "identity") => Ok(false),
        Some("gzip" | "x-gzip") => Ok(true),
        Some(other) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorCode::BadRequest,
            "encoding",
            format!("the content encoding {other:?} is not supported; send gzip or none"),
        )),
    }
}

/// Unpacks gzip up to a limit, and charges what it unpacks to an account while it grows.
///
/// # Errors
/// The bytes are not gzip, or unpacked they are longer than the limit or than what the sender may have in memory.
fn unpack_gzip(packed: &[u8], limit: usize, account: &mut HeldBytes) -> Result<Vec<u8>, ApiError> {
    let mut decoder = MultiGzDecoder::new(packed);
    let mut unpacked = Vec::new();
    loop {
        let read = decoder.by_ref().take(STEP_BYTES as u64).read_to_end(&mut unpacked);
        let read = read.map_err(|error| ApiError::bad_request(format!("the body is not gzip: {error}")))?;
        if read == 0 {
            return Ok(unpacked);
        }
        if unpacked.len() > limit {
            return Err(ApiError::too_large("the unpacked body", limit, ""));
        }
        account.add(read)?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use axum::http::StatusCode;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use uuid::Uuid;

    use super::*;
    use crate::http::tools::bodies::{Bodies, BodyLimits, Sender};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_small_body_cannot_become_a_large_one() {
        let user = 1024 * 1024;
        let limits = BodyLimits { total: user, device: 0, user, anonymous: 0 };
        let bodies = Bodies::new(limits, Arc::default());
        let account = || bodies.begin(Sender::User { id: Uuid::nil(), tenant: Uuid::nil() }, 1);
        assert_eq!(unpack_gzip(&gzip(b"m f=1"), 5, &mut account()).unwrap(), b"m f=1");
        let bomb = gzip(&vec![b'm'; 64 * 1024 * 1024]);
        let refused = unpack_gzip(&bomb, 100_000, &mut account()).unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        let refused = unpack_gzip(&bomb, usize::MAX, &mut account()).unwrap_err();
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
        assert!(unpack_gzip(b"no gzip", 100, &mut account()).is_err());
        assert!(unpack_gzip(&gzip(b"cut off")[..15], 100, &mut account()).is_err());
    }
}
