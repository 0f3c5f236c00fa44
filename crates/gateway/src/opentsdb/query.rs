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
use super::asked::Asked;
use super::asking::{Asker, Asking, ask, now, refused_task, stream as stream_query};
use super::query_answer::send_answer;
use super::query_body::QueryBody;
use crate::http::tools::chunked_body::chunked_body;
use crate::http::tools::json::too_long;
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// `GET /api/query`.
pub(super) async fn get(
    State(state): State<Arc<HttpState>>,
    Asker(caller): Asker,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked = Asked::of_parameters(uri.query().unwrap_or_default(), now())?;
    answer(&state, caller, asked).await
}

/// `POST /api/query`.
pub(super) async fn post(
    State(state): State<Arc<HttpState>>,
    params: Params,
    Asking(caller, body): Asking<Value>,
) -> Result<Response, Refusal> {
    let asked = QueryBody::read(body)?.asked(params.has("arrays"), now())?;
    match asked.delete {
        true => delete_queried(&state, caller, asked).await,
        false => answer(&state, caller, asked).await,
    }
}

/// `DELETE /api/query`: answers like GET, and deletes the rows whose values it read.
pub(super) async fn delete(
    State(state): State<Arc<HttpState>>,
    Asker(caller): Asker,
    uri: Uri,
) -> Result<Response, Refusal> {
    let asked = Asked::of_parameters(uri.query().unwrap_or_default(), now())?;
    delete_queried(&state, caller, asked).await
}

/// The answer while the query runs. An error before its first piece is a refusal; a later one cuts it off.
async fn answer(state: &HttpState, caller: Caller, asked: Asked) -> Result<Response, Refusal> {
    let notes = QueryNotes::new(state, &caller, &asked.query, asked.look);
    let chunks = stream_query(state, caller, move |source, sender| {
        send_answer(&asked, source, &notes, &mut |piece| match sender.send(Bytes::from(piece)) {
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

async fn delete_queried(state: &HttpState, caller: Caller, asked: Asked) -> Result<Response, Refusal> {
    caller.check(Action::DeleteData)?;
    let bytes_max = state.answer_bytes_max();
    let notes = QueryNotes::new(state, &caller, &asked.query, asked.look);
    let read = ask(state, caller.clone(), move |source| {
        let mut text = String::new();
        send_answer(&asked, source, &notes, &mut |piece| {
            text.push_str(&piece);
            if text.len() > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok((text, queried_rows(&asked.query, source)?))
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
