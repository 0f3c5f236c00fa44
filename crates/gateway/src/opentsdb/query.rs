//! `/api/query`.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use hub::caller::{Action, Caller};
use hub::time_series::Chunks;
use serde_json::Value;
use timeseries::opentsdb::{QueryError, queried_rows};

use super::annotation_query::QueryNotes;
use super::answers::{Refusal, json_answer};
use super::query_answer::send_answer;
use super::query_body::QueryBody;
use super::query_request::QueryRequest;
use super::request::{JsonRequest, RequestCaller, now, refused_task, run_query, stream_query};
use crate::http::tools::chunked_body::chunked_body;
use crate::http::tools::json::too_long;
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// `GET /api/query`.
pub(super) async fn get(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    uri: Uri,
) -> Result<Response, Refusal> {
    let request = QueryRequest::of_parameters(uri.query().unwrap_or_default(), now())?;
    answer(&state, caller, request).await
}

/// `POST /api/query`.
pub(super) async fn post(
    State(state): State<Arc<HttpState>>,
    params: Params,
    JsonRequest(caller, body): JsonRequest<Value>,
) -> Result<Response, Refusal> {
    let request = QueryBody::read(body)?.into_request(params.has("arrays"), now())?;
    match request.delete {
        true => delete_queried(&state, caller, request).await,
        false => answer(&state, caller, request).await,
    }
}

/// `DELETE /api/query`: answers like GET, and deletes the rows whose values it read.
pub(super) async fn delete(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    uri: Uri,
) -> Result<Response, Refusal> {
    let request = QueryRequest::of_parameters(uri.query().unwrap_or_default(), now())?;
    delete_queried(&state, caller, request).await
}

/// The answer while the query runs. An error before its first piece is a refusal; a later one cuts it off.
async fn answer(state: &HttpState, caller: Caller, request: QueryRequest) -> Result<Response, Refusal> {
    let notes = QueryNotes::new(state, &caller, &request.query, request.form);
    let chunks = stream_query(state, caller, move |source, sender| {
        send_answer(&request, source, &notes, &mut |piece| match sender.send(Bytes::from(piece)) {
            Ok(()) => ControlFlow::Continue(()),
            // The engine knows why; the query ends.
            Err(_) => ControlFlow::Break(()),
        })
    })?;
    streamed(chunks).await
}

/// The answer whose pieces the chunks are.
pub(super) async fn streamed(chunks: Chunks<Bytes, QueryError>) -> Result<Response, Refusal> {
    Ok(json_answer(StatusCode::OK, chunked_body(chunks).await.map_err(refused_task)?))
}

async fn delete_queried(
    state: &HttpState,
    caller: Caller,
    request: QueryRequest,
) -> Result<Response, Refusal> {
    caller.check(Action::DeleteData)?;
    let bytes_max = state.answer_bytes_max();
    let notes = QueryNotes::new(state, &caller, &request.query, request.form);
    let read = run_query(state, caller.clone(), move |source| {
        let mut text = String::new();
        send_answer(&request, source, &notes, &mut |piece| {
            text.push_str(&piece);
            if text.len() > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((text, queried_rows(&request.query, source)?))
    });
    let (text, rows) = {
        let read = read.await?;
        (read.0.clone(), read.1.clone())
    };
    // What the caller does not get to see is not deleted.
    if text.len() > bytes_max {
        return Err(too_long().into());
    }
    let hub = Arc::clone(&state.hub);
    state.changes.run(move || hub.delete_queried(&caller, rows)).await??;
    Ok(json_answer(StatusCode::OK, text))
}
