//! The text of a payload: JSON, or relaxed JSON.

use super::error::PayloadError;
use super::relaxed;

/// The byte order mark, which some tools of Windows write before UTF-8 text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The reason why `read` of [`read_json`] refuses a text.
pub(crate) enum Failed {
    /// It is not JSON.
    Syntax(PayloadError),
    /// It is JSON, and refused.
    Refused(PayloadError),
}

/// Calls `read` with the text of a payload. If that is not JSON, calls it again with the text rewritten from relaxed JSON, whose
/// brackets nest at most `depth_max` deep. This costs nothing for JSON.
pub(crate) fn read_json<T>(
    payload: &[u8],
    depth_max: usize,
    mut read: impl FnMut(&str) -> Result<T, Failed>,
) -> Result<T, PayloadError> {
    let text = std::str::from_utf8(payload)
        .map_err(|error| PayloadError::Json(format!("not UTF-8 at byte {}", error.valid_up_to())))?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    match read(text) {
        Err(Failed::Syntax(_)) => {}
        Err(Failed::Refused(refusal)) => return Err(refusal),
        Ok(done) => return Ok(done),
    }
    let json = relaxed::rewrite(text, depth_max)?;
    read(&json).map_err(|failed| match failed {
        Failed::Refused(refusal) | Failed::Syntax(refusal) => refusal,
    })
}
