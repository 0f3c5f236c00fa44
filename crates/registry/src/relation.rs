//! Relations between entities, and their index in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use crate::entity_id::{EntityId, EntityKind};

/// The identity of a relation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationKey {
    /// Where it begins.
    pub from: EntityId,
    /// The group of its type: `COMMON` for those that clients make.
    pub type_group: Box<str>,
    /// Its type, such as `Contains`.
    pub kind: Box<str>,
    /// Where it ends.
    pub to: EntityId,
}

/// A relation between two entities of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Tenant of both entities.
    pub tenant: Uuid,
    /// The identity of it.
    pub key: RelationKey,
    /// What clients keep with it: JSON text.
    pub additional_info: Option<Box<str>>,
    /// Grows with each change.
    pub version: i64,
}

/// The relations of the installation.
#[derive(Debug, Default)]
pub(super) struct Relations {
    all: BTreeMap<RelationKey, Arc<Relation>>,
    /// By the entity where they end.
    by_end: BTreeSet<(EntityId, RelationKey)>,
    counts: HashMap<Uuid, usize>,
}

impl Relations {
    pub(super) fn get(&self, key: &RelationKey) -> Option<&Arc<Relation>> {
        self.all.get(key)
    }

    /// Number of the relations of a tenant.
    pub(super) fn len_of(&self, tenant: Uuid) -> usize {
        self.counts.get(&tenant).copied().unwrap_or_default()
    }

    /// The relations that begin at an entity.
    pub(super) fn from(&self, entity: EntityId) -> impl Iterator<Item = &Arc<Relation>> {
        let begin = RelationKey { from: entity, type_group: "".into(), kind: "".into(), to: LOWEST };
        self.all.range(begin..).take_while(move |(key, _)| key.from == entity).map(|(_, relation)| relation)
    }

    /// The relations that end at an entity.
    pub(super) fn to(&self, entity: EntityId) -> impl Iterator<Item = &Arc<Relation>> {
        let first = RelationKey { from: LOWEST, type_group: "".into(), kind: "".into(), to: LOWEST };
        let keys = self.by_end.range((entity, first)..).take_while(move |(end, _)| *end == entity);
        keys.filter_map(|(_, key)| self.all.get(key))
    }

    /// Adds a relation, or replaces the one with the same key.
    pub(super) fn put(&mut self, relation: Arc<Relation>) {
        let key = relation.key.clone();
        self.by_end.insert((key.to, key.clone()));
        let tenant = relation.tenant;
        if self.all.insert(key, relation).is_none() {
            *self.counts.entry(tenant).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, key: &RelationKey) {
        if let Some(relation) = self.all.remove(key) {
            self.by_end.remove(&(key.to, key.clone()));
            if let Some(count) = self.counts.get_mut(&relation.tenant) {
                *count -= 1;
            }
        }
    }

    /// Removes the relations of an entity.
    pub(super) fn remove_entity(&mut self, entity: EntityId) {
        let keys = self.from(entity).chain(self.to(entity)).map(|relation| relation.key.clone());
        for key in keys.collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    pub(super) fn remove_tenant(&mut self, tenant: Uuid) {
        self.all.retain(|_, relation| relation.tenant != tenant);
        let all = &self.all;
        self.by_end.retain(|(_, key)| all.contains_key(key));
        self.counts.remove(&tenant);
    }
}

/// The first id in the order of ids.
const LOWEST: EntityId = EntityId { kind: EntityKind::Tenant, id: Uuid::nil() };
