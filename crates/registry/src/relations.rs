//! Relations between entities of a tenant.

use std::sync::Arc;

use uuid::Uuid;

use super::checks::{check_short, checked_info, over_limit};
use super::error::RegistryError;
use super::handle::Registry;
use super::limits::RELATIONS_PER_TENANT_MAX;
use super::relation::{Relation, RelationKey};
use super::save;
use crate::entity_id::EntityId;

/// The groups of types (ThingsBoard's `RelationTypeGroup`).
const TYPE_GROUPS: [&str; 6] =
    ["COMMON", "DASHBOARD", "RULE_CHAIN", "RULE_NODE", "EDGE", "EDGE_AUTO_ASSIGN_RULE_CHAIN"];

impl Registry {
    /// The relation with a key.
    pub fn relation(&self, tenant: Uuid, key: &RelationKey) -> Option<Arc<Relation>> {
        self.index.read().relations.get(key).filter(|relation| relation.tenant == tenant).cloned()
    }

    /// The relations that begin at an entity of a tenant.
    pub fn relations_from(&self, tenant: Uuid, entity: EntityId) -> Vec<Arc<Relation>> {
        let index = self.index.read();
        index.relations.from(entity).filter(|relation| relation.tenant == tenant).cloned().collect()
    }

    /// The relations that end at an entity of a tenant.
    pub fn relations_to(&self, tenant: Uuid, entity: EntityId) -> Vec<Arc<Relation>> {
        let index = self.index.read();
        index.relations.to(entity).filter(|relation| relation.tenant == tenant).cloned().collect()
    }

    /// Adds a relation, or replaces the one with the same key. Waits for the disk.
    pub fn save_relation(
        &self,
        tenant: Uuid,
        key: RelationKey,
        additional_info: Option<&str>,
    ) -> Result<Arc<Relation>, RegistryError> {
        check(&key)?;
        let additional_info = checked_info(additional_info)?;
        let mut writer = self.writer.lock();
        self.entity(tenant, key.from)?;
        self.entity(tenant, key.to)?;
        let old = self.relation(tenant, &key);
        if old.is_none() {
            let count = self.index.read().relations.len_of(tenant) + 1;
            over_limit("number of relations of the tenant", count, RELATIONS_PER_TENANT_MAX)?;
        }
        let version = old.map_or(1, |old| old.version + 1);
        let relation = Arc::new(Relation { tenant, key, additional_info, version });
        self.commit(&mut writer, "save a relation", |transaction| save::relation(transaction, &relation))?;
        self.index.write().relations.put(Arc::clone(&relation));
        Ok(relation)
    }

    /// Deletes a relation. Waits for the disk.
    pub fn delete_relation(&self, tenant: Uuid, key: &RelationKey) -> Result<Arc<Relation>, RegistryError> {
        let mut writer = self.writer.lock();
        let unknown =
            || RegistryError::unknown("relation", format!("{} of {} to {}", key.kind, key.from, key.to));
        let relation = self.relation(tenant, key).ok_or_else(unknown)?;
        self.commit(&mut writer, "delete a relation", |transaction| save::no_relation(transaction, key))?;
        self.index.write().relations.remove(key);
        Ok(relation)
    }

    /// Deletes all relations that begin or end at an entity of a tenant, and returns their number. Waits for the disk.
    pub fn delete_relations(&self, tenant: Uuid, entity: EntityId) -> Result<usize, RegistryError> {
        let mut writer = self.writer.lock();
        self.entity(tenant, entity)?;
        let ending_there = self.relations_ending_at(entity);
        let count = self.relations_from(tenant, entity).len() + ending_there.len();
        self.commit(&mut writer, "delete the relations of an entity", |transaction| {
            save::no_relations(transaction, entity, &ending_there)
        })?;
        self.index.write().relations.remove_entity(entity);
        Ok(count)
    }

    /// The keys of the relations that end at an entity. The file has no index for them.
    pub(super) fn relations_ending_at(&self, entity: EntityId) -> Vec<RelationKey> {
        self.index.read().relations.to(entity).map(|relation| relation.key.clone()).collect()
    }
}

fn check(key: &RelationKey) -> Result<(), RegistryError> {
    check_short("type of the relation", Some(&key.kind))?;
    if key.kind.is_empty() {
        let reason = "is empty; choose one, such as Contains".to_owned();
        return Err(RegistryError::Invalid { what: "type of the relation", reason });
    }
    if !TYPE_GROUPS.contains(&&*key.type_group) {
        let reason = format!("is {:?}; it must be one of {}", key.type_group, TYPE_GROUPS.join(", "));
        return Err(RegistryError::Invalid { what: "typeGroup of the relation", reason });
    }
    Ok(())
}
