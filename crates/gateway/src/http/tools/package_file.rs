//! The bytes of a package of firmware or software as an answer.

use std::io::{self, Write};

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use hub::ota::{OtaError, Package, PackageFile};

use super::error_response::Answer;
use super::stream::streamed;
use crate::error::ApiError;
use crate::http::limits::STREAM_PIECE_BYTES;

/// The bytes of a package as a streamed answer. `read` reads some from a position on.
pub(crate) fn file_answer(
    package: &Package,
    read: impl Fn(u64, usize) -> Result<Vec<u8>, OtaError> + Send + 'static,
) -> Answer {
    let Some(file) = package.file.clone() else {
        return Err(ApiError::argument("the package has no bytes on this server"));
    };
    let (mut writer, body) = streamed();
    let (headers, length) = (file_headers(&file), file.bytes);
    tokio::task::spawn_blocking(move || {
        let mut at = 0;
        while at < length {
            let piece = read(at, STREAM_PIECE_BYTES).map_err(io::Error::other);
            let written = piece.and_then(|piece| writer.write_all(&piece).map(|()| piece.len() as u64));
            match written {
                Ok(bytes) => at += bytes,
                Err(error) => {
                    tracing::debug!(%error, "the answer with a package was broken off");
                    return writer.abort(error);
                }
            }
        }
        if let Err(error) = writer.flush() {
            writer.abort(error);
        }
    });
    let length = HeaderValue::from(length);
    Ok((headers, [(header::CONTENT_LENGTH, length)], body).into_response())
}

/// ThingsBoard's headers of an answer with bytes of a package.
pub(crate) fn file_headers(file: &PackageFile) -> [(HeaderName, HeaderValue); 3] {
    let shown: String = file.name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let text = |text: &str| HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown"));
    [
        (header::CONTENT_TYPE, text(&file.content_type)),
        (header::CONTENT_DISPOSITION, text(&format!("attachment;filename={shown}"))),
        (HeaderName::from_static("x-filename"), text(&shown)),
    ]
}

/// Whether a character of a file's name may be in a header without quotes.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || ".-_+".contains(c)
}
