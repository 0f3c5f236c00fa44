//! Changes of alarms.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::json::{alarm_info_json, alarm_json};
use super::request::{AlarmBody, id_of};
use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

type Answer = Result<Response, ApiError>;

/// `POST /api/alarm`
pub(crate) async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(body): JsonBody<AlarmBody>,
) -> Answer {
    let alarm = state.hub.save_alarm(session.caller(), body.alarm()?).await?;
    Ok(Json(alarm_json(&alarm)).into_response())
}

/// `POST /api/alarm/{alarmId}/ack`
pub(crate) async fn acknowledge(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let alarm = state.hub.acknowledge_alarm(session.caller(), id_of(&id, "an alarm")?).await?;
    Ok(Json(alarm_info_json(&state.hub, &alarm)).into_response())
}

/// `POST /api/alarm/{alarmId}/clear`
pub(crate) async fn clear(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let alarm = state.hub.clear_alarm(session.caller(), id_of(&id, "an alarm")?, None).await?;
    Ok(Json(alarm_info_json(&state.hub, &alarm)).into_response())
}

/// `POST /api/alarm/{alarmId}/assign/{userId}`
pub(crate) async fn assign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((id, user)): PathOf<(String, String)>,
) -> Answer {
    let (id, user) = (id_of(&id, "an alarm")?, id_of(&user, "a user")?);
    let alarm = state.hub.assign_alarm(session.caller(), id, user).await?;
    Ok(Json(alarm_json(&alarm)).into_response())
}

/// `DELETE /api/alarm/{alarmId}/assign`
pub(crate) async fn unassign(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    let alarm = state.hub.unassign_alarm(session.caller(), id_of(&id, "an alarm")?).await?;
    Ok(Json(alarm_json(&alarm)).into_response())
}

/// `DELETE /api/alarm/{alarmId}`
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
) -> Answer {
    state.hub.delete_alarm(session.caller(), id_of(&id, "an alarm")?).await?;
    Ok(Json(true).into_response())
}
