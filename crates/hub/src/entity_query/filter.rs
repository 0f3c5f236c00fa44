//! Filters of entities (ThingsBoard's `EntityFilter`).

use serde::Deserialize;

use super::key::null_is_empty;

/// The set of entities that a query looks at.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EntityFilter {
    SingleEntity {
        single_entity: EntityRef,
    },
    /// Some entities of one kind.
    EntityList {
        entity_type: String,
        entity_list: Vec<String>,
    },
    /// Entities of one kind by name.
    EntityName {
        entity_type: String,
        entity_name_filter: Option<String>,
    },
    /// All entities of one kind.
    EntityType {
        entity_type: String,
    },
    /// Devices by profile and name.
    DeviceType {
        /// The profile, in the older form.
        device_type: Option<String>,
        /// The profiles.
        #[serde(default, deserialize_with = "null_is_empty")]
        device_types: Vec<String>,
        device_name_filter: Option<String>,
    },
    /// Assets by profile and name.
    AssetType {
        /// The profile, in the older form.
        asset_type: Option<String>,
        /// The profiles.
        #[serde(default, deserialize_with = "null_is_empty")]
        asset_types: Vec<String>,
        asset_name_filter: Option<String>,
    },
    /// Views of entities by type and name.
    EntityViewType {
        /// The type, in the older form.
        entity_view_type: Option<String>,
        #[serde(default, deserialize_with = "null_is_empty")]
        entity_view_types: Vec<String>,
        entity_view_name_filter: Option<String>,
    },
    /// The owner of an entity: its customer, else its tenant.
    StateEntityOwner {
        single_entity: Option<EntityRef>,
    },
    /// Entities that relations lead to.
    RelationsQuery(RelationsFilter),
    /// Devices that relations lead to.
    DeviceSearchQuery(SearchFilter),
    /// Assets that relations lead to.
    AssetSearchQuery(SearchFilter),
    /// Views that relations lead to.
    EntityViewSearchQuery(SearchFilter),
    /// The use of ThingsBoard's own API, which this server does not count.
    ApiUsageState {},
    /// ThingsBoard's edge servers.
    EdgeType {},
    /// ThingsBoard's edge servers that relations lead to.
    EdgeSearchQuery {},
}

/// An entity that a filter names. The kind may also be that of an entity of the caller, such as `CURRENT_TENANT`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityRef {
    pub entity_type: String,
    pub id: Option<String>,
}

/// A walk along relations.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelationsFilter {
    /// Where it begins.
    pub root_entity: Option<EntityRef>,
    /// Whether it begins at several entities.
    #[serde(default)]
    pub multi_root: bool,
    /// The kind of these entities.
    pub multi_root_entities_type: Option<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    pub multi_root_entity_ids: Vec<String>,
    /// Along or against the relations.
    pub direction: SearchDirection,
    /// The relations to follow and the kinds of entities to keep; all when there are none.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub filters: Vec<RelationFilter>,
    /// Most relations between the beginning and an entity; 0 for the limit.
    #[serde(default)]
    pub max_level: usize,
    /// Whether only entities without further relations are kept.
    #[serde(default)]
    pub fetch_last_level_only: bool,
}

/// Which relations to follow.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RelationFilter {
    /// The type of the relations; any when it is absent.
    pub relation_type: Option<String>,
    /// The kinds of entities; any when there are none.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub entity_types: Vec<String>,
    /// Whether the relations of this type are those not to follow.
    #[serde(default)]
    pub negate: bool,
}

/// A walk along relations of one type to entities of some types.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchFilter {
    /// Where it begins.
    pub root_entity: Option<EntityRef>,
    /// The type of the relations; any when it is absent.
    pub relation_type: Option<String>,
    /// Along or against the relations.
    pub direction: SearchDirection,
    /// Most relations between the beginning and an entity; 0 for the limit.
    #[serde(default)]
    pub max_level: usize,
    /// Whether only entities without further relations are kept.
    #[serde(default)]
    pub fetch_last_level_only: bool,
    /// The profiles or types of the entities; any when there are none.
    #[serde(
        default,
        alias = "deviceTypes",
        alias = "assetTypes",
        alias = "entityViewTypes",
        deserialize_with = "null_is_empty"
    )]
    pub types: Vec<String>,
}

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SearchDirection {
    /// Along the relations.
    From,
    /// Against them.
    To,
}
