//! Settings of the system's allocator.
//!
//! At first glibc returns large freed blocks to the system. But each freed block raises the threshold, up to 32 MiB, and glibc
//! keeps smaller blocks for the thread. Threads that read batches of long rows then hold more memory than the limits of queries
//! allow. glibc also gives threads arenas of their own, eight for each core: what one thread has freed another one cannot use, and
//! each arena takes 64 MiB of address space.

#![allow(unsafe_code, reason = "the allocator's settings are functions of C")]

/// Bounds the free bytes at the end of each arena: [`trim`] does not return them. With a number of arenas, which is for machines with
/// little memory, threads share them and wait for each other, and the allocator returns blocks of a quarter of a MiB and more as soon
/// as they are freed, which costs a system call for each.
#[cfg(target_env = "gnu")]
pub(super) fn set_up(arenas: Option<i32>) {
    use crate::limits::{ALLOCATOR_END_BYTES, ALLOCATOR_LARGE_BYTES, ALLOCATOR_MAPPED_BYTES};
    let (mapped, end) = match arenas {
        Some(_) => (ALLOCATOR_LARGE_BYTES, ALLOCATOR_LARGE_BYTES),
        None => (ALLOCATOR_MAPPED_BYTES, ALLOCATOR_END_BYTES),
    };
    let settings = [(libc::M_MMAP_THRESHOLD, mapped), (libc::M_TRIM_THRESHOLD, end)];
    for (setting, value) in settings.into_iter().chain(arenas.map(|arenas| (libc::M_ARENA_MAX, arenas))) {
        // SAFETY: `mallopt` takes two numbers, and locks the settings that it changes.
        if unsafe { libc::mallopt(setting, value) } == 0 {
            tracing::warn!(setting, "the system's allocator refuses a setting; memory may be short");
        }
    }
}

/// Other allocators do this by default.
#[cfg(not(target_env = "gnu"))]
pub(super) fn set_up(_arenas: Option<i32>) {}

/// Returns free pages between blocks of all arenas to the system. Threads that allocate wait meanwhile.
#[cfg(target_env = "gnu")]
pub(super) fn trim() {
    // SAFETY: `malloc_trim` takes a number and locks each arena while it looks at it.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do this by themselves.
#[cfg(not(target_env = "gnu"))]
pub(super) fn trim() {}
