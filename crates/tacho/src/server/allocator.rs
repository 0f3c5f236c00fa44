//! The system's allocator on a machine with little memory.
//!
//! glibc gives large blocks back when they are freed, at first. With each one freed it takes a larger block, up to 32 MiB, for
//! one that will be needed again, and keeps it for the thread. Threads that read batches of long rows kept more than the
//! limits of queries allow.

#![allow(unsafe_code, reason = "the allocator's settings are a function of C")]

/// Has blocks from a quarter of a MiB on given back as soon as they are freed. That costs a call of the kernel for each, so it is for
/// machines where memory is what is scarce.
#[cfg(target_env = "gnu")]
pub(super) fn give_back_large_blocks() {
    const LARGE_BYTES: libc::c_int = 256 * 1024;
    // SAFETY: `mallopt` takes two numbers and locks what it changes.
    if unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) } == 0 {
        tracing::warn!(
            "the system's allocator refuses to give large blocks back at once; memory may be short"
        );
    }
}

/// Other allocators do so by themselves.
#[cfg(not(target_env = "gnu"))]
pub(super) fn give_back_large_blocks() {}
