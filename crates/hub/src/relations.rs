//! Queries of relations.

use crate::registry::{EntityId, EntityKind, Relation};

/// The direction in which relations are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationDirection {
    /// From their beginning to their end.
    From,
    /// From their end to their beginning.
    To,
}

impl RelationDirection {
    /// The end of a relation to which it leads.
    pub fn end_of(self, relation: &Relation) -> EntityId {
        match self {
            Self::From => relation.key.to,
            Self::To => relation.key.from,
        }
    }
}

/// A condition on relations: one of a type that leads to an entity of one of the kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationFilter {
    /// The type; any if it is `None`.
    pub kind: Option<String>,
    /// The kinds of entities; any if it is empty.
    pub entity_kinds: Vec<EntityKind>,
    /// Whether relations that satisfy the rest are left out instead.
    pub negated: bool,
}

impl RelationFilter {
    /// Whether a relation passes the filter.
    pub(crate) fn accepts(&self, relation: &Relation, direction: RelationDirection) -> bool {
        let of_type = self.kind.as_deref().is_none_or(|kind| *relation.key.kind == *kind);
        let end = direction.end_of(relation).kind;
        let of_kind = self.entity_kinds.is_empty() || self.entity_kinds.contains(&end);
        (of_type && of_kind) != self.negated
    }
}

/// A request for the relations that lead away from an entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationQuery {
    /// Where they begin.
    pub root: EntityId,
    /// The direction in which they are followed.
    pub direction: RelationDirection,
    /// The group of their types.
    pub type_group: String,
    /// How many relations are followed one after the other; 0 for any number.
    pub level_max: usize,
    /// Whether only those at the end of a way are wanted.
    pub last_level_only: bool,
    /// A relation is wanted if it satisfies one of these; any if there are none.
    pub filters: Vec<RelationFilter>,
}
