//! Settings of the system's allocator on a machine with little memory.
//!
//! At first glibc returns large freed blocks to the system. But each freed block raises the threshold, up to 32 MiB, and glibc
//! keeps smaller blocks for the thread. Threads that read batches of long rows then hold more memory than the limits of queries
//! allow.

#![allow(unsafe_code, reason = "the allocator's settings are a function of C")]

/// Makes the allocator return blocks of a quarter of a MiB and more as soon as they are freed. Each costs a system call, so
/// this is for machines with little memory.
#[cfg(target_env = "gnu")]
pub(super) fn give_back_large_blocks() {
    const LARGE_BYTES: libc::c_int = 256 * 1024;
    // SAFETY: `mallopt` takes two numbers, and locks the settings that it changes.
    if unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) } == 0 {
        tracing::warn!(
            "the system's allocator refuses to give large blocks back at once; memory may be short"
        );
    }
}

/// Other allocators do this by default.
#[cfg(not(target_env = "gnu"))]
pub(super) fn give_back_large_blocks() {}
