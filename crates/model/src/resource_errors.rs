//! Errors of the system that pass: the machine lacks a resource that comes back by itself.

use std::io;

/// Whether an error of the system means a lack of a resource that comes back by itself: space, quota, descriptors,
/// memory.
pub fn is_transient(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::OutOfMemory];
    kinds.contains(&error.kind()) || is_out_of_descriptors(error)
}

/// Whether the process or the system has no descriptor left. The standard library has no error kind for it. Only calls
/// that open a file or a socket fail with it.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
