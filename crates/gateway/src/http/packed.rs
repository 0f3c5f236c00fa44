//! Bodies that their senders have compressed.

use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::bodies::{HeldBytes, OverBodyLimit};
use crate::error::ApiError;

/// Bytes that are unpacked between two looks at the limits.
const STEP_BYTES: usize = 64 * 1024;

/// Unpacks gzip up to a limit, and charges what it unpacks to an account while it grows.
///
/// # Errors
/// The bytes are no gzip, or unpacked they are longer than the limit or than what the sender may have in memory.
pub(crate) fn unpack_gzip(packed: &[u8], limit: usize, account: &mut HeldBytes) -> Result<Vec<u8>, ApiError> {
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
        account.add(read).map_err(|OverBodyLimit { whose, limit }| {
            ApiError::busy(format!(
                "the bodies that {whose} may have in the server's memory are {limit} bytes at most; try again"
            ))
        })?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::http::StatusCode;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use uuid::Uuid;

    use super::*;
    use crate::http::bodies::{Bodies, BodyLimits, Sender};

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_small_body_cannot_become_a_large_one() {
        let user = 1024 * 1024;
        let bodies = Bodies::new(BodyLimits { total: user, device: 0, user, anonymous: 0 });
        let account = || bodies.begin(Sender::User(Uuid::nil()));
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
