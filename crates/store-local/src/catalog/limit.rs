//! Refuses what exceeds a limit.

use store::StoreError;

/// Refuses one more item when `present` has reached the limit.
pub(crate) fn check(what: &'static str, present: usize, limit: usize) -> Result<(), StoreError> {
    match present < limit {
        true => Ok(()),
        false => Err(StoreError::OverLimit { what, actual: present as u64 + 1, limit: limit as u64 }),
    }
}
