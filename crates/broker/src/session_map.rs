//! The sessions that outlive their connections, by key.

use std::collections::HashMap;
use std::sync::Arc;

use uuid::Uuid;

use super::error::BrokerError;
use super::limits;
use super::session::{Session, SessionKey};

/// Sessions by key, and their number by device.
#[derive(Debug, Default)]
pub(super) struct SessionMap {
    by_key: HashMap<SessionKey, Arc<Session>>,
    by_device: HashMap<Uuid, usize>,
}

impl SessionMap {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get(&self, key: &SessionKey) -> Option<&Arc<Session>> {
        self.by_key.get(key)
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        self.by_key.values().cloned().collect()
    }

    /// Refuses another session of a device beyond the limits.
    pub(super) fn check_room(&self, device: Uuid) -> Result<(), BrokerError> {
        let of_device = self.by_device.get(&device).copied().unwrap_or(0);
        let limits = [
            ("SESSIONS_MAX", limits::SESSIONS_MAX, self.len()),
            ("SESSIONS_PER_DEVICE_MAX", limits::SESSIONS_PER_DEVICE_MAX, of_device),
        ];
        for (limit, max, present) in limits {
            if present >= max {
                let what = "too many sessions that outlive their connections";
                return Err(BrokerError::Limit { what, limit, max, actual: present + 1 });
            }
        }
        Ok(())
    }

    pub(super) fn insert(&mut self, session: Arc<Session>) {
        let device = session.key.device;
        if self.by_key.insert(session.key.clone(), session).is_none() {
            *self.by_device.entry(device).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, key: &SessionKey) {
        if self.by_key.remove(key).is_some()
            && let Some(count) = self.by_device.get_mut(&key.device)
        {
            *count -= 1;
            if *count == 0 {
                self.by_device.remove(&key.device);
            }
        }
    }
}
