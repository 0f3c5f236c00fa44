//! `/api/sql`: a query, and its answer as it comes.
//!
//! Rows leave batch by batch: the next one is made when the client has taken the last one. An error before the first
//! batch is an answer like every other refusal. Later ones end the answer: JSON says so in its last member, all other
//! formats are cut off, which every HTTP client reports.

mod question;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::request::Params;
use super::session::Session;
use super::state::HttpState;
use crate::answer::{AnswerError, Format, pieces};
use crate::error::ApiError;
use question::Question;

/// `GET /api/sql?q=...&format=...`
pub(crate) async fn get(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let question = Question::from_params(&params, request.headers())?;
    ask(&state, &session, question).await
}

/// `POST /api/sql`: JSON with `query`, or the query as text.
pub(crate) async fn post(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    let question = Question::from_body(&params, request, session.body_account(&state)).await?;
    ask(&state, &session, question).await
}

async fn ask(state: &HttpState, session: &Session, question: Question) -> Result<Response, ApiError> {
    let format = question.format;
    let answer = state.hub.sql(&question.text, question.parameters, &session.reader()).await?;
    // What goes wrong at once, such as a table that cannot be read, still gets a status of its own.
    let pieces = pieces(answer, format).await.map_err(|error| match error {
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
