//! The entities that a filter names, before conditions.

use std::collections::HashSet;

use model::limits::PAGE_DEVICES_MAX;
use uuid::Uuid;

use super::entity::Entity;
use super::error::{EntityQueryError, within};
use super::filter::{EntityFilter, EntityRef};
use super::limits::{QUERY_ENTITIES_MAX, QUERY_LIST_MAX, QUERY_TYPES_MAX};
use super::text::Pattern;
use crate::caller::Caller;
use crate::entity::{EntityId, EntityKind};
use crate::hub::Hub;
use crate::registry::{PageRequest, RegistryError};

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
                Ok(self.entity(caller, id)?.into_iter().collect())
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
                        found.extend(self.entity(caller, EntityId { kind, id })?);
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
            EntityFilter::StateEntityOwner { .. } => absent("the filter stateEntityOwner"),
            EntityFilter::RelationsQuery(_)
            | EntityFilter::DeviceSearchQuery(_)
            | EntityFilter::AssetSearchQuery(_)
            | EntityFilter::EntityViewSearchQuery(_) => absent("a filter by relations"),
            EntityFilter::ApiUsageState {} => absent("the filter apiUsageState"),
            EntityFilter::EdgeType {} | EntityFilter::EdgeSearchQuery {} => absent("a filter of edges"),
        }
    }

    /// The entity with an id, if it exists and the caller may see it.
    fn entity(&self, caller: &Caller, id: EntityId) -> Result<Option<Entity>, EntityQueryError> {
        match id.kind {
            EntityKind::Device => match self.device(caller, id.id) {
                Ok(device) => Ok(Some(Entity::Device(device))),
                Err(RegistryError::Unknown { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            other => absent(&format!("a query of {other}")),
        }
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
        let mut found = self.all_of(caller, kind)?;
        found.retain(|entity| {
            (types.is_empty() || entity.profile().is_some_and(|name| types.contains(name)))
                && pattern.as_ref().is_none_or(|pattern| pattern.matches(entity.name()))
        });
        Ok(found)
    }

    /// All entities of a kind that the caller may see, sorted by name.
    fn all_of(&self, caller: &Caller, kind: EntityKind) -> Result<Vec<Entity>, EntityQueryError> {
        if kind != EntityKind::Device {
            return absent(&format!("a query of {kind}"));
        }
        let mut found = Vec::new();
        loop {
            let page = found.len() / PAGE_DEVICES_MAX;
            let request = PageRequest { page, page_size: PAGE_DEVICES_MAX, ..PageRequest::default() };
            let devices = self.devices_page(caller, request)?;
            let limit = ("QUERY_ENTITIES_MAX", QUERY_ENTITIES_MAX);
            within("the number of entities", devices.total_elements, limit, "name a narrower filter")?;
            found.extend(devices.data.into_iter().map(Entity::Device));
            if !devices.has_next {
                return Ok(found);
            }
        }
    }
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
        "CURRENT_USER" => own(EntityKind::User, caller.user_id()),
        other => {
            let id = named.id.as_deref().ok_or_else(|| {
                EntityQueryError::Invalid("the id of an entity is missing in the filter".to_owned())
            })?;
            Ok(EntityId { kind: kind(other)?, id: parse_id(id)? })
        }
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

fn absent<T>(what: &str) -> Result<T, EntityQueryError> {
    Err(EntityQueryError::Absent(what.to_owned()))
}
