//! The events of the engine besides rows.

use std::collections::{HashMap, HashSet};

use kv::Sequence;
use parking_lot::Mutex;
use uuid::Uuid;

use super::limits::ENDED_WAITING_MAX;
use crate::registry::EntityId;

/// Notices for the engine. Each kind is bounded: by the number of devices, of profiles, or by a limit.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Notices>);

/// An event.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// Devices, customers and tenants whose attributes have changed, with the sequence that makes the change durable.
    pub(super) attributes: HashMap<EntityId, Sequence>,
    /// Profiles whose rules have changed.
    pub(super) profiles: HashSet<Uuid>,
    /// Devices that have new rules and had reported before, with the latest time of their rows then, in microseconds.
    pub(super) reported: HashMap<Uuid, i64>,
    /// Originators with an alarm that a user has cleared or deleted.
    pub(super) ended: HashSet<Uuid>,
    /// There were more of these than fit.
    pub(super) ended_overflow: bool,
}

impl Inbox {
    pub(crate) fn attributes_changed(&self, entity: EntityId, sequence: Sequence) {
        let mut notices = self.0.lock();
        let last = notices.attributes.entry(entity).or_default();
        *last = (*last).max(sequence);
    }

    /// A profile has new rules. `reported` has its devices that have reported, with the latest time of their rows in microseconds.
    pub(crate) fn rules_changed(&self, profile: Uuid, reported: HashMap<Uuid, i64>) {
        let mut notices = self.0.lock();
        notices.profiles.insert(profile);
        notices.reported.extend(reported);
    }

    pub(crate) fn alarm_ended(&self, originator: Uuid) {
        let mut notices = self.0.lock();
        if notices.ended.len() < ENDED_WAITING_MAX {
            notices.ended.insert(originator);
        } else {
            notices.ended_overflow = true;
        }
    }

    /// Takes the notices. Changes of attributes that are not durable stay.
    pub(super) fn take(&self, durable: Sequence) -> Notices {
        let mut notices = self.0.lock();
        let mut taken = std::mem::take(&mut *notices);
        notices.attributes.extend(taken.attributes.extract_if(|_, sequence| *sequence > durable));
        taken
    }

    /// Whether changes of attributes wait for the disk.
    pub(super) fn waits(&self) -> bool {
        !self.0.lock().attributes.is_empty()
    }
}
