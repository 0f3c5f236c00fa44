//! Locks of writers.

use std::hash::BuildHasher;

use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use super::limits::ATTRIBUTE_LOCKS;

/// A writer reads before it writes, so the writers of a device take turns. Devices share locks.
#[derive(Debug)]
pub(crate) struct Locks {
    locks: [Mutex<()>; ATTRIBUTE_LOCKS],
    hasher: std::collections::hash_map::RandomState,
}

impl Locks {
    pub(crate) fn lock(&self, device: Uuid) -> MutexGuard<'_, ()> {
        let at = self.hasher.hash_one(device) % ATTRIBUTE_LOCKS as u64;
        self.locks[at as usize].lock()
    }
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            locks: std::array::from_fn(|_| Mutex::default()),
            hasher: std::collections::hash_map::RandomState::new(),
        }
    }
}
