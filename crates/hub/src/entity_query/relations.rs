//! Entities that relations lead to.

use std::collections::{HashMap, HashSet};

use super::error::{EntityQueryError, within};
use super::filter::{RelationFilter, SearchDirection};
use super::limits::{QUERY_ENTITIES_MAX, QUERY_LEVELS_MAX};
use crate::caller::Caller;
use crate::entity::{EntityId, EntityKind};
use crate::hub::Hub;
use crate::registry::{Entity, Relation};

/// The group of the relations that clients make. Queries follow no others.
const COMMON: &str = "COMMON";

/// A walk along relations.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) roots: Vec<EntityId>,
    pub(super) direction: SearchDirection,
    /// Which relations count; all when there are none.
    pub(super) filters: &'a [RelationFilter],
    /// Most relations between a root and an entity; 0 for the limit.
    pub(super) max_level: usize,
    /// Whether only entities without further relations count.
    pub(super) last_level_only: bool,
}

impl Hub {
    /// The entities that a walk finds and the caller sees, sorted by name. A walk passes through entities that do not count.
    pub(super) fn walk(&self, caller: &Caller, walk: &Walk<'_>) -> Result<Vec<Entity>, EntityQueryError> {
        let levels = match walk.max_level {
            0 => QUERY_LEVELS_MAX,
            named => {
                let limit = ("QUERY_LEVELS_MAX", QUERY_LEVELS_MAX);
                within("maxLevel", named, limit, "ask for fewer levels")?;
                named
            }
        };
        for root in &walk.roots {
            // A walk shows what is behind an entity, so the caller must see the entity.
            self.visible_entity(caller, *root)?;
        }
        let mut passed: HashSet<EntityId> = walk.roots.iter().copied().collect();
        let mut counted: HashMap<EntityId, Entity> = HashMap::new();
        let mut level = walk.roots.clone();
        for _ in 0..levels {
            let mut next = Vec::new();
            for from in level {
                for relation in self.relations_at(caller, walk.direction, from) {
                    let end = end_of(&relation, walk.direction);
                    if walk.counts(&relation)
                        && !counted.contains_key(&end)
                        && let Ok(entity) = self.own_entity(caller, end)
                    {
                        counted.insert(end, entity);
                    }
                    if passed.insert(end) {
                        next.push(end);
                    }
                }
                let limit = ("QUERY_ENTITIES_MAX", QUERY_ENTITIES_MAX);
                within("the number of entities", passed.len(), limit, "ask for fewer levels")?;
            }
            level = next;
        }
        if walk.last_level_only {
            counted.retain(|id, _| {
                let further = self.relations_at(caller, walk.direction, *id);
                !further.iter().any(|relation| walk.counts(relation))
            });
        }
        let mut found: Vec<Entity> = counted.into_values().collect();
        found.sort_by(|one, other| one.name().cmp(other.name()).then_with(|| one.id().cmp(&other.id())));
        Ok(found)
    }

    fn relations_at(
        &self,
        caller: &Caller,
        direction: SearchDirection,
        entity: EntityId,
    ) -> Vec<std::sync::Arc<Relation>> {
        let mut found = match direction {
            SearchDirection::From => self.registry.relations_from(caller.tenant(), entity),
            SearchDirection::To => self.registry.relations_to(caller.tenant(), entity),
        };
        found.retain(|relation| &*relation.key.type_group == COMMON);
        found
    }
}

impl Walk<'_> {
    fn counts(&self, relation: &Relation) -> bool {
        let kind = end_of(relation, self.direction).kind;
        self.filters.is_empty() || self.filters.iter().any(|filter| filter.fits(&relation.key.kind, kind))
    }
}

impl RelationFilter {
    fn fits(&self, relation: &str, kind: EntityKind) -> bool {
        let named = self.relation_type.as_deref().filter(|name| !name.is_empty());
        let is_type = named.is_none_or(|name| (name == relation) != self.negate);
        is_type && (self.entity_types.is_empty() || self.entity_types.iter().any(|name| name == kind.name()))
    }
}

fn end_of(relation: &Relation, direction: SearchDirection) -> EntityId {
    match direction {
        SearchDirection::From => relation.key.to,
        SearchDirection::To => relation.key.from,
    }
}
