//! The alarms in memory.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use model::Timestamp;
use uuid::Uuid;

use super::alarm::Alarm;
use crate::registry::EntityId;

/// All alarms.
#[derive(Debug, Default)]
pub(crate) struct Index {
    alarms: HashMap<Uuid, Arc<Alarm>>,
    tenants: HashMap<Uuid, OfTenant>,
    /// The active alarms of each entity: one of a type.
    active: HashMap<EntityId, Vec<Uuid>>,
    of_originator: HashMap<EntityId, BTreeSet<AlarmOrder>>,
}

/// The order of alarms: by the time of their creation.
type AlarmOrder = (Timestamp, Uuid);

#[derive(Debug, Default)]
pub(crate) struct OfTenant {
    by_time: BTreeSet<AlarmOrder>,
    cleared: BTreeSet<AlarmOrder>,
    types: BTreeMap<Arc<str>, usize>,
    /// The number of alarms that propagate along relations.
    along_relations: usize,
    bytes: usize,
}

impl Index {
    pub(crate) fn get(&self, id: Uuid) -> Option<&Arc<Alarm>> {
        self.alarms.get(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Alarm>> {
        self.alarms.values()
    }

    /// The active alarm of an entity and a type.
    pub(super) fn active(&self, originator: EntityId, alarm_type: &str) -> Option<&Arc<Alarm>> {
        let active = self.active.get(&originator)?;
        active.iter().filter_map(|id| self.get(*id)).find(|alarm| *alarm.alarm_type == *alarm_type)
    }

    pub(crate) fn tenant(&self, tenant: Uuid) -> Option<&OfTenant> {
        self.tenants.get(&tenant)
    }

    /// The alarms of a tenant, the newest first.
    pub(super) fn of_tenant(&self, tenant: Uuid) -> impl Iterator<Item = &Arc<Alarm>> {
        let places = self.tenants.get(&tenant).into_iter().flat_map(|tenant| tenant.by_time.iter().rev());
        places.filter_map(|(_, id)| self.get(*id))
    }

    /// The alarms of which an entity is the originator, the newest first.
    pub(super) fn of_originator(&self, originator: EntityId) -> impl Iterator<Item = &Arc<Alarm>> {
        let places = self.of_originator.get(&originator).into_iter().flat_map(|places| places.iter().rev());
        places.filter_map(|(_, id)| self.get(*id))
    }

    /// Puts an alarm in the place of the one with its id.
    pub(super) fn put(&mut self, alarm: Arc<Alarm>) {
        self.remove(alarm.id);
        let place = (alarm.created_at, alarm.id);
        let tenant = self.tenants.entry(alarm.tenant).or_default();
        tenant.by_time.insert(place);
        tenant.bytes += weight(&alarm);
        tenant.along_relations += usize::from(alarm.propagation.related);
        *tenant.types.entry(Arc::clone(&alarm.alarm_type)).or_default() += 1;
        if alarm.cleared {
            tenant.cleared.insert(place);
        } else {
            self.active.entry(alarm.originator).or_default().push(alarm.id);
        }
        self.of_originator.entry(alarm.originator).or_default().insert(place);
        self.alarms.insert(alarm.id, alarm);
    }

    pub(super) fn remove(&mut self, id: Uuid) -> Option<Arc<Alarm>> {
        let alarm = self.alarms.remove(&id)?;
        let place = (alarm.created_at, id);
        if let Entry::Occupied(mut entry) = self.tenants.entry(alarm.tenant) {
            let tenant = entry.get_mut();
            tenant.by_time.remove(&place);
            tenant.cleared.remove(&place);
            tenant.bytes -= weight(&alarm);
            tenant.along_relations -= usize::from(alarm.propagation.related);
            if let Some(count) = tenant.types.get_mut(&alarm.alarm_type) {
                *count -= 1;
                if *count == 0 {
                    tenant.types.remove(&alarm.alarm_type);
                }
            }
            if tenant.by_time.is_empty() {
                entry.remove();
            }
        }
        if let Entry::Occupied(mut entry) = self.active.entry(alarm.originator) {
            entry.get_mut().retain(|other| *other != id);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
        if let Entry::Occupied(mut entry) = self.of_originator.entry(alarm.originator) {
            entry.get_mut().remove(&place);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
        Some(alarm)
    }
}

impl OfTenant {
    pub(super) fn count(&self) -> usize {
        self.by_time.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether an alarm propagates along relations.
    pub(super) fn propagates_along_relations(&self) -> bool {
        self.along_relations > 0
    }

    /// The types of its alarms, sorted.
    pub(crate) fn types(&self) -> impl Iterator<Item = &Arc<str>> {
        self.types.keys()
    }

    /// The cleared alarm that was created first.
    pub(super) fn oldest_cleared(&self) -> Option<Uuid> {
        self.cleared.first().map(|(_, id)| *id)
    }
}

/// Bytes of an alarm in memory and on disk, roughly.
pub(super) fn weight(alarm: &Alarm) -> usize {
    const FIXED_BYTES: usize = 512;
    let types: usize = alarm.propagation.relation_types.iter().map(|name| name.len()).sum();
    FIXED_BYTES + alarm.details.len() + alarm.alarm_type.len() + types
}
