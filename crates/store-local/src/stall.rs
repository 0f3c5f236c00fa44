//! The text about a write that waits for disk space, memory or descriptors.

use std::io::ErrorKind;

use store::StoreError;

/// Names the resource that a write waits for, and what the operator can do.
pub(crate) fn stall_reason(error: &StoreError) -> String {
    let StoreError::Io { source, .. } = error else { return error.to_string() };
    match source.kind() {
        ErrorKind::StorageFull => format!("the disk is full: {error}; free some space"),
        ErrorKind::QuotaExceeded => {
            format!("the disk quota is used up: {error}; free some space or raise the quota")
        }
        ErrorKind::OutOfMemory => {
            format!("the machine is out of memory: {error}; writing continues when there is some")
        }
        _ => format!(
            "no file descriptors are left: {error}; writing continues when connections close, or raise LimitNOFILE"
        ),
    }
}
