//! To which entities an alarm propagates along relations.
//!
//! An alarm with `propagate` belongs to all entities from which relations lead to its originator, over any number of relations of
//! its types. The relations of now count, so an alarm follows its originator to another asset.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::alarm::Alarm;
use super::limits::ALARM_PROPAGATION_MAX;
use crate::registry::{EntityId, Registry, RelationKey};

/// The group of the relations that clients make.
const COMMON: &str = "COMMON";

/// An originator, and the types of the relations that lead to it.
type Search = (EntityId, Vec<Box<str>>);

/// The entities above originators. One search asks for those of many alarms, so they are remembered.
pub(crate) struct Ancestors<'a> {
    registry: &'a Registry,
    known: RefCell<HashMap<Search, Arc<[EntityId]>>>,
}

impl<'a> Ancestors<'a> {
    pub(crate) fn new(registry: &'a Registry) -> Self {
        Self { registry, known: RefCell::default() }
    }

    /// The entities to which an alarm propagates along relations, the nearest first.
    pub(crate) fn of(&self, alarm: &Alarm) -> Arc<[EntityId]> {
        if !alarm.propagation.related {
            return Arc::default();
        }
        let key = (alarm.originator, alarm.propagation.relation_types.clone());
        if let Some(known) = self.known.borrow().get(&key) {
            return Arc::clone(known);
        }
        let found: Arc<[EntityId]> = ancestors(self.registry, alarm).into();
        self.known.borrow_mut().insert(key, Arc::clone(&found));
        found
    }
}

fn ancestors(registry: &Registry, alarm: &Alarm) -> Vec<EntityId> {
    let types = &alarm.propagation.relation_types;
    let leads =
        |key: &RelationKey| *key.type_group == *COMMON && (types.is_empty() || types.contains(&key.kind));
    let (mut found, mut seen) = (Vec::new(), HashSet::from([alarm.originator]));
    let mut left = VecDeque::from([alarm.originator]);
    while let Some(entity) = left.pop_front() {
        for relation in registry.relations_to(alarm.tenant, entity) {
            let from = relation.key.from;
            if found.len() >= ALARM_PROPAGATION_MAX {
                tracing::warn!(
                    alarm = %alarm.id,
                    limit = ALARM_PROPAGATION_MAX,
                    "an alarm propagates to more entities than ALARM_PROPAGATION_MAX; searches of the others do not find it"
                );
                return found;
            }
            if leads(&relation.key) && seen.insert(from) {
                found.push(from);
                left.push_back(from);
            }
        }
    }
    found
}
