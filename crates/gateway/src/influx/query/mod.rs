//! Queries: `/query` of version 1, in InfluxQL.

mod answer_format;
mod changes;
mod indent;
mod lists;
mod refusal;
mod request;
mod run;
mod scope;
mod select_into;
mod text;
mod values;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{iter, unfold};
use hub::caller::{Action, Caller};
use timeseries::influxql::ast::Statement;

use super::answers::{Dialect, with_version};
use super::limits::PIECE_BYTES;
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::Params;
use crate::http::tools::series_caller::series_caller;
use crate::http::tools::state::HttpState;
use request::QueryRequest;
use run::Run;

/// `GET /query?q=...` and `POST /query` with a form: answers statements of InfluxQL.
pub(super) async fn v1(
    State(state): State<Arc<HttpState>>,
    params: Params,
    peer: Peer,
    request: Request,
) -> Response {
    let answered = answer(&state, &params, peer, request).await;
    answered.unwrap_or_else(|error| Dialect::V1.refusal(&error))
}

/// `POST /api/v2/query`: Flux, which is absent.
pub(super) async fn v2() -> Response {
    let message = "Flux is not supported; send InfluxQL to /query, or SQL to /api/sql";
    let status = StatusCode::NOT_IMPLEMENTED;
    Dialect::V2.refusal(&ApiError::new(status, ErrorCode::BadRequest, "flux", message))
}

async fn answer(
    state: &Arc<HttpState>,
    params: &Params,
    Peer(peer): Peer,
    request: Request,
) -> Result<Response, ApiError> {
    let caller = series_caller(state, request.headers(), params, peer).await?;
    let sender = Sender::caller(&caller);
    let request = QueryRequest::read(state, request, sender).await?;
    authorize(&caller, &request.statements)?;
    let (media_type, is_chunked) = (request.form.media_type(), request.form.chunk.is_some());
    let mut run = Run::new(Arc::clone(state), caller, request);
    let mut first = run.next().await?.unwrap_or_default();
    // Most answers are short, and get a length. Chunks go at once.
    while !is_chunked && first.len() < PIECE_BYTES && !run.has_ended() {
        first.extend(run.next().await?.unwrap_or_default());
    }
    let body = match run.has_ended() {
        true => Body::from(first),
        false => {
            let rest = unfold(run, |mut run| async {
                // Only a first piece can be an error.
                let piece = run.next().await.ok().flatten();
                piece.map(|piece| (Bytes::from(piece), run))
            });
            Body::from_stream(iter([Bytes::from(first)]).chain(rest).map(Ok::<_, Infallible>))
        }
    };
    Ok(with_version(([(header::CONTENT_TYPE, media_type)], body).into_response()))
}

/// Checks the permissions that the statements need, before the first of them runs.
fn authorize(caller: &Caller, statements: &[Statement]) -> Result<(), ApiError> {
    let refused = |error| ApiError::forbidden(format!("error authorizing query: {error}"));
    for statement in statements {
        let action = match statement {
            Statement::CreateDatabase { .. } => Action::CreateDatabases,
            Statement::RetentionPolicy(_) => Action::ManageTables,
            Statement::DropDatabase { .. }
            | Statement::DropMeasurement { .. }
            | Statement::DropSeries { .. }
            | Statement::Delete { .. } => Action::DeleteData,
            Statement::Select(select) if select.into.is_some() => {
                caller.check(Action::Read).map_err(refused)?;
                Action::Write
            }
            Statement::Select(_) | Statement::Show(_) | Statement::Refused(_) => Action::Read,
        };
        caller.check(action).map_err(refused)?;
    }
    Ok(())
}
