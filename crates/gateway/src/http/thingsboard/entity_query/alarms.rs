//! Queries of the alarms of entities, in ThingsBoard's shapes (`AlarmDataQuery`, `AlarmCountQuery`, `AlarmData`).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::alarms::{Alarm, AlarmQuery, AlarmSort, AlarmText};
use hub::caller::Caller;
use hub::entity_query::{
    Direction, EntityDataQuery, EntityFilter, EntityKey, EntityRow, KeyFilter, KeyKind, PageLink, SortOrder,
};
use hub::registry::{Entity, Page};
use hub::{EntityId, Hub};
use model::Timestamp;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

use super::json::Latest;
use crate::error::ApiError;
use crate::http::limits::{ALARM_PAGE_MAX, ALARM_QUERY_ENTITIES_MAX};
use crate::http::shapes::entities::PageJson;
use crate::http::thingsboard::alarms::json::alarm_info_json;
use crate::http::thingsboard::alarms::request::{EntityJson, parsed, time};
use crate::http::tools::json::{Json, Sequence, entity};
use crate::http::tools::request::JsonBody;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// A query for a page of alarms. The answer has all members of the alarms, as in ThingsBoard.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmDataQuery {
    entity_filter: EntityFilter,
    page_link: AlarmPageLink,
    /// The members of alarms in which `textSearch` is looked for.
    alarm_fields: Option<Vec<EntityKey>>,
    /// Properties of the entities that come with their alarms.
    entity_fields: Option<Vec<EntityKey>>,
    /// Latest values and attributes of the entities that come with their alarms.
    latest_values: Option<Vec<EntityKey>>,
    /// Conditions on the entities.
    key_filters: Option<Vec<KeyFilter>>,
}

/// A query for the number of alarms.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlarmCountQuery {
    /// The entities; alarms of all entities if it is absent.
    entity_filter: Option<EntityFilter>,
    /// Conditions on the entities.
    key_filters: Option<Vec<KeyFilter>>,
    #[serde(flatten)]
    conditions: Conditions,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AlarmPageLink {
    page_size: usize,
    #[serde(default)]
    page: usize,
    text_search: Option<String>,
    sort_order: Option<SortOrder>,
    #[serde(flatten)]
    conditions: Conditions,
}

/// Conditions on alarms. Absent and empty ones do not hold back any.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Conditions {
    /// Milliseconds since 1970.
    start_ts: Option<i64>,
    end_ts: Option<i64>,
    /// Milliseconds before now; it counts instead of the two times.
    time_window: Option<i64>,
    status_list: Option<Vec<String>>,
    severity_list: Option<Vec<String>>,
    type_list: Option<Vec<String>>,
    /// Whether an alarm belongs also to the entities to which it propagates.
    #[serde(default)]
    search_propagated_alarms: bool,
    assignee_id: Option<EntityJson>,
}

/// A page of alarms with values of their entities: ThingsBoard's `PageData<AlarmData>`.
#[derive(Debug)]
pub(crate) struct AlarmDataPage {
    keys: Vec<EntityKey>,
    page: Page<AlarmRow>,
    now: Timestamp,
    /// The number of entities whose alarms were searched.
    pub(crate) entities: usize,
}

#[derive(Debug)]
struct AlarmRow {
    /// The alarm and the entity of the query that it belongs to.
    data: JsonValue,
    values: EntityRow,
}

/// `POST /api/alarmsQuery/find`: a page of alarms.
pub(super) async fn find(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<AlarmDataQuery>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let read = move || Ok::<_, ApiError>(Json(query.find(&hub, session.caller())?).into_response());
    let answer = state.reads.run(read).await??;
    state.hub.alarms_durable().await?;
    Ok(answer)
}

/// `POST /api/alarmsQuery/count`: the number of alarms.
pub(super) async fn count(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(query): JsonBody<AlarmCountQuery>,
) -> Result<Response, ApiError> {
    let hub = Arc::clone(&state.hub);
    let count = state.reads.run(move || query.count(&hub, session.caller())).await??;
    state.hub.alarms_durable().await?;
    Ok(Json(count).into_response())
}

impl AlarmDataQuery {
    /// The page. It may read files: call it on a thread that may block.
    pub(crate) fn find(&self, hub: &Hub, caller: &Caller) -> Result<AlarmDataPage, ApiError> {
        let AlarmPageLink { page_size, page, text_search, sort_order, conditions } = &self.page_link;
        if *page_size == 0 {
            return Err(ApiError::argument("pageSize is 0; it must be 1 or more"));
        }
        let by_entities = sort_order.as_ref().filter(|order| order.key.kind != KeyKind::AlarmField);
        let (sort, ascending) = order(sort_order.as_ref().filter(|_| by_entities.is_none()))?;
        let now = hub::clock::system_now();
        let filters = self.key_filters.clone().unwrap_or_default();
        let mut of_entities = entities_query(self.entity_filter.clone(), filters);
        of_entities.entity_fields = self.entity_fields.clone().unwrap_or_default();
        of_entities.latest_values = self.latest_values.clone().unwrap_or_default();
        of_entities.page_link.sort_order = by_entities.cloned();
        let found = find_entities(hub, caller, &of_entities)?;
        let places = found.iter().enumerate().filter(|_| by_entities.is_some());
        let ranks = places.map(|(place, entity)| (entity.id(), place)).collect();
        let entities: HashMap<EntityId, Entity> =
            found.into_iter().map(|entity| (entity.id(), entity)).collect();
        let query = AlarmQuery {
            entities: Some(entities.keys().copied().collect()),
            text: text_search.clone(),
            text_fields: text_fields(self.alarm_fields.as_deref().unwrap_or_default()),
            ranks,
            sort,
            ascending,
            page: *page,
            page_size: ALARM_PAGE_MAX.min(*page_size),
            ..conditions.query(now)?
        };
        let Page { data, total_pages, total_elements, has_next } = hub.alarms_page(caller, &query)?;
        let found = data.iter().map(|alarm| {
            let of = hub.entities_of_alarm(alarm).into_iter().find_map(|id| entities.get(&id));
            of.expect("BUG: an alarm of the page belongs to no entity of the query").clone()
        });
        let keys = of_entities.selected();
        let values = hub.values_of_entities(caller, found.collect(), &keys, now)?;
        let row = |(alarm, values): (Arc<Alarm>, EntityRow)| {
            let mut data = alarm_info_json(hub, &alarm);
            let EntityId { kind, id } = values.entity.id();
            data["entityId"] = entity(kind.name(), id);
            AlarmRow { data, values }
        };
        let data = data.into_iter().zip(values).map(row).collect();
        let page = Page { data, total_pages, total_elements, has_next };
        Ok(AlarmDataPage { keys, page, now, entities: entities.len() })
    }
}

impl AlarmCountQuery {
    /// The number. It may read files: call it on a thread that may block.
    pub(crate) fn count(&self, hub: &Hub, caller: &Caller) -> Result<usize, ApiError> {
        let filters = self.key_filters.clone().unwrap_or_default();
        let entities = match &self.entity_filter {
            Some(filter) => {
                let entities = find_entities(hub, caller, &entities_query(filter.clone(), filters))?;
                Some(entities.iter().map(Entity::id).collect())
            }
            None if filters.is_empty() => None,
            None => {
                return Err(ApiError::argument(
                    "the query has keyFilters and no entityFilter; name the entities",
                ));
            }
        };
        let query = AlarmQuery { entities, ..self.conditions.query(hub::clock::system_now())? };
        Ok(hub.alarm_count(caller, &query)?)
    }
}

impl Conditions {
    /// The search without its entities, its page and its order.
    fn query(&self, now: Timestamp) -> Result<AlarmQuery, ApiError> {
        let named = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        // 0 and -1 stand for no time, as in ThingsBoard.
        let moment = |name, millis: Option<i64>| time(name, millis.filter(|millis| *millis > 0));
        let (from, to) = match self.time_window.filter(|window| *window > 0) {
            Some(window) => (Timestamp::from_millis(now.millis().saturating_sub(window).max(0)), None),
            None => (moment("startTs", self.start_ts)?, moment("endTs", self.end_ts)?),
        };
        Ok(AlarmQuery {
            originators_only: !self.search_propagated_alarms,
            statuses: named(&self.status_list).iter().map(|name| parsed(name)).collect::<Result<_, _>>()?,
            severities: named(&self.severity_list)
                .iter()
                .map(|name| parsed(name))
                .collect::<Result<_, _>>()?,
            types: named(&self.type_list),
            assignee: self.assignee_id.as_ref().map(|user| user.id),
            from,
            to,
            ..AlarmQuery::default()
        })
    }
}

impl AlarmDataPage {
    /// A hash of what a client sees, without the time at which it was read.
    pub(crate) fn hash_with(&self, hashes: &RandomState) -> u64 {
        let mut hasher = hashes.build_hasher();
        (self.page.total_elements, self.page.has_next, self.entities).hash(&mut hasher);
        for row in &self.page.data {
            row.data.to_string().hash(&mut hasher);
            for (key, timed_value) in self.keys.iter().zip(&row.values.values) {
                // The time of a property is that of the answer.
                let ts = timed_value.as_ref().map(|(ts, _)| *ts).filter(|_| key.kind != KeyKind::EntityField);
                let value = timed_value.as_ref().map(|(_, value)| format!("{value:?}"));
                (ts.map(Timestamp::micros), value).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

impl Serialize for AlarmDataPage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { keys, page, now, .. } = self;
        let rows = || {
            page.data.iter().map(|row| AlarmDataJson {
                alarm: &row.data,
                latest: Latest { keys, values: &row.values.values, now: *now },
            })
        };
        let answer = PageJson {
            data: Sequence(rows),
            total_pages: page.total_pages,
            total_elements: page.total_elements,
            has_next: page.has_next,
        };
        answer.serialize(serializer)
    }
}

/// ThingsBoard's `AlarmData`.
#[derive(Serialize)]
struct AlarmDataJson<'a> {
    #[serde(flatten)]
    alarm: &'a JsonValue,
    latest: Latest<'a>,
}

/// The order of a page by members of alarms. Without one the newest come first.
fn order(order: Option<&SortOrder>) -> Result<(AlarmSort, bool), ApiError> {
    let Some(SortOrder { key, direction }) = order else { return Ok((AlarmSort::default(), false)) };
    Ok((parsed(&key.key)?, *direction == Direction::Asc))
}

/// The members of alarms with these names. Dashboards also name columns that no alarm has, such as a member of the details; they
/// have no effect, as in ThingsBoard.
fn text_fields(keys: &[EntityKey]) -> Vec<AlarmText> {
    keys.iter().filter_map(|key| key.key.parse().ok()).collect()
}

/// The query for the entities of a filter, in the order of the filter.
fn entities_query(entity_filter: EntityFilter, key_filters: Vec<KeyFilter>) -> EntityDataQuery {
    let page_link = PageLink {
        page_size: ALARM_QUERY_ENTITIES_MAX,
        page: 0,
        text_search: None,
        sort_order: None,
        dynamic: false,
    };
    let (entity_fields, latest_values) = (Vec::new(), Vec::new());
    EntityDataQuery { entity_filter, page_link, entity_fields, latest_values, key_filters }
}

fn find_entities(hub: &Hub, caller: &Caller, query: &EntityDataQuery) -> Result<Vec<Entity>, ApiError> {
    let Page { data, total_elements, .. } = hub.find_entity_page(caller, query)?;
    if total_elements > data.len() {
        let message = format!(
            "the query names {total_elements} entities, the limit is {ALARM_QUERY_ENTITIES_MAX} (ALARM_QUERY_ENTITIES_MAX); name a narrower filter"
        );
        return Err(ApiError::argument(message));
    }
    Ok(data)
}
