//! How far fjall is behind with its merges, and with writing memory to files.
//!
//! fjall sleeps inside of a write when a space has 4 sealed memtables, or 30 runs of tables in its first level (it slows down from 20
//! on). The store refuses writes before that, so a commit never sleeps.
//!
//! Invariant: while a commit writes, a space gets at most two more sealed memtables: the one that was active before, and the one that
//! holds nothing but the batch. So below [`SEALED_MAX`] before the write there are at most 3 after it. Each sealed memtable becomes at
//! most one run, so below [`RUNS_MAX`] before there are at most 18 after it.
//!
//! Invariant: all spaces together have at most `memtables_bytes_max` and one batch in memory, of active and of sealed memtables. A space
//! takes part with the limits of the present options, whatever options it was made with: fjall itself has no limit.

use fjall::{AbstractTree as _, Keyspace};

use crate::Space;

/// Sealed memtables of a space from which on writes wait.
const SEALED_MAX: usize = 2;

/// Runs in the first level of a space from which on writes wait. Merges begin at 4.
const RUNS_MAX: usize = 16;

/// Why a write to a space has to wait; `None` if it need not.
pub(super) fn backlog(space: Space, keyspace: &Keyspace, memtable_bytes: u64) -> Option<String> {
    let runs = keyspace.tree.l0_run_count();
    if runs >= RUNS_MAX {
        return Some(format!("{runs} files of {space} wait for their merge, the limit is {RUNS_MAX}"));
    }
    let sealed = keyspace.tree.sealed_memtable_count();
    if sealed >= SEALED_MAX {
        return Some(format!("{sealed} memtables of {space} wait for the disk, the limit is {SEALED_MAX}"));
    }
    let bytes = keyspace.tree.active_memtable().size();
    (bytes >= memtable_bytes)
        .then(|| format!("{bytes} bytes of {space} are in memory, the limit is {memtable_bytes}"))
}

/// Whether the active memtable should become a file, so that writes need not wait for it later.
pub(super) fn is_nearly_full(keyspace: &Keyspace, memtable_bytes: u64) -> bool {
    keyspace.tree.active_memtable().size() >= memtable_bytes / 4 * 3
}

/// Whether the active memtable should be sealed now.
pub(super) fn may_flush(keyspace: &Keyspace, memtable_bytes: u64) -> bool {
    keyspace.tree.sealed_memtable_count() < SEALED_MAX && is_nearly_full(keyspace, memtable_bytes)
}

/// Bytes of the active memtable.
pub(super) fn active_bytes(keyspace: &Keyspace) -> u64 {
    keyspace.tree.active_memtable().size()
}

/// The largest of some spaces with their bytes, so that the others have less than a bound. A space whose memtables wait for the disk is
/// not among them.
pub(super) fn largest(mut spaces: Vec<(u64, Keyspace)>, bound: u64) -> Vec<Keyspace> {
    let mut rest: u64 = spaces.iter().map(|(bytes, _)| bytes).sum();
    spaces.sort_by_key(|(bytes, _)| *bytes);
    let mut largest = Vec::new();
    while rest >= bound
        && let Some((bytes, keyspace)) = spaces.pop()
    {
        if bytes > 0 && keyspace.tree.sealed_memtable_count() < SEALED_MAX {
            rest -= bytes;
            largest.push(keyspace);
        }
    }
    largest
}
