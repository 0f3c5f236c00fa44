//! The caller of a request and its JSON body, and the execution of a query over the own database of the tenant.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use hub::caller::Caller;
use hub::registry::OWN_DATABASE;
use hub::sql::{Reader, SqlError};
use hub::time_series::{ChunkSender, Chunks, Counted, TaskError};
use serde::de::DeserializeOwned;
use timeseries::Source;
use timeseries::opentsdb::QueryError;

use super::answers::Refusal;
use super::body;
use super::limits::QUERY_BYTES_MAX;
use crate::error::{ApiError, ErrorCode};
use crate::http::tools::series_caller::SeriesCaller;
use crate::http::tools::state::HttpState;

/// The caller of a request that reads. It is refused in the shape of this interface.
#[derive(Debug)]
pub(super) struct RequestCaller(pub(super) Caller);

impl FromRequestParts<Arc<HttpState>> for RequestCaller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Refusal> {
        let SeriesCaller(caller) = SeriesCaller::from_request_parts(parts, state).await?;
        Ok(Self(caller))
    }
}

/// A request that asks with a JSON body: the caller and the body.
#[derive(Debug)]
pub(super) struct JsonRequest<T>(pub(super) Caller, pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<HttpState>> for JsonRequest<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let caller = SeriesCaller::from_request_parts(&mut parts, state).await;
        let request = Request::from_parts(parts, body);
        let (caller, body) = body::read(state, caller, request, QUERY_BYTES_MAX).await?;
        Ok(Self(caller, parsed(&body.bytes)?))
    }
}

/// Reads JSON.
pub(super) fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    // Tools of Windows write a byte order mark before UTF-8 text.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(text).map_err(|error| {
        Refusal::bad_request("Unable to parse the given JSON").with_details(error.to_string())
    })
}

/// Runs a query with the limits of statements.
pub(super) async fn run_query<T: Send + 'static>(
    state: &HttpState,
    caller: Caller,
    query: impl FnOnce(&dyn Source) -> Result<T, QueryError> + Send + 'static,
) -> Result<Counted<T>, Refusal> {
    let database = state.hub.database(&caller, OWN_DATABASE)?;
    let answer = state.hub.time_series(&Reader::from(caller), &database, query).await;
    answer.map_err(refused_task)
}

/// Like [`run_query`], for a query that sends its answer in chunks.
pub(super) fn stream_query<C: Send + 'static>(
    state: &HttpState,
    caller: Caller,
    query: impl FnOnce(&dyn Source, &ChunkSender<C>) -> Result<(), QueryError> + Send + 'static,
) -> Result<Chunks<C, QueryError>, Refusal> {
    let database = state.hub.database(&caller, OWN_DATABASE)?;
    state.hub.stream_time_series(&Reader::from(caller), &database, query).map_err(refused_by_engine)
}

/// The refusal of a query that ran.
pub(super) fn refused_task(error: TaskError<QueryError>) -> Refusal {
    match error {
        TaskError::Engine(error) => refused_by_engine(error),
        TaskError::Task(error) => error.into(),
    }
}

/// OpenTSDB's status for what costs too much is 413.
fn refused_by_engine(error: SqlError) -> Refusal {
    match error {
        SqlError::OverLimit { .. } | SqlError::Timeout { .. } => {
            too_much(error.to_string()).with_details("Ask for less time, fewer series or longer intervals")
        }
        error => ApiError::from(error).into(),
    }
}

fn too_much(message: String) -> Refusal {
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::BadRequest, "query_limit", message).into()
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        let message = error.to_string();
        match error {
            QueryError::Invalid(_) => Self::bad_request(message),
            QueryError::NoSuchMetric(_) => Self::bad_request(message).with_details(
                "A metric is a table with numbers in the column value, or a table, a dot and a column with numbers. \
                 /api/suggest?type=metrics lists them",
            ),
            QueryError::OverLimit { .. } => too_much(message),
            QueryError::Source(_) => ApiError::internal(message).into(),
        }
    }
}

/// The time of the server, in milliseconds since 1970.
pub(super) fn now() -> i64 {
    hub::clock::system_now().millis()
}
