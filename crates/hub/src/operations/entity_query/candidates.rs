//! The entities that a filter names, before conditions.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::caller::Caller;
use crate::entity_query::limits::{QUERY_ENTITIES_MAX, QUERY_LIST_MAX, QUERY_TYPES_MAX};
use crate::entity_query::{
    EntityFilter, EntityQueryError, EntityRef, Pattern, RelationFilter, RelationsFilter, SearchDirection,
    SearchFilter, within,
};
use crate::hub::Hub;
use crate::registry::{Entity, EntityId, EntityKind, RegistryError};
use crate::relations::{self, RelationDirection, RelationQuery};

/// The group of the relations that clients make. Queries follow no others.
const COMMON: &str = "COMMON";

impl Hub {
    /// The entities of a filter that the caller may see, sorted by name unless the filter is a list.
    pub(super) fn candidates(
        &self,
        caller: &Caller,
        filter: &EntityFilter,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        match filter {
            EntityFilter::SingleEntity { single_entity } => {
                let id = resolve(caller, single_entity)?;
                Ok(self.entity_of(caller, id)?.into_iter().collect())
            }
            EntityFilter::EntityList { entity_type, entity_list } => {
                let limit = ("QUERY_LIST_MAX", QUERY_LIST_MAX);
                within("the number of listed entities", entity_list.len(), limit, "list fewer entities")?;
                let kind = kind(entity_type)?;
                let mut seen = HashSet::new();
                let mut found = Vec::new();
                for id in entity_list {
                    let id = parse_id(id)?;
                    if seen.insert(id) {
                        found.extend(self.entity_of(caller, EntityId { kind, id })?);
                    }
                }
                Ok(found)
            }
            EntityFilter::EntityName { entity_type, entity_name_filter } => {
                self.named(caller, kind(entity_type)?, &HashSet::new(), entity_name_filter.as_deref())
            }
            EntityFilter::EntityType { entity_type } => {
                self.named(caller, kind(entity_type)?, &HashSet::new(), None)
            }
            EntityFilter::DeviceType { device_type, device_types, device_name_filter } => {
                let types = types(device_type.as_deref(), device_types)?;
                self.named(caller, EntityKind::Device, &types, device_name_filter.as_deref())
            }
            EntityFilter::AssetType { asset_type, asset_types, asset_name_filter } => {
                let types = types(asset_type.as_deref(), asset_types)?;
                self.named(caller, EntityKind::Asset, &types, asset_name_filter.as_deref())
            }
            EntityFilter::EntityViewType { entity_view_type, entity_view_types, entity_view_name_filter } => {
                let types = types(entity_view_type.as_deref(), entity_view_types)?;
                self.named(caller, EntityKind::EntityView, &types, entity_view_name_filter.as_deref())
            }
            EntityFilter::StateEntityOwner { single_entity } => {
                let Some(named) = single_entity else {
                    return invalid("singleEntity is missing in the filter");
                };
                let Some(entity) = self.entity_of(caller, resolve(caller, named)?)? else {
                    return Ok(Vec::new());
                };
                let customer = entity.customer().map(|id| EntityId { kind: EntityKind::Customer, id });
                let tenant = EntityId { kind: EntityKind::Tenant, id: entity.tenant() };
                Ok(self.entity_of(caller, customer.unwrap_or(tenant))?.into_iter().collect())
            }
            EntityFilter::RelationsQuery(filter) => self.by_relations(caller, filter),
            EntityFilter::DeviceSearchQuery(search) => self.searched(caller, search, EntityKind::Device),
            EntityFilter::AssetSearchQuery(search) => self.searched(caller, search, EntityKind::Asset),
            EntityFilter::EntityViewSearchQuery(search) => {
                self.searched(caller, search, EntityKind::EntityView)
            }
            EntityFilter::ApiUsageState {} => absent("the filter apiUsageState"),
            EntityFilter::EdgeType {} | EntityFilter::EdgeSearchQuery {} => absent("a filter of edges"),
        }
    }

    /// The entity with an id, if it exists and the caller may see it.
    fn entity_of(&self, caller: &Caller, id: EntityId) -> Result<Option<Entity>, EntityQueryError> {
        check_kind(id.kind)?;
        match self.visible_entity(caller, id) {
            Ok(entity) => Ok(Some(entity)),
            Err(RegistryError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The entities of a filter by relations.
    fn by_relations(
        &self,
        caller: &Caller,
        filter: &RelationsFilter,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let limit = ("QUERY_TYPES_MAX", QUERY_TYPES_MAX);
        let types = filter.filters.iter().map(|one| one.entity_types.len() + 1).sum();
        within("the number of types of relations and entities", types, limit, "name fewer types")?;
        let roots = if filter.multi_root {
            let limit = ("QUERY_LIST_MAX", QUERY_LIST_MAX);
            let ids = &filter.multi_root_entity_ids;
            within("the number of listed entities", ids.len(), limit, "list fewer entities")?;
            let kind = kind(filter.multi_root_entities_type.as_deref().unwrap_or_default())?;
            let id = |id: &String| Ok(EntityId { kind, id: parse_id(id)? });
            ids.iter().map(id).collect::<Result<Vec<_>, EntityQueryError>>()?
        } else {
            vec![root(caller, filter.root_entity.as_ref())?]
        };
        let condition = |one: &RelationFilter| {
            let kinds = one.entity_types.iter().map(|name| kind(name));
            Ok(relations::RelationFilter {
                kind: one.relation_type.clone().filter(|name| !name.is_empty()),
                entity_kinds: kinds.collect::<Result<_, EntityQueryError>>()?,
                negated: one.negate,
            })
        };
        let filters: Vec<_> =
            filter.filters.iter().map(condition).collect::<Result<_, EntityQueryError>>()?;
        let mut found = HashMap::new();
        for root in roots {
            let query = RelationQuery {
                root,
                direction: filter.direction.into(),
                type_group: COMMON.to_owned(),
                level_max: filter.max_level,
                last_level_only: filter.fetch_last_level_only,
                filters: filters.clone(),
            };
            self.follow(caller, &query, &mut found)?;
        }
        Ok(sorted(found))
    }

    /// The entities of one kind that relations lead to.
    fn searched(
        &self,
        caller: &Caller,
        search: &SearchFilter,
        kind: EntityKind,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let types = types(None, &search.types)?;
        let condition = relations::RelationFilter {
            kind: search.relation_type.clone().filter(|name| !name.is_empty()),
            entity_kinds: vec![kind],
            negated: false,
        };
        let query = RelationQuery {
            root: root(caller, search.root_entity.as_ref())?,
            direction: search.direction.into(),
            type_group: COMMON.to_owned(),
            level_max: search.max_level,
            last_level_only: search.fetch_last_level_only,
            filters: vec![condition],
        };
        let mut found = HashMap::new();
        self.follow(caller, &query, &mut found)?;
        found.retain(|_, entity| {
            types.is_empty() || entity.type_name().is_some_and(|name| types.contains(name))
        });
        Ok(sorted(found))
    }

    /// Adds the entities that relations lead to.
    fn follow(
        &self,
        caller: &Caller,
        query: &RelationQuery,
        found: &mut HashMap<EntityId, Entity>,
    ) -> Result<(), EntityQueryError> {
        for relation in self.related(caller, query)? {
            let end = query.direction.end_of(&relation);
            if let Ok(entity) = self.own_entity(caller, end) {
                found.insert(end, entity);
            }
        }
        let limit = ("QUERY_ENTITIES_MAX", QUERY_ENTITIES_MAX);
        within("the number of entities", found.len(), limit, "name a narrower filter")
    }

    /// The entities of a kind that have one of these types (any if there are none) and whose name passes the filter.
    fn named(
        &self,
        caller: &Caller,
        kind: EntityKind,
        types: &HashSet<&str>,
        filter: Option<&str>,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let pattern = Pattern::of_names(filter)?;
        check_kind(kind)?;
        let mut found = self.visible_entities(caller, kind)?;
        let limit = ("QUERY_ENTITIES_MAX", QUERY_ENTITIES_MAX);
        within("the number of entities", found.len(), limit, "name a narrower filter")?;
        found.retain(|entity| {
            (types.is_empty() || entity.type_name().is_some_and(|name| types.contains(name)))
                && pattern.as_ref().is_none_or(|pattern| pattern.matches(entity.name()))
        });
        Ok(found)
    }
}

impl From<SearchDirection> for RelationDirection {
    fn from(direction: SearchDirection) -> Self {
        match direction {
            SearchDirection::From => Self::From,
            SearchDirection::To => Self::To,
        }
    }
}

/// Entities in the order of their names.
fn sorted(found: HashMap<EntityId, Entity>) -> Vec<Entity> {
    let mut found: Vec<Entity> = found.into_values().collect();
    found.sort_by(|one, other| one.name().cmp(other.name()).then_with(|| one.id().cmp(&other.id())));
    found
}

/// The id that a reference names.
fn resolve(caller: &Caller, named: &EntityRef) -> Result<EntityId, EntityQueryError> {
    let own = |kind, id: Option<Uuid>| {
        id.map(|id| EntityId { kind, id }).ok_or_else(|| {
            EntityQueryError::Invalid(format!("the caller {} has no {}", caller.login(), named.entity_type))
        })
    };
    match named.entity_type.as_str() {
        "CURRENT_TENANT" => own(EntityKind::Tenant, Some(caller.tenant())),
        "CURRENT_CUSTOMER" => own(EntityKind::Customer, caller.customer()),
        "CURRENT_USER" => own(EntityKind::User, caller.user_id()),
        "CURRENT_USER_OWNER" => match caller.customer() {
            Some(id) => Ok(EntityId { kind: EntityKind::Customer, id }),
            None => own(EntityKind::Tenant, Some(caller.tenant())),
        },
        other => {
            let id = named.id.as_deref().ok_or_else(|| {
                EntityQueryError::Invalid("the id of an entity is missing in the filter".to_owned())
            })?;
            Ok(EntityId { kind: kind(other)?, id: parse_id(id)? })
        }
    }
}

/// The beginning of a walk.
fn root(caller: &Caller, named: Option<&EntityRef>) -> Result<EntityId, EntityQueryError> {
    match named {
        Some(named) => resolve(caller, named),
        None => invalid("rootEntity is missing in the filter"),
    }
}

/// Refuses alarms, which are not entities of a query.
fn check_kind(kind: EntityKind) -> Result<(), EntityQueryError> {
    match kind {
        EntityKind::Alarm => {
            invalid("the entity type is ALARM; alarms have a query of their own: POST /api/alarmsQuery/find")
        }
        _ => Ok(()),
    }
}

fn kind(name: &str) -> Result<EntityKind, EntityQueryError> {
    name.parse().map_err(EntityQueryError::Invalid)
}

fn parse_id(text: &str) -> Result<Uuid, EntityQueryError> {
    let wrong = |_| EntityQueryError::Invalid(format!("{text:?} is not the id of an entity; ids are UUIDs"));
    Uuid::parse_str(text).map_err(wrong)
}

fn types<'a>(one: Option<&'a str>, several: &'a [String]) -> Result<HashSet<&'a str>, EntityQueryError> {
    within("the number of types", several.len(), ("QUERY_TYPES_MAX", QUERY_TYPES_MAX), "name fewer types")?;
    let named = several.iter().map(String::as_str).chain(one);
    Ok(named.filter(|name| !name.is_empty()).collect())
}

fn invalid<T>(message: &str) -> Result<T, EntityQueryError> {
    Err(EntityQueryError::Invalid(message.to_owned()))
}

fn absent<T>(what: &str) -> Result<T, EntityQueryError> {
    Err(EntityQueryError::Absent(what.to_owned()))
}
