//! Relations between entities, for callers with the permission. A caller sees a relation if it sees both of its entities.

use std::collections::HashSet;
use std::sync::Arc;

use crate::caller::{Action, Caller};
use crate::hub::Hub;
use crate::registry::limits::RELATIONS_FOLLOWED_MAX;
use crate::registry::{Entity, EntityId, EntityKind, RegistryError, Relation, RelationKey};
use crate::relations::{RelationDirection, RelationQuery};

impl Hub {
    /// The relations that lead away from an entity, each once. Relations that a filter leaves out are followed too, as in
    /// ThingsBoard.
    ///
    /// # Errors
    /// The root is unknown, or more relations than [`RELATIONS_FOLLOWED_MAX`] lead away from it.
    pub fn related(
        &self,
        caller: &Caller,
        query: &RelationQuery,
    ) -> Result<Vec<Arc<Relation>>, RegistryError> {
        let mut found = Vec::new();
        let mut seen = HashSet::from([query.root]);
        let (mut level, mut entities) = (0, vec![query.root]);
        let mut followed = 0;
        while !entities.is_empty() && (query.level_max == 0 || level < query.level_max) {
            level += 1;
            let mut next = Vec::new();
            for entity in entities {
                let mut relations = self.relations_of(caller, entity, query.direction)?;
                relations.retain(|relation| *relation.key.type_group == *query.type_group);
                followed += relations.len();
                if followed > RELATIONS_FOLLOWED_MAX {
                    let (what, limit) = ("number of followed relations", RELATIONS_FOLLOWED_MAX);
                    return Err(RegistryError::OverLimit { what, actual: followed, limit });
                }
                for relation in relations {
                    let end = query.direction.end_of(&relation);
                    let is_new = seen.insert(end);
                    let is_last = level == query.level_max
                        || !self.has_relations(caller, end, query.direction, &query.type_group);
                    if !query.last_level_only || is_last {
                        found.push(relation);
                    }
                    next.extend(is_new.then_some(end));
                }
            }
            entities = next;
        }
        let filters = &query.filters;
        found.retain(|relation| {
            filters.is_empty() || filters.iter().any(|filter| filter.accepts(relation, query.direction))
        });
        Ok(found)
    }

    /// The entities of a kind to which relations lead, each once.
    pub fn related_entities(
        &self,
        caller: &Caller,
        query: &RelationQuery,
        kind: EntityKind,
    ) -> Result<Vec<Entity>, RegistryError> {
        let mut seen = HashSet::new();
        let ends = self.related(caller, query)?;
        let ends = ends.iter().map(|relation| query.direction.end_of(relation));
        let ends = ends.filter(|end| end.kind == kind && seen.insert(*end));
        Ok(ends.filter_map(|end| self.own_entity(caller, end).ok()).collect())
    }

    fn has_relations(
        &self,
        caller: &Caller,
        entity: EntityId,
        direction: RelationDirection,
        group: &str,
    ) -> bool {
        let relations = self.relations_of(caller, entity, direction);
        relations.is_ok_and(|relations| relations.iter().any(|one| *one.key.type_group == *group))
    }

    /// The relations that begin or end at an entity, and whose other end the caller sees.
    pub fn relations_of(
        &self,
        caller: &Caller,
        entity: EntityId,
        direction: RelationDirection,
    ) -> Result<Vec<Arc<Relation>>, RegistryError> {
        self.visible_entity(caller, entity)?;
        let mut relations = match direction {
            RelationDirection::From => self.registry.relations_from(caller.tenant(), entity),
            RelationDirection::To => self.registry.relations_to(caller.tenant(), entity),
        };
        relations.retain(|relation| self.own_entity(caller, direction.end_of(relation)).is_ok());
        Ok(relations)
    }

    /// The relation with a key.
    pub fn relation(&self, caller: &Caller, key: &RelationKey) -> Result<Arc<Relation>, RegistryError> {
        self.visible_entity(caller, key.from)?;
        self.visible_entity(caller, key.to)?;
        let unknown =
            || RegistryError::unknown("relation", format!("{} of {} to {}", key.kind, key.from, key.to));
        self.registry.relation(caller.tenant(), key).ok_or_else(unknown)
    }

    /// Adds a relation, or replaces the one with the same key. Waits for the disk.
    pub fn save_relation(
        &self,
        caller: &Caller,
        key: RelationKey,
        additional_info: Option<&str>,
    ) -> Result<Arc<Relation>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let relation = self.registry.save_relation(caller.tenant(), key, additional_info)?;
        self.audit_of(caller, "save relation", &subject(&relation.key), relation.key.from);
        Ok(relation)
    }

    /// Deletes a relation. Waits for the disk.
    pub fn delete_relation(
        &self,
        caller: &Caller,
        key: &RelationKey,
    ) -> Result<Arc<Relation>, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let relation = self.registry.delete_relation(caller.tenant(), key)?;
        self.audit_of(caller, "delete relation", &subject(key), key.from);
        Ok(relation)
    }

    /// Deletes all relations of an entity, and returns their number. Waits for the disk.
    pub fn delete_relations(&self, caller: &Caller, entity: EntityId) -> Result<usize, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let count = self.registry.delete_relations(caller.tenant(), entity)?;
        self.audit_of(caller, "delete relations", &format!("{count} of {entity}"), entity);
        Ok(count)
    }
}

fn subject(key: &RelationKey) -> String {
    format!("{} of {} to {}", key.kind, key.from, key.to)
}
