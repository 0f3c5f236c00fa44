//! Searches for alarms.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::alarms::{Alarm, AlarmQuery};
use serde_json::{Value as JsonValue, json};

use super::json::{alarm_info_json, alarm_json};
use super::request::{assignee, entity_of, id_of, page, query_v1, query_v2, statuses};
use crate::error::ApiError;
use crate::http::shapes::entities::{PageJson, page_answer};
use crate::http::tools::json::{Json, entity};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

type Answer = Result<Response, ApiError>;

/// `GET /api/alarm/{alarmId}`
pub(crate) async fn show(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let alarm = state.hub.alarm(session.caller(), id_of(&id, "an alarm")?)?;
    state.hub.alarms_durable().await?;
    Ok(Json(alarm_json(&alarm)).into_response())
}

/// `GET /api/alarm/info/{alarmId}`
pub(crate) async fn show_info(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let alarm = state.hub.alarm(session.caller(), id_of(&id, "an alarm")?)?;
    state.hub.alarms_durable().await?;
    Ok(Json(alarm_info_json(&state.hub, &alarm)).into_response())
}

/// `GET /api/alarm/{entityType}/{entityId}`
pub(crate) async fn of_entity(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Answer {
    let entity = entity_of(&kind, &id)?;
    state.hub.check_alarm_entity(session.caller(), entity)?;
    let query = query_v1(&params, Some(entity))?;
    found(state, session, query, with_originator(&params)?).await
}

/// `GET /api/v2/alarm/{entityType}/{entityId}`
pub(crate) async fn of_entity_v2(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Answer {
    let entity = entity_of(&kind, &id)?;
    state.hub.check_alarm_entity(session.caller(), entity)?;
    found(state, session, query_v2(&params, Some(entity))?, true).await
}

/// `GET /api/alarms`
pub(crate) async fn all(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    found(state, session, query_v1(&params, None)?, with_originator(&params)?).await
}

/// `GET /api/v2/alarms`
pub(crate) async fn all_v2(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    found(state, session, query_v2(&params, None)?, true).await
}

/// `GET /api/alarm/highestSeverity/{entityType}/{entityId}`
pub(crate) async fn highest_severity(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Answer {
    let entity = entity_of(&kind, &id)?;
    state.hub.check_alarm_entity(session.caller(), entity)?;
    let query = AlarmQuery {
        entities: Some([entity].into()),
        statuses: statuses(&params)?,
        assignee: assignee(&params)?,
        ..AlarmQuery::default()
    };
    let hub = Arc::clone(&state.hub);
    let highest = state.reads.run(move || hub.highest_severity(session.caller(), &query)).await??;
    state.hub.alarms_durable().await?;
    Ok(Json(highest.map(|severity| severity.name())).into_response())
}

/// `GET /api/alarm/types?pageSize=&page=&textSearch=&sortOrder=`
pub(crate) async fn types(State(state): State<Arc<HttpState>>, session: Session, params: Params) -> Answer {
    let (page, page_size) = page(&params)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let mut types = state.reads.run(move || hub.alarm_types(&caller)).await??;
    state.hub.alarms_durable().await?;
    if let Some(text) = params.text("textSearch").map(str::to_lowercase) {
        types.retain(|name| name.to_lowercase().contains(&text));
    }
    if params.descending()? {
        types.reverse();
    }
    let total_elements = types.len();
    let skipped = page.saturating_mul(page_size);
    let tenant = entity("TENANT", session.caller().tenant());
    let subtype = |name: Arc<str>| json!({ "tenantId": tenant, "entityType": "ALARM", "type": &*name });
    let data: Vec<JsonValue> = types.into_iter().skip(skipped).take(page_size).map(subtype).collect();
    let has_next = !data.is_empty() && skipped.saturating_add(data.len()) < total_elements;
    let total_pages = total_elements.div_ceil(page_size);
    Ok(Json(PageJson { data, total_pages, total_elements, has_next }).into_response())
}

/// Whether the answer names the originators: `fetchOriginator`, which is true if it is absent.
fn with_originator(params: &Params) -> Result<bool, ApiError> {
    if params.text("fetchOriginator").is_none() { Ok(true) } else { params.flag("fetchOriginator") }
}

async fn found(state: Arc<HttpState>, session: Session, query: AlarmQuery, with_originator: bool) -> Answer {
    let hub = Arc::clone(&state.hub);
    let search = move || -> Answer {
        let page = hub.alarms_page(session.caller(), &query)?;
        let info = |alarm: &Arc<Alarm>| {
            let mut info = alarm_info_json(&hub, alarm);
            if !with_originator {
                info["originatorName"] = JsonValue::Null;
                info["originatorLabel"] = JsonValue::Null;
            }
            info
        };
        Ok(page_answer(&page, info))
    };
    let answer = state.reads.run(search).await?;
    state.hub.alarms_durable().await?;
    answer
}
