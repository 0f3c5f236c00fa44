//! Relations between entities, for callers with the permission. A caller sees a relation if it sees both of its entities.

use std::sync::Arc;

use crate::caller::{Action, Caller};
use crate::entity::EntityId;
use crate::hub::Hub;
use crate::registry::{RegistryError, Relation, RelationKey};

/// The direction in which relations are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationDirection {
    /// From their beginning to their end.
    From,
    /// From their end to their beginning.
    To,
}

impl Hub {
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
        relations.retain(|relation| {
            let other = match direction {
                RelationDirection::From => relation.key.to,
                RelationDirection::To => relation.key.from,
            };
            self.own_entity(caller, other).is_ok()
        });
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
        self.audit(caller, "save relation", &subject(&relation.key));
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
        self.audit(caller, "delete relation", &subject(key));
        Ok(relation)
    }

    /// Deletes all relations of an entity, and returns their number. Waits for the disk.
    pub fn delete_relations(&self, caller: &Caller, entity: EntityId) -> Result<usize, RegistryError> {
        caller.check(Action::ManageEntities)?;
        let count = self.registry.delete_relations(caller.tenant(), entity)?;
        self.audit(caller, "delete relations", &format!("{count} of {entity}"));
        Ok(count)
    }
}

fn subject(key: &RelationKey) -> String {
    format!("{} of {} to {}", key.kind, key.from, key.to)
}
