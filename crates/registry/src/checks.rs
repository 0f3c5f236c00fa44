//! Checks of what clients keep with entities, which all kinds share.

use super::error::RegistryError;
use super::limits::{ADDITIONAL_INFO_BYTES_MAX, SHORT_TEXT_BYTES_MAX};

/// Checks a short text.
pub(super) fn check_short(what: &'static str, text: Option<&str>) -> Result<(), RegistryError> {
    let (bytes, limit) = (text.map_or(0, str::len), SHORT_TEXT_BYTES_MAX);
    if bytes > limit {
        let reason = format!("has {bytes} bytes, the limit is {limit} (SHORT_TEXT_BYTES_MAX)");
        return Err(RegistryError::Invalid { what, reason });
    }
    Ok(())
}

/// Checks `additionalInfo`, and returns it as it is stored: `null` means none.
pub(super) fn checked_info(info: Option<&str>) -> Result<Option<Box<str>>, RegistryError> {
    checked_json("additionalInfo", info, ADDITIONAL_INFO_BYTES_MAX, "ADDITIONAL_INFO_BYTES_MAX")
}

/// Checks JSON text that clients keep, and returns it as it is stored: `null` means none.
pub(super) fn checked_json(
    what: &'static str,
    text: Option<&str>,
    limit: usize,
    limit_name: &str,
) -> Result<Option<Box<str>>, RegistryError> {
    let Some(text) = text else { return Ok(None) };
    if text.len() > limit {
        let reason = format!("has {} bytes, the limit is {limit} ({limit_name})", text.len());
        return Err(RegistryError::Invalid { what, reason });
    }
    let json: serde_json::Value = serde_json::from_str(text)
        .map_err(|error| RegistryError::Invalid { what, reason: format!("is not JSON: {error}") })?;
    match json {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::Object(_) => Ok(Some(text.into())),
        _ => Err(RegistryError::Invalid { what, reason: "must be a JSON object".into() }),
    }
}

/// Refuses a change by a caller who has seen another version.
pub(super) fn check_version(
    what: &'static str,
    name: &str,
    expected: Option<i64>,
    found: i64,
) -> Result<(), RegistryError> {
    match expected {
        Some(expected) if expected != found => {
            Err(RegistryError::VersionConflict { what, name: name.to_owned(), expected, found })
        }
        _ => Ok(()),
    }
}

/// Refuses a number above a limit.
pub(super) fn over_limit(what: &'static str, actual: usize, limit: usize) -> Result<(), RegistryError> {
    if actual > limit { Err(RegistryError::OverLimit { what, actual, limit }) } else { Ok(()) }
}
