//! `/api/sql`: runs a query and streams its answer, or deletes rows.
//!
//! Rows leave batch by batch: the engine makes the next batch when the client has taken the last one. An error before the
//! first batch is an answer like every other refusal. A later error ends the answer: JSON has it as last member, and all other
//! formats are cut off, which every HTTP client reports.

mod request;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hub::caller::Action;
use hub::sql::{Parameter, Reader};

use crate::answer::{AnswerError, Format, Pieces, deleted_rows, pieces};
use crate::error::ApiError;
use crate::http::tools::request::Params;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;
use crate::statements::is_deletion;
use request::SqlRequest;

/// `GET /api/sql?q=...&format=...`
pub(crate) async fn get(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let request = SqlRequest::from_params(&params, request.headers())?;
    if is_deletion(&request.text) {
        return Err(ApiError::argument("GET only reads; send DELETE with POST"));
    }
    ask(&state, &session, request).await
}

/// `POST /api/sql`: JSON with `query`, or the query as text.
pub(crate) async fn post(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let request = SqlRequest::from_body(&params, request, session.body_account(&state)).await?;
    if is_deletion(&request.text) {
        return delete(&state, &session, request).await;
    }
    ask(&state, &session, request).await
}

async fn ask(state: &HttpState, session: &Session, request: SqlRequest) -> Result<Response, ApiError> {
    let reader = reader(state, session, &request)?;
    let answer = state.hub.sql(&request.text, request.parameters, &reader).await?;
    respond(pieces(answer, request.format).await, request.format)
}

/// Deletes the rows that a DELETE names, and answers with their number when the deletion is on the disk.
async fn delete(state: &HttpState, session: &Session, request: SqlRequest) -> Result<Response, ApiError> {
    session.check(Action::DeleteData)?;
    let (hub, reader) = (Arc::clone(&state.hub), reader(state, session, &request)?);
    let types: Vec<_> = request.parameters.iter().map(Parameter::data_type).collect();
    let deletion = hub.prepare_sql_deletion(&request.text, &types, &reader).await?;
    let rows = hub.rows_to_delete(&deletion, request.parameters, &reader).await?;
    let deleted = state.changes.run(move || hub.delete_named_rows(&reader, rows)).await??;
    respond(deleted_rows(deleted, request.format), request.format)
}

/// The reader of the database of a request.
fn reader(state: &HttpState, session: &Session, request: &SqlRequest) -> Result<Reader, ApiError> {
    let reader = session.reader();
    Ok(match &request.database {
        Some(name) => {
            let database = state.hub.database(session.caller(), name)?;
            reader.in_database(database)
        }
        None => reader,
    })
}

fn respond(pieces: Result<Pieces, AnswerError>, format: Format) -> Result<Response, ApiError> {
    // An error before the first rows, for example an unreadable table, gets its own status.
    let pieces = pieces.map_err(|error| match error {
        AnswerError::Query(error) => error.into(),
        AnswerError::Encode(error) => ApiError::argument(error.to_string()),
    })?;
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if format == Format::Parquet {
        let name = HeaderValue::from_static("attachment; filename=\"answer.parquet\"");
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}
