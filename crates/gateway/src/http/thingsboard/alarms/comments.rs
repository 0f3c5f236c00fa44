//! Comments of alarms.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::alarms::CommentsRequest;
use serde::Deserialize;
use serde_json::Value as JsonValue;
use uuid::Uuid;

use super::json::{comment_info_json, comment_json};
use super::request::{id_of, page, wrong_comment};
use crate::error::ApiError;
use crate::http::shapes::entities::page_answer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params, PathOf};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The body of a comment.
#[derive(Deserialize)]
pub(crate) struct CommentBody {
    id: Option<CommentId>,
    #[serde(rename = "type")]
    comment_type: Option<String>,
    comment: Option<JsonValue>,
}

#[derive(Deserialize)]
struct CommentId {
    id: Uuid,
}

/// `POST /api/alarm/{alarmId}/comment`
pub(crate) async fn save(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<CommentBody>,
) -> Result<Response, ApiError> {
    let alarm = id_of(&id, "an alarm")?;
    if body.comment_type.is_some_and(|name| name != "OTHER") {
        return Err(wrong_comment("users make comments of the type OTHER only"));
    }
    let comment = body.comment.ok_or_else(|| wrong_comment("the body has no comment"))?;
    let saved = match body.id {
        Some(CommentId { id }) => state.hub.edit_alarm_comment(session.caller(), alarm, id, comment).await?,
        None => state.hub.add_alarm_comment(session.caller(), alarm, comment).await?,
    };
    Ok(Json(comment_json(&saved)).into_response())
}

/// `GET /api/alarm/{alarmId}/comment?pageSize=&page=&sortProperty=&sortOrder=`
pub(crate) async fn list(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let alarm = id_of(&id, "an alarm")?;
    let (page, page_size) = page(&params)?;
    let sorted = match params.text("sortProperty") {
        None => false,
        Some("createdTime") => true,
        Some(other) => {
            let message = format!("comments are not sorted by {other:?}; use createdTime");
            return Err(ApiError::argument(message));
        }
    };
    // Without an order the newest come first.
    let ascending = sorted && !params.descending()?;
    let hub = Arc::clone(&state.hub);
    let read = move || -> Result<Response, ApiError> {
        let request = CommentsRequest { ascending, page, page_size };
        let page = hub.alarm_comments(session.caller(), alarm, request)?;
        Ok(page_answer(&page, |comment| comment_info_json(&hub, comment)))
    };
    state.reads.run(read).await?
}

/// `DELETE /api/alarm/{alarmId}/comment/{commentId}`
pub(crate) async fn delete(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((id, comment)): PathOf<(String, String)>,
) -> Result<(), ApiError> {
    let (id, comment) = (id_of(&id, "an alarm")?, id_of(&comment, "a comment")?);
    Ok(state.hub.delete_alarm_comment(session.caller(), id, comment).await?)
}
