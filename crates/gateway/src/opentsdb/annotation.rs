//! Annotations: `/api/annotation`, `/api/annotations` and `/api/annotation/bulk`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hub::annotations::{Annotation, AnnotationChange};
use hub::caller::Caller;
use hub::clock::system_now;
use serde::Serialize;
use serde_json::json;

use super::annotation_body::{AnnotationBody, DeletionBody, instant, of_params};
use super::answers::{Refusal, json_answer};
use super::body;
use super::limits::ANNOTATIONS_BODY_BYTES_MAX;
use super::request::{RequestCaller, parsed};
use crate::error::ApiError;
use crate::http::tools::request::Params;
use crate::http::tools::route_list::Routes;
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::state::HttpState;

/// What a handler gets besides a body.
type RequestHead = (State<Arc<HttpState>>, Params, Result<SeriesCaller, ApiError>);

/// The routes of annotations.
pub(super) fn routes() -> Routes {
    Routes::default()
        .get("/api/annotation", get)
        .post("/api/annotation", |head: RequestHead, request: Request| save(head, request, false))
        .put("/api/annotation", |head: RequestHead, request: Request| save(head, request, true))
        .delete("/api/annotation", delete)
        .get("/api/annotations", global)
        .post("/api/annotation/bulk", |head: RequestHead, request: Request| save_all(head, request, false))
        .put("/api/annotation/bulk", |head: RequestHead, request: Request| save_all(head, request, true))
        .delete("/api/annotation/bulk", delete_all)
}

/// `GET /api/annotation`: the annotation of a series, or of all, that begins at a time.
async fn get((State(state), params, caller): RequestHead, request: Request) -> Result<Response, Refusal> {
    let (caller, wanted) = one(&state, &params, caller, request).await?;
    let hub = Arc::clone(&state.hub);
    let find = move || {
        let database = hub.own_database(&caller);
        hub.annotation(&caller, &database, &wanted.tsuid, wanted.start_time)
    };
    match state.attributes.run(find).await?? {
        Some(found) => Ok(answer(&found)),
        None => Err(ApiError::not_found("Unable to locate annotation in storage").into()),
    }
}

/// `POST` and `PUT /api/annotation`: adds or changes an annotation. PUT empties what the request does not say.
async fn save(
    (State(state), params, caller): RequestHead,
    request: Request,
    replace: bool,
) -> Result<Response, Refusal> {
    let (caller, change) = one(&state, &params, caller, request).await?;
    if !change.is_change() {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    }
    let saved = store(&state, caller, vec![change], replace).await?;
    Ok(answer(&saved[0]))
}

/// `DELETE /api/annotation`: 204, also if there is none.
async fn delete((State(state), params, caller): RequestHead, request: Request) -> Result<Response, Refusal> {
    let (caller, wanted) = one(&state, &params, caller, request).await?;
    let hub = Arc::clone(&state.hub);
    let delete = move || {
        let database = hub.own_database(&caller);
        hub.delete_annotation(&caller, &database, &wanted.tsuid, wanted.start_time)
    };
    let sequence = state.attributes.run(delete).await??;
    state.hub.kv_durable(sequence).await.map_err(ApiError::from)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `GET /api/annotations`: the annotations of all series that begin in a time.
async fn global(
    State(state): State<Arc<HttpState>>,
    params: Params,
    RequestCaller(caller): RequestCaller,
) -> Result<Response, Refusal> {
    check_method(&params)?;
    let start = params.text("start_time").ok_or_else(|| Refusal::bad_request("Missing start time"))?;
    let from = instant(start)?;
    let to = params.text("end_time").map_or_else(|| Ok(system_now().millis()), instant)?;
    let hub = Arc::clone(&state.hub);
    let find = move || {
        let database = hub.own_database(&caller);
        hub.annotations(&caller, &database, "", from..=to)
    };
    Ok(answer(&state.attributes.run(find).await??))
}

/// `POST` and `PUT /api/annotation/bulk`: adds or changes annotations, all or none. Those of which nothing is said are left out.
async fn save_all(
    (State(state), params, caller): RequestHead,
    request: Request,
    replace: bool,
) -> Result<Response, Refusal> {
    let (caller, body) = body::read(&state, caller, request, ANNOTATIONS_BODY_BYTES_MAX).await?;
    check_method(&params)?;
    let changes: Vec<AnnotationBody> = parsed(&body.bytes)?;
    let changes = changes.into_iter().map(AnnotationChange::from).filter(AnnotationChange::is_change);
    Ok(answer(&store(&state, caller, changes.collect(), replace).await?))
}

/// `DELETE /api/annotation/bulk`: deletes the annotations of series, or of all, that begin in a time.
async fn delete_all(
    (State(state), params, caller): RequestHead,
    request: Request,
) -> Result<Response, Refusal> {
    let (caller, body) = body::read(&state, caller, request, ANNOTATIONS_BODY_BYTES_MAX).await?;
    check_method(&params)?;
    let asked = match body.bytes.is_empty() {
        true => DeletionBody::of_params(&params),
        false => parsed(&body.bytes)?,
    };
    let (deletion, (from, to)) = asked.checked()?;
    let hub = Arc::clone(&state.hub);
    let delete = move || {
        let database = hub.own_database(&caller);
        hub.delete_annotations(&caller, &database, &deletion, from..=to)
    };
    let (count, sequence) = state.attributes.run(delete).await??;
    state.hub.kv_durable(sequence).await.map_err(ApiError::from)?;
    Ok(answer(&json!({
        "tsuids": asked.tsuids, "global": asked.global, "startTime": asked.start_time,
        "endTime": asked.end_time, "totalDeleted": count,
    })))
}

/// The caller, and the annotation that a body or parameters name.
async fn one(
    state: &HttpState,
    params: &Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Result<(Caller, AnnotationChange), Refusal> {
    let (caller, body) = body::read(state, caller, request, ANNOTATIONS_BODY_BYTES_MAX).await?;
    check_method(params)?;
    let change = match body.bytes.is_empty() {
        true => of_params(params)?,
        false => parsed::<AnnotationBody>(&body.bytes)?.into(),
    };
    Ok((caller, change))
}

/// Stores changes, and waits until they are on the disk.
async fn store(
    state: &HttpState,
    caller: Caller,
    changes: Vec<AnnotationChange>,
    replace: bool,
) -> Result<Vec<Annotation>, Refusal> {
    let hub = Arc::clone(&state.hub);
    let save = move || {
        let database = hub.own_database(&caller);
        hub.save_annotations(&caller, &database, changes, replace)
    };
    let (saved, sequence) = state.attributes.run(save).await??;
    state.hub.kv_durable(sequence).await.map_err(ApiError::from)?;
    Ok(saved)
}

/// Refuses a request that another method would do something else.
fn check_method(params: &Params) -> Result<(), Refusal> {
    match params.has("method_override") {
        true => {
            Err(Refusal::bad_request("method_override is not supported; send the request with that method"))
        }
        false => Ok(()),
    }
}

fn answer(found: &impl Serialize) -> Response {
    let body = serde_json::to_string(found).expect("BUG: numbers and texts are always JSON");
    json_answer(StatusCode::OK, body)
}
