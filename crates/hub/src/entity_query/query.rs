//! Queries of entities, in ThingsBoard's shapes (`EntityDataQuery`, `EntityCountQuery`).

use serde::Deserialize;

use super::error::{EntityQueryError, within};
use super::filter::EntityFilter;
use super::key::{EntityKey, KeyKind, null_is_empty};
use super::limits::{QUERY_KEY_FILTERS_MAX, QUERY_KEYS_MAX, QUERY_PREDICATES_MAX};
use super::predicate::Predicate;

/// A query for a page of entities with some of their values.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityDataQuery {
    /// Which entities.
    pub entity_filter: EntityFilter,
    /// Which of them are on the page, and in which order.
    pub page_link: PageLink,
    /// Properties of the entities.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub entity_fields: Vec<EntityKey>,
    /// Latest values and attributes.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub latest_values: Vec<EntityKey>,
    /// Conditions, all of which must hold.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub key_filters: Vec<KeyFilter>,
}

/// A query for the number of entities.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EntityCountQuery {
    /// Which entities.
    pub entity_filter: EntityFilter,
    /// Conditions, all of which must hold.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub key_filters: Vec<KeyFilter>,
}

/// A page of a query.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageLink {
    /// Entities per page.
    pub page_size: usize,
    /// Number of the page, from 0.
    #[serde(default)]
    pub page: usize,
    /// Only entities with this text in a selected field or value, ignoring case.
    pub text_search: Option<String>,
    /// The order; by name when it is `None`.
    pub sort_order: Option<SortOrder>,
    /// Whether a subscription looks for other entities from time to time. A query without a subscription ignores it.
    #[serde(default)]
    pub dynamic: bool,
}

/// An order of entities.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SortOrder {
    /// The key whose values are compared.
    pub key: EntityKey,
    #[serde(default)]
    pub direction: Direction,
}

/// A direction of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Direction {
    /// The smallest first.
    #[default]
    Asc,
    /// The largest first.
    Desc,
}

/// A condition on the value of a key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyFilter {
    pub key: EntityKey,
    /// The type of its values, which is that of the predicate too.
    pub value_type: Option<ValueType>,
    pub predicate: Predicate,
}

/// The type of a key's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ValueType {
    /// Text.
    String,
    /// Numbers.
    Numeric,
    Boolean,
    /// Milliseconds since 1970.
    DateTime,
}

impl EntityDataQuery {
    /// The selected keys, each once, sorted by kind.
    pub fn selected(&self) -> Vec<EntityKey> {
        let mut keys: Vec<EntityKey> =
            self.entity_fields.iter().chain(&self.latest_values).cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Refuses a query that exceeds a limit.
    pub(crate) fn check(&self) -> Result<(), EntityQueryError> {
        let keys = self.entity_fields.len() + self.latest_values.len();
        within("the number of selected keys", keys, ("QUERY_KEYS_MAX", QUERY_KEYS_MAX), "select fewer keys")?;
        let sort = self.page_link.sort_order.iter().map(|order| &order.key);
        sort.chain(&self.entity_fields).chain(&self.latest_values).try_for_each(check_key)?;
        check_filters(&self.key_filters)
    }
}

/// Refuses key filters that exceed a limit.
pub(crate) fn check_filters(filters: &[KeyFilter]) -> Result<(), EntityQueryError> {
    let limit = ("QUERY_KEY_FILTERS_MAX", QUERY_KEY_FILTERS_MAX);
    within("the number of key filters", filters.len(), limit, "use fewer key filters")?;
    let mut predicates = 0;
    for filter in filters {
        check_key(&filter.key)?;
        predicates += filter.predicate.check(1)?;
    }
    let limit = ("QUERY_PREDICATES_MAX", QUERY_PREDICATES_MAX);
    within("the number of predicates", predicates, limit, "use fewer predicates")
}

fn check_key(key: &EntityKey) -> Result<(), EntityQueryError> {
    if key.kind == KeyKind::AlarmField {
        let message = format!(
            "the key {:?} is an ALARM_FIELD; entities have none, alarms have: POST /api/alarmsQuery/find",
            key.key
        );
        return Err(EntityQueryError::Invalid(message));
    }
    Ok(())
}
