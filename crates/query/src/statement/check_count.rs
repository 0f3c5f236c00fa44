//! Refuses a statement that has more of something than a limit allows.

use crate::QueryError;

/// Returns an error if `count` exceeds `limit`.
pub(super) fn check_count(
    count: usize,
    limit: usize,
    what: &'static str,
    unit: &str,
) -> Result<(), QueryError> {
    if count <= limit {
        return Ok(());
    }
    let remedy = "take the statement apart; many values belong into one IN (...)";
    Err(QueryError::OverLimit { what, limit: format!("{limit} {unit}"), remedy })
}
