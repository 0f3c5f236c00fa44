//! The requests that write.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hub::points::Points;

use super::answers::refusal;
use super::body;
use super::limits::PUT_BYTES_MAX;
use super::outcome::Wanted;
use super::rows::{Form, collect, name_refused};
use crate::error::ApiError;
use crate::http::request::Params;
use crate::http::series_caller::SeriesCaller;
use crate::http::series_rows::{Target, store_rows};
use crate::http::state::HttpState;

/// `POST /api/put`: 204 once the points are on the disk.
pub(super) async fn values(
    State(state): State<Arc<HttpState>>,
    params: Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Response {
    put(&state, Form::Value, &params, caller, request).await.unwrap_or_else(|error| refusal(&error))
}

/// `POST /api/mput`: 204 once the points are on the disk.
pub(super) async fn fields(
    State(state): State<Arc<HttpState>>,
    params: Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Response {
    put(&state, Form::Fields, &params, caller, request).await.unwrap_or_else(|error| refusal(&error))
}

async fn put(
    state: &Arc<HttpState>,
    form: Form,
    params: &Params,
    caller: Result<SeriesCaller, ApiError>,
    request: Request,
) -> Result<Response, ApiError> {
    let (caller, body) = body::read(state, caller, request, PUT_BYTES_MAX).await?;
    let body = Arc::new(body);
    let database = state.hub.own_database(&caller);
    let target = Target { caller, database, topic: form.path() };
    let (bytes, read) = (body.bytes.len(), Arc::clone(&body));
    let collect = move |points: &mut Points| {
        let malformed = |error| ApiError::bad_request(format!("Unable to parse the given JSON: {error}"));
        collect(points, form, &read.bytes).map_err(malformed)
    };
    let (accepted, mut outcome) = store_rows(state, &target, bytes, collect).await?;
    name_refused(&body.bytes, &accepted.refused, &mut outcome);
    Ok(outcome.answer(Wanted::of(params)))
}
